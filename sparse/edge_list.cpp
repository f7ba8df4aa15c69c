// Merging of parallel edges: rows by destination, transposed, give rows by source with ascending destinations in which
// equal edges stand together in input order (both sorts are stable), so one walk over each row merges them.

#include "tessera/sparse/edge_list.h"

#include <algorithm>
#include <vector>

#include "tessera/core/parallel.h"
#include "tessera/scatter/ids.h"
#include "tessera/sparse/graph.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 12;  // rows

void check_weight(const char* op, const EdgeList& edges) {
  const Tensor& weight = edges.weight;
  if (!weight.defined()) return;
  check(weight.ndim() == 1 && weight.dim(0) == edges.src.numel(), "{}: weight has shape {} but needs [{}], one per edge", op,
        weight.shape(), edges.src.numel());
  check<Unsupported>(weight.dtype() == DType::f32 || weight.dtype() == DType::f64,
                     "{}: dtype {} is not supported, use f32 or f64", op, weight.dtype());
  check<Unsupported>(!weight.requires_grad(), "{}: weight requires a gradient, which is not supported; detach() it", op);
}

template <class T>
T merged(Merge merge, const T* weight, const int64_t* ids, int64_t count) {
  T out = weight[ids[0]];
  for (int64_t i = 1; i < count && merge != Merge::first; ++i) {
    const T w = weight[ids[i]];
    switch (merge) {
      case Merge::sum:
      case Merge::mean: out += w; break;
      case Merge::max: out = w > out || w != w ? w : out; break;
      case Merge::min: out = w < out || w != w ? w : out; break;
      case Merge::first: break;
    }
  }
  return merge == Merge::mean ? out / T(count) : out;
}

/// As `coalesce`; edge e's weight is weight[weight_at[e]], or weight[e] when that is null.
EdgeList merge_equal(const Tensor& src, const Tensor& dst, const Tensor& weight, int64_t num_nodes, Merge merge,
                     const int64_t* weight_at) {
  const Graph by_src = Graph::from_coo(src, dst, num_nodes, num_nodes).transpose();
  const int64_t* rowptr = by_src.rowptr().data<int64_t>();
  const int32_t* col = by_src.col().data<int32_t>();
  Scratch<int64_t> ids(by_src.num_edges());
  parallel_for(by_src.num_edges(), 1 << 15, [&, id = by_src.edge_id().data<int64_t>()](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ids[i] = weight_at != nullptr ? weight_at[id[i]] : id[i];
  });
  Scratch<int64_t> offsets(num_nodes + 1);
  offsets[0] = 0;
  parallel_for(num_nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      int64_t distinct = 0;
      for (int64_t i = rowptr[s]; i < rowptr[s + 1]; ++i) distinct += i == rowptr[s] || col[i] != col[i - 1];
      offsets[s + 1] = distinct;
    }
  });
  for (int64_t s = 0; s < num_nodes; ++s) offsets[s + 1] += offsets[s];

  const Shape shape{offsets[num_nodes]};
  EdgeList out{Tensor::empty(shape, DType::i32), Tensor::empty(shape, DType::i32), Tensor(),
               Tensor::empty(shape, DType::i64)};
  if (weight.defined()) out.weight = Tensor::empty(shape, weight.dtype());
  int32_t* out_src = out.src.mutable_data<int32_t>();
  int32_t* out_dst = out.dst.mutable_data<int32_t>();
  int64_t* out_first = out.first.mutable_data<int64_t>();
  const auto fill = [&](const auto& put_weight) {
    parallel_for(num_nodes, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        int64_t at = offsets[s];
        for (int64_t i = rowptr[s]; i < rowptr[s + 1]; ++at) {
          int64_t last = i + 1;
          while (last < rowptr[s + 1] && col[last] == col[i]) ++last;
          out_src[at] = int32_t(s);
          out_dst[at] = col[i];
          out_first[at] = ids[i];
          put_weight(at, i, last);
          i = last;
        }
      }
    });
  };
  if (!weight.defined()) {
    fill([](int64_t, int64_t, int64_t) {});
  } else {
    with_float(weight.dtype(), "coalesce", [&]<class T>() {
      const T* from = weight.data<T>();
      T* to = out.weight.mutable_data<T>();
      fill([&](int64_t at, int64_t begin, int64_t end) { to[at] = merged(merge, from, ids.data() + begin, end - begin); });
    });
  }
  return out;
}

}  // namespace

EdgeList coalesce(const EdgeList& edges, int64_t num_nodes, Merge merge) {
  check(edges.src.defined() && edges.dst.defined(), "coalesce: src or dst is undefined");
  check_weight("coalesce", edges);
  return merge_equal(edges.src, edges.dst, edges.weight, num_nodes, merge, nullptr);
}

EdgeList to_undirected(const EdgeList& edges, int64_t num_nodes, Merge merge) {
  check(edges.src.defined() && edges.dst.defined(), "to_undirected: src or dst is undefined");
  check_weight("to_undirected", edges);
  // A graph checks the ids and narrows them; its rows then give every edge twice, loops once, and input order is restored
  // by place: edge e goes to 2e, its mirror image to 2e + 1, and the loops' empty places are closed.
  const Graph graph = Graph::from_coo(edges.src, edges.dst, num_nodes, num_nodes);
  const int64_t count = graph.num_edges();
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  Scratch<int32_t> src(count), dst(count);
  int64_t loops = 0;
  for (int64_t d = 0; d < num_nodes; ++d)
    for (int64_t i = rowptr[d]; i < rowptr[d + 1]; ++i) {
      const int64_t e = edge_id != nullptr ? edge_id[i] : i;
      src[e] = col[i];
      dst[e] = int32_t(d);
      loops += col[i] == d;
    }
  const Shape shape{2 * count - loops};
  Tensor both_src = Tensor::empty(shape, DType::i32), both_dst = Tensor::empty(shape, DType::i32);
  Scratch<int64_t> weight_at(shape.numel());
  int32_t* to_src = both_src.mutable_data<int32_t>();
  int32_t* to_dst = both_dst.mutable_data<int32_t>();
  int64_t at = 0;
  const auto put = [&](int32_t s, int32_t d, int64_t e) {
    to_src[at] = s;
    to_dst[at] = d;
    weight_at[at++] = e;
  };
  for (int64_t e = 0; e < count; ++e) {
    put(src[e], dst[e], e);
    if (src[e] != dst[e]) put(dst[e], src[e], e);
  }
  return merge_equal(both_src, both_dst, edges.weight, num_nodes, merge, weight_at.data());
}

EdgeList remove_self_loops(const EdgeList& edges, int64_t num_nodes) {
  check(edges.src.defined() && edges.dst.defined(), "remove_self_loops: src or dst is undefined");
  check_weight("remove_self_loops", edges);
  check_id_list("remove_self_loops", "src", edges.src);
  check_id_list("remove_self_loops", "dst", edges.dst);
  check(edges.src.numel() == edges.dst.numel(), "remove_self_loops: src has {} entries but dst has {}", edges.src.numel(),
        edges.dst.numel());
  const Tensor src = narrow_ids("remove_self_loops", "src", edges.src, num_nodes),
               dst = narrow_ids("remove_self_loops", "dst", edges.dst, num_nodes);
  std::vector<int64_t> kept;
  for (int64_t e = 0; e < src.numel(); ++e)
    if (src.data<int32_t>()[e] != dst.data<int32_t>()[e]) kept.push_back(e);
  const Shape shape{int64_t(kept.size())};
  EdgeList out{Tensor::empty(shape, DType::i32), Tensor::empty(shape, DType::i32), Tensor(), Tensor::from(kept, shape)};
  const auto take = [&]<class T>(const Tensor& from, Tensor& to) {
    T* at = to.mutable_data<T>();
    for (const int64_t e : kept) *at++ = from.data<T>()[e];
  };
  take.template operator()<int32_t>(src, out.src);
  take.template operator()<int32_t>(dst, out.dst);
  if (edges.weight.defined()) {
    out.weight = Tensor::empty(shape, edges.weight.dtype());
    with_float(edges.weight.dtype(), "remove_self_loops",
               [&]<class T>() { take.template operator()<T>(edges.weight, out.weight); });
  }
  return out;
}

}  // namespace tessera
