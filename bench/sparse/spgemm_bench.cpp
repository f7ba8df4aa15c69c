// A graph times itself, two steps at once, against a row-by-row product on one thread that keeps its row as a linked list
// (the shape of SciPy's), forward; and the time of both gradients beside it.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/bench/support/bench.h"
#include "tessera/bench/support/graphs.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/spgemm.h"

namespace tessera::bench {
namespace {

struct Plain {
  std::vector<int64_t> rowptr;
  std::vector<int32_t> col;
  std::vector<float> values;
};

/// Columns of a row come out in no order.
void plain_product(const Graph& graph, const float* values, Plain& out) {
  const int64_t rows = graph.num_dst(), *rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  std::vector<int32_t> next(size_t(rows), -1);
  std::vector<float> sums(size_t(rows), 0);
  out.rowptr.assign(1, 0);
  out.col.clear();
  out.values.clear();
  for (int64_t i = 0; i < rows; ++i) {
    int32_t head = -2;
    for (int64_t k = rowptr[i]; k < rowptr[i + 1]; ++k)
      for (int64_t j = rowptr[col[k]]; j < rowptr[col[k] + 1]; ++j) {
        sums[size_t(col[j])] += values[id != nullptr ? id[k] : k] * values[id != nullptr ? id[j] : j];
        if (next[size_t(col[j])] != -1) continue;
        next[size_t(col[j])] = head;
        head = col[j];
      }
    while (head != -2) {
      out.col.push_back(head);
      out.values.push_back(sums[size_t(head)]);
      sums[size_t(head)] = 0;
      const int32_t last = head;
      head = next[size_t(head)];
      next[size_t(last)] = -1;
    }
    out.rowptr.push_back(int64_t(out.col.size()));
  }
}

void verify(const SparseMatrix& ours, const Plain& plain) {
  check<InternalError>(ours.pattern.rowptr().to_vector<int64_t>() == plain.rowptr, "spgemm_bench: the rows differ");
  std::vector<float> row(size_t(ours.columns()), 0);
  for (int64_t i = 0; i < ours.rows(); ++i) {
    const int64_t begin = plain.rowptr[size_t(i)], end = plain.rowptr[size_t(i) + 1];
    for (int64_t k = begin; k < end; ++k) row[size_t(plain.col[size_t(k)])] = plain.values[size_t(k)];
    for (int64_t k = begin; k < end; ++k) {
      const float theirs = row[size_t(ours.pattern.col().data<int32_t>()[k])], mine = ours.values.data<float>()[k];
      check<InternalError>(mine - theirs < 1e-4f * mine && theirs - mine < 1e-4f * mine,
                           "spgemm_bench: row {} has {} where the plain product has {}", i, mine, theirs);
    }
  }
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "spgemm_bench: a sparse matrix times itself against a plain product on one thread");
  const int64_t nodes = options.integer("nodes", 30000, "rows and columns"),
                edges = options.integer("edges", 300000, "entries");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  SyntheticOptions wanted;
  wanted.nodes = nodes;
  wanted.edges = edges;
  const SyntheticGraph made = synthetic_graph(wanted);
  const Graph graph = Graph::from_coo(made.src, made.dst, nodes, nodes);
  Generator generator(1);
  Tensor values = uniform(Shape{edges}, 0.5, 1, generator);
  SparseMatrix ours;
  Plain plain;
  Tensor left = clone(values).set_requires_grad(), right = clone(values).set_requires_grad();
  const std::vector<Timing> t = interleave(rounds, {[&] {
                                                      ours = spgemm({graph, values}, {graph, values});
                                                    },
                                                    [&] { plain_product(graph, values.data<float>(), plain); },
                                                    [&] {
                                                      left.clear_grad();
                                                      right.clear_grad();
                                                      backward(sum(spgemm({graph, left}, {graph, right}).values));
                                                    }});
  verify(ours, plain);
  const double entries = double(plain.col.size()), ratio = speedup(t[0], t[1]);
  std::printf("%lld nodes, %lld edges, checksum %016llx; %.0f entries; %d threads\n", static_cast<long long>(nodes),
              static_cast<long long>(edges), static_cast<unsigned long long>(made.checksum), entries, threads());
  Table table({"what   ", "ours ms", "Mentries/s", "plain ms", "vs plain"});
  table.row({"product", number(1e3 * t[0].median(), 1), number(1e-6 * entries / t[0].median(), 1),
             number(1e3 * t[1].median(), 1), number(ratio, 2)});
  table.row({"and both gradients", number(1e3 * t[2].median(), 1), number(1e-6 * entries / t[2].median(), 1), "", ""});
  write_json(json, {{"spgemm",
                     "median of interleaved rounds",
                     "linked list on one thread",
                     t[0],
                     t[1],
                     ratio,
                     {{"with_gradients_s", t[2].median()}, {"entries", entries}}}});
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    return tessera::bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spgemm_bench: %s\n", error.what());
    return 1;
  }
}
