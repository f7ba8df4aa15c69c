#include "tessera/layers/pool/sort_pool.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tessera/core/ops/arrange.h"
#include "tessera/layers/pool/select.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

Tensor sort_pool(const Tensor& x, const SegmentPlan& nodes, int64_t k) {
  check(k >= 1, "sort_pool: k is {} but needs to be 1 or more", k);
  check(x.defined() && x.ndim() == 2 && x.dim(1) >= 1, "sort_pool: x needs to be [N, C] with 1 channel or more");
  check(nodes.defined(), "sort_pool: nodes is undefined");
  const int64_t graphs = nodes.num_segments(), channels = x.dim(1);
  check(graphs == 0 || k <= std::numeric_limits<int32_t>::max() / graphs,
        "sort_pool: k is {}, which for {} graphs are more than 2147483647 rows", k, graphs);
  const Tensor last = reshape(slice(x.detach(), 1, channels - 1, channels), Shape{x.dim(0)});
  const Selection best = select_top(last, nodes, double(k));
  // A product with one entry in each slot that a node fills: a copy that also knows its way back.
  const int64_t* offsets = best.nodes.offsets().data<int64_t>();
  std::vector<int64_t> rows = {0};
  for (int64_t g = 0; g < graphs; ++g)
    for (int64_t i = 0; i < k; ++i) rows.push_back(offsets[g] + std::min(i + 1, offsets[g + 1] - offsets[g]));
  const Graph slots = Graph::from_csr(Tensor::from(rows, {int64_t(rows.size())}), best.perm, x.dim(0));
  return reshape(spmm(slots, x), Shape{graphs, k * channels});
}

}  // namespace tessera
