// One dot product per edge (sddmm_dot) on a seeded power-law graph, against a plain loop over the edges.

#include <cmath>
#include <cstdio>

#include "tessera/bench/sparse/spmm_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/datasets/synthetic.h"
#include "tessera/sparse/sddmm.h"

namespace tessera::bench {
namespace {

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "sddmm_bench: one dot product per edge, against a plain loop");
  SyntheticOptions wanted;
  wanted.nodes = options.integer("nodes", 233000, "nodes");
  wanted.edges = options.integer("edges", 20000000, "directed edges");
  const std::vector<int64_t> widths = options.integers("width", "16,64,128", "columns, a list");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  const SyntheticGraph synthetic = synthetic_graph(wanted);
  const Graph graph = Graph::from_coo(synthetic.src, synthetic.dst, wanted.nodes, wanted.nodes);
  const int32_t *src = synthetic.src.data<int32_t>(), *dst = synthetic.dst.data<int32_t>();
  const int64_t edges = graph.num_edges();
  std::printf("%lld nodes, %lld edges, checksum %016llx; %d threads, %s\n", static_cast<long long>(wanted.nodes),
              static_cast<long long>(edges), static_cast<unsigned long long>(synthetic.checksum), threads(),
              name(active_isa()));
  Table table({"width", "ours ms", "Medges/s", "plain ms", "vs plain"});
  std::vector<Result> results;
  Tensor plain = zeros({edges});
  float* dots = plain.mutable_data<float>();
  for (const int64_t width : widths) {
    Generator random(1);
    const Tensor a = normal({wanted.nodes, width}, random), b = normal({wanted.nodes, width}, random);
    const float *rows_a = a.data<float>(), *rows_b = b.data<float>();
    Tensor ours;
    const std::vector<Timing> t = interleave(rounds, {[&] { ours = sddmm_dot(graph, a, b); },
                                                      [&] { plain_dots(rows_a, rows_b, src, dst, edges, width, dots); }});
    for (int64_t e = 0; e < edges; e += 997)
      check<InternalError>(std::fabs(double(ours.data<float>()[e]) - double(dots[e])) <= 1e-4 * double(width),
                           "sddmm_bench: edge {} gives {} but the plain loop {}", e, double(ours.data<float>()[e]),
                           double(dots[e]));
    const double ratio = speedup(t[0], t[1]);
    table.row({std::to_string(width), number(1e3 * t[0].median(), 2), number(1e-6 * double(edges) / t[0].median(), 1),
               number(1e3 * t[1].median(), 2), number(ratio, 2)});
    results.push_back({"sddmm_dot, width " + std::to_string(width), "median of interleaved rounds", "plain loop", t[0], t[1],
                       ratio, {}});
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
    std::fprintf(stderr, "sddmm_bench: %s\n", error.what());
    return 1;
  }
}
