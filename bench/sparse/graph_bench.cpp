// Building rows from an edge list and transposing them, against a counting sort on one thread; and sums over edges before
// and after renaming the nodes, with the time that takes in units of such sums.

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tessera/bench/sparse/spmm_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/bench/support/graphs.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/graph.h"
#include "tessera/sparse/reorder.h"
#include "tessera/sparse/spmm.h"

namespace tessera::bench {
namespace {

void verify(const Graph& graph, const Tensor& rowptr, const Tensor& col, const Tensor& edge_id) {
  check<InternalError>(graph.rowptr().to_vector<int64_t>() == rowptr.to_vector<int64_t>() &&
                           graph.col().to_vector<int32_t>() == col.to_vector<int32_t>() &&
                           graph.edge_id().to_vector<int64_t>() == edge_id.to_vector<int64_t>(),
                       "graph_bench: the rows differ from those of the plain sort");
}

/// Sums over edges as the nodes came and after each ordering. Rows keep their order, so the sums are the same to the bit.
void compare_orderings(const Graph& graph, const std::vector<int64_t>& widths, int rounds, std::vector<Result>& results) {
  Table table({"ordering ", "width", "reorder ms", "in sums", "before ms", "after ms", "before/after"});
  for (const auto& [label, ordering] :
       {std::pair{"degree", Ordering::degree}, {"rcm", Ordering::rcm}, {"community", Ordering::community}}) {
    Reordered r;
    const Timing made =
        interleave(ordering == Ordering::rcm ? 1 : 3, {[&, which = ordering] { r = reorder(graph, which); }})[0];
    for (const int64_t width : widths) {
      Generator generator(1);
      const Tensor x = normal(Shape{graph.num_src(), width}, generator), moved = r.permute(x);
      Tensor before, after;
      const std::vector<Timing> t =
          interleave(rounds, {[&] { before = spmm(graph, x); }, [&] { after = spmm(r.graph, moved); }});
      check<InternalError>(r.restore(after).to_vector<float>() == before.to_vector<float>(),
                           "graph_bench: the sums after {} differ", label);
      const double ratio = speedup(t[1], t[0]), sums = made.median() / t[0].median();
      table.row({label, std::to_string(width), number(1e3 * made.median(), 1), number(sums, 2),
                 number(1e3 * t[0].median(), 1), number(1e3 * t[1].median(), 1), number(ratio, 2)});
      results.push_back({std::string("spmm after ") + label + ", width " + std::to_string(width),
                         "median of interleaved rounds",
                         "the same before",
                         t[1],
                         t[0],
                         ratio,
                         {{"reorder_s", made.median()}, {"reorder_in_sums", sums}}});
    }
  }
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv,
                  "graph_bench: edge list to rows, and rows to their transpose, against a plain counting sort; spmm before "
                  "and after reordering");
  const SyntheticOptions wanted = synthetic_options(options);
  const std::vector<int64_t> widths =
      options.integers("width", "64,256", "columns of the sums before and after reordering, a list");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  SyntheticGraph edges;
  const Timing made = interleave(1, {[&] { edges = synthetic_graph(wanted); }})[0];
  const int64_t count = wanted.edges, nodes = wanted.nodes;
  std::printf("%lld nodes, %lld edges, checksum %016llx, generated in %.2f s; %d threads\n", static_cast<long long>(nodes),
              static_cast<long long>(count), static_cast<unsigned long long>(edges.checksum), made.median(), threads());
  Tensor rowptr = Tensor::empty(Shape{nodes + 1}, DType::i64), col = Tensor::empty(Shape{count}, DType::i32),
         edge_id = Tensor::empty(Shape{count}, DType::i64);
  Graph graph, fresh, reversed;
  const std::vector<Timing> t = interleave(
      rounds, {[&] { graph = Graph::from_coo(edges.src, edges.dst, nodes, nodes); }, [&] { reversed = graph.transpose(); },
               [&] {
                 plain_rows(edges.src.data<int32_t>(), edges.dst.data<int32_t>(), count, nodes,
                            rowptr.mutable_data<int64_t>(), col.mutable_data<int32_t>(), edge_id.mutable_data<int64_t>());
               }});
  verify(graph, rowptr, col, edge_id);
  Table table({"what      ", "ours ms", "Medges/s", "plain ms", "vs plain"});
  std::vector<Result> results;
  for (const int i : {0, 1}) {
    const std::string what = i == 0 ? "from_coo" : "transpose";
    const double ratio = speedup(t[size_t(i)], t[2]);
    table.row({what, number(1e3 * t[size_t(i)].median(), 1), number(1e-6 * double(count) / t[size_t(i)].median(), 1),
               number(1e3 * t[2].median(), 1), number(ratio, 2)});
    results.push_back({what, "median of interleaved rounds", "counting sort on one thread", t[size_t(i)], t[2], ratio, {}});
  }
  reversed = Graph();
  compare_orderings(graph, widths, rounds, results);
  write_json(json, results);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    return tessera::bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graph_bench: %s\n", error.what());
    return 1;
  }
}
