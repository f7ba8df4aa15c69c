#include "tessera/core/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Schedule, Step) {
  const StepSchedule schedule{.lr = 1, .every = 3, .gamma = 0.5};
  EXPECT_EQ(schedule.at(0), 1);
  EXPECT_EQ(schedule.at(2), 1);
  EXPECT_EQ(schedule.at(3), 0.5);
  EXPECT_EQ(schedule.at(7), 0.25);
}

TEST(Schedule, Cosine) {
  const CosineSchedule schedule{.lr = 1, .total = 4, .least = 0.5};
  EXPECT_EQ(schedule.at(0), 1);
  EXPECT_NEAR(schedule.at(1), 0.75 + 0.25 * std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(schedule.at(2), 0.75, 1e-15);
  EXPECT_EQ(schedule.at(4), 0.5);
  EXPECT_EQ(schedule.at(9), 0.5);
}

TEST(Schedule, WarmUp) {
  const WarmUp factor{.steps = 4, .start = 0.5};
  EXPECT_EQ(factor.at(0), 0.5);
  EXPECT_EQ(factor.at(2), 0.75);
  EXPECT_EQ(factor.at(4), 1);
  EXPECT_EQ(factor.at(9), 1);
  EXPECT_EQ((WarmUp{.steps = 0}).at(0), 1);
}

TEST(Schedule, Plateau) {
  Plateau plateau{.lr = 1, .factor = 0.5, .patience = 1, .threshold = 0.1, .cooldown = 1, .least = 0.3};
  EXPECT_EQ(plateau.update(10), 1);     // the first is the best
  EXPECT_EQ(plateau.update(9.5), 1);    // within the threshold: bad 1
  EXPECT_EQ(plateau.update(8.9), 1);    // better
  EXPECT_EQ(plateau.update(8.9), 1);    // bad 1
  EXPECT_EQ(plateau.update(NAN), 0.5);  // bad 2
  EXPECT_EQ(plateau.update(9), 0.5);    // cools down
  EXPECT_EQ(plateau.update(9), 0.5);    // bad 1
  Plateau resumed = plateau;            // its members are its whole state
  EXPECT_EQ(plateau.update(9), 0.3);    // bad 2, down to the least
  EXPECT_EQ(resumed.update(9), 0.3);
  Plateau upwards{.lr = 1, .patience = 0, .larger_is_better = true};
  EXPECT_EQ(upwards.update(0.5), 1);
  EXPECT_EQ(upwards.update(0.6), 1);
  EXPECT_EQ(upwards.update(0.6), 0.1);
}

TEST(Schedule, Errors) {
  verify_errors({
      {[] { StepSchedule{.lr = 1, .every = 0}.at(1); }, "InvalidArgument: step schedule: every is 0 but needs to be 1 or more"},
      {[] { CosineSchedule{.lr = 1, .total = 0}.at(1); },
       "InvalidArgument: cosine schedule: total is 0 but needs to be 1 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
