#include "tessera/core/shape.h"

#include <gtest/gtest.h>

#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Shape, SizesAndCounts) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.ndim(), 3);
  EXPECT_EQ(s.numel(), 24);
  EXPECT_EQ(s[0], 2);
  EXPECT_EQ(s[2], 4);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s[-3], 2);
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ(Shape{}.ndim(), 0);
  EXPECT_EQ((Shape{5, 0, 7}).numel(), 0);
  EXPECT_EQ(to_text(s), "[2, 3, 4]");
  EXPECT_EQ(to_text(Shape{}), "[]");
  EXPECT_EQ(to_text(Shape{7}), "[7]");
}

TEST(Shape, Equality) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_NE((Shape{2, 0}), (Shape{0, 2}));
  EXPECT_NE(Shape{}, (Shape{1}));
}

TEST(Shape, With) {
  EXPECT_EQ((Shape{2, 3}).with(0, 9), (Shape{9, 3}));
  EXPECT_EQ((Shape{2, 3}).with(1, 0), (Shape{2, 0}));
  EXPECT_EQ((Shape{2, 3}).with(1, 0).numel(), 0);
}

TEST(Shape, Errors) {
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1}).ndim(), 6);
  const int64_t billion = 1'000'000'000;
  verify_errors({
      {[] { Shape{1, 1, 1, 1, 1, 1, 1}; }, "InvalidArgument: shape: 7 dimensions given but at most 6 are supported"},
      {[] {
         Shape{2, -1};
       },
       "InvalidArgument: shape: dimension 1 has size -1 but needs a size of 0 or more"},
      {[=] {
         Shape{billion, billion, billion};
       },
       "InvalidArgument: shape: the number of elements exceeds 2^63 - 1"},
      {[] {
         (Shape{2, 3}).with(0, -4);
       },
       "InvalidArgument: shape: dimension 0 has size -4 but needs a size of 0 or more"},
  });
  EXPECT_EQ((Shape{billion, billion, 9}).numel(), 9'000'000'000'000'000'000);
}

}  // namespace
}  // namespace tessera::test
