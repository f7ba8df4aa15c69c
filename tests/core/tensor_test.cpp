#include "tessera/core/tensor.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Tensor, FromCopies) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor x = Tensor::from(values, {2, 3});
  values.assign(6, -1);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.device(), Device::cpu);
  EXPECT_EQ(x.ndim(), 2);
  EXPECT_EQ(x.dim(0), 2);
  EXPECT_EQ(x.dim(-1), 3);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.span<float>()[5], 6);
  EXPECT_EQ(Tensor::from<int64_t>({7}, {}).dtype(), DType::i64);
  EXPECT_EQ(Tensor::from<uint8_t>({}, {0, 4}).shape(), (Shape{0, 4}));
}

TEST(Tensor, CopiesShareTheArray) {
  Tensor a = Tensor::from<float>({1, 2}, {2});
  Tensor b = a;
  EXPECT_TRUE(a.is(b));
  b.mutable_data<float>()[0] = 9;
  EXPECT_EQ(a.data<float>()[0], 9);
  EXPECT_FALSE(a.is(a.detach()));
  EXPECT_FALSE(Tensor().defined());
  EXPECT_TRUE(Tensor().is(Tensor()));
}

TEST(Tensor, VersionsAreSharedByViews) {
  Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  Tensor rows = x.view_rows(1, 3), flat = x.view_as({6}), plain = x.detach();
  const uint64_t version = x.version();
  for (Tensor* view : {&rows, &flat, &plain, &x}) {
    const uint64_t before = x.version();
    view->mutable_data<float>();
    EXPECT_EQ(x.version(), before + 1);
    view->mutable_raw();
    EXPECT_EQ(flat.version(), before + 2);
  }
  EXPECT_EQ(x.version(), version + 8);
  x.data<float>();
  x.span<float>();
  x.raw();
  EXPECT_EQ(x.version(), version + 8);
  EXPECT_EQ(clone(x).version() == x.version() && clone(x).raw() == x.raw(), false);
}

TEST(Tensor, ViewRows) {
  const Tensor x = Tensor::from<int32_t>({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_EQ(x.view_rows(1, 3).to_vector<int32_t>(), (std::vector<int32_t>{3, 4, 5, 6}));
  EXPECT_EQ(x.view_rows(1, 3).view_rows(1, 2).to_vector<int32_t>(), (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(x.view_rows(3, 3).shape(), (Shape{0, 2}));
  EXPECT_EQ(x.view_rows(1, 2).raw(), x.data<int32_t>() + 2);
  EXPECT_EQ(Tensor::empty({0, 2}).view_rows(0, 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(Tensor::empty({2, 0}).view_rows(1, 2).shape(), (Shape{1, 0}));
  EXPECT_EQ(Tensor::from<double>({1, 2}, {2}).view_rows(1, 2).item(), 2);
  Tensor view;
  {
    const Tensor owner = Tensor::from<float>({1, 2}, {2, 1});
    view = owner.view_rows(1, 2);
  }
  EXPECT_EQ(view.item(), 2);
}

TEST(Tensor, Item) {
  EXPECT_EQ(Tensor::from<float>({2.5f}, {}).item(), 2.5);
  EXPECT_EQ(Tensor::from<double>({0.1}, {1, 1}).item(), 0.1);
  EXPECT_EQ(Tensor::from<int64_t>({1 << 30}, {1}).item(), 1 << 30);
  EXPECT_EQ(Tensor::from<uint8_t>({255}, {1}).item(), 255);
  EXPECT_EQ(cast(Tensor::from<float>({1.5f}, {}), DType::bf16).item(), 1.5);
  EXPECT_EQ(cast(Tensor::from<float>({-0.25f}, {}), DType::f16).item(), -0.25);
}

// H55: the copying form is the default; the borrowing form keeps its owner for as long as any view lives.
TEST(Tensor, BorrowKeepsTheOwner) {
  auto owner = std::make_shared<std::vector<float>>(548);
  std::iota(owner->begin(), owner->end(), 0.0f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  Tensor view;
  {
    float* data = owner->data();
    Tensor x = Tensor::borrow(data, {137, 4}, DType::f32, std::move(owner));
    EXPECT_EQ(x.raw(), data);
    x.mutable_data<float>()[4] = -1;
    EXPECT_EQ(data[4], -1);
    EXPECT_EQ(x.version(), 1u);
    view = x.view_rows(1, 2);
  }
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{-1, 5, 6, 7}));
  view = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, BorrowedMemoryOutlivesTheGraphThatUsesIt) {
  auto owner = std::make_shared<std::vector<double>>(2, 3.0);
  const std::weak_ptr<std::vector<double>> watch = owner;
  Tensor w = Tensor::from<double>({1, 2}, {2});
  w.set_requires_grad();
  Tensor y;
  {
    double* data = owner->data();
    y = mul(Tensor::borrow(data, {2}, DType::f64, std::move(owner)), w);
  }
  EXPECT_FALSE(watch.expired());  // mul saved it
  y = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, GradientState) {
  Tensor x = Tensor::from<float>({1, 2}, {2});
  EXPECT_FALSE(x.requires_grad());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(x.set_requires_grad().requires_grad());
  EXPECT_FALSE(x.detach().requires_grad());
  EXPECT_FALSE(x.view_as({2, 1}).requires_grad());
  EXPECT_FALSE(x.view_rows(0, 1).requires_grad());
  EXPECT_FALSE(clone(x).requires_grad());
  EXPECT_TRUE(Tensor(x).requires_grad());
  EXPECT_FALSE(x.set_requires_grad(false).requires_grad());
  EXPECT_EQ(x.detach().raw(), x.raw());
}

TEST(Tensor, Errors) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  Tensor writable = x, leaf = x.detach();
  leaf.set_requires_grad();
  Tensor computed = scale(leaf, 2), integers = Tensor::from<int32_t>({1}, {1});
  float stack[2] = {};
  const int64_t exa = int64_t{1} << 60;
  verify_errors({
      {[] { Tensor().shape(); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[] { Tensor().data<float>(); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[] { Tensor().item(); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[] { Tensor().detach(); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[] { Tensor().grad(); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[] {
         Tensor::from<float>({1, 2, 3}, {2, 2});
       },
       "InvalidArgument: tensor: 3 values given but shape [2, 2] needs 4"},
      {[] { Tensor::from<float>({}, {}); }, "InvalidArgument: tensor: 0 values given but shape [] needs 1"},
      {[=] {
         Tensor::empty({exa, 4}, DType::f64);
       },
       "InvalidArgument: tensor: shape [1152921504606846976, 4] of f64 exceeds 2^63 - 1 bytes"},
      {[=] { Tensor::empty({exa}, DType::f32); }, "bad_alloc"},
      {[] { Tensor::empty({2}, DType::f32, Device::cuda); },
       "Unsupported: storage: device cuda needs the CUDA plugin, which is not loaded"},
      {[&] { Tensor::borrow(stack, {2}, DType::f32, nullptr); },
       "InvalidArgument: tensor: borrowed memory needs an owner; use Tensor::from for a copy"},
      {[&] { x.data<double>(); }, "InvalidArgument: tensor: elements asked as f64 but the dtype is f32"},
      {[&] { writable.mutable_data<int32_t>(); }, "InvalidArgument: tensor: elements asked as i32 but the dtype is f32"},
      {[&] { x.to_vector<uint8_t>(); }, "InvalidArgument: tensor: elements asked as u8 but the dtype is f32"},
      {[&] { x.item(); }, "InvalidArgument: item: the tensor has shape [3, 2] but needs one element"},
      {[&] { Tensor::empty({0}).item(); }, "InvalidArgument: item: the tensor has shape [0] but needs one element"},
      {[&] { x.view_rows(-1, 2); }, "InvalidArgument: view_rows: rows [-1, 2) are not within [0, 3)"},
      {[&] { x.view_rows(2, 1); }, "InvalidArgument: view_rows: rows [2, 1) are not within [0, 3)"},
      {[&] { x.view_rows(0, 4); }, "InvalidArgument: view_rows: rows [0, 4) are not within [0, 3)"},
      {[&] { Tensor::from<float>({1}, {}).view_rows(0, 1); }, "InvalidArgument: view_rows: a scalar has no rows"},
      {[&] { x.view_as({4}); }, "InvalidArgument: view_as: shape [4] has 4 elements but the tensor of shape [3, 2] has 6"},
      {[&] { integers.set_requires_grad(); }, "InvalidArgument: set_requires_grad: dtype i32 has no gradients"},
      {[&] { computed.set_requires_grad(); },
       "InvalidArgument: set_requires_grad: the tensor was computed from others; detach() it first"},
      {[&] { computed.set_requires_grad(false); },
       "InvalidArgument: set_requires_grad: the tensor was computed from others; detach() it first"},
  });
  const uint64_t version = writable.version();
  EXPECT_ANY_THROW(writable.mutable_data<double>());
  EXPECT_EQ(writable.version(), version);  // a refused write is no change
}

}  // namespace
}  // namespace tessera::test
