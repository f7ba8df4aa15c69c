// Attention over edges on a seeded power-law graph: the fused ops against the same formula put together from ops that store
// rows of edges, as PyG does, and against bare gathers of the rows that the fused ones must read.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

#include "tessera/bench/sparse/spmm_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/bench/support/graphs.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/scatter/segment_softmax.h"
#include "tessera/sparse/edge_attention.h"

namespace tessera::bench {
namespace {

enum class Kind { gat, gatv2, dot };
constexpr const char* kNames[] = {"gat", "gatv2", "dot"};

/// One attention as fused op and as a chain of ops over E x F arrays.
struct Attention {
  Kind kind;
  int64_t heads, channels;
  Graph graph;
  SegmentPlan by_src, by_dst;
  std::vector<Tensor> in;

  Tensor fused() const {
    switch (kind) {
      case Kind::gat: return gat_attention(graph, in[0], in[1], in[2]);
      case Kind::gatv2: return gatv2_attention(graph, in[0], in[1], in[2]);
      case Kind::dot: return dot_attention(graph, in[0], in[1], in[2], heads);
    }
    return {};
  }
  Tensor by_head(const Tensor& rows) const { return sum(reshape(rows, Shape{rows.dim(0), heads, channels}), 2); }
  Tensor chain() const {
    Tensor score, value = in[kind == Kind::dot ? 2 : 0];
    switch (kind) {
      case Kind::gat: score = leaky_relu(add(gather(in[1], by_src), gather(in[2], by_dst)), 0.2); break;
      case Kind::gatv2:
        score = by_head(mul(leaky_relu(add(gather(in[0], by_src), gather(in[1], by_dst)), 0.2),
                            reshape(in[2], Shape{1, heads * channels})));
        break;
      case Kind::dot:
        score = scale(by_head(mul(gather(in[1], by_src), gather(in[0], by_dst))), 1 / std::sqrt(double(channels)));
        break;
    }
    const Tensor weight = segment_softmax(score, by_dst);
    const Tensor rows = reshape(gather(value, by_src), Shape{graph.num_edges(), heads, channels});
    const Tensor messages = mul(rows, reshape(weight, Shape{graph.num_edges(), heads, 1}));
    return segment_reduce(reshape(messages, Shape{graph.num_edges(), heads * channels}), by_dst);
  }
};

void clear(const std::vector<Tensor>& tensors) {
  for (Tensor t : tensors) t.clear_grad();
}

std::vector<Tensor> train(const std::vector<Tensor>& in, const std::function<Tensor()>& call, const Tensor& seed) {
  clear(in);
  backward(call(), seed);
  std::vector<Tensor> grads;
  for (const Tensor& t : in) grads.push_back(t.grad());
  return grads;
}

/// The chain's gradients are sums of the same terms in another order.
void check_close(const char* what, const Tensor& got, const Tensor& expected) {
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    largest = std::max(largest, std::fabs(double(expected.data<float>()[i])));
    worst = std::max(worst, std::fabs(double(got.data<float>()[i]) - double(expected.data<float>()[i])));
  }
  check<InternalError>(worst <= 1e-3 * largest, "edge_attention_bench: {} is off by {} of {}", what, worst, largest);
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "edge_attention_bench: attention over the edges of a seeded power-law graph, fused and not");
  SyntheticOptions wanted = synthetic_options(options);
  const std::vector<int64_t> heads_list = options.integers("heads", "8,4,1,1,8", "heads, a list");
  const std::vector<int64_t> channels_list = options.integers("channels", "8,32,64,41,1", "channels of each, a list");
  const int rounds = int(options.integer("rounds", 5, "interleaved rounds"));
  const bool chain = options.integer("chain", 1, "0: without the unfused chain, which takes E x F arrays") != 0;
  const std::string only = options.text("kind", "", "gat, gatv2 or dot alone");
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();
  check(heads_list.size() == channels_list.size(), "edge_attention_bench: {} heads but {} channels were given",
        heads_list.size(), channels_list.size());

  Graph graph;
  Tensor src, dst;
  {
    const SyntheticGraph edges = synthetic_graph(wanted);
    src = edges.src;
    dst = edges.dst;
    graph = Graph::from_coo(src, dst, wanted.nodes, wanted.nodes);
    std::printf("%lld nodes, %lld edges, checksum %016llx; %d threads, %s\n", static_cast<long long>(wanted.nodes),
                static_cast<long long>(graph.num_edges()), static_cast<unsigned long long>(edges.checksum), threads(),
                name(active_isa()));
  }

  const int64_t count = graph.num_edges(), nodes = graph.num_dst();
  std::vector<Result> results;
  Table table({"kind", "heads", "channels", "forward ms", "Medges/s", "vs gather", "vs chain", "both ms", "vs 3 gathers",
               "vs chain"});
  for (size_t form = 0; form < heads_list.size(); ++form)
    for (const Kind kind : {Kind::gat, Kind::gatv2, Kind::dot}) {
      if (!only.empty() && only != kNames[int(kind)]) continue;
      const int64_t heads = heads_list[form], channels = channels_list[form], width = heads * channels;
      Generator generator(1);
      Attention a{kind, heads, channels, graph, {}, {}, {}};
      if (chain) {
        a.by_src = SegmentPlan::from_index(src, nodes);
        a.by_dst = SegmentPlan::from_index(dst, nodes);
      }
      a.in = {normal(Shape{nodes, width}, generator), normal(Shape{nodes, kind == Kind::gat ? heads : width}, generator)};
      a.in.push_back(normal(kind == Kind::gat     ? Shape{nodes, heads}
                            : kind == Kind::gatv2 ? Shape{heads, channels}
                                                  : Shape{nodes, width},
                            generator));
      for (Tensor& t : a.in) t.set_requires_grad();
      const Tensor seed = normal(Shape{nodes, width}, generator);
      const float* rows = a.in[0].data<float>();
      std::vector<std::function<void()>> contenders = {
          [&] {
            const NoGrad off;
            a.fused();
          },
          [&] {
            train(
                a.in, [&] { return a.fused(); }, seed);
          },
          [&] {
            gather_rows(rows, width, graph.col().data<int32_t>(), count, {width <= 64 ? 64 : 16, 2});
          }};
      if (chain) {
        contenders.push_back([&] {
          const NoGrad off;
          a.chain();
        });
        contenders.push_back([&] {
          train(
              a.in, [&] { return a.chain(); }, seed);
        });
        check_close("the output", a.fused().detach(), a.chain().detach());
        const std::vector<Tensor> got = train(
            a.in, [&] { return a.fused(); }, seed);
        const std::vector<Tensor> expected = train(
            a.in, [&] { return a.chain(); }, seed);
        for (size_t i = 0; i < got.size(); ++i) check_close("a gradient", got[i], expected[i]);
      }
      const std::vector<Timing> t = interleave(rounds, contenders);
      clear(a.in);
      const double forward = speedup(t[0], t[2]), both = 3 * speedup(t[1], t[2]);
      const double forward_chain = chain ? speedup(t[0], t[3]) : 0, both_chain = chain ? speedup(t[1], t[4]) : 0;
      table.row({kNames[int(kind)], std::to_string(heads), std::to_string(channels), number(1e3 * t[0].median(), 1),
                 number(1e-6 * double(count) / t[0].median(), 1), number(forward, 2), number(forward_chain, 2),
                 number(1e3 * t[1].median(), 1), number(both, 2), number(both_chain, 2)});
      const std::string what =
          std::string(kNames[int(kind)]) + " " + std::to_string(heads) + " x " + std::to_string(channels);
      results.push_back({what + ", forward", "median of interleaved rounds", "bare row gather", t[0], t[2], forward, {}});
      results.push_back({what + ", forward + backward",
                         "median of interleaved rounds",
                         "bare row gather, once",
                         t[1],
                         t[2],
                         speedup(t[1], t[2]),
                         {}});
      if (!chain) continue;
      results.push_back(
          {what + ", forward", "median of interleaved rounds", "unfused chain", t[0], t[3], forward_chain, {}});
      results.push_back(
          {what + ", forward + backward", "median of interleaved rounds", "unfused chain", t[1], t[4], both_chain, {}});
    }
  write_json(json, results);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    return tessera::bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "edge_attention_bench: %s\n", error.what());
    return 1;
  }
}
