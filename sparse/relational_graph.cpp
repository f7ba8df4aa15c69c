// Edges grouped by relation, then by one of their ends: the graph's rows, stably sorted by type. Rows that have no edge of a
// relation are left out, so that memory does not grow with relations x nodes.

#include "tessera/sparse/relational_graph.h"

#include <algorithm>
#include <limits>

#include "tessera/core/parallel.h"
#include "tessera/scatter/counting_sort.h"
#include "tessera/scatter/ids.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/relational_state.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 14;

const RelationalState& defined_state(const std::shared_ptr<RelationalState>& state) {
  check(state != nullptr, "relational_graph: an undefined graph was used");
  return *state;
}

/// Pairs of a relation and a row of `graph`. `divisor` by edge id, or undefined.
RelationSide grouped(const Graph& graph, const Tensor& type, int64_t num_relations, const Tensor& divisor) {
  const int64_t count = graph.num_edges(), rows = graph.num_dst();
  const int32_t* types = type.data<int32_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* ids = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  Tensor sorted_col = Tensor::empty(Shape{count}, DType::i32);
  Tensor sorted_divisor = divisor.defined() ? Tensor::empty(Shape{count}, DType::i32) : Tensor();
  Scratch<int32_t> row(count);
  Scratch<int64_t> relations(num_relations + 1);
  {
    Scratch<int32_t> key(count);
    Scratch<int64_t> place(count);
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) key[i] = types[ids != nullptr ? ids[i] : i];
    });
    CountingSort sort;
    sort.count = count;
    sort.num_keys = num_relations;
    sort.key = key.data();
    sort.rowptr = graph.rowptr().data<int64_t>();
    sort.num_rows = rows;
    sort.offsets = relations.data();
    sort.out_value = row.data();
    sort.out_id = place.data();
    counting_sort(sort);
    int32_t* to_col = sorted_col.mutable_data<int32_t>();
    int32_t* to_divisor = divisor.defined() ? sorted_divisor.mutable_data<int32_t>() : nullptr;
    const int32_t* from_divisor = divisor.defined() ? divisor.data<int32_t>() : nullptr;
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to_col[i] = col[place[i]];
        if (to_divisor != nullptr) to_divisor[i] = from_divisor[ids != nullptr ? ids[place[i]] : place[i]];
      }
    });
  }
  // Where each pair begins, and which pairs each relation has.
  std::vector<int64_t> begins;
  std::vector<int64_t> pairs(size_t(num_relations) + 1, 0);
  for (int64_t r = 0; r < num_relations; ++r) {
    for (int64_t i = relations[r]; i < relations[r + 1]; ++i)
      if (i == relations[r] || row[i] != row[i - 1]) begins.push_back(i);
    pairs[size_t(r) + 1] = int64_t(begins.size());
  }
  begins.push_back(count);

  RelationSide side;
  for (int64_t r = 0; r < num_relations;) {
    int64_t end = r + 1;
    while (end < num_relations && pairs[size_t(end) + 1] - pairs[size_t(r)] <= rows) ++end;
    const int64_t first = pairs[size_t(r)], n = pairs[size_t(end)] - first, edge = relations[r],
                  edges = relations[end] - edge;
    if (n > 0) {
      RelationBlock block{r, end, {}, Tensor::empty(Shape{n}, DType::i32), Tensor::empty(Shape{end - r + 1}, DType::i64),
                          {}};
      Tensor rowptr = Tensor::empty(Shape{n + 1}, DType::i64);
      int64_t* to = rowptr.mutable_data<int64_t>();
      int32_t* node = block.node.mutable_data<int32_t>();
      for (int64_t p = 0; p <= n; ++p) to[p] = begins[size_t(first + p)] - edge;
      for (int64_t p = 0; p < n; ++p) node[p] = row[begins[size_t(first + p)]];
      int64_t* offsets = block.offsets.mutable_data<int64_t>();
      for (int64_t i = r; i <= end; ++i) offsets[i - r] = pairs[size_t(i)] - first;
      block.graph = GraphState::make(graph.num_src(), n, rowptr, sorted_col.view_rows(edge, edge + edges), Tensor());
      if (divisor.defined()) block.divisor = sorted_divisor.view_rows(edge, edge + edges);
      side.blocks.push_back(std::move(block));
    }
    r = end;
  }
  return side;
}

}  // namespace

RelationalGraph RelationalGraph::from_coo(const Tensor& src, const Tensor& dst, const Tensor& type, int64_t num_src,
                                          int64_t num_dst, int64_t num_relations) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  check(0 <= num_relations && num_relations <= kMost, "relational_graph: num_relations is {} but needs to be in [0, {}]",
        num_relations, kMost);
  check_id_list("relational_graph", "type", type);
  auto state = std::make_shared<RelationalState>();
  state->edges = Graph::from_coo(src, dst, num_src, num_dst);
  check(type.numel() == src.numel(), "relational_graph: type has {} entries but the graph has {} edges", type.numel(),
        src.numel());
  state->num_src = num_src;
  state->num_dst = num_dst;
  state->num_relations = num_relations;
  state->type = narrow_ids("relational_graph", "type", type, num_relations);
  state->by_dst = grouped(state->edges, state->type, num_relations, {});
  return RelationalGraph(std::move(state));
}

int64_t RelationalGraph::num_src() const { return defined_state(state_).num_src; }
int64_t RelationalGraph::num_dst() const { return defined_state(state_).num_dst; }
int64_t RelationalGraph::num_edges() const { return defined_state(state_).edges.num_edges(); }
int64_t RelationalGraph::num_relations() const { return defined_state(state_).num_relations; }

const RelationSide& RelationalState::side(const RelationalGraph& graph, bool destinations) {
  RelationalState& state = *graph.state_;
  if (destinations) return state.by_dst;
  return *state.by_src.get([&] {
    // How many edges a mean divides by, by edge id: along the rows of each relation, which hold the edges of a destination
    // in the order of its row.
    const Graph& all = state.edges;
    const int64_t* rowptr = all.rowptr().data<int64_t>();
    const int64_t* ids = all.edge_id().defined() ? all.edge_id().data<int64_t>() : nullptr;
    const int32_t* relation = state.type.data<int32_t>();
    Tensor counts = Tensor::empty(state.type.shape(), DType::i32);
    int32_t* to = counts.mutable_data<int32_t>();
    std::vector<int32_t> seen(static_cast<size_t>(state.num_relations));
    for (int64_t d = 0; d < state.num_dst; ++d) {
      const auto id = [&](int64_t i) { return ids != nullptr ? ids[i] : i; };
      for (int64_t i = rowptr[d]; i < rowptr[d + 1]; ++i) ++seen[size_t(relation[id(i)])];
      for (int64_t i = rowptr[d]; i < rowptr[d + 1]; ++i) to[id(i)] = seen[size_t(relation[id(i)])];
      for (int64_t i = rowptr[d]; i < rowptr[d + 1]; ++i) seen[size_t(relation[id(i)])] = 0;
    }
    return std::make_shared<const RelationSide>(grouped(all.transpose(), state.type, state.num_relations, counts));
  });
}

}  // namespace tessera
