#include "tessera/tests/support/cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/proof.h"

/// The harness must see what it promises to see: each case here is an op with one fault.
namespace tessera::test {
namespace {

bool mentions(const std::vector<std::string>& complaints, const std::string& text) {
  for (const std::string& line : complaints)
    if (line.find(text) != std::string::npos) return true;
  return false;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

void expect_complaint(const Case& c, const std::string& text, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  const std::vector<std::string> found = complaints(c);
  if (!mentions(found, text)) ADD_FAILURE_AT(file, line) << "no complaint has '" << text << "':\n" << joined(found);
}

Array squares(const Arrays& in) {
  Array out(in[0].shape);
  for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][i] * in[0][i];
  return out;
}

/// x * x, with whatever fault `backward` has.
Case square(std::function<Tensor(const Tensor& x)> call) {
  return {.name = "square",
          .inputs = {real({3, 5}).saved()},
          .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
          .reference = squares};
}

/// x * x whose gradient is 2 x grad, times `factor`.
Tensor square_with_gradient(const Tensor& x, double factor) {
  Tensor out = mul(x.detach(), x.detach());
  record("square", out, {x}, [x = Saved(x), factor](const Tensor& grad, Gradients& into) {
    into.add(0, mul(scale(x.get(), 2 * factor), grad));
  });
  return out;
}

TEST(Cases, ASoundOpHasNoComplaints) {
  EXPECT_EQ(joined(complaints(square([](const Tensor& x) { return square_with_gradient(x, 1); }))), "");
  EXPECT_EQ(joined(complaints(square([](const Tensor& x) { return mul(x, x); }))), "");
}

TEST(Cases, WrongValueInOneElement) {
  const Case c = square([](const Tensor& x) {
    Tensor bent = clone(x);
    with_float(x.dtype(), "test", [&]<class T>() { bent.mutable_data<T>()[14] *= T(1.00001); });
    Tensor out = mul(bent, bent);
    record("square", out, {x},
           [x = Saved(x)](const Tensor& grad, Gradients& into) { into.add(0, mul(scale(x.get(), 2), grad)); });
    return out;
  });
  expect_complaint(c, "f32 baseline 1 thread: output element 14 is ");
  expect_complaint(c, "f64 baseline 1 thread: output element 14 is ");
}

TEST(Cases, WrongGradientByOnePartInTenBillions) {
  Case c = square([](const Tensor& x) { return square_with_gradient(x, 1 + 1e-9); });
  expect_complaint(c, "f64 baseline 1 thread: gradient of input 0 at element 0 is ");
  c.reference = nullptr;
  expect_complaint(c, "but central differences give ");
}

TEST(Cases, MissingGradientTerm) {
  // d(x * x) with only one of the two factors' terms.
  expect_complaint(square([](const Tensor& x) { return mul(x, clone(x)); }), "gradient of input 0 at element 0 is ");
}

TEST(Cases, NoGradientAtAll) {
  expect_complaint(square([](const Tensor& x) { return mul(x.detach(), x.detach()); }),
                   "the output does not require a gradient although an input does");
  expect_complaint(square([](const Tensor& x) {
                     Tensor out = mul(x.detach(), x.detach());
                     record("square", out, {x}, [](const Tensor&, Gradients&) {});
                     return out;
                   }),
                   "input 0 got no gradient");
}

TEST(Cases, RecordsUnderNoGrad) {
  expect_complaint(square([](const Tensor& x) {
                     Tensor out = mul(x.detach(), x.detach());
                     attach("square", out, {x}, [x = Saved(x)](const Tensor& grad, Gradients& into) {
                       into.add(0, mul(scale(x.get(), 2), grad));
                     });
                     return out;
                   }),
                   "the output requires a gradient although no input does");
}

TEST(Cases, SavesWithoutTheVersion) {
  expect_complaint(square([](const Tensor& x) {
                     Tensor out = mul(x.detach(), x.detach());
                     record("square", out, {x},
                            [x = x.detach()](const Tensor& grad, Gradients& into) { into.add(0, mul(scale(x, 2), grad)); });
                     return out;
                   }),
                   "after a change of input 0, which is saved, backward gave: no error");
}

TEST(Cases, SavesMoreOrLessThanDeclared) {
  Case c = square([](const Tensor& x) { return mul(x, x); });
  c.inputs = {real({3, 5})};
  expect_complaint(c, "after a change of input 0, which is not said to be saved, backward gave: InvalidArgument: backward:");
  c.inputs = {real({3, 5}).saved()};
  c.saves_output = true;
  expect_complaint(c, "after a change of the output, which is saved, backward gave: no error");
}

TEST(Cases, ReadsAnUndeclaredInputInBackward) {
  Case c = square([](const Tensor& x) {
    Tensor out = mul(x.detach(), x.detach());
    record("square", out, {x},
           [x = x.detach()](const Tensor& grad, Gradients& into) { into.add(0, mul(scale(x, 2), grad)); });
    return out;
  });
  c.inputs = {real({3, 5})};
  expect_complaint(c, "a change of input 0 changed the gradient of input 0 without an error");
}

TEST(Cases, ChangesItsInput) {
  expect_complaint(square([](const Tensor& x) {
                     Tensor out = square_with_gradient(clone(x), 1);
                     Tensor view = x.detach();
                     view.mutable_raw();
                     return out;
                   }),
                   "input 0 was changed by the op");
}

TEST(Cases, LeavesAnElementUnwritten) {
  expect_complaint(square([](const Tensor& x) {
                     Tensor out = Tensor::empty(x.shape(), x.dtype());
                     with_float(x.dtype(), "test", [&]<class T>() {
                       for (int64_t i = 0; i + 1 < x.numel(); ++i)
                         out.mutable_data<T>()[i] = x.data<T>()[i] * x.data<T>()[i];
                     });
                     return out;
                   }),
                   "nan but needs ");
}

TEST(Cases, DependsOnTheThreadCount) {
  expect_complaint(square([](const Tensor& x) {
                     Tensor out = square_with_gradient(x, 1);
                     with_float(x.dtype(), "test", [&]<class T>() {
                       if (threads() == 3)
                         out.mutable_data<T>()[7] *= 1 + (x.dtype() == DType::f32 ? T(0x1p-23) : T(0x1p-52));
                     });
                     return out;
                   }),
                   "3 threads: bits of the output differ from those of 1 thread");
}

TEST(Cases, DependsOnTheInstructionSet) {
  if (isas().size() == 1) GTEST_SKIP() << "this CPU has the baseline set only";
  expect_complaint(square([](const Tensor& x) { return square_with_gradient(x, active_isa() == Isa::avx2 ? 1.01 : 1); }),
                   "f32 avx2 1 thread: gradient of input 0 at element 0 is ");
}

TEST(Cases, WrongShapeOrDtype) {
  expect_complaint(square([](const Tensor& x) { return mul(x, x).view_as(Shape{15}); }),
                   "the output has shape [15] but the reference has [3, 5]");
  Case c = square([](const Tensor& x) { return cast(mul(x, x), threads() == 2 ? DType::f16 : x.dtype()); });
  expect_complaint(c, "2 threads");
}

TEST(Cases, ThrowsSomewhere) {
  expect_complaint(square([](const Tensor& x) {
                     check(threads() != 2, "square: two threads are too many");
                     return mul(x, x);
                   }),
                   "f32 baseline 2 threads: threw: square: two threads are too many");
}

TEST(Cases, GradientAlthoughNotWanted) {
  Case c = square([](const Tensor& x) { return mul(x, x); });
  c.inputs = {real({3, 5}).saved().no_grad()};
  EXPECT_EQ(joined(complaints(c)), "");
}

TEST(Cases, ComplaintsSayHowOften) {
  const std::vector<std::string> found = complaints(square([](const Tensor& x) { return mul(x.detach(), x.detach()); }));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].substr(0, 40), "case 'square' f32 baseline 1 thread: the");
  EXPECT_NE(found[0].find(" other settings)"), std::string::npos);
}

TEST(Cases, ErrorTexts) {
  EXPECT_EQ(error_of([] {}), "no error");
  EXPECT_EQ(error_of([] { fail("a {}", 1); }), "InvalidArgument: a 1");
  EXPECT_EQ(error_of([] { fail<Unsupported>("b"); }), "Unsupported: b");
  EXPECT_EQ(error_of([] { fail<IoError>("c"); }), "IoError: c");
  EXPECT_EQ(error_of([] { fail<InternalError>("d"); }), "InternalError: d");
  EXPECT_EQ(error_of([] { throw std::bad_alloc(); }), "bad_alloc");
}

TEST(Cases, InputsAreWhatTheySay) {
  const Tensors in = make_inputs({real({1000}, 2, 3), apart({100}), ids({1000}, 7), given({3}, {1, 2, 0.5}),
                                  given_ids({2}, {-1, 5000000000}, DType::i64)},
                                 DType::f64, 3);
  double least = 10;
  for (const double x : in[0].span<double>()) EXPECT_TRUE(x >= 2 && x < 3);
  std::vector<double> sorted = in[1].to_vector<double>();
  EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end()));
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i) least = std::min(least, sorted[i] - sorted[i - 1]);
  EXPECT_NEAR(least, 0.02, 1e-12);
  for (const double x : sorted) EXPECT_GE(std::abs(x), 0.01 - 1e-12);
  std::vector<int> seen(7);
  for (const int32_t id : in[2].span<int32_t>()) ++seen.at(size_t(id));
  for (const int count : seen) EXPECT_GT(count, 80);
  EXPECT_EQ(in[3].to_vector<double>(), (std::vector<double>{1, 2, 0.5}));
  EXPECT_EQ(in[4].to_vector<int64_t>(), (std::vector<int64_t>{-1, 5000000000}));
  EXPECT_TRUE(same_bits(in[0], make_inputs({real({1000}, 2, 3)}, DType::f64, 3)[0]));
  EXPECT_FALSE(same_bits(in[0], make_inputs({real({1000}, 2, 3)}, DType::f64, 4)[0]));
  // All bits of a double are in use, or a float64 kernel that goes through float32 would not show.
  EXPECT_NE(in[0].data<double>()[0], double(float(in[0].data<double>()[0])));
}

}  // namespace
}  // namespace tessera::test
