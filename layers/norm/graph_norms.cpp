#include "tessera/layers/norm/graph_norms.h"

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/norm.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/unary.h"
#include "tessera/layers/init.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"

namespace tessera {
namespace {

void check_rows(const char* who, const Tensor& x, const SegmentPlan& nodes) {
  check(x.ndim() == 2, "{}: x has shape {} but needs to be [N, C]", who, x.shape());
  if (!nodes.defined()) return;
  check(nodes.num_rows() == x.dim(0), "{}: x has {} rows but nodes has {}", who, x.dim(0), nodes.num_rows());
}

/// The mean of each graph's rows, at each row (or as a single row for one graph, to be broadcast).
Tensor graph_mean(const Tensor& x, const SegmentPlan& nodes) {
  if (nodes.defined()) return gather(segment_reduce(x, nodes, Reduce::mean), nodes);
  return mean(x, 0, true);
}

Tensor affine(Tensor x, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) x = mul(x, weight);
  return bias.defined() ? add(x, bias) : x;
}

Tensor by_root(const Tensor& x, const Tensor& variance, double eps) { return div(x, sqrt(shift(variance, eps))); }

Tensor row_length(const Tensor& x) { return norm(x, Norm::l2, 1, true); }

}  // namespace

LayerNorm::LayerNorm(int64_t channels, LayerNormOptions given) : options(given) {
  if (!options.affine) return;
  weight = one_parameter(Shape{channels});
  bias = zero_parameter(Shape{channels});
}

Tensor LayerNorm::operator()(const Tensor& x, const SegmentPlan& nodes) const {
  check_rows("layer_norm", x, nodes);
  if (options.mode == LayerNormOptions::Mode::node) return layer_norm(x, weight, bias, options.eps);
  if (x.numel() == 0) return x;
  const Tensor centred = sub(x, graph_mean(mean(x, 1, true), nodes));  // rows first: they have equally many channels
  const Tensor variance = graph_mean(mean(square(centred), 1, true), nodes);
  const Tensor out =
      nodes.defined() ? by_root(centred, variance, options.eps) : div(centred, shift(sqrt(variance), options.eps));
  return affine(out, weight, bias);
}

GraphNorm::GraphNorm(int64_t channels, double given)
    : weight(one_parameter(Shape{channels})),
      bias(zero_parameter(Shape{channels})),
      mean_scale(one_parameter(Shape{channels})),
      eps(given) {}

Tensor GraphNorm::operator()(const Tensor& x, const SegmentPlan& nodes) const {
  check_rows("graph_norm", x, nodes);
  if (x.numel() == 0) return x;
  const Tensor centred = sub(x, mul(graph_mean(x, nodes), mean_scale));
  return affine(by_root(centred, graph_mean(square(centred), nodes), eps), weight, bias);
}

InstanceNorm::InstanceNorm(int64_t channels, double given, bool with_affine) : eps(given) {
  if (!with_affine) return;
  weight = one_parameter(Shape{channels});
  bias = zero_parameter(Shape{channels});
}

Tensor InstanceNorm::operator()(const Tensor& x, const SegmentPlan& nodes) const {
  check_rows("instance_norm", x, nodes);
  if (x.numel() == 0) return x;
  const Tensor centred = sub(x, graph_mean(x, nodes));
  return affine(by_root(centred, graph_mean(square(centred), nodes), eps), weight, bias);
}

Tensor pair_norm(const Tensor& x, const SegmentPlan& nodes, const PairNormOptions& options) {
  check_rows("pair_norm", x, nodes);
  if (x.numel() == 0) return x;
  const Tensor centred = sub(x, graph_mean(x, nodes));
  const Tensor out = options.scale_individually
                         ? div(centred, shift(row_length(centred), options.eps))
                         : by_root(centred, graph_mean(sum(square(centred), 1, true), nodes), options.eps);
  return scale(out, options.scale);
}

MessageNorm::MessageNorm(bool learn_scale) : scale(ones(Shape{1})) {
  if (learn_scale) scale.set_requires_grad();
}

Tensor MessageNorm::operator()(const Tensor& x, const Tensor& message) const {
  check_rows("message_norm", x, {});
  check(message.ndim() == 2 && message.dim(0) == x.dim(0), "message_norm: message has shape {} but needs to be [{}, C]",
        message.shape(), x.dim(0));
  const Tensor direction = div(message, clamp(row_length(message), 1e-12, 1e300));
  return mul(mul(direction, row_length(x)), scale);
}

}  // namespace tessera
