#include "tessera/layers/conv/gatv2_conv.h"

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/layers/conv/attention_heads.h"
#include "tessera/layers/init.h"
#include "tessera/sparse/edge_attention.h"
#include "tessera/sparse/normalise.h"

namespace tessera {
namespace {

/// The graph with its loops, both sides, att (H, out), and what edges add.
struct Scored {
  Graph graph;
  Tensor left, right, att, edge;
};

Scored score(const Gatv2Conv& conv, const Tensor& x, const Graph& graph, const Tensor& edge_attr) {
  const Gatv2ConvOptions& options = conv.options;
  const Tensor left = conv.lin_l(x);
  check(x.dim(0) == graph.num_src() && graph.num_src() == graph.num_dst(),
        "gatv2_conv: x has {} rows but the graph has {} sources and {} destinations", x.dim(0), graph.num_src(),
        graph.num_dst());
  Scored s{graph,
           left,
           options.share_weights ? left : conv.lin_r(x),
           reshape(conv.att, Shape{conv.att.dim(1), conv.att.dim(2)}),
           {}};
  Tensor features = edge_attr;
  if (features.defined()) {
    check(options.edge_dim > 0, "gatv2_conv: edge_attr was given but the layer was made without edge_dim");
    check(features.ndim() == 2 && features.dim(0) == graph.num_edges() && features.dim(1) == options.edge_dim,
          "gatv2_conv: edge_attr has shape {} but needs [{}, {}]", features.shape(), graph.num_edges(), options.edge_dim);
  }
  if (options.add_self_loops) {
    s.graph = with_self_loops(graph).graph;
    if (features.defined()) features = looped_features(graph, features, options.fill_value);
  }
  if (features.defined()) s.edge = conv.lin_edge(features);
  return s;
}

EdgeAttentionOptions attention_options(const Gatv2Conv& conv, const Tensor& edge, Generator* generator) {
  EdgeAttentionOptions options{.edge = edge, .slope = conv.options.negative_slope};
  if (!conv.training || conv.options.dropout == 0) return options;
  check(generator != nullptr, "gatv2_conv: dropout {} in training needs a generator", conv.options.dropout);
  options.dropout = conv.options.dropout;
  options.random = generator->next();
  return options;
}

Tensor forward(const Gatv2Conv& conv, const Tensor& x, const Graph& graph, Generator* generator, const Tensor& edge_attr) {
  const Scored s = score(conv, x, graph, edge_attr);
  Tensor out = gatv2_attention(s.graph, s.left, s.right, s.att, attention_options(conv, s.edge, generator));
  if (!conv.options.concat) out = head_mean(out, conv.options.heads);
  if (conv.options.residual) out = add(out, conv.res(x));
  return conv.bias.defined() ? add_bias(out, conv.bias) : out;
}

}  // namespace

Gatv2Conv::Gatv2Conv(int64_t in, int64_t out, Generator& generator, Gatv2ConvOptions given) : options(given) {
  check(in >= 1 && out >= 1 && options.heads >= 1, "gatv2_conv: in {}, out {} and heads {} need to be 1 or more", in, out,
        options.heads);
  const LinearOptions side{.bias = options.bias, .glorot = true}, plain{.bias = false, .glorot = true};
  const int64_t width = options.heads * out, total = options.concat ? width : out;
  lin_l = Linear(in, width, generator, side);
  lin_r = options.share_weights ? lin_l : Linear(in, width, generator, side);
  if (options.edge_dim > 0) lin_edge = Linear(options.edge_dim, width, generator, plain);
  if (options.residual) res = Linear(in, total, generator, plain);
  att = glorot(Shape{1, options.heads, out}, generator);
  if (options.bias) bias = zero_parameter(Shape{total});
}

Tensor Gatv2Conv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  return forward(*this, x, graph, nullptr, edge_attr);
}
Tensor Gatv2Conv::operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr) const {
  return forward(*this, x, graph, &generator, edge_attr);
}

AttentionWeights Gatv2Conv::attention_weights(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  const NoGrad off;
  const Scored s = score(*this, x, graph, edge_attr);
  return {s.graph,
          gatv2_attention_weights(s.graph, s.left, s.right, s.att, {.edge = s.edge, .slope = options.negative_slope})};
}

}  // namespace tessera
