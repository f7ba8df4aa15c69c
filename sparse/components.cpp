// Union-find with path halving, the lower root winning: a root is its component's lowest node.

#include "tessera/sparse/components.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tessera {

Components connected_components(const Graph& graph) {
  check(graph.defined() && graph.num_src() == graph.num_dst(), "connected_components: the graph needs to be square");
  const int64_t n = graph.num_dst();
  std::vector<int32_t> parent(static_cast<size_t>(n));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int32_t i) {
    while (parent[size_t(i)] != i) i = parent[size_t(i)] = parent[size_t(parent[size_t(i)])];
    return i;
  };
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  for (int64_t d = 0; d < n; ++d)
    for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) {
      const int32_t a = root(int32_t(d)), b = root(col[k]);
      parent[size_t(std::max(a, b))] = std::min(a, b);
    }
  Components out{Tensor::empty(Shape{n}, DType::i32)};
  int32_t* id = out.id.mutable_data<int32_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int32_t top = root(int32_t(i));
    id[i] = top == i ? int32_t(out.count++) : id[top];
  }
  return out;
}

Tensor largest_component(const Graph& graph) {
  const Components components = connected_components(graph);
  std::vector<int64_t> sizes(static_cast<size_t>(components.count), 0);
  for (const int32_t id : components.id.span<int32_t>()) ++sizes[size_t(id)];
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  std::vector<int32_t> nodes;
  for (int64_t i = 0; i < graph.num_dst(); ++i)
    if (components.id.data<int32_t>()[i] == largest - sizes.begin()) nodes.push_back(int32_t(i));
  return Tensor::from(nodes, Shape{int64_t(nodes.size())});
}

}  // namespace tessera
