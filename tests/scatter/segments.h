#pragma once

#include <vector>

#include "tessera/core/ops/create.h"
#include "tessera/scatter/reduce.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/reference.h"

/// The plain references of the tests of scatter/.
namespace tessera::test {

/// What an output holds before the rows come.
enum class Before { nothing, keep, include };

/// values[rows of each group] reduced, in the order given; `initial` counts as before all of them.
inline Real reduce_reference(const std::vector<Real>& values, Reduce reduce, Before before, const Real& initial) {
  std::vector<Real> all;
  if (before == Before::include) all.push_back(initial);
  all.insert(all.end(), values.begin(), values.end());
  if (all.empty()) return before == Before::keep ? initial : Real(reduce == Reduce::mul ? 1 : 0);
  Real out = all[0];
  for (size_t i = 1; i < all.size(); ++i) {
    if (reduce == Reduce::sum || reduce == Reduce::mean) out += all[i];
    if (reduce == Reduce::mul) out *= all[i];
    if (reduce == Reduce::max && (all[i] > out || (isnan(all[i]) && !isnan(out)))) out = all[i];
    if (reduce == Reduce::min && (all[i] < out || (isnan(all[i]) && !isnan(out)))) out = all[i];
  }
  return reduce == Reduce::mean ? out / Real(double(all.size())) : out;
}

/// Rows of x (E, F) reduced by index (E) into `size` rows; `initial` as x.
inline Array scatter_reference(const Array& x, const Array& index, int64_t size, Reduce reduce,
                               Before before = Before::nothing, const Array& initial = {}) {
  int64_t width = 1;
  for (int i = 1; i < x.shape.ndim(); ++i) width *= x.dim(i);
  Array out(x.shape.with(0, size));
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(size));
  for (int64_t e = 0; e < index.numel(); ++e) rows[size_t(index.id(e))].push_back(e);
  for (int64_t s = 0; s < size; ++s)
    for (int64_t j = 0; j < width; ++j) {
      std::vector<Real> values;
      for (const int64_t e : rows[size_t(s)]) values.push_back(x[e * width + j]);
      out[s * width + j] =
          reduce_reference(values, reduce, before, before == Before::nothing ? Real(0) : initial[s * width + j]);
    }
  return out;
}

inline constexpr Reduce kReductions[] = {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::mul};

}  // namespace tessera::test
