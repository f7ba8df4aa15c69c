#pragma once

#include <vector>

#include "tessera/core/tensor.h"

/// What cases are called with: tensors from a description and a seed.
namespace tessera::test {

using Tensors = std::vector<Tensor>;

/// How to make one input. Real inputs take the dtype under test and want a gradient; integer ones do not.
struct Input {
  enum class Fill { uniform, apart, given };

  Shape shape;
  DType dtype = DType::f64;  ///< of an integer input; f64 stands for the dtype under test
  Fill fill = Fill::uniform;
  double low = -1, high = 1;
  std::vector<double> list{};
  bool wants_grad = true;
  bool is_saved = false;

  /// The op keeps it for the backward pass.
  Input& saved();
  /// It is a constant for this case.
  Input& no_grad();
};

/// Uniform in [low, high).
Input real(const Shape& shape, double low = -1, double high = 1);
/// Shuffled, pairwise different by (high - low) / numel and none within half of that of 0 (for a symmetric range): no
/// ties and no kinks. Keep numel below 250 when central differences are to run.
Input apart(const Shape& shape, double low = -1, double high = 1);
/// Exactly these (rounded to the dtype).
Input given(const Shape& shape, std::vector<double> values);
/// Uniform integers in [0, bound).
Input ids(const Shape& shape, int64_t bound, DType dtype = DType::i32);
/// Exactly these integers.
Input given_ids(const Shape& shape, const std::vector<int64_t>& values, DType dtype = DType::i32);

/// The tensors that `verify` would call with.
Tensors make_inputs(const std::vector<Input>& inputs, DType dtype, uint64_t seed = 1);

/// A seed gradient: uniform in [-1, 1).
Tensor random_seed(const Shape& shape, DType dtype, uint64_t seed = 1);

/// Whether shape, dtype and every bit are the same; undefined equals undefined.
bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace tessera::test
