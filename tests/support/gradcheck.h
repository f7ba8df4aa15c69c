#pragma once

#include "tessera/tests/support/cases.h"

/// Gradient check by central differences in float64 of the op itself.
namespace tessera::test {

/// What is wrong with `grads`, gradients of sum(seed * call(inputs)); undefined ones are not looked at. Tries the
/// derivative by up to 8 elements of each input, and along one random direction of +-1 in all of them.
///
/// D = (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12 h with h = 2^-10. Its error is at most
///   6 k eps M / h    rounding, each f being known within 4 k eps M, and
///   h^4 / 30 f'''''  truncation, with the fifth derivative taken to be within 1000 M,
/// M being the sum of |seed| * magnitude over the outputs that moved. Together about 4e-11 M for small k: a wrong factor,
/// sign or term shows, however small.
std::vector<std::string> gradcheck(const std::function<Tensor(const Tensors&)>& call, const Tensors& inputs,
                                   const Tensors& grads, const Tensor& seed, const std::vector<double>& magnitude, double k,
                                   uint64_t random_seed);

}  // namespace tessera::test
