#include "tessera/tests/support/gradcheck.h"

#include <cmath>
#include <cstdio>
#include <memory>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/random.h"

namespace tessera::test {
namespace {

constexpr double kStep = 0x1p-10;
constexpr int64_t kProbes = 8;

}  // namespace

std::vector<std::string> gradcheck(const std::function<Tensor(const Tensors&)>& call, const Tensors& inputs,
                                   const Tensors& grads, const Tensor& seed, const std::vector<double>& magnitude, double k,
                                   uint64_t random_seed) {
  const NoGrad off;
  const double* weight = seed.data<double>();
  const double eps = 0x1p-53;
  std::vector<std::string> wrong;
  for (size_t which = 0; which < inputs.size(); ++which) {
    if (!grads[which].defined() || inputs[which].numel() == 0) continue;
    const int64_t numel = inputs[which].numel();
    const Philox random(random_seed, 1000 + which);
    const int64_t probes = numel < kProbes ? numel : kProbes;
    for (int64_t probe = 0; probe <= probes; ++probe) {
      const bool along_all = probe == probes;
      const int64_t at = numel <= kProbes ? probe : int64_t(random.word(uint64_t(probe)) % uint64_t(numel));
      const auto direction = [&](int64_t j) {
        if (!along_all) return j == at ? 1.0 : 0.0;
        return (random.word(uint64_t(100 + j)) & 1) != 0 ? 1.0 : -1.0;
      };
      const auto moved = [&](double step) {
        Tensors copy = inputs;
        copy[which] = clone(inputs[which]);
        double* x = copy[which].mutable_data<double>();
        for (int64_t j = 0; j < numel; ++j) x[j] += step * direction(j);
        return call(copy);
      };
      const Tensor a = moved(kStep), b = moved(-kStep), c = moved(2 * kStep), d = moved(-2 * kStep);
      long double difference = 0, scale = 0;
      for (int64_t i = 0; i < a.numel(); ++i) {
        const long double fa = a.data<double>()[i], fb = b.data<double>()[i], fc = c.data<double>()[i],
                          fd = d.data<double>()[i];
        if (fa == fb && fc == fd) continue;
        difference += weight[i] * (8 * (fa - fb) - (fc - fd));
        scale += std::fabs(weight[i]) * magnitude[size_t(i)];
      }
      difference /= 12 * kStep;
      long double expected = 0, terms = 0;
      for (int64_t j = 0; j < numel; ++j) {
        const double term = direction(j) * grads[which].data<double>()[j];
        expected += term;
        terms += std::fabs(term);
      }
      const long double bound =
          scale * (6 * (k + 1) * eps / kStep + 34 * kStep * kStep * kStep * kStep) + 8 * (k + 1) * eps * terms;
      if (std::fabs(difference - expected) <= bound) continue;
      char text[240];
      std::snprintf(text, sizeof text, "gradient of input %zu %s is %.12Lg but central differences give %.12Lg within %.2Lg",
                    which, along_all ? "along a random direction" : ("at element " + std::to_string(at)).c_str(), expected,
                    difference, bound);
      wrong.push_back(text);
      break;  // one element of an input tells enough
    }
  }
  return wrong;
}

}  // namespace tessera::test
