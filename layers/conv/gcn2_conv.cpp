#include "tessera/layers/conv/gcn2_conv.h"

#include <cmath>
#include <vector>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/layers/init.h"
#include "tessera/sparse/normalise.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

/// (1 - beta) h + beta h w = h ((1 - beta) I + beta w): what is channels x channels is mixed, not what is N x channels.
Tensor identity_mapped(const Tensor& h, const Tensor& w, double beta) {
  if (beta == 1) return matmul(h, w);
  const int64_t channels = w.dim(0);
  std::vector<double> identity(size_t(channels * channels));
  for (int64_t i = 0; i < channels; ++i) identity[size_t(i * channels + i)] = 1 - beta;
  return matmul(h, add(scale(w, beta), cast(Tensor::from(identity, w.shape()), w.dtype())));
}

}  // namespace

Gcn2Conv::Gcn2Conv(int64_t channels, Generator& generator, Gcn2ConvOptions given) : options(given) {
  check(channels >= 1, "gcn2_conv: channels is {} but needs to be 1 or more", channels);
  check(options.alpha >= 0 && options.alpha <= 1, "gcn2_conv: alpha is {} but needs to be in [0, 1]", options.alpha);
  check(options.layer >= 0 && options.theta >= 0 && (options.layer > 0) == (options.theta > 0),
        "gcn2_conv: theta {} and layer {} were given but it needs both above 0, or neither", options.theta, options.layer);
  weight1 = glorot(Shape{channels, channels}, generator);
  if (!options.shared_weights) weight2 = glorot(Shape{channels, channels}, generator);
}

Tensor Gcn2Conv::operator()(const Tensor& x, const Tensor& x_0, const Graph& graph, const Tensor& edge_weight) const {
  const int64_t channels = weight1.dim(0);
  check(x.ndim() == 2 && x.dim(0) == graph.num_src() && x.dim(1) == channels, "gcn2_conv: x has shape {} but needs [{}, {}]",
        x.shape(), graph.num_src(), channels);
  check(x_0.shape() == x.shape(), "gcn2_conv: x_0 has shape {} but x has {}", x_0.shape(), x.shape());
  const double beta = options.layer > 0 ? std::log(options.theta / options.layer + 1) : 1;
  GcnNorm norm{graph, {}, edge_weight};
  if (options.normalize) norm = gcn_norm(graph, edge_weight, {.add_self_loops = options.add_self_loops, .dtype = x.dtype()});
  const Tensor p = scale(spmm(norm.graph, x, Reduce::sum, norm.factors()), 1 - options.alpha);
  const Tensor q = scale(x_0, options.alpha);
  if (!weight2.defined()) return identity_mapped(add(p, q), weight1, beta);
  return add(identity_mapped(p, weight1, beta), identity_mapped(q, weight2, beta));
}

}  // namespace tessera
