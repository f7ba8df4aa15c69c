// spmm on a seeded power-law graph: sums against a bare row gather over the same columns and loops shaped like PyTorch's,
// maxima with their way back against the same, 16-bit rows against 32-bit ones, weights per head against a plain loop, the
// epilogue against an addition of its own. Every result is compared with its contender's before it is timed.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <sstream>
#include <vector>

#include "tessera/bench/sparse/spmm_loops.h"
#include "tessera/bench/support/bench.h"
#include "tessera/bench/support/graphs.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/unary.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/spmm.h"

namespace tessera::bench {
namespace {

/// The graph as the loops take it: int64 columns and a value an edge.
struct Plain {
  const int64_t* rowptr;
  Tensor col, values;
};

class Bench {
 public:
  Bench(Graph graph, int rounds)
      : graph_(std::move(graph)),
        rounds_(rounds),
        plain_{graph_.rowptr().data<int64_t>(), cast(graph_.col(), DType::i64), ones(Shape{graph_.num_edges()})},
        nodes_(graph_.num_dst()),
        edges_(graph_.num_edges()) {}

  void at(int64_t width) {
    width_ = width;
    Generator generator(1);
    x_ = normal(Shape{nodes_, width}, generator);
    grad_ = normal(Shape{nodes_, width}, generator);
    plain_out_ = Tensor::empty(x_.shape());
    prefetch_ = best_prefetch();
  }
  void sum(Reduce reduce);
  void sum_backward();
  void max();
  void half(DType dtype);
  void heads(int64_t count);
  void epilogue();
  const std::vector<Result>& results() const { return results_; }

 private:
  Prefetch best_prefetch();
  void gather() { gather_rows(x_.data<float>(), width_, graph_.col().data<int32_t>(), edges_, prefetch_); }
  void torch_sum() {
    torch_shaped_spmm(plain_.rowptr, plain_.col.data<int64_t>(), plain_.values.data<float>(), x_.data<float>(), nodes_,
                      width_, plain_out_.mutable_data<float>());
  }
  /// Elementwise: within `bound` times the largest element.
  void same(const char* what, const Tensor& ours, const Tensor& theirs, double bound);
  /// Prints and keeps `name`: ours against each named contender.
  void row(const std::string& name, double bytes_an_edge, const std::vector<std::string>& peers,
           const std::vector<std::function<void()>>& contenders);

  Graph graph_;
  int rounds_;
  Plain plain_;
  int64_t nodes_, edges_, width_ = 0;
  Tensor x_, grad_, plain_out_;
  Prefetch prefetch_{0, 1};
  StreamRead stream_;
  std::vector<Result> results_;
  Table table_{{"row", "width", "ours ms", "Medges/s", "GB/s", "of stream", "against", "theirs ms", "times"}};
};

/// The gather's best prefetch, by the faster of two trials each.
Prefetch Bench::best_prefetch() {
  Prefetch best{0, 1};
  double least = 1e30;
  for (const Prefetch& tried : {Prefetch{0, 1}, Prefetch{8, 1}, Prefetch{16, 1}, Prefetch{32, 1}, Prefetch{8, 2},
                                Prefetch{16, 2}, Prefetch{32, 2}, Prefetch{64, 2}}) {
    prefetch_ = tried;
    const double t = interleave(2, {[&] { gather(); }})[0].min();
    if (t >= least) continue;
    least = t;
    best = tried;
  }
  return best;
}

void Bench::same(const char* what, const Tensor& ours, const Tensor& theirs, double bound) {
  const Tensor a = cast(ours, DType::f32), b = cast(theirs, DType::f32);
  double largest = 0;
  for (const float v : b.span<float>()) largest = std::max(largest, std::fabs(double(v)));
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double got = double(a.data<float>()[i]), expected = double(b.data<float>()[i]);
    check<InternalError>(std::fabs(got - expected) <= bound * largest, "spmm_bench: {}[{}] is {} but the other gives {}",
                         what, i, got, expected);
  }
}

void Bench::row(const std::string& name, double bytes_an_edge, const std::vector<std::string>& peers,
                const std::vector<std::function<void()>>& contenders) {
  std::vector<std::function<void()>> all = contenders;
  all.push_back([&] { stream_(); });
  const std::vector<Timing> t = interleave(rounds_, all);
  const double ours = t[0].median(), bytes = double(edges_) * bytes_an_edge + 4 * double(nodes_ * width_);
  const double stream_rate = double(stream_.bytes()) / t.back().median();
  for (size_t i = 0; i < peers.size(); ++i) {
    const double times = speedup(t[0], t[i + 1]);
    const bool first = i == 0;
    table_.row({first ? name : "", first ? std::to_string(width_) : "", first ? number(1e3 * ours, 2) : "",
                first ? number(1e-6 * double(edges_) / ours, 1) : "", first ? number(1e-9 * bytes / ours, 2) : "",
                first ? number(bytes / ours / stream_rate, 2) : "", peers[i], number(1e3 * t[i + 1].median(), 2),
                number(times, 2)});
    results_.push_back(
        {"spmm " + name + ", width " + std::to_string(width_),
         "median of interleaved rounds",
         peers[i],
         t[0],
         t[i + 1],
         times,
         {{"edges_per_s", double(edges_) / ours}, {"bytes_per_s", bytes / ours}, {"stream_bytes_per_s", stream_rate}}});
  }
}

constexpr const char* kGather = "bare row gather";
constexpr const char* kTorch = "loop shaped like torch";

void Bench::sum(Reduce reduce) {
  Tensor out;
  SpmmOptions options;
  torch_sum();
  Tensor expected = plain_out_;
  if (reduce == Reduce::mean) {
    Tensor degree = cast(graph_.in_degree(), DType::f32);
    for (int64_t d = 0; d < nodes_; ++d) degree.mutable_data<float>()[d] = std::max(degree.data<float>()[d], 1.0f);
    expected = div(plain_out_, degree.view_as(Shape{nodes_, 1}));
  }
  const auto ours = [&] { out = spmm(graph_, x_, reduce, options); };
  ours();
  same(name(reduce), out, expected, 1e-4);
  row(name(reduce), 4 * double(width_) + 4, {kGather, kTorch}, {ours, [&] { gather(); }, [&] { torch_sum(); }});
}

/// The way back alone, with the transpose that the first call left on the graph.
void Bench::sum_backward() {
  Tensor x_grad;
  const auto ours = [&] { x_grad = spmm(graph_.transpose(), grad_); };
  const auto theirs = [&] {
    torch_shaped_sum_backward(plain_.rowptr, plain_.col.data<int64_t>(), plain_.values.data<float>(), grad_.data<float>(),
                              nodes_, nodes_, width_, plain_out_.mutable_data<float>());
  };
  ours();
  theirs();
  same("sum backward", x_grad, plain_out_, 1e-4);
  row("sum backward", 4 * double(width_) + 4, {kTorch}, {ours, theirs});
}

void Bench::max() {
  Tensor x = x_.detach(), out, arg = Tensor::empty(x_.shape(), DType::i64), x_grad = Tensor::empty(x_.shape());
  const auto theirs = [&] {
    torch_shaped_max(plain_.rowptr, plain_.col.data<int64_t>(), plain_.values.data<float>(), x.data<float>(), nodes_, width_,
                     plain_out_.mutable_data<float>(), arg.mutable_data<int64_t>());
  };
  const auto theirs_both = [&] {
    theirs();
    torch_shaped_max_backward(plain_.col.data<int64_t>(), plain_.values.data<float>(), grad_.data<float>(),
                              arg.data<int64_t>(), edges_, nodes_, nodes_, width_, x_grad.mutable_data<float>());
  };
  theirs_both();
  row("max", 4 * double(width_) + 4, {kGather, kTorch},
      {[&] { out = spmm(graph_, x_, Reduce::max); }, [&] { gather(); }, theirs});
  x.set_requires_grad();
  const auto ours_both = [&] {
    x.clear_grad();
    out = spmm(graph_, x, Reduce::max);
    backward(out, grad_);
  };
  ours_both();
  same("max", out.detach(), plain_out_, 0);
  same("max backward", x.grad(), x_grad, 1e-4);
  row("max, with grad", 4 * double(width_) + 4, {kTorch}, {[&] { out = spmm(graph_, x, Reduce::max); }, theirs});
  row("max, forward + backward", 4 * double(width_) + 4, {kTorch}, {ours_both, theirs_both});
}

void Bench::half(DType dtype) {
  const Tensor x = cast(x_, dtype);
  Tensor out, wide;
  const auto ours = [&] { out = spmm(graph_, x); };
  const auto theirs = [&] { wide = spmm(graph_, x_); };
  ours();
  wide = spmm(graph_, cast(x, DType::f32));
  same(name(dtype), out, wide, dtype == DType::bf16 ? 4e-3 : 5e-4);
  row(name(dtype), 2 * double(width_) + 4, {"our f32"}, {ours, theirs});
}

void Bench::heads(int64_t count) {
  Generator generator(2);
  SpmmOptions options;
  options.weight = normal(Shape{edges_, count}, generator);
  Tensor out, by_position = Tensor::empty(options.weight.shape());
  const int64_t* id = graph_.edge_id().defined() ? graph_.edge_id().data<int64_t>() : nullptr;
  for (int64_t e = 0; e < edges_; ++e)
    std::copy_n(options.weight.data<float>() + (id != nullptr ? id[e] : e) * count, count,
                by_position.mutable_data<float>() + e * count);
  const auto ours = [&] { out = spmm(graph_, x_, Reduce::sum, options); };
  const auto theirs = [&] {
    plain_heads(plain_.rowptr, plain_.col.data<int64_t>(), by_position.data<float>(), x_.data<float>(), nodes_, count,
                width_ / count, plain_out_.mutable_data<float>());
  };
  ours();
  theirs();
  same("heads", out, plain_out_, 1e-4);
  row(std::to_string(count) + " heads", 4 * double(width_) + 12 + 4 * double(count), {kGather, "plain loop"},
      {ours, [&] { gather(); }, theirs});
}

void Bench::epilogue() {
  Generator generator(3);
  SpmmOptions options;
  options.bias = normal(Shape{width_}, generator);
  options.activation = Activation::relu;
  Tensor out, apart;
  const auto ours = [&] { out = spmm(graph_, x_, Reduce::sum, options); };
  const auto theirs = [&] { apart = relu(add_bias(spmm(graph_, x_), options.bias)); };
  ours();
  theirs();
  same("epilogue", out, apart, 1e-6);
  row("sum, bias, relu", 4 * double(width_) + 4, {"one after the other"}, {ours, theirs});
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "spmm_bench: sparse times dense on a seeded power-law graph, against plain loops");
  const SyntheticOptions wanted = synthetic_options(options);
  const std::vector<int64_t> widths = options.integers("width", "64,128,256", "columns of x, a list");
  const std::string rows = options.text("rows", "sum,mean,backward,max,bf16,f16,heads,epilogue", "what to measure, a list");
  const int rounds = int(options.integer("rounds", 9, "interleaved rounds"));
  set_threads(int(options.integer("threads", threads(), "threads")));
  const std::string json = options.text("json", "", "file for the results");
  options.finish();

  SyntheticGraph synthetic;
  Graph graph;
  const std::vector<Timing> made = interleave(1, {[&] { synthetic = synthetic_graph(wanted); }});
  const std::vector<Timing> built =
      interleave(3, {[&] { graph = Graph::from_coo(synthetic.src, synthetic.dst, wanted.nodes, wanted.nodes); }});
  int64_t largest = 0;
  for (int32_t degree : graph.in_degree().span<int32_t>()) largest = std::max<int64_t>(largest, degree);
  std::printf(
      "%lld nodes, %lld edges, largest in-degree %lld, checksum %016llx; generated in %.2f s, rows built in %.3f s\n",
      static_cast<long long>(graph.num_dst()), static_cast<long long>(graph.num_edges()), static_cast<long long>(largest),
      static_cast<unsigned long long>(synthetic.checksum), made[0].median(), built[0].median());
  std::printf("%d threads, %s; medians of %d interleaved rounds; bytes: x rows, columns and result, once per use\n",
              threads(), name(active_isa()), rounds);
  synthetic = {};

  Bench bench(graph, rounds);
  for (const int64_t width : widths) {
    bench.at(width);
    std::istringstream list(rows);
    for (std::string what; std::getline(list, what, ',');) {
      if (what == "sum")
        bench.sum(Reduce::sum);
      else if (what == "mean")
        bench.sum(Reduce::mean);
      else if (what == "backward")
        bench.sum_backward();
      else if (what == "max")
        bench.max();
      else if (what == "bf16")
        bench.half(DType::bf16);
      else if (what == "f16")
        bench.half(DType::f16);
      else if (what == "heads" && width % 8 == 0)
        bench.heads(8);
      else if (what == "epilogue")
        bench.epilogue();
      else
        check(what == "heads", "--rows has '{}' but knows sum, mean, backward, max, bf16, f16, heads and epilogue", what);
    }
  }
  write_json(json, bench.results());
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
