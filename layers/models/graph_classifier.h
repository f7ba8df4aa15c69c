#pragma once

#include <optional>
#include <vector>

#include "tessera/layers/conv/gcn_conv.h"
#include "tessera/layers/conv/gin_conv.h"
#include "tessera/layers/conv/sage_conv.h"
#include "tessera/layers/jumping_knowledge.h"
#include "tessera/layers/norm/batch_norm.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// The network within a GIN layer of PyG's benchmarks: Linear, ReLU, BatchNorm1d, Linear, ReLU, BatchNorm1d; without
/// `inner_norm` the first normalisation is left out, as older versions of the script do. State: torch.nn.Sequential's:
/// `0.*`, `2.*`, `3.*`, `5.*`; without `inner_norm` `0.*`, `2.*`, `4.*`.
struct GinMlp {
  Linear first, second;
  BatchNorm1d inner, norm;
  bool inner_norm = true;

  GinMlp() = default;
  GinMlp(int64_t in, int64_t hidden, Generator& generator, bool inner_norm = true);

  Tensor operator()(const Tensor& x) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("0", self.first);
    if (self.inner_norm) visitor("2", self.inner);
    visitor(self.inner_norm ? "3" : "2", self.second);
    visitor(self.inner_norm ? "5" : "4", self.norm);
  }
};

struct GraphClassifierOptions {
  int64_t in = 0;
  int64_t hidden = 32;
  int64_t out = 0;  ///< classes, or values
  int layers = 3;
  double dropout = 0.5;                             ///< between the two linear layers at the end
  Reduce readout = Reduce::mean;                    ///< over each graph's nodes: sum, mean, max or min
  std::optional<JumpingKnowledge::Mode> jump = {};  ///< what is read out: all layers by it; none: the last
  bool train_eps = false;                           ///< GIN: eps is a parameter
  bool inner_norm = true;                           ///< GIN: as in GinMlp
};

/// Classifiers of whole graphs of PyG's benchmark/kernel (Fey and Lenssen, arXiv 1903.02428): layers of one convolution,
/// each with ReLU (GIN's have it in their networks), a readout, Linear, ReLU, dropout, Linear.
/// State names and order of initial draws are those of its gcn.py, gin.py, graph_sage.py: `conv1.*`, `convs.<i>.*`,
/// `lin1.*`, `lin2.*`, and `jump.*` for jump lstm. Its GraphSAGE reads out by a sum, the others by a mean.
/// Conv: GcnConv, SageConv or GinConv<GinMlp>.
template <class Conv>
struct GraphClassifier {
  Conv conv1;
  std::vector<Conv> convs;
  JumpingKnowledge jump;
  Linear lin1, lin2;
  GraphClassifierOptions options;
  bool training = true;

  GraphClassifier() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1.
  GraphClassifier(const GraphClassifierOptions& options, Generator& generator);

  /// Logits (G, out) of x (N, in); nodes: the graph of each node (`GraphBatch::nodes`). A graph without nodes reads out as
  /// zeros. Dropout in training takes its stream from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv1", self.conv1);
    visitor("convs", self.convs);
    visitor("jump", self.jump);
    visitor("lin1", self.lin1);
    visitor("lin2", self.lin2);
  }
};

using GcnClassifier = GraphClassifier<GcnConv>;
using SageClassifier = GraphClassifier<SageConv>;
using GinClassifier = GraphClassifier<GinConv<GinMlp>>;

extern template struct GraphClassifier<GcnConv>;
extern template struct GraphClassifier<SageConv>;
extern template struct GraphClassifier<GinConv<GinMlp>>;

}  // namespace tessera
