#include "tessera/layers/models/molecule_net.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/layers/init.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

Tensor counting(int64_t count) {
  Tensor out = Tensor::empty(Shape{count}, DType::i32);
  std::iota(out.mutable_data<int32_t>(), out.mutable_data<int32_t>() + count, 0);
  return out;
}

}  // namespace

BondMessages BondMessages::from(const Graph& graph, const Tensor& edge_attr) {
  const int64_t nodes = graph.num_src(), edges = graph.num_edges();
  const Graph bonds = category_pattern("molecule_net: edge_attr", edge_attr, kBondValues);
  check(bonds.num_dst() == edges, "molecule_net: edge_attr has {} rows but the graph has {} edges", bonds.num_dst(), edges);
  const int64_t width = bonds.num_dst() > 0 ? bonds.num_edges() / bonds.num_dst() : 0;
  check(nodes + bonds.num_src() <= kMost && edges * (width + 1) <= kMost,
        "molecule_net: {} atoms and {} bonds are more than 2^31 - 1 entries", nodes, edges);

  Tensor rowptr = Tensor::empty(Shape{edges + 1}, DType::i64), col = Tensor::empty(Shape{edges * (width + 1)}, DType::i32);
  Tensor scale = Tensor::empty(Shape{nodes}), sent = Tensor::empty(Shape{edges});
  int64_t* row = rowptr.mutable_data<int64_t>();
  int32_t* to = col.mutable_data<int32_t>();
  const int32_t *source = graph.col().data<int32_t>(), *value = bonds.col().data<int32_t>();
  const int64_t* id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  row[0] = 0;
  for (int64_t k = 0; k < edges; ++k) {
    row[k + 1] = (k + 1) * (width + 1);
    *to++ = source[k];
    const int64_t e = id != nullptr ? id[k] : k;
    for (int64_t j = 0; j < width; ++j) *to++ = int32_t(nodes) + value[e * width + j];
  }
  std::vector<int64_t> leaving(size_t(nodes), 1);
  for (int64_t k = 0; k < edges; ++k) ++leaving[size_t(source[k])];
  float *of_node = scale.mutable_data<float>(), *of_message = sent.mutable_data<float>();
  for (int64_t i = 0; i < nodes; ++i) of_node[i] = float(1 / std::sqrt(double(leaving[size_t(i)])));
  for (int64_t k = 0; k < edges; ++k) of_message[k] = of_node[source[k]];
  return {Graph::from_csr(rowptr, col, nodes + bonds.num_src()), Graph::from_csr(graph.rowptr(), counting(edges), edges),
          scale, sent};
}

Tensor BondMessages::operator()(const Tensor& x, const EmbeddingSum& bonds) const {
  return spmm(made_of, concat({x, bonds.joined()}, 0), Reduce::sum, {.activation = Activation::relu});
}

OgbGinConv::OgbGinConv(int64_t channels, Generator& generator) : eps(zero_parameter(Shape{1})) {
  mlp.first = Linear(channels, 2 * channels, generator);
  mlp.norm = BatchNorm1d(2 * channels);
  mlp.second = Linear(2 * channels, channels, generator);
  bond_encoder = BondEncoder(channels, generator);
}

Tensor OgbGinConv::operator()(const Tensor& x, const BondMessages& messages) const {
  const Tensor received = spmm(messages.received, messages(x, bond_encoder.sum));
  return mlp.second(relu(mlp.norm(mlp.first(add(mul(x, shift(eps, 1)), received)))));
}

OgbGcnConv::OgbGcnConv(int64_t channels, Generator& generator)
    : linear(channels, channels, generator), root_emb(1, channels, generator), bond_encoder(channels, generator) {}

Tensor OgbGcnConv::operator()(const Tensor& x, const BondMessages& messages) const {
  const Tensor h = linear(x);
  const Tensor received = spmm(messages.received, messages(h, bond_encoder.sum), Reduce::sum,
                               {.src_scale = messages.sent, .dst_scale = messages.scale});
  const Tensor of_itself = reshape(square(messages.scale), Shape{messages.scale.dim(0), 1});
  return add(received, mul(relu(add(h, root_emb.weight)), of_itself));
}

template <class Conv>
MoleculeNet<Conv>::MoleculeNet(const MoleculeNetOptions& given, Generator& generator) : options(given) {
  check(given.hidden >= 1 && given.out >= 1, "molecule_net: sizes hidden {} and out {} need to be 1 or more", given.hidden,
        given.out);
  check(given.layers >= 2, "molecule_net: {} layers asked but needs 2 or more", given.layers);
  check(given.readout != Reduce::mul, "molecule_net: readout mul is not one of sum, mean, max and min");
  gnn_node.atom_encoder = AtomEncoder(given.hidden, generator, given.atom_values);
  if (given.virtual_node) gnn_node.virtualnode_embedding.weight = zero_parameter(Shape{1, given.hidden});
  for (int i = 0; i < given.layers; ++i) {
    gnn_node.convs.emplace_back(given.hidden, generator);
    gnn_node.batch_norms.emplace_back(given.hidden);
  }
  for (int i = 0; given.virtual_node && i + 1 < given.layers; ++i) {
    VirtualMlp& mlp = gnn_node.mlp_virtualnode_list.emplace_back();
    mlp.first = Linear(given.hidden, 2 * given.hidden, generator);
    mlp.inner = BatchNorm1d(2 * given.hidden);
    mlp.second = Linear(2 * given.hidden, given.hidden, generator);
    mlp.norm = BatchNorm1d(given.hidden);
  }
  graph_pred_linear = Linear(given.hidden, given.out, generator);
}

template <class Conv>
Tensor MoleculeNet<Conv>::operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, const Tensor& edge_attr,
                                     Generator& generator) const {
  const BondMessages messages = BondMessages::from(graph, edge_attr);
  const auto dropped = [&](const Tensor& h) {
    return training && options.dropout > 0 ? dropout(h, options.dropout, generator) : h;
  };
  Tensor h = gnn_node.atom_encoder(x);
  check(h.dim(0) == nodes.num_rows() && h.dim(0) == graph.num_src(),
        "molecule_net: x has {} rows but the graph has {} nodes and nodes has {} rows", h.dim(0), graph.num_src(),
        nodes.num_rows());
  Tensor virtual_row, total;
  if (options.virtual_node)
    virtual_row = expand(gnn_node.virtualnode_embedding.weight, Shape{nodes.num_segments(), options.hidden});
  for (size_t i = 0; i < gnn_node.convs.size(); ++i) {
    const bool last = i + 1 == gnn_node.convs.size();
    if (options.virtual_node) h = add(h, gather(virtual_row, nodes));
    if (options.sum_layers) total = total.defined() ? add(total, h) : h;
    Tensor next = gnn_node.batch_norms[i](gnn_node.convs[i](h, messages));
    next = dropped(last ? next : relu(next));
    if (options.residual) next = add(next, h);
    if (options.virtual_node && !last) {
      const auto& mlp = gnn_node.mlp_virtualnode_list[i];
      const Tensor gathered = add(segment_reduce(h, nodes), virtual_row);
      const Tensor changed = dropped(relu(mlp.norm(mlp.second(relu(mlp.inner(mlp.first(gathered)))))));
      virtual_row = options.residual ? add(virtual_row, changed) : changed;
    }
    h = next;
  }
  if (options.sum_layers) h = add(total, h);
  return graph_pred_linear(segment_reduce(h, nodes, options.readout));
}

template struct MoleculeNet<OgbGinConv>;
template struct MoleculeNet<OgbGcnConv>;

}  // namespace tessera
