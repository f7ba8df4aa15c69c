#include "tessera/layers/conv/gat_conv.h"

#include "tessera/core/autograd.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/layers/conv/attention_heads.h"
#include "tessera/layers/init.h"
#include "tessera/sparse/edge_attention.h"
#include "tessera/sparse/normalise.h"

namespace tessera {
namespace {

/// What is attended to: the graph with its loops, the scores of both sides and of the edges.
struct Scored {
  Graph graph;
  Tensor h, a_src, a_dst, a_edge;
};

Scored score(const GatConv& conv, const Tensor& h, const Graph& graph, const Tensor& edge_attr) {
  const GatConvOptions& options = conv.options;
  check(h.dim(0) == graph.num_src() && graph.num_src() == graph.num_dst(),
        "gat_conv: x has {} rows but the graph has {} sources and {} destinations", h.dim(0), graph.num_src(),
        graph.num_dst());
  Scored s{graph, h, head_dots(h, conv.att_src), head_dots(h, conv.att_dst), {}};
  Tensor features = edge_attr;
  if (features.defined()) {
    check(options.edge_dim > 0, "gat_conv: edge_attr was given but the layer was made without edge_dim");
    check(features.ndim() == 2 && features.dim(0) == graph.num_edges() && features.dim(1) == options.edge_dim,
          "gat_conv: edge_attr has shape {} but needs [{}, {}]", features.shape(), graph.num_edges(), options.edge_dim);
  }
  if (options.add_self_loops) {
    s.graph = with_self_loops(graph).graph;
    if (features.defined()) features = looped_features(graph, features, options.fill_value);
  }
  if (features.defined()) {
    const Tensor folded = matmul(head_matrix(conv.att_edge), conv.lin_edge.weight, {.transpose_a = true});
    s.a_edge = matmul(features, folded, {.transpose_b = true});
  }
  return s;
}

EdgeAttentionOptions attention_options(const GatConv& conv, const Tensor& a_edge, Generator* generator) {
  EdgeAttentionOptions options{.edge = a_edge, .slope = conv.options.negative_slope};
  if (!conv.training || conv.options.dropout == 0) return options;
  check(generator != nullptr, "gat_conv: dropout {} in training needs a generator", conv.options.dropout);
  options.dropout = conv.options.dropout;
  options.random = generator->next();
  return options;
}

template <class Features>
Tensor forward(const GatConv& conv, const Features& x, const Graph& graph, Generator* generator, const Tensor& edge_attr) {
  const Scored s = score(conv, conv.lin(x), graph, edge_attr);
  Tensor out = gat_attention(s.graph, s.h, s.a_src, s.a_dst, attention_options(conv, s.a_edge, generator));
  if (!conv.options.concat) out = head_mean(out, conv.options.heads);
  if (conv.options.residual) out = add(out, conv.res(x));
  return conv.bias.defined() ? add_bias(out, conv.bias) : out;
}

}  // namespace

GatConv::GatConv(int64_t in, int64_t out, Generator& generator, GatConvOptions given) : options(given) {
  check(in >= 1 && out >= 1 && options.heads >= 1, "gat_conv: in {}, out {} and heads {} need to be 1 or more", in, out,
        options.heads);
  const LinearOptions plain{.bias = false, .glorot = true};
  const int64_t width = options.heads * out, total = options.concat ? width : out;
  const Shape att{1, options.heads, out};
  lin = Linear(in, width, generator, plain);
  if (options.edge_dim > 0) lin_edge = Linear(options.edge_dim, width, generator, plain);
  if (options.residual) res = Linear(in, total, generator, plain);
  att_src = glorot(att, generator);
  att_dst = glorot(att, generator);
  if (options.edge_dim > 0) att_edge = glorot(att, generator);
  if (options.bias) bias = zero_parameter(Shape{total});
}

Tensor GatConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  return forward(*this, x, graph, nullptr, edge_attr);
}
Tensor GatConv::operator()(const SparseMatrix& x, const Graph& graph, const Tensor& edge_attr) const {
  return forward(*this, x, graph, nullptr, edge_attr);
}
Tensor GatConv::operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr) const {
  return forward(*this, x, graph, &generator, edge_attr);
}
Tensor GatConv::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_attr) const {
  return forward(*this, x, graph, &generator, edge_attr);
}

AttentionWeights GatConv::attention_weights(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  const NoGrad off;
  const Scored s = score(*this, lin(x), graph, edge_attr);
  return {s.graph, gat_attention_weights(s.graph, s.a_src, s.a_dst, {.edge = s.a_edge, .slope = options.negative_slope})};
}

}  // namespace tessera
