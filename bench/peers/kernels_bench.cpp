// Our side of kernels.py: answers one JSON request a line with one JSON line until stdin closes. By hand:
//   echo '{"do": "graph", "nodes": 10000, "edges": 200000}
//   {"do": "prepare", "route": "spmm", "reduce": "sum", "width": 64, "grad": true}
//   {"do": "time", "budget_s": 1}' | kernels_bench

#include <exception>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/bench/support/side.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/io/npy.h"
#include "tessera/core/isa.h"
#include "tessera/core/module.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"
#include "tessera/core/version.h"
#include "tessera/datasets/synthetic.h"
#include "tessera/layers/conv/gat_conv.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/reorder.h"
#include "tessera/sparse/spmm.h"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<Tensor>;

Tensor array(int64_t rows, int64_t width, uint32_t salt) {
  Tensor out = Tensor::empty(Shape{rows, width});
  float* p = out.mutable_data<float>();
  parallel_for(rows, 256, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < width; ++j) p[i * width + j] = element(i, j, salt);
  });
  return out;
}

/// 64 values spread over a result, and their sum of magnitudes, for the comparison of the sides.
Json sample(const Tensor& result) {
  const Tensor wide = cast(result, DType::f32);
  Json out = Json::array();
  for (int64_t i = 0; i < 64 && wide.numel() > 0; ++i) out.push_back(wide.data<float>()[(wide.numel() - 1) * i / 63]);
  return out;
}

/// A tenth of the same numbers, over the rows of its last dimension.
void fill(Tensor parameter, uint32_t salt) {
  float* p = parameter.mutable_data<float>();
  const int64_t width = parameter.dim(parameter.ndim() - 1);
  for (int64_t i = 0; i < parameter.numel(); ++i) p[i] = 0.1f * element(i / width, i % width, salt);
}

Reduce reduce_of(const std::string& text) {
  for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min})
    if (text == name(reduce)) return reduce;
  fail("no reduction is named {}", text);
}

class Side {
 public:
  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "graph") return make_graph(request);
    if (what == "prepare") return prepare(request);
    if (what == "check") return check_samples();
    if (what == "time") return time_calls(request.value("budget_s", 1.0), request.value("clock", "wall") == "cpu");
    fail("nothing is done for \"{}\"", what);
  }

 private:
  Json make_graph(const Json& request) {
    call_ = nullptr;
    graph_ = {};
    reordered_ = {};
    src_plan_ = dst_plan_ = {};
    SyntheticOptions wanted;
    wanted.nodes = nodes_ = request.at("nodes");
    wanted.edges = request.at("edges");
    wanted.exponent = request.value("exponent", wanted.exponent);
    wanted.max_degree = request.value("max_degree", wanted.max_degree);
    wanted.communities = request.value("communities", wanted.communities);
    wanted.inside = request.value("inside", wanted.inside);
    wanted.symmetric = request.value("symmetric", wanted.symmetric);
    wanted.shuffle = request.value("shuffle", wanted.shuffle);
    SyntheticGraph made = synthetic_graph(wanted);
    src_ = made.src;
    dst_ = made.dst;
    const std::string folder = request.at("folder");
    save_npy(folder + "/src.npy", src_);
    save_npy(folder + "/dst.npy", dst_);
    return {{"version", version()}, {"isa", name(active_isa())}, {"checksum", made.checksum}};
  }

  /// Makes what a user makes once and keeps, and call_, which is what is timed: the results of one step.
  Json prepare(const Json& request) {
    call_ = nullptr;
    release_cached_memory();
    set_threads(request.at("threads"));
    const std::string route = request.at("route");
    const bool grad = request.value("grad", false);
    const int64_t width = request.at("width");
    const DType dtype = request.value("dtype", "f32") == "bf16" ? DType::bf16 : DType::f32;
    const Reduce reduce = reduce_of(request.value("reduce", "sum"));
    const Tensor x = cast(array(nodes_, width, 1), dtype);
    Tensors inputs{x};
    std::function<Tensor()> forward;
    if (route != "coo" && !graph_.defined()) graph_ = Graph::from_coo(src_, dst_, nodes_, nodes_);
    if (route == "spmm") {
      const bool reordered = request.value("order", "") == "community";
      if (reordered && !reordered_.graph.defined()) reordered_ = reorder(graph_, Ordering::community);
      const Graph graph = reordered ? reordered_.graph : graph_;
      forward = [graph, x, reduce] { return spmm(graph, x, reduce); };
    } else if (route == "gat") {
      Generator generator(1);
      GatConv conv(width, 8, generator, {.heads = 8, .add_self_loops = false});
      const auto named = state_dict(conv);  // sorted by name, as the peer fills them
      uint32_t salt = 10;
      for (const auto& [name, tensor] : named) fill(tensor, salt++);
      for (const Tensor& parameter : parameters(conv)) inputs.push_back(parameter);
      forward = [graph = graph_, conv, x] { return conv(x, graph); };
    } else if (route == "coo") {
      if (!dst_plan_.defined()) dst_plan_ = SegmentPlan::from_index(dst_, nodes_);
      if (!src_plan_.defined()) src_plan_ = SegmentPlan::from_index(src_, nodes_);
      forward = [this, x, reduce] { return segment_reduce(gather(x, src_plan_), dst_plan_, reduce); };
    } else {
      fail("no route is named {}", route);
    }
    call_ = with_gradient(forward, inputs, grad ? cast(array(nodes_, width, 2), dtype) : Tensor());
    return Json::object();
  }

  static std::function<Tensors()> with_gradient(std::function<Tensor()> forward, Tensors inputs, Tensor seed) {
    if (!seed.defined())
      return [forward] {
        const NoGrad no_grad;
        return Tensors{forward()};
      };
    for (Tensor& input : inputs) input.set_requires_grad();
    return [forward, inputs, seed]() mutable {
      for (Tensor& input : inputs) input.clear_grad();
      const Tensor out = forward();
      backward(out, seed);
      Tensors results{out};
      for (const Tensor& input : inputs) results.push_back(input.grad());
      return results;
    };
  }

  Json check_samples() {
    Json samples = Json::array();
    for (const Tensor& result : call_()) samples.push_back(sample(result));
    return {{"samples", samples}};
  }

  Json time_calls(double budget, bool processor_time) {
    const Timing timing = bench::time_calls([this] { call_(); }, budget, processor_time);
    const int64_t peak = peak_bytes();
    release_cached_memory();
    return {{"median_s", timing.median()}, {"min_s", timing.min()}, {"peak_bytes", peak}};
  }

  int64_t nodes_ = 0;
  Tensor src_, dst_;
  Graph graph_;
  Reordered reordered_;
  SegmentPlan src_plan_, dst_plan_;
  std::function<Tensors()> call_;
};

}  // namespace
}  // namespace tessera::bench

int main() {
  tessera::bench::Side side;
  for (std::string line; std::getline(std::cin, line);) {
    tessera::bench::Json answer;
    try {
      answer = side.answer(tessera::bench::Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
