#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/tests/support/inputs.h"
#include "tessera/tests/support/reference.h"

/// The case harness. A case says what an op is; `verify` tests all that follows from it:
///
///     TEST(Elementwise, Mul) {
///       for (const int64_t width : kWidths)
///         verify({.name = "mul " + std::to_string(width),
///                 .inputs = {real({5, width}).saved(), real({5, width}).saved()},
///                 .call = [](const Tensors& in) { return mul(in[0], in[1]); },
///                 .reference = [](const Arrays& in) {
///                   Array out(in[0].shape);
///                   for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][i] * in[1][i];
///                   return out;
///                 }});
///     }
///
/// For f32 and f64, with 1, 2 and 3 threads, on every instruction set that this CPU has, and having proven that this
/// set and these threads are the ones that run:
/// - the output equals the reference within 4 k eps magnitude (reference.h derives the magnitude), shape and dtype too;
/// - so do the gradients, for a random seed gradient, against the reference's own tape;
/// - 2 and 3 threads give the bits that 1 thread gives, outputs and gradients;
/// - output memory is handed out full of NaN, so an element that is not written shows;
/// - the op changes none of its inputs, nor the seed gradient, and no two gradients share memory.
/// Once for each dtype:
/// - f64: central differences of the op itself agree with the gradients (`gradcheck.h`);
/// - an input that wants no gradient gets none, and the others' bits do not change; NoGrad records nothing;
/// - `backward` refuses when an input that is `saved()` was changed after the forward, and gives the same bits when any
///   other input, or the output (unless `saves_output`), was changed.
namespace tessera::test {

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<Tensor(const Tensors&)> call;
  /// Naive, and by another algorithm than the op's. Without one (a case too large for its tape of 20M steps) only what
  /// needs none is tested: determinism, differences, versions.
  std::function<Array(const Arrays&)> reference;
  double k = 1;               ///< roundings that a term of the output may go through; 0: the correctly rounded value
  double grad_k = 2;          ///< the same for gradients
  bool smooth = true;         ///< no kink within 1/512 of the inputs: central differences are taken
  bool saves_output = false;  ///< the op keeps its output for the backward pass
  std::vector<DType> dtypes = {DType::f32, DType::f64};
  uint64_t seed = 1;  ///< of inputs and seed gradient
};

/// Everything that is wrong, one line each; empty when nothing is.
std::vector<std::string> complaints(const Case& c);

/// Fails the running test, at the caller's line, for each complaint.
void verify(const Case& c, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// "InvalidArgument: <text>", "Unsupported: ...", "IoError: ...", "InternalError: ...", "bad_alloc", or "no error":
/// EXPECT_EQ(error_of([&] { add(a, b); }), "InvalidArgument: add: a has shape [2] but b has shape [3]").
std::string error_of(const std::function<void()>& call);

struct ErrorCase {
  std::function<void()> call;
  std::string error;  ///< as `error_of` gives it: type and full text
};

/// Fails for each call that does not end in exactly its error.
void verify_errors(const std::vector<ErrorCase>& cases, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace tessera::test
