// Dense ops at the shapes of graph networks, against plain loops; results are compared once before timing.

#include <cmath>
#include <cstdio>

#include "tessera/bench/core/ops_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/core/autograd.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/parallel.h"

namespace tessera::bench {
namespace {

struct Bench {
  Table table{{"op", "ours us", "G/s", "plain us", "vs plain"}};
  std::vector<Result> results;
  int rounds;

  /// `work`: floating-point operations, or bytes, of one call. `same` compares what both left behind.
  void row(const std::string& name, double work, const std::function<void()>& ours, const std::function<void()>& plain,
           const std::function<bool()>& same) {
    ours();
    plain();
    check<InternalError>(same(), "ops_bench: {}: ours and the plain loop disagree", name);
    const std::vector<Timing> t = interleave(rounds, {ours, plain});
    const double ratio = speedup(t[0], t[1]);
    table.row({name, number(1e6 * t[0].median(), 1), number(1e-9 * work / t[0].median(), 1), number(1e6 * t[1].median(), 1),
               number(ratio, 2)});
    results.push_back({name, "median of interleaved rounds", "plain loop", t[0], t[1], ratio, {}});
  }
};

bool close(const Tensor& a, const Tensor& b, double bound) {
  for (int64_t i = 0; i < a.numel(); ++i)
    if (!(std::fabs(double(a.data<float>()[i]) - double(b.data<float>()[i])) <= bound)) return false;
  return true;
}

double zero_share(const Tensor& x) {
  int64_t zeros = 0;
  for (const float v : x.span<float>()) zeros += v == 0;
  return double(zeros) / double(x.numel());
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "ops_bench: dense ops at the shapes of graph networks, against plain loops");
  Bench bench;
  bench.rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  const int64_t nodes = options.integer("nodes", 20000, "rows of the node arrays");
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();
  std::printf("%d threads, %s; G/s: floating-point operations for matmul, bytes for the others\n", threads(),
              name(active_isa()));

  Generator random(1);
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{nodes, 16, 16}, {nodes, 256, 256}, {nodes, 47, 256},
                               {nodes, 64, 602}, {256, 256, nodes}, {64, 602, nodes}, {128, 128, 128}}) {
    const Tensor a = uniform({m, k}, -1, 1, random), b = uniform({k, n}, -1, 1, random);
    Tensor ours, plain = zeros({m, n});
    float* c = plain.mutable_data<float>();
    bench.row("matmul " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k),
              2 * double(m) * double(n) * double(k), [&] { ours = matmul(a, b); },
              [&, m = m, n = n, k = k] { plain_matmul(a.data<float>(), b.data<float>(), c, m, n, k); },
              [&] { return close(ours, plain, 4e-7 * double(a.dim(1))); });
  }

  const int64_t width = 256, count = nodes * width;
  const Tensor x = uniform({nodes, width}, -1, 1, random), y = uniform({nodes, width}, -1, 1, random);
  Tensor ours, plain = zeros({nodes, width});
  float* out = plain.mutable_data<float>();
  const std::string shape = " " + std::to_string(nodes) + " x " + std::to_string(width);
  bench.row("add" + shape, 12 * double(count), [&] { ours = add(x, y); },
            [&] { plain_add(x.data<float>(), y.data<float>(), out, count); }, [&] { return close(ours, plain, 0); });
  bench.row("dropout" + shape, 8 * double(count), [&] { ours = dropout(x, 0.5, random); },
            [&] { plain_dropout(x.data<float>(), out, count, 0.5f); },
            [&] { return std::fabs(zero_share(ours) - 0.5) < 0.01 && std::fabs(zero_share(plain) - 0.5) < 0.01; });
  bench.row("log_softmax" + shape, 8 * double(count), [&] { ours = log_softmax(x); },
            [&] { plain_log_softmax(x.data<float>(), out, nodes, width); }, [&] { return close(ours, plain, 1e-5); });
  const Tensor narrow = uniform({nodes, 41}, -1, 1, random);
  bench.row("log_softmax " + std::to_string(nodes) + " x 41", 8.0 * 41 * double(nodes), [&] { ours = log_softmax(narrow); },
            [&] { plain_log_softmax(narrow.data<float>(), out, nodes, 41); },
            [&] { return close(ours, plain.view_as({count}).view_rows(0, nodes * 41), 1e-5); });
  bench.row("sum_rows" + shape, 4 * double(count), [&] { ours = sum_rows(x); },
            [&] { plain_sum_rows(x.data<float>(), out, nodes, width); },
            [&] { return close(ours, plain.view_as({count}).view_rows(0, width), 1e-6 * double(nodes)); });

  Tensor w = uniform({count}, -1, 1, random);
  w.set_requires_grad();
  backward(w, uniform({count}, -1, 1, random));
  Adam adam({w}, {.lr = 1e-3});
  Tensor pw = clone(w), pm = zeros({count}), pv = zeros({count});
  const Tensor g = w.grad();
  float *rw = pw.mutable_data<float>(), *rm = pm.mutable_data<float>(), *rv = pv.mutable_data<float>();
  int64_t steps = 0;
  bench.row("adam " + std::to_string(count), 28 * double(count), [&] { adam.step(); },
            [&] { plain_adam(rw, g.data<float>(), rm, rv, count, 1e-3f, ++steps); }, [&] { return close(w, pw, 1e-6); });
  write_json(json, bench.results);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    return tessera::bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ops_bench: %s\n", error.what());
    return 1;
  }
}
