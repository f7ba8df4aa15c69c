#pragma once

#include <vector>

#include "tessera/layers/linear.h"
#include "tessera/layers/molecule_encoder.h"
#include "tessera/layers/norm/batch_norm.h"
#include "tessera/scatter/reduce.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// The messages of a batch of molecules, relu(x[s] + embedding of the bond e) for e = (s -> d), as two sparse products that
/// all layers share: one with the atoms' rows and the bond tables' rows as sources and a message in each row, one that adds
/// up each atom's. So a layer holds one E x F buffer, the messages themselves, which the gradient of relu needs.
struct BondMessages {
  Graph made_of;   ///< (N + bond values) sources, E rows, in the order of the graph's col
  Graph received;  ///< E sources, N rows
  Tensor scale;    ///< (N): 1 / sqrt(1 + bonds that leave the atom)
  Tensor sent;     ///< (E): that of each message's source

  /// edge_attr (E, 3), i32 or i64, by edge id. Errors: InvalidArgument as `category_pattern`, for shapes, and for
  /// N + 13 or 4 E of 2^31 or more.
  static BondMessages from(const Graph& graph, const Tensor& edge_attr);

  /// (E, F) of x (N, F). Gradients: x and the tables.
  Tensor operator()(const Tensor& x, const EmbeddingSum& bonds) const;
};

/// OGB's GIN layer for molecules: mlp((1 + eps) x[d] + sum over edges e = (s -> d) of relu(x[s] + bond e)), mlp being Linear
/// to twice the channels, BatchNorm1d, ReLU, Linear. State: `eps` (1) from 0, `mlp.0.*`, `mlp.1.*`, `mlp.3.*`,
/// `bond_encoder.*`.
struct OgbGinConv {
  struct Mlp {
    Linear first, second;
    BatchNorm1d norm;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("0", self.first);
      visitor("1", self.norm);
      visitor("3", self.second);
    }
  };
  Tensor eps;
  Mlp mlp;
  BondEncoder bond_encoder;

  OgbGinConv() = default;
  OgbGinConv(int64_t channels, Generator& generator);

  Tensor operator()(const Tensor& x, const BondMessages& messages) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("eps", self.eps);
    visitor("mlp", self.mlp);
    visitor("bond_encoder", self.bond_encoder);
  }
};

/// OGB's GCN layer for molecules: with h = linear(x) and deg[i] = 1 + edges that leave i,
///
///     out[d] = sum over edges e = (s -> d) of relu(h[s] + bond e) / sqrt(deg[s] deg[d]) + relu(h[d] + root_emb) / deg[d]
///
/// State: `linear.*`, `root_emb.weight` (1, channels), `bond_encoder.*`.
struct OgbGcnConv {
  Linear linear;
  Embedding root_emb;
  BondEncoder bond_encoder;

  OgbGcnConv() = default;
  OgbGcnConv(int64_t channels, Generator& generator);

  Tensor operator()(const Tensor& x, const BondMessages& messages) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("linear", self.linear);
    visitor("root_emb", self.root_emb);
    visitor("bond_encoder", self.bond_encoder);
  }
};

struct MoleculeNetOptions {
  int64_t out = 0;  ///< tasks
  int64_t hidden = 300;
  int layers = 5;
  bool virtual_node = false;  ///< a node that all atoms of a molecule write to and read from
  double dropout = 0.5;       ///< after every layer, and on the virtual node
  bool residual = false;      ///< a layer's input is added to its result
  bool sum_layers = false;    ///< all layers are read out, added up (JK = "sum"); false: the last
  Reduce readout = Reduce::mean;
  std::vector<int64_t> atom_values{std::begin(kAtomValues), std::end(kAtomValues)};
};

/// The Open Graph Benchmark's networks for molecules (examples/graphproppred/mol/gnn.py, conv.py): atoms encoded; each layer
/// a convolution, BatchNorm1d, ReLU (but for the last layer), dropout; then a readout and Linear. With a virtual node, a
/// row for each molecule, at first zeros: it is added to its atoms before each layer, and after each layer but the last
/// becomes dropout(mlp(sum of what its atoms were before the layer + itself)), mlp being twice Linear, BatchNorm1d, ReLU.
/// State names and order of initial draws are OGB's: `gnn_node.atom_encoder.*`, `gnn_node.virtualnode_embedding.weight`,
/// `gnn_node.convs.<i>.*`, `gnn_node.batch_norms.<i>.*`, `gnn_node.mlp_virtualnode_list.<i>.*`, `graph_pred_linear.*`.
/// Conv: OgbGinConv or OgbGcnConv.
template <class Conv>
struct MoleculeNet {
  struct VirtualMlp {
    Linear first, second;
    BatchNorm1d inner, norm;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("0", self.first);
      visitor("1", self.inner);
      visitor("3", self.second);
      visitor("4", self.norm);
    }
  };
  struct Nodes {
    AtomEncoder atom_encoder;
    Embedding virtualnode_embedding;
    std::vector<Conv> convs;
    std::vector<BatchNorm1d> batch_norms;
    std::vector<VirtualMlp> mlp_virtualnode_list;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("atom_encoder", self.atom_encoder);
      visitor("virtualnode_embedding", self.virtualnode_embedding);
      visitor("convs", self.convs);
      visitor("batch_norms", self.batch_norms);
      visitor("mlp_virtualnode_list", self.mlp_virtualnode_list);
    }
  };
  Nodes gnn_node;
  Linear graph_pred_linear;
  MoleculeNetOptions options;
  bool training = true;

  MoleculeNet() = default;
  /// Errors: InvalidArgument for sizes below 1 and fewer than 2 layers.
  MoleculeNet(const MoleculeNetOptions& options, Generator& generator);

  /// Logits (G, out) of x (N, 9) and edge_attr (E, 3), i32 or i64, edge_attr by edge id; nodes: the molecule of each atom
  /// (`GraphBatch::nodes`). A molecule without atoms reads out as zeros. Dropout in training takes its streams from
  /// `generator`. Errors: InvalidArgument for shapes, and values that the tables lack, naming the first; in training for a
  /// batch of a single atom, or with a virtual node a single molecule (`batch_norm`).
  Tensor operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, const Tensor& edge_attr,
                    Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("gnn_node", self.gnn_node);
    visitor("graph_pred_linear", self.graph_pred_linear);
  }
};

using MoleculeGin = MoleculeNet<OgbGinConv>;
using MoleculeGcn = MoleculeNet<OgbGcnConv>;

extern template struct MoleculeNet<OgbGinConv>;
extern template struct MoleculeNet<OgbGcnConv>;

}  // namespace tessera
