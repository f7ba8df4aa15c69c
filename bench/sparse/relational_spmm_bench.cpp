// A relational convolution's products on a graph with typed edges, against PyG's way (for each relation: pick its edges, a
// mean by scatter, a product, a sum of results) written with the same library; and the grouped product alone against one
// product after the other. Verified once, by the results' difference.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/bench/support/bench.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/grouped_matmul.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/parallel.h"
#include "tessera/datasets/synthetic.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/scatter_reduce.h"
#include "tessera/sparse/relational_spmm.h"

namespace tessera::bench {
namespace {

void expect_close(const char* what, const Tensor& a, const Tensor& b) {
  double most = 0, size = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    most = std::max(most, std::fabs(double(a.data<float>()[i]) - double(b.data<float>()[i])));
    size = std::max(size, std::fabs(double(b.data<float>()[i])));
  }
  check<InternalError>(most <= 1e-4 * size, "relational_spmm_bench: {} differs by {}", what, most);
}

/// The edges of each relation.
struct Picked {
  Tensor src, dst;
};

Tensor by_relation(const std::vector<Picked>& picked, const Tensor& x, const Tensor& weight) {
  Tensor out = zeros(Shape{x.dim(0), weight.dim(2)});
  for (int64_t r = 0; r < weight.dim(0); ++r) {
    const Picked& edges = picked[size_t(r)];
    const Tensor h = scatter_reduce(gather(x, edges.src), edges.dst, x.dim(0), Reduce::mean);
    out = add(out, matmul(h, reshape(slice(weight, 0, r, r + 1), Shape{weight.dim(1), weight.dim(2)})));
  }
  return out;
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "relational_spmm_bench: a matrix for each relation, against one relation after the other");
  const int64_t nodes = options.integer("nodes", 20000, "nodes");
  const int64_t edges = options.integer("edges", 400000, "directed edges");
  const int64_t relations = options.integer("relations", 40, "types of edges");
  const std::vector<int64_t> widths = options.integers("width", "16,64", "columns in and out, a list: each with each");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  const SyntheticGraph list = synthetic_graph({.nodes = nodes, .edges = edges});
  std::vector<int32_t> type;
  std::vector<std::vector<int32_t>> src{size_t(relations)}, dst{size_t(relations)};
  const Philox random(1, 0);
  for (int64_t e = 0; e < edges; ++e) {
    type.push_back(int32_t(random(uint64_t(e)).bits[0] % uint64_t(relations)));
    src[size_t(type.back())].push_back(list.src.data<int32_t>()[e]);
    dst[size_t(type.back())].push_back(list.dst.data<int32_t>()[e]);
  }
  std::vector<Picked> picked;
  for (size_t r = 0; r < src.size(); ++r) {
    const Shape shape{int64_t(src[r].size())};
    picked.push_back({Tensor::from(src[r], shape), Tensor::from(dst[r], shape)});
  }
  const RelationalGraph graph =
      RelationalGraph::from_coo(list.src, list.dst, Tensor::from(type, Shape{edges}), nodes, nodes, relations);
  std::printf("%lld nodes, %lld edges, %lld relations, checksum %016llx; %d threads\n", static_cast<long long>(nodes),
              static_cast<long long>(edges), static_cast<long long>(relations),
              static_cast<unsigned long long>(list.checksum), threads());
  Table table({"what                        ", "ours ms", "Medges/s", "one by one ms", "vs one by one"});
  std::vector<Result> results;
  const auto compare = [&](const std::string& what, const std::function<void()>& ours, const std::function<void()>& theirs) {
    const std::vector<Timing> t = interleave(rounds, {ours, theirs});
    const double ratio = speedup(t[0], t[1]);
    table.row({what, number(1e3 * t[0].median(), 2), number(1e-6 * double(edges) / t[0].median(), 1),
               number(1e3 * t[1].median(), 2), number(ratio, 2)});
    results.push_back({what, "median of interleaved rounds", "one relation after the other", t[0], t[1], ratio, {}});
  };
  for (const int64_t k : widths)
    for (const int64_t n : widths) {
      Generator generator(1);
      Tensor x = normal(Shape{nodes, k}, generator), weight = normal(Shape{relations, k, n}, generator);
      const Tensor seed = normal(Shape{nodes, n}, generator);
      const std::string size = std::to_string(k) + " to " + std::to_string(n);
      Tensor ours, theirs;
      compare(
          size + ", forward", [&] { ours = relational_spmm(graph, x, weight); },
          [&] { theirs = by_relation(picked, x, weight); });
      expect_close("the result", ours, theirs);
      x.set_requires_grad();
      weight.set_requires_grad();
      Tensor grad_ours, grad_theirs;
      const auto gradient = [&](const std::function<Tensor()>& call, Tensor& grad) {
        x.clear_grad();
        weight.clear_grad();
        backward(call(), seed);
        grad = x.grad();
      };
      compare(
          size + ", with gradients", [&] { gradient([&] { return relational_spmm(graph, x, weight); }, grad_ours); },
          [&] { gradient([&] { return by_relation(picked, x, weight); }, grad_theirs); });
      expect_close("the gradient", grad_ours, grad_theirs);

      // The products alone, of groups of one to a few hundred rows.
      std::vector<int64_t> offsets = {0};
      for (int64_t r = 0; r < relations; ++r) offsets.push_back(offsets.back() + 1 + r * r % 300);
      const Tensor rows = normal(Shape{offsets.back(), k}, generator), matrices = weight.detach();
      const Tensor at = Tensor::from(offsets, Shape{relations + 1});
      compare(
          size + ", grouped product", [&] { ours = grouped_matmul(rows, at, matrices); },
          [&] {
            for (int64_t r = 0; r < relations; ++r)
              theirs = matmul(rows.view_rows(offsets[size_t(r)], offsets[size_t(r) + 1]),
                              matrices.view_rows(r, r + 1).view_as(Shape{k, n}));
          });
      expect_close("the last group", ours.view_rows(offsets[size_t(relations) - 1], offsets.back()), theirs);
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
    std::fprintf(stderr, "relational_spmm_bench: %s\n", error.what());
    return 1;
  }
}
