// One dot product per edge on a seeded power-law graph, against a bare row gather and a loop shaped like PyTorch's.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <vector>

#include "tessera/bench/sparse/spmm_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/bench/support/graphs.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/sddmm.h"

namespace tessera::bench {
namespace {

/// 100,000 edges against dot products in double, by the error bound.
void verify(const float* a, const float* b, const int64_t* row, const int64_t* col, int64_t count, int64_t width,
            const float* out) {
  for (int64_t e = 0; e < count; e += std::max<int64_t>(1, count / 100000)) {
    double dot = 0, size = 0;
    for (int64_t j = 0; j < width; ++j) {
      const double term = double(a[row[e] * width + j]) * double(b[col[e] * width + j]);
      dot += term;
      size += std::fabs(term);
    }
    check<InternalError>(std::fabs(double(out[e]) - dot) <= 4 * double(width) * std::numeric_limits<float>::epsilon() * size,
                         "sddmm_bench: edge {} is {} but needs to be {}", e, double(out[e]), dot);
  }
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "sddmm_bench: a dot product per edge of a seeded power-law graph, against plain loops");
  const SyntheticOptions wanted = synthetic_options(options);
  const std::vector<int64_t> widths = options.integers("width", "64,128,256", "columns, a list");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  Graph graph;
  {
    // Sorted by destination, so that edge ids are positions and both sides write in order.
    const SyntheticGraph edges = synthetic_graph(wanted);
    const Graph unsorted = Graph::from_coo(edges.src, edges.dst, wanted.nodes, wanted.nodes);
    graph = Graph::from_csr(unsorted.rowptr(), unsorted.col(), wanted.nodes);
    std::printf("%lld nodes, %lld edges, checksum %016llx; %d threads, %s\n", static_cast<long long>(wanted.nodes),
                static_cast<long long>(wanted.edges), static_cast<unsigned long long>(edges.checksum), threads(),
                name(active_isa()));
  }
  const int64_t count = graph.num_edges(), nodes = graph.num_dst();
  std::vector<int64_t> row, col(graph.col().data<int32_t>(), graph.col().data<int32_t>() + count);
  for (int64_t d = 0; d < nodes; ++d)
    row.insert(row.end(), size_t(graph.rowptr().data<int64_t>()[d + 1] - graph.rowptr().data<int64_t>()[d]), d);
  std::vector<Result> results;
  Table table({"width", "ours ms", "Medges/s", "GB/s", "gather ms", "vs gather", "torch-like ms", "vs torch-like"});
  for (int64_t width : widths) {
    Generator generator(1);
    const Tensor a = normal(Shape{nodes, width}, generator), b = normal(Shape{nodes, width}, generator);
    Tensor out, plain = Tensor::empty(Shape{count});
    const std::vector<Timing> t = interleave(
        rounds, {[&] { out = sddmm_dot(graph, a, b); },
                 [&] {
                   gather_rows(b.data<float>(), width, graph.col().data<int32_t>(), count, {width <= 64 ? 64 : 16, 2});
                 },
                 [&] {
                   torch_shaped_sddmm(row.data(), col.data(), a.data<float>(), b.data<float>(), count, width,
                                      plain.mutable_data<float>());
                 }});
    verify(a.data<float>(), b.data<float>(), row.data(), col.data(), count, width, out.data<float>());
    verify(a.data<float>(), b.data<float>(), row.data(), col.data(), count, width, plain.data<float>());
    const double ours = t[0].median(), bytes = double(count) * (4 * double(width) + 8) + 4 * double(nodes) * double(width);
    const double gather_ratio = speedup(t[0], t[1]), torch_ratio = speedup(t[0], t[2]);
    table.row({std::to_string(width), number(1e3 * ours, 2), number(1e-6 * double(count) / ours, 1),
               number(1e-9 * bytes / ours, 2), number(1e3 * t[1].median(), 2), number(gather_ratio, 2),
               number(1e3 * t[2].median(), 2), number(torch_ratio, 2)});
    const std::string what = "sddmm dot, width " + std::to_string(width), protocol = "median of interleaved rounds";
    results.push_back({what, protocol, "bare row gather", t[0], t[1], gather_ratio, {{"bytes_per_s", bytes / ours}}});
    results.push_back({what, protocol, "loop shaped like torch", t[0], t[2], torch_ratio, {{"bytes_per_s", bytes / ours}}});
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
