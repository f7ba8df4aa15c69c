#include "tessera/layers/mlp.h"

#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"

namespace tessera {
namespace {

struct Forward {
  const Mlp& mlp;
  Generator* generator;
  const SegmentPlan& nodes;

  bool plain(size_t layer) const { return layer == mlp.norms.size(); }

  /// The activation that comes before the norm, or where there is none: with the product's tiles in the cache.
  Activation fused(size_t layer) const {
    if (plain(layer)) return Activation::none;
    return mlp.options.act_first || mlp.norms[layer].kind == NodeNorm::Kind::none ? mlp.options.act : Activation::none;
  }

  /// Norm, the other activation and dropout after a layer.
  Tensor finish(size_t layer, Tensor h) const {
    if (plain(layer)) return h;
    h = mlp.norms[layer](h, nodes);
    if (fused(layer) == Activation::none) h = activate(h, mlp.options.act);
    const bool drops = mlp.training && mlp.options.dropout > 0;
    if (!drops) return h;
    check(generator != nullptr, "mlp: dropout {} in training needs a generator", mlp.options.dropout);
    return dropout(h, mlp.options.dropout, *generator);
  }

  Tensor operator()(Tensor h, size_t first) const {
    for (size_t i = first; i < mlp.lins.size(); ++i) {
      const Linear& lin = mlp.lins[i];
      check(h.ndim() == 2 && h.dim(1) == lin.weight.dim(1), "mlp: x has shape {} but needs to be [N, {}]", h.shape(),
            lin.weight.dim(1));
      h = finish(i, matmul(h, lin.weight, {.transpose_b = true, .bias = lin.bias, .activation = fused(i)}));
    }
    return h;
  }
};

}  // namespace

Mlp::Mlp(const std::vector<int64_t>& channels, Generator& generator, MlpOptions given) : options(given) {
  check(channels.size() >= 2, "mlp: {} channel counts were given but it needs 2 or more", int64_t(channels.size()));
  for (size_t i = 0; i < channels.size(); ++i)
    check(channels[i] >= 1, "mlp: channel count {} is {} but needs to be 1 or more", int64_t(i), channels[i]);
  check(options.dropout >= 0 && options.dropout <= 1, "mlp: dropout is {} but needs to be in [0, 1]", options.dropout);
  for (size_t i = 0; i + 1 < channels.size(); ++i)
    lins.emplace_back(channels[i], channels[i + 1], generator, LinearOptions{.bias = options.bias});
  for (size_t i = 1; i < channels.size(); ++i)
    if (!options.plain_last || i + 1 < channels.size()) norms.emplace_back(options.norm, channels[i]);
}

Tensor Mlp::operator()(const Tensor& x) const { return Forward{*this, nullptr, {}}(x, 0); }

Tensor Mlp::operator()(const Tensor& x, Generator& generator, const SegmentPlan& nodes) const {
  return Forward{*this, &generator, nodes}(x, 0);
}

Tensor Mlp::after_first_product(const Tensor& product) const {
  const Forward forward{*this, nullptr, {}};
  Tensor h = lins[0].bias.defined() ? add_bias(product, lins[0].bias) : product;
  return forward(forward.finish(0, activate(h, forward.fused(0))), 1);
}

}  // namespace tessera
