#include "tessera/core/confusion.h"

#include <gtest/gtest.h>

#include "tessera/core/error.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

TEST(confusion, counts_and_shares) {
  const Tensor scores = Tensor::from({1.F, 0.F, 0.F, 0.F, 2.F, 1.F, 3.F, 3.F, 0.F, 0.F, 1.F, 0.F}, Shape{4, 3});
  const Tensor labels = Tensor::from<int32_t>({0, 1, 1, 1}, Shape{4});
  const Confusion m = confusion(scores, labels);
  EXPECT_EQ(m.counts, (std::vector<int64_t>{1, 0, 0, 1, 2, 0, 0, 0, 0}));  // node 2 is a tie: class 0
  EXPECT_EQ(m.total(), 4);
  EXPECT_DOUBLE_EQ(m.precision(0), 0.5);
  EXPECT_DOUBLE_EQ(m.recall(1), 2.0 / 3);
  EXPECT_DOUBLE_EQ(m.f1(1), 0.8);
  EXPECT_EQ(m.f1(2), 0);  // neither labelled nor predicted
  EXPECT_EQ(confusion(scores, labels, Tensor::from<int32_t>({3}, Shape{1})).total(), 1);
}

TEST(confusion, names_the_first_offender) {
  const Tensor scores = Tensor::from({1.F, 0.F}, Shape{1, 2});
  EXPECT_EQ(error_of<InvalidArgument>([&] { (void)confusion(scores, Tensor::from<int32_t>({-1}, Shape{1})); }),
            "confusion: labels[0] is -1 but needs to be in [0, 2)");
  EXPECT_EQ(error_of<InvalidArgument>([&] {
              (void)confusion(scores, Tensor::from<int32_t>({0}, Shape{1}), Tensor::from<int32_t>({1}, Shape{1}));
            }),
            "confusion: rows[0] is 1 but needs to be in [0, 1)");
}

}  // namespace
}  // namespace tessera
