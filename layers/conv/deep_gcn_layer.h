#pragma once

#include <utility>

#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct DeepGcnLayerOptions {
  enum class Block : uint8_t {
    res_plus,  ///< x + conv(dropout(act(norm(x))))
    res,       ///< dropout(x + act(norm(conv(x))))
    dense,     ///< dropout([x, act(norm(conv(x)))])
    plain,     ///< dropout(act(norm(conv(x))))
  };
  Block block = Block::res_plus;
  Activation act = Activation::relu;
  double dropout = 0;
};

/// A convolution with its norm, activation and skip connection (Li et al., arXiv 1910.06849, 2006.07739), the formulas
/// beside the blocks above. Conv: called conv(x, graph, more...); Norm: norm(x), such as NodeNorm or BatchNorm1d. Of
/// torch_geometric.nn.DeepGCNLayer, whose state it has: `conv.*`, `norm.*`. Gradients: as of its parts.
/// Dropout in training takes its streams from `generator`.
template <class Conv, class Norm>
struct DeepGcnLayer {
  Conv conv;
  Norm norm;
  DeepGcnLayerOptions options;
  bool training = true;

  DeepGcnLayer() = default;
  DeepGcnLayer(Conv c, Norm n, DeepGcnLayerOptions given = {}) : conv(std::move(c)), norm(std::move(n)), options(given) {}

  template <class... More>
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const More&... more) const {
    const auto drop = [&](const Tensor& h) {
      return training && options.dropout > 0 ? dropout(h, options.dropout, generator) : h;
    };
    using Block = DeepGcnLayerOptions::Block;
    if (options.block == Block::res_plus) return add(x, conv(drop(activated(x)), graph, more...));
    const Tensor h = activated(conv(x, graph, more...));
    if (options.block == Block::res) return drop(add(x, h));
    return drop(options.block == Block::dense ? concat({x, h}, 1) : h);
  }

  /// act(norm(x)), what a model of res_plus layers ends with.
  Tensor activated(const Tensor& x) const { return activate(norm(x), options.act); }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv", self.conv);
    visitor("norm", self.norm);
  }
};

}  // namespace tessera
