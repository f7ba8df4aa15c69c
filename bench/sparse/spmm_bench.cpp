// spmm-sum on a seeded power-law graph, against a bare row gather over the same columns and a loop shaped like PyTorch's.

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
#include "tessera/sparse/spmm.h"

namespace tessera::bench {
namespace {

/// Against sums in double on 500 rows, by the error bound.
void verify(const Graph& graph, const Tensor& x, const Tensor& out) {
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int64_t width = x.dim(1), rows = graph.num_dst(), step = std::max<int64_t>(1, rows / 500);
  for (int64_t d = 0; d < rows; d += step)
    for (int64_t j = 0; j < width; ++j) {
      double sum = 0, size = 0;
      for (int64_t e = rowptr[d]; e < rowptr[d + 1]; ++e) {
        const double value = double(x.data<float>()[graph.col().data<int32_t>()[e] * width + j]);
        sum += value;
        size += std::fabs(value);
      }
      const double got = double(out.data<float>()[d * width + j]);
      const double bound = 4 * double(rowptr[d + 1] - rowptr[d]) * std::numeric_limits<float>::epsilon() * size;
      check<InternalError>(std::fabs(got - sum) <= bound, "spmm_bench: out[{}, {}] is {} but needs to be {}", d, j, got,
                           sum);
    }
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "spmm_bench: sparse times dense on a seeded power-law graph, against plain loops");
  const SyntheticOptions wanted = synthetic_options(options);
  const std::vector<int64_t> widths = options.integers("width", "64,128,256", "columns of x, a list");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  SyntheticGraph synthetic;
  Graph graph;
  const std::vector<Timing> made = interleave(1, {[&] { synthetic = synthetic_graph(wanted); }});
  const std::vector<Timing> built =
      interleave(3, {[&] { graph = Graph::from_coo(synthetic.src, synthetic.dst, wanted.nodes, wanted.nodes); }});
  const int64_t edges = graph.num_edges(), nodes = graph.num_dst();
  int64_t largest = 0;
  for (int32_t degree : graph.in_degree().span<int32_t>()) largest = std::max<int64_t>(largest, degree);
  std::printf(
      "%lld nodes, %lld edges, largest in-degree %lld, checksum %016llx; generated in %.2f s, rows built in %.3f s\n",
      static_cast<long long>(nodes), static_cast<long long>(edges), static_cast<long long>(largest),
      static_cast<unsigned long long>(synthetic.checksum), made[0].median(), built[0].median());
  std::printf("%d threads, %s; medians of %d interleaved rounds; bytes: x rows, columns and result, once per use\n",
              threads(), name(active_isa()), rounds);
  synthetic = {};

  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  Tensor wide_col = cast(graph.col(), DType::i64);
  const Tensor values = ones(Shape{edges});
  StreamRead stream;
  std::vector<Result> results;
  Table table({"width", "ours ms", "Medges/s", "GB/s", "of stream", "gather ms", "ahead", "vs gather", "torch-like ms",
               "vs torch-like"});
  for (int64_t width : widths) {
    Generator generator(1);
    const Tensor x = normal(Shape{nodes, width}, generator);
    Tensor out, plain = Tensor::empty(Shape{nodes, width});
    const float* rows = x.data<float>();
    float* plain_rows = plain.mutable_data<float>();
    // The gather's best prefetch, by the faster of two trials each.
    Prefetch prefetch{0, 1};
    double best = 1e30;
    for (const Prefetch& tried : {Prefetch{0, 1}, Prefetch{8, 1}, Prefetch{16, 1}, Prefetch{32, 1}, Prefetch{8, 2},
                                  Prefetch{16, 2}, Prefetch{32, 2}, Prefetch{64, 2}}) {
      const double t = interleave(2, {[&] { gather_rows(rows, width, col, edges, tried); }})[0].min();
      if (t >= best) continue;
      best = t;
      prefetch = tried;
    }
    const std::vector<Timing> t = interleave(
        rounds,
        {[&] { out = spmm(graph, x); }, [&] { gather_rows(rows, width, col, edges, prefetch); },
         [&] { torch_shaped_spmm(rowptr, wide_col.data<int64_t>(), values.data<float>(), rows, nodes, width, plain_rows); },
         [&] { stream(); }});
    verify(graph, x, out);
    verify(graph, x, plain);
    const double bytes = double(edges) * (4 * double(width) + 4) + 4 * double(nodes) * double(width);
    const double ours = t[0].median(), rate = bytes / ours, stream_rate = double(stream.bytes()) / t[3].median();
    const double gather_ratio = speedup(t[0], t[1]), torch_ratio = speedup(t[0], t[2]);
    table.row({std::to_string(width), number(1e3 * ours, 2), number(1e-6 * double(edges) / ours, 1), number(1e-9 * rate, 2),
               number(rate / stream_rate, 2), number(1e3 * t[1].median(), 2),
               std::to_string(prefetch.ahead) + " to L" + std::to_string(prefetch.level), number(gather_ratio, 2),
               number(1e3 * t[2].median(), 2), number(torch_ratio, 2)});
    const std::string row = "spmm sum, width " + std::to_string(width), protocol = "median of interleaved rounds";
    const std::vector<std::pair<std::string, double>> extra = {
        {"edges_per_s", double(edges) / ours}, {"bytes_per_s", rate}, {"stream_bytes_per_s", stream_rate}};
    results.push_back({row, protocol, "bare row gather", t[0], t[1], gather_ratio, extra});
    results.push_back({row, protocol, "loop shaped like torch", t[0], t[2], torch_ratio, extra});
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
    std::fprintf(stderr, "spmm_bench: %s\n", error.what());
    return 1;
  }
}
