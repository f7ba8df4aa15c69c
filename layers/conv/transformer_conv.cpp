#include "tessera/layers/conv/transformer_conv.h"

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/layers/conv/attention_heads.h"
#include "tessera/sparse/edge_attention.h"

namespace tessera {
namespace {

/// What edges add, (E, H out); undefined without edge features.
Tensor edge_rows(const TransformerConv& conv, const Tensor& x, const Graph& graph, const Tensor& edge_attr) {
  check(x.ndim() == 2 && x.dim(0) == graph.num_src() && graph.num_src() == graph.num_dst(),
        "transformer_conv: x has shape {} but the graph has {} sources and {} destinations", x.shape(), graph.num_src(),
        graph.num_dst());
  const int64_t edge_dim = conv.options.edge_dim;
  check(edge_attr.defined() == (edge_dim > 0), "transformer_conv: edge_attr was {} but the layer was made {} edge_dim",
        edge_attr.defined() ? "given" : "not given", edge_dim > 0 ? "with" : "without");
  if (!edge_attr.defined()) return {};
  check(edge_attr.ndim() == 2 && edge_attr.dim(0) == graph.num_edges() && edge_attr.dim(1) == edge_dim,
        "transformer_conv: edge_attr has shape {} but needs [{}, {}]", edge_attr.shape(), graph.num_edges(), edge_dim);
  return conv.lin_edge(edge_attr);
}

Tensor forward(const TransformerConv& conv, const Tensor& x, const Graph& graph, Generator* generator,
               const Tensor& edge_attr) {
  const TransformerConvOptions& options = conv.options;
  EdgeAttentionOptions attention{.edge = edge_rows(conv, x, graph, edge_attr)};
  if (conv.training && options.dropout > 0) {
    check(generator != nullptr, "transformer_conv: dropout {} in training needs a generator", options.dropout);
    attention.dropout = options.dropout;
    attention.random = generator->next();
  }
  Tensor out = dot_attention(graph, conv.lin_query(x), conv.lin_key(x), conv.lin_value(x), options.heads, attention);
  if (!options.concat) out = head_mean(out, options.heads);
  if (!options.root_weight) return out;
  const Tensor root = conv.lin_skip(x);
  if (!conv.lin_beta.weight.defined()) return add(out, root);
  const Tensor gate = sigmoid(conv.lin_beta(concat({out, root, sub(out, root)}, 1)));
  return add(mul(gate, root), mul(shift(neg(gate), 1), out));
}

}  // namespace

TransformerConv::TransformerConv(int64_t in, int64_t out, Generator& generator, TransformerConvOptions given)
    : options(given) {
  check(in >= 1 && out >= 1 && options.heads >= 1, "transformer_conv: in {}, out {} and heads {} need to be 1 or more", in,
        out, options.heads);
  const LinearOptions side{.bias = options.bias}, plain{.bias = false};
  const int64_t width = options.heads * out, total = options.concat ? width : out;
  lin_key = Linear(in, width, generator, side);
  lin_query = Linear(in, width, generator, side);
  lin_value = Linear(in, width, generator, side);
  if (options.edge_dim > 0) lin_edge = Linear(options.edge_dim, width, generator, plain);
  lin_skip = Linear(in, total, generator, side);
  if (options.beta && options.root_weight) lin_beta = Linear(3 * total, 1, generator, plain);
}

Tensor TransformerConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  return forward(*this, x, graph, nullptr, edge_attr);
}
Tensor TransformerConv::operator()(const Tensor& x, const Graph& graph, Generator& generator,
                                   const Tensor& edge_attr) const {
  return forward(*this, x, graph, &generator, edge_attr);
}

AttentionWeights TransformerConv::attention_weights(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  const NoGrad off;
  return {graph, dot_attention_weights(graph, lin_query(x), lin_key(x), options.heads,
                                       {.edge = edge_rows(*this, x, graph, edge_attr)})};
}

}  // namespace tessera
