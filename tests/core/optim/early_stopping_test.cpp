#include "tessera/core/optim/early_stopping.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(early_stopping, waits_for_patience_epochs_after_the_best) {
  EarlyStopping s{.patience = 2};
  EXPECT_TRUE(s.update(1, 3));
  EXPECT_TRUE(s.update(2, 1));
  EXPECT_FALSE(s.update(3, 1)) << "an equal value is no better one";
  EXPECT_FALSE(s.stopped());
  EXPECT_FALSE(s.update(4, std::nan("")));
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(s.best_epoch, 2);
  EXPECT_EQ(s.best, 1);
}

TEST(early_stopping, larger_is_better_and_patience_0_never_stops) {
  EarlyStopping s{.larger_is_better = true};
  EXPECT_FALSE(s.update(1, std::nan("")));
  EXPECT_TRUE(s.update(2, 0));
  EXPECT_TRUE(s.update(3, 0.5));
  for (int i = 4; i < 100; ++i) EXPECT_FALSE(s.update(i, 0.1));
  EXPECT_FALSE(s.stopped());
}

}  // namespace
}  // namespace tessera
