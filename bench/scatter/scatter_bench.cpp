// The ops of scatter/ by a random index and by that of a seeded power-law graph, against loops shaped like PyTorch's; and
// the route of an edge_index user (gather, message, scatter_reduce) against the fused spmm. Times are of whole calls, with
// the sort where a call makes one. GB/s: rows that an op must read and write, once each.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "tessera/bench/scatter/scatter_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/datasets/synthetic.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/scatter_reduce.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/scatter/segment_softmax.h"
#include "tessera/sparse/spmm.h"

namespace tessera::bench {
namespace {

/// Values of two results, within what sums of `terms` floats allow.
void expect_same(const char* what, const Tensor& a, const float* b, double terms) {
  const float* p = a.data<float>();
  const int64_t step = std::max<int64_t>(1, a.numel() / 1000000);
  for (int64_t i = 0; i < a.numel(); i += step) {
    const double bound = 1e-6 * terms * (1 + std::fabs(double(b[i])));
    check<InternalError>(std::fabs(double(p[i]) - double(b[i])) <= bound,
                         "scatter_bench: {}: element {} is {} but the plain loop gives {}", what, i, double(p[i]),
                         double(b[i]));
  }
}

struct Bench {
  std::string name;
  int rounds;
  int64_t nodes, edges, width;
  Tensor src, dst;      // i32
  Tensor src64, dst64;  // i64, as PyTorch wants them
  Table table{{"row", "ours ms", "Medges/s", "GB/s", "torch-like ms", "vs torch-like"}};
  std::vector<Result> results;
  double terms = 1;  // in the largest segment

  /// One line: ours against theirs; `rows` are E x F passes, for the bytes.
  void compare(const std::string& row, double rows, const std::function<void()>& ours, const std::function<void()>& theirs) {
    const std::vector<Timing> t = interleave(rounds, {ours, theirs});
    const double seconds = t[0].median(), bytes = rows * double(edges) * double(width) * 4, ratio = speedup(t[0], t[1]);
    table.row({row, number(1e3 * seconds, 2), number(1e-6 * double(edges) / seconds, 1), number(1e-9 * bytes / seconds, 2),
               number(1e3 * t[1].median(), 2), number(ratio, 2)});
    results.push_back({name + ": " + row,
                       "median of interleaved rounds",
                       "loop shaped like torch",
                       t[0],
                       t[1],
                       ratio,
                       {{"edges_per_s", double(edges) / seconds}, {"bytes_per_s", bytes / seconds}}});
  }

  void run() {
    std::printf("%s: %lld nodes, %lld edges, width %lld, largest segment %.0f\n", name.c_str(),
                static_cast<long long>(nodes), static_cast<long long>(edges), static_cast<long long>(width), terms);
    Generator generator(1);
    const Shape messages{edges, width}, rows{nodes, width};
    Tensor x = normal(rows, generator), m = normal(messages, generator);
    const Tensor grad_rows = normal(rows, generator), grad_messages = m;
    Tensor plain_rows = Tensor::empty(rows), plain_messages = Tensor::empty(messages), out;
    float* p_rows = plain_rows.mutable_data<float>();
    float* p_messages = plain_messages.mutable_data<float>();
    const int64_t *d64 = dst64.data<int64_t>(), *s64 = src64.data<int64_t>();
    TorchSort sort;
    SegmentPlan plan;
    compare(
        "plan (sort)", 0, [&] { plan = SegmentPlan::from_index(dst, nodes); }, [&] { sort(d64, edges, nodes); });
    compare(
        "gather", 2, [&] { out = gather(x, src); },
        [&] { torch_shaped_gather(x.data<float>(), s64, edges, width, p_messages); });
    expect_same("gather", out, p_messages, 0);
    out = Tensor();
    for (const auto& [reduce, theirs] :
         {std::pair{Reduce::sum, TorchReduce::sum}, {Reduce::mean, TorchReduce::mean}, {Reduce::max, TorchReduce::max}}) {
      const auto plain = [&] { torch_shaped_scatter(sort, d64, edges, m.data<float>(), width, nodes, theirs, p_rows); };
      out = scatter_reduce(m, dst, nodes, reduce);
      plain();
      expect_same(name_of(reduce), out, p_rows, reduce == Reduce::max ? 0 : terms);
      compare(
          std::string("scatter_reduce ") + name_of(reduce), 1, [&] { out = scatter_reduce(m, dst, nodes, reduce); }, plain);
      compare(
          std::string("  by a kept plan"), 1, [&] { out = segment_reduce(m, plan, reduce); }, plain);
    }
    m.set_requires_grad();
    for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
      const bool max = reduce == Reduce::max;
      Tensor mask = max ? Tensor::empty(messages) : Tensor(), winners = max ? Tensor::empty(rows) : Tensor();
      const auto plain = [&] {
        torch_shaped_scatter(sort, d64, edges, m.data<float>(), width, nodes, max ? TorchReduce::max : TorchReduce::sum,
                             p_rows);
        if (max)
          torch_shaped_max_gradient(sort, d64, edges, m.data<float>(), p_rows, grad_rows.data<float>(), width, nodes,
                                    mask.mutable_data<float>(), winners.mutable_data<float>(), p_messages);
        else
          torch_shaped_gather(grad_rows.data<float>(), d64, edges, width, p_messages);
      };
      compare(
          std::string("scatter_reduce ") + name_of(reduce) + ", with gradient", max ? 2 : 2,
          [&] {
            m.clear_grad();
            backward(scatter_reduce(m, dst, nodes, reduce), grad_rows);
          },
          plain);
      expect_same("gradient of the scatter", m.grad(), p_messages, 0);
      compare(
          "  by a kept plan", 2,
          [&] {
            m.clear_grad();
            backward(segment_reduce(m, plan, reduce), grad_rows);
          },
          plain);
    }
    m.clear_grad();
    m = m.detach();
    x.set_requires_grad();
    Tensor again = Tensor::empty(messages);
    compare(
        "gather, with gradient", 3,
        [&] {
          x.clear_grad();
          backward(gather(x, src), grad_messages);
        },
        [&] {
          torch_shaped_gather(x.data<float>(), s64, edges, width, p_messages);
          torch_shaped_scatter(sort, s64, edges, grad_messages.data<float>(), width, nodes, TorchReduce::sum, p_rows);
        });
    expect_same("gradient of the gather", x.grad(), p_rows, terms);
    m = again = Tensor();

    const auto coo_forward = [&] {
      torch_shaped_gather(x.data<float>(), s64, edges, width, p_messages);
      torch_shaped_scatter(sort, d64, edges, p_messages, width, nodes, TorchReduce::sum, p_rows);
    };
    const auto coo_both = [&] {
      coo_forward();
      torch_shaped_gather(grad_rows.data<float>(), d64, edges, width, p_messages);
      torch_shaped_scatter(sort, s64, edges, p_messages, width, nodes, TorchReduce::sum, p_rows);
    };
    x = x.detach();
    compare(
        "edge_index route", 3, [&] { out = scatter_reduce(gather(x, src), dst, nodes); }, coo_forward);
    compare(
        "  with kept plans", 3, [&] { out = segment_reduce(gather(x, src), plan); }, coo_forward);
    expect_same("edge_index route", out, p_rows, terms);
    const SegmentPlan src_plan = SegmentPlan::from_index(src, nodes);
    const Graph graph = Graph::from_coo(src, dst, nodes, nodes);
    compare(
        "  fused spmm", 1, [&] { out = spmm(graph, x); }, coo_forward);
    expect_same("spmm", out, p_rows, terms);
    x.set_requires_grad();
    compare(
        "edge_index route, with gradient", 6,
        [&] {
          x.clear_grad();
          backward(scatter_reduce(gather(x, src), dst, nodes), grad_rows);
        },
        coo_both);
    compare(
        "  with kept plans", 6,
        [&] {
          x.clear_grad();
          backward(segment_reduce(gather(x, src_plan), plan), grad_rows);
        },
        coo_both);
    expect_same("gradient of the edge_index route", x.grad(), p_rows, terms);
    compare(
        "  fused spmm", 2,
        [&] {
          x.clear_grad();
          backward(spmm(graph, x), grad_rows);
        },
        coo_both);
  }

  static const char* name_of(Reduce reduce) { return tessera::name(reduce); }
};

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "scatter_bench: gather and scatter_reduce against loops shaped like PyTorch's");
  const std::string which = options.text("graph", "both", "random (10k nodes, 200k edges), reddit (power law), or both");
  const int64_t nodes = options.integer("nodes", 233000, "nodes of the power-law graph");
  const int64_t edges =
      options.integer("edges", 23000000, "edges of the power-law graph; 512 bytes each and more are needed");
  const int64_t width = options.integer("width", 64, "columns");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();
  std::printf("%d threads, %s; medians of %d interleaved rounds\n", threads(), name(active_isa()), rounds);

  std::vector<Result> all;
  const auto run = [&](const char* label, SyntheticGraph graph, int64_t n) {
    Bench bench{.name = label,
                .rounds = rounds,
                .nodes = n,
                .edges = graph.src.numel(),
                .width = width,
                .src = graph.src,
                .dst = graph.dst};
    bench.src64 = cast(graph.src, DType::i64);
    bench.dst64 = cast(graph.dst, DType::i64);
    for (const Tensor& ids : {graph.src, graph.dst}) {
      std::vector<int64_t> count(static_cast<size_t>(n));
      for (const int32_t id : ids.span<int32_t>()) bench.terms = std::max(bench.terms, double(++count[size_t(id)]));
    }
    bench.run();
    all.insert(all.end(), bench.results.begin(), bench.results.end());
  };
  if (which != "reddit") {
    SyntheticGraph graph;
    graph.src = Tensor::empty(Shape{200000}, DType::i32);
    graph.dst = Tensor::empty(Shape{200000}, DType::i32);
    const Philox random(1, 0);
    for (int64_t e = 0; e < 200000; ++e) {
      const Philox::Draw draw = random(uint64_t(e));
      graph.src.mutable_data<int32_t>()[e] = int32_t(draw.bits[0] % 10000);
      graph.dst.mutable_data<int32_t>()[e] = int32_t(draw.bits[1] % 10000);
    }
    run("random", graph, 10000);
  }
  if (which != "random") run("reddit-like", synthetic_graph({.nodes = nodes, .edges = edges}), nodes);
  write_json(json, all);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    return tessera::bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scatter_bench: %s\n", error.what());
    return 1;
  }
}
