#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/conv2d.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/norm.h"
#include "tessera/core/ops/pool2d.h"
#include "tessera/core/ops/unary.h"

namespace tessera::bench {

/// ResNet-18 (He et al., 2016) in training, built from ops: 7 x 7 stem, four stages of two basic blocks, global mean,
/// linear. Parameters are made by `weight(shape, fan_in)` in the order in which the peer's script makes its own.
class Resnet18 {
 public:
  using Make = std::function<Tensor(const Shape& shape, int64_t fan_in)>;

  explicit Resnet18(const Make& weight) : stem_(make(weight, 3, 64, 7)) {
    for (int stage = 0; stage < 4; ++stage)
      for (int block = 0; block < 2; ++block) {
        const int64_t out = 64 << stage, in = block == 0 && stage > 0 ? out / 2 : out;
        Block b{make(weight, in, out, 3), make(weight, out, out, 3), {}, stage > 0 && block == 0 ? 2 : 1};
        if (in != out) b.shortcut.push_back(make(weight, in, out, 1));
        blocks_.push_back(b);
      }
    linear_ = weight({1000, 512}, 512);
    parameters_.push_back(linear_);
  }

  /// Logits (N, 1000) of images (N, 3, H, W).
  Tensor operator()(const Tensor& images) {
    Tensor h = max_pool2d(relu(stem_(images, 2, 3)), 3, {.stride = 2, .padding = 1});
    for (Block& b : blocks_) {
      const Tensor inner = b.second(relu(b.first(h, b.stride, 1)), 1, 1);
      h = relu(add(inner, b.shortcut.empty() ? h : b.shortcut[0](h, b.stride, 0)));
    }
    const Tensor pooled = adaptive_avg_pool2d(h);
    return matmul(reshape(pooled, {h.dim(0), h.dim(1)}), linear_, {.transpose_b = true});
  }

  const std::vector<Tensor>& parameters() const { return parameters_; }

 private:
  /// A convolution without bias and its batch norm.
  struct Unit {
    Tensor weight, gain, shift;
    Tensor operator()(const Tensor& x, int64_t stride, int64_t padding) {
      Tensor none;
      return batch_norm(conv2d(x, weight, {.stride = stride, .padding = padding}), gain, shift, none, none);
    }
  };
  struct Block {
    Unit first, second;
    std::vector<Unit> shortcut;
    int64_t stride;
  };

  Unit make(const Make& weight, int64_t in, int64_t out, int64_t size) {
    Unit unit{weight({out, in, size, size}, in * size * size), ones({out}), zeros({out})};
    unit.gain.set_requires_grad();
    unit.shift.set_requires_grad();
    for (const Tensor& t : {unit.weight, unit.gain, unit.shift}) parameters_.push_back(t);
    return unit;
  }

  std::vector<Tensor> parameters_;
  Unit stem_;
  std::vector<Block> blocks_;
  Tensor linear_;
};

}  // namespace tessera::bench
