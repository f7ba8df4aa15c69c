#include "tessera/layers/pool/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kGraphGrain = 64;

void check_score(const char* who, const Tensor& score, const SegmentPlan& nodes) {
  check(score.defined() && nodes.defined(), "{}: score and nodes need to be defined", who);
  check(score.ndim() == 1 && score.dim(0) == nodes.num_rows(), "{}: score has shape {} but nodes has {} rows", who,
        score.shape(), nodes.num_rows());
  check(!nodes.order().defined(), "{}: the nodes of a graph need to be consecutive", who);
}

/// Offsets (G + 1) of `count(g)` nodes each.
template <class Count>
Tensor offsets_of(int64_t graphs, Count&& count) {
  Tensor offsets = Tensor::empty(Shape{graphs + 1}, DType::i64);
  int64_t* at = offsets.mutable_data<int64_t>();
  at[0] = 0;
  for (int64_t g = 0; g < graphs; ++g) at[g + 1] = at[g] + count(g);
  return offsets;
}

}  // namespace

Selection select_top(const Tensor& score, const SegmentPlan& nodes, double ratio) {
  check_score("select_top", score, nodes);
  check(ratio > 0, "select_top: ratio is {} but needs to be above 0", ratio);
  const int64_t* from = nodes.offsets().data<int64_t>();
  const Tensor offsets = offsets_of(nodes.num_segments(), [&](int64_t g) {
    const int64_t n = from[g + 1] - from[g];
    if (ratio >= 1) return ratio < double(n) ? int64_t(ratio) : n;
    return std::min(n, std::max<int64_t>(1, int64_t(std::ceil(float(ratio) * float(n)))));
  });
  const int64_t* to = offsets.data<int64_t>();
  Tensor perm = Tensor::empty(Shape{to[nodes.num_segments()]}, DType::i64);
  int64_t* out = perm.mutable_data<int64_t>();
  with_float(score.dtype(), "select_top", [&]<class T>() {
    const T* s = score.data<T>();
    parallel_for(nodes.num_segments(), kGraphGrain, [=](int64_t begin, int64_t end) {
      std::vector<int64_t> order;
      for (int64_t g = begin; g < end; ++g) {
        order.resize(size_t(from[g + 1] - from[g]));
        std::iota(order.begin(), order.end(), from[g]);
        const auto better = [s](int64_t a, int64_t b) {
          if (s[a] > s[b] || (std::isnan(s[a]) && !std::isnan(s[b]))) return true;
          if (s[b] > s[a] || (std::isnan(s[b]) && !std::isnan(s[a]))) return false;
          return a < b;
        };
        const int64_t k = to[g + 1] - to[g];
        std::partial_sort(order.begin(), order.begin() + k, order.end(), better);
        std::copy_n(order.begin(), k, out + to[g]);
      }
    });
  });
  return {perm, SegmentPlan::from_offsets(offsets)};
}

Selection select_above(const Tensor& score, const SegmentPlan& nodes, double min_score) {
  check_score("select_above", score, nodes);
  check(!std::isnan(min_score), "select_above: min_score is NaN but needs to be a number");
  const int64_t* from = nodes.offsets().data<int64_t>();
  std::vector<int64_t> kept;
  Tensor offsets;
  with_float(score.dtype(), "select_above", [&]<class T>() {
    const T* s = score.data<T>();
    offsets = offsets_of(nodes.num_segments(), [&](int64_t g) {
      T largest = -std::numeric_limits<T>::infinity();
      for (int64_t i = from[g]; i < from[g + 1]; ++i) largest = s[i] > largest ? s[i] : largest;
      const T bound = std::min(largest - T(1e-7), T(min_score));
      const size_t before = kept.size();
      for (int64_t i = from[g]; i < from[g + 1]; ++i)
        if (!(s[i] <= bound) || s[i] == largest) kept.push_back(i);
      return int64_t(kept.size() - before);
    });
  });
  return {Tensor::from(kept, {int64_t(kept.size())}), SegmentPlan::from_offsets(offsets)};
}

}  // namespace tessera
