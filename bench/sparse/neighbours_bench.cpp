// Graphs of points: k nearest, within a radius, Delaunay. Nearest neighbours are verified and compared with all pairs, which
// is done for a sample of the points and scaled up; a triangulation by its count of edges.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tessera/bench/support/bench.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/delaunay.h"
#include "tessera/sparse/neighbours.h"

namespace tessera::bench {
namespace {

constexpr int64_t kSample = 64;  // points of which all pairs are looked at

/// Every `step`-th point's k nearest by looking at all points.
std::vector<int32_t> all_pairs(const Tensor& positions, int64_t k, int64_t step) {
  const int64_t n = positions.dim(0), dims = positions.dim(1);
  const float* p = positions.data<float>();
  std::vector<int32_t> out;
  std::vector<std::pair<double, int32_t>> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < kSample * step; i += step) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < dims; ++d) {
        const double difference = double(p[j * dims + d]) - double(p[i * dims + d]);
        sum += difference * difference;
      }
      row[size_t(j)] = {j == i ? INFINITY : sum, int32_t(j)};
    }
    std::partial_sort(row.begin(), row.begin() + k, row.end());
    for (int64_t j = 0; j < k; ++j) out.push_back(row[size_t(j)].second);
  }
  return out;
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "neighbours_bench: graphs of random points");
  const int64_t n = std::max(options.integer("points", 1'000'000, "points"), 10 * kSample),
                k = options.integer("k", 8, "neighbours of each");
  const std::vector<int64_t> dims = options.integers("dims", "2,3", "dimensions, a list");
  const int rounds = int(options.integer("rounds", 3, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  std::vector<Result> results;
  Table table({"what                  ", "s", "Mpoints/s", "all pairs s", "ratio"});
  const auto report = [&](const std::string& what, const Timing& ours, const Timing& pairs) {
    const double scale = double(n) / double(kSample), theirs = pairs.median() * scale;
    table.row({what, number(ours.median(), 3), number(1e-6 * double(n) / ours.median(), 2), number(theirs, 0),
               number(theirs / ours.median(), 0)});
    Timing scaled;
    for (const double s : pairs.seconds) scaled.seconds.push_back(s * scale);
    results.push_back({what,
                       "median of interleaved rounds",
                       "all pairs, one thread, from a sample",
                       ours,
                       scaled,
                       theirs / ours.median(),
                       {}});
  };
  for (const int64_t d : dims) {
    Generator generator(1);
    const Tensor x = uniform(Shape{n, d}, 0, 1, generator);
    Graph nearest, close;
    std::vector<int32_t> sample;
    const double radius = std::pow(double(k) / double(n), 1.0 / double(d)) / (d == 2 ? std::sqrt(M_PI) : 1.612);
    const std::vector<Timing> t =
        interleave(rounds, {[&] { nearest = knn_graph(x, k); }, [&] { close = radius_graph(x, radius); },
                            [&] { sample = all_pairs(x, k, n / kSample); }});
    for (int64_t i = 0; i < kSample; ++i)
      check<InternalError>(std::equal(sample.begin() + i * k, sample.begin() + (i + 1) * k,
                                      nearest.col().data<int32_t>() + i * (n / kSample) * k),
                           "neighbours_bench: point {} has other neighbours by all pairs", i * (n / kSample));
    report(std::to_string(k) + " nearest, " + std::to_string(d) + "-D", t[0], t[2]);
    report("radius for as many, " + std::to_string(d) + "-D", t[1], t[2]);
    if (d != 2) continue;
    Graph triangles;
    const Timing made = interleave(rounds, {[&] { triangles = delaunay_graph(x); }})[0];
    check<InternalError>(triangles.num_edges() <= 6 * n - 12 && triangles.num_edges() > 6 * n - 6 * int64_t(std::sqrt(n)),
                         "neighbours_bench: a triangulation of {} points has {} edges", n, triangles.num_edges());
    table.row({"Delaunay", number(made.median(), 3), number(1e-6 * double(n) / made.median(), 2), "-", "-"});
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
    std::fprintf(stderr, "neighbours_bench: %s\n", error.what());
    return 1;
  }
}
