// One dense op at one shape, as bench/peers/ops.py times it beside PyTorch: `op_rows_bench --row NAME --seconds S` repeats
// the op for S seconds and prints a line of JSON: seconds a call (median and least), peak memory, and two checksums (means
// of |result| and of |gradients|) by which the script sees that both sides computed the same. `--list` names the rows.
// Inputs are a formula of index and seed, the same in the script.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "tessera/bench/core/resnet18.h"
#include "tessera/bench/support/bench.h"
#include "tessera/core/autograd.h"
#include "tessera/core/ops/index.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/ops/lstm.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"
#include "tessera/core/ops/sort.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/parallel.h"

namespace tessera::bench {
namespace {

/// Element i: a hash of i and the seed, in [-scale, scale).
Tensor fill(const Shape& shape, uint64_t seed, double scale = 1) {
  Tensor out = Tensor::empty(shape);
  float* y = out.mutable_data<float>();
  for (int64_t i = 0; i < out.numel(); ++i)
    y[i] = float((double(((uint64_t(i) + seed * 7919) * 2654435761u) & 0xffffffffu) * 0x1p-31 - 1) * scale);
  return out;
}

Tensor labels(int64_t count, int64_t classes) {
  Tensor out = Tensor::empty({count}, DType::i32);
  for (int64_t i = 0; i < count; ++i) out.mutable_data<int32_t>()[i] = int32_t(i * 7 % classes);
  return out;
}

using Inputs = std::vector<Tensor>;

/// What a row does: inputs of these shapes, `call` on them; with a gradient to all inputs where the row's name says so.
struct Row {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Inputs&)> call;
  int repeats = 1;  // calls in one measurement
};

double mean_abs(const Tensor& x) {
  const Tensor y = is_floating(x.dtype()) ? x.detach() : cast(x, DType::f64);
  return norm(y, Norm::l1).item() / double(std::max<int64_t>(1, y.numel()));
}

std::vector<Row> rows() {
  std::vector<Row> all;
  const auto forward = [&](std::string name, std::vector<Shape> shapes, std::function<Tensor(const Inputs&)> call,
                           int repeats = 1) {
    all.push_back({std::move(name), std::move(shapes), std::move(call), repeats});
  };
  const auto both = [&](const std::string& name, const std::vector<Shape>& shapes,
                        const std::function<Tensor(const Inputs&)>& call, int repeats = 1) {
    forward(name, shapes, call, repeats);
    forward(name + " fwd+bwd", shapes, call, repeats);
  };
  using In = const Inputs&;
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{2708, 1433, 16}, {10000, 64, 64}, {100000, 128, 128}, {233000, 602, 128}})
    both("matmul " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n), {{m, k}, {k, n}},
         [](In in) { return matmul(in[0], in[1]); });
  both("batched matmul 512x32x64x32", {{512, 32, 64}, {512, 64, 32}}, [](In in) { return batched_matmul(in[0], in[1]); });
  both("linear relu 20000x256x256", {{20000, 256}, {256, 256}, {256}},
       [](In in) { return matmul(in[0], in[1], {.transpose_b = true, .bias = in[2], .activation = Activation::relu}); });

  both("softmax 100000x47", {{100000, 47}}, [](In in) { return softmax(in[0]); });
  both("softmax 10000x512", {{10000, 512}}, [](In in) { return softmax(in[0]); });
  both("softmax dim 0 512x1000", {{512, 1000}}, [](In in) { return softmax(in[0], 0); });
  both("log_softmax 100000x47", {{100000, 47}}, [](In in) { return log_softmax(in[0]); });
  both("log_softmax 2708x7", {{2708, 7}}, [](In in) { return log_softmax(in[0]); });
  const Tensor classes = labels(100000, 47);
  both("cross_entropy 100000x47", {{100000, 47}}, [classes](In in) { return cross_entropy(in[0], classes); });

  const Shape wide{20000, 256};
  both("relu(a*b+c) 20000x256", {wide, wide, wide}, [](In in) { return relu(add(mul(in[0], in[1]), in[2])); });
  both("add row 20000x256", {wide, {256}}, [](In in) { return add(in[0], in[1]); });
  both("gelu 20000x256", {wide}, [](In in) { return gelu(in[0]); });
  both("tanh 20000x256", {wide}, [](In in) { return tanh(in[0]); });
  both("sigmoid 20000x256", {wide}, [](In in) { return sigmoid(in[0]); });
  both("exp 20000x256", {wide}, [](In in) { return exp(in[0]); });
  both("elu 20000x256", {wide}, [](In in) { return elu(in[0]); });
  both("leaky_relu 20000x256", {wide}, [](In in) { return leaky_relu(in[0], 0.2); });
  both("div 20000x256", {wide, wide}, [](In in) { return div(in[0], shift(in[1], 2)); });
  both("layer_norm 20000x256", {wide, {256}, {256}}, [](In in) { return layer_norm(in[0], in[1], in[2]); });
  const auto batch = [](In in) {
    Tensor none;
    return batch_norm(in[0], in[1], in[2], none, none);
  };
  both("batch_norm 20000x256", {wide, {256}, {256}}, batch);
  both("batch_norm 32x64x56x56", {{32, 64, 56, 56}, {64}, {64}}, batch);

  forward("sort 1000000", {{1000000}}, [](In in) { return sort(in[0]).values; });
  forward("sort 10000x100", {{10000, 100}}, [](In in) { return sort(in[0]).values; });
  forward("topk 10000x1000 k 10", {{10000, 1000}}, [](In in) { return topk(in[0], 10).values; });
  forward("topk 1000000 k 1000", {{1000000}}, [](In in) { return topk(in[0], 1000).values; });
  forward("transpose 20000x256", {wide}, [](In in) { return transpose(in[0]); });
  forward("transpose 4096x4096", {{4096, 4096}}, [](In in) { return transpose(in[0]); });
  forward("permute 0213 64x100x8x64", {{64, 100, 8, 64}}, [](In in) { return permute(in[0], {0, 2, 1, 3}); });
  both("concat dim 1 20000x(128+256)", {{20000, 128}, wide}, [](In in) { return concat({in[0], in[1]}, 1); });
  forward("cumsum 20000x256", {wide}, [](In in) { return cumsum(in[0], 1); });
  both("sum 20000x256", {wide}, [](In in) { return sum(in[0]); });
  both("sum dim 0 20000x256", {wide}, [](In in) { return sum(in[0], 0); });
  both("sum dim 1 20000x256", {wide}, [](In in) { return sum(in[0], 1); });
  both("sum dim 1 1000000x8", {{1000000, 8}}, [](In in) { return sum(in[0], 1); });
  both("mean dim 1 200000x41", {{200000, 41}}, [](In in) { return mean(in[0], 1); });
  both("max dim 1 20000x256", {wide}, [](In in) { return max(in[0], 1).values; });
  both("max dim 1 1000000x8", {{1000000, 8}}, [](In in) { return max(in[0], 1).values; });
  both("max dim 0 20000x256", {wide}, [](In in) { return max(in[0], 0).values; });
  forward("argmax dim 1 200000x41", {{200000, 41}}, [](In in) { return argmax(in[0], 1); });
  forward("norm dim 1 1000000x8", {{1000000, 8}}, [](In in) { return norm(in[0], Norm::l2, 1); });
  forward("var dim 1 20000x256", {wide}, [](In in) { return var(in[0], 1); });

  both("lstm 1000x16x64 h 64", {{1000, 16, 64}, {256, 64}, {256, 64}, {256}, {256}}, [](In in) {
    return lstm(in[0], {in[1], in[2], in[3], in[4]});
  });
  struct Image {
    const char* name;
    Shape x, w;
    int64_t stride, padding, groups;
  };
  for (const Image& c : {Image{"conv2d 3x3 64 32x64x56x56", {32, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
                         {"conv2d 3x3 512 32x512x7x7", {32, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1},
                         {"conv2d 1x1 256 32x64x56x56", {32, 64, 56, 56}, {256, 64, 1, 1}, 1, 0, 1},
                         {"conv2d 3x3 128 stride 2 32x64x56x56", {32, 64, 56, 56}, {128, 64, 3, 3}, 2, 1, 1},
                         {"conv2d 7x7 64 stride 2 32x3x224x224", {32, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1},
                         {"conv2d 3x3 depthwise 32x116x28x28", {32, 116, 28, 28}, {116, 1, 3, 3}, 1, 1, 116},
                         {"conv2d 3x3 64 1x64x56x56", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1}})
    both(c.name, {c.x, c.w},
         [c](In in) { return conv2d(in[0], in[1], {.stride = c.stride, .padding = c.padding, .groups = c.groups}); });
  both("max_pool2d 3x3 stride 2 32x64x112x112", {{32, 64, 112, 112}},
       [](In in) { return max_pool2d(in[0], 3, {.stride = 2, .padding = 1}); });
  both("avg_pool2d 3x3 stride 2 32x64x56x56", {{32, 64, 56, 56}},
       [](In in) { return avg_pool2d(in[0], 3, {.stride = 2, .padding = 1}); });
  both("adaptive_avg_pool2d 32x512x7x7", {{32, 512, 7, 7}}, [](In in) { return adaptive_avg_pool2d(in[0]); });

  const Shape small{10, 16};
  both(
      "small add 10x16", {small, small}, [](In in) { return add(in[0], in[1]); }, 1000);
  both(
      "small relu 10x16", {small}, [](In in) { return relu(in[0]); }, 1000);
  both(
      "small matmul 10x16x16", {small, {16, 16}}, [](In in) { return matmul(in[0], in[1]); }, 1000);
  both(
      "small sum 10x16", {small}, [](In in) { return sum(in[0]); }, 1000);
  both(
      "small softmax 10x16", {small}, [](In in) { return softmax(in[0]); }, 1000);
  return all;
}

/// One call, ready to be repeated; it leaves the checksums behind.
struct Work {
  std::function<void()> call;
  std::function<std::pair<double, double>()> check;
  int repeats = 1;
};

Work work_of(const Row& row) {
  auto inputs = std::make_shared<Inputs>();
  auto out = std::make_shared<Tensor>();
  for (size_t i = 0; i < row.shapes.size(); ++i) {
    const double scale = row.name.starts_with("lstm") && i > 0 ? 0.125 : 1;
    inputs->push_back(fill(row.shapes[i], i + 1, scale));
    // A sum of all that cancels would compare nothing but roundings.
    if (row.name.starts_with("sum 2")) inputs->back() = shift(inputs->back(), 1);
  }
  if (!row.name.ends_with("fwd+bwd"))
    return {[=] { *out = row.call(*inputs); }, [=] { return std::pair(mean_abs(*out), 0.0); }, row.repeats};
  for (Tensor& x : *inputs) x.set_requires_grad();
  const Tensor probe = row.call(*inputs), seed = fill(probe.shape(), 99);
  return {[=] {
            for (Tensor& x : *inputs) x.clear_grad();
            *out = row.call(*inputs);
            backward(*out, seed);
          },
          [=] {
            double gradients = 0;
            for (const Tensor& x : *inputs) gradients += mean_abs(x.grad());
            return std::pair(mean_abs(*out), gradients);
          },
          row.repeats};
}

/// Adam over `count` tensors of `shape`, with gradients that stay.
Work adam_work(int count, const Shape& shape) {
  auto parameters = std::make_shared<Inputs>();
  for (int i = 0; i < count; ++i) {
    parameters->push_back(fill(shape, uint64_t(i) + 1));
    parameters->back().set_requires_grad();
    backward(parameters->back(), fill(shape, uint64_t(i) + 500));
  }
  auto adam = std::make_shared<Adam>(*parameters, Adam::Options{.lr = 1e-3});
  auto first = std::make_shared<double>(-1);
  return {[=] {
            adam->step();
            if (*first < 0) *first = mean_abs(parameters->front());
          },
          [=] { return std::pair(*first, 0.0); }};
}

Work resnet_work(int64_t batch) {
  auto seed = std::make_shared<uint64_t>(0);
  auto net = std::make_shared<Resnet18>([seed](const Shape& shape, int64_t fan_in) {
    Tensor w = fill(shape, ++*seed, std::sqrt(6.0 / double(fan_in)));
    w.set_requires_grad();
    return w;
  });
  const Tensor images = fill({batch, 3, 224, 224}, 77), classes = labels(batch, 1000);
  auto loss = std::make_shared<Tensor>();
  return {[=] {
            for (Tensor p : net->parameters()) p.clear_grad();
            *loss = cross_entropy((*net)(images), classes);
            backward(*loss);
          },
          [=] {
            double gradients = 0;
            for (const Tensor& p : net->parameters()) gradients += mean_abs(p.grad());
            return std::pair(loss->item(), gradients);
          }};
}

int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

int run_bench(int argc, char** argv) {
  Options options(argc, argv, "op_rows_bench: one dense op, as bench/peers/ops.py times it beside PyTorch");
  const std::string wanted = options.text("row", "", "the row to time; none: list them");
  const double seconds = options.real("seconds", 0.5, "time to spend on it");
  set_threads(int(options.integer("threads", threads(), "threads")));
  options.finish();
  std::map<std::string, std::function<Work()>> makers;
  std::vector<std::string> names;
  const auto have = [&](const std::string& name, std::function<Work()> make) {
    names.push_back(name);
    makers[name] = std::move(make);
  };
  for (const Row& row : rows()) have(row.name, [row] { return work_of(row); });
  have("adam 1 x 5000000", [] { return adam_work(1, {5000000}); });
  have("adam 200 x 64x64", [] { return adam_work(200, {64, 64}); });
  have("adam 60 x 16", [] { return adam_work(60, {16}); });
  have("resnet18 32x3x224x224 fwd+bwd", [] { return resnet_work(32); });
  if (wanted.empty()) {
    for (const std::string& name : names) std::printf("%s\n", name.c_str());
    return 0;
  }
  check(makers.contains(wanted), "op_rows_bench: there is no row '{}'; without --row they are listed", wanted);
  const Work work = makers[wanted]();
  work.call();
  const auto [result, gradient] = work.check();
  Timing timing;
  double spent = 0;
  while (spent < seconds || timing.seconds.size() < 3) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < work.repeats; ++i) work.call();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += took;
    timing.seconds.push_back(took / work.repeats);
  }
  std::printf("{\"median_s\": %.9g, \"min_s\": %.9g, \"peak_bytes\": %lld, \"result\": %.9g, \"gradient\": %.9g}\n",
              timing.median(), timing.min(), static_cast<long long>(peak_bytes()), result, gradient);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    return tessera::bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "op_rows_bench: %s\n", error.what());
    return 1;
  }
}
