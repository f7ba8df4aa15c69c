#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"
#include "tessera/scatter/reduce.h"
#include "tessera/sparse/relational_graph.h"

namespace tessera {

struct RgcnConvOptions {
  int64_t num_bases = 0;       ///< matrices that all relations are mixed from; 0: one for each relation
  int64_t num_blocks = 0;      ///< diagonal blocks that each relation's matrix consists of; 0: a whole matrix
  Reduce aggr = Reduce::mean;  ///< of a relation's neighbours: mean or sum
  bool root_weight = true;
  bool bias = true;
};

/// Relational graph convolution (Schlichtkrull et al., arXiv 1703.06103):
///
///     out[d] = x[d] root + sum over relations r of (mean over edges s -> d of relation r of x[s]) W_r + bias
///
/// W_r is weight[r]; with bases sum over b of comp[r, b] weight[b]; with blocks the diagonal of weight[r, 0..blocks).
/// A node without edges gets its root term and the bias. x (N, in), out (N, out). Gradients: x and all parameters.
/// State and initial values are torch_geometric.nn.RGCNConv's: `weight` (relations, in, out), (bases, in, out) or
/// (relations, blocks, in / blocks, out / blocks), `comp` (relations, bases), `root` (in, out) by glorot, `bias` (out)
/// zeros. The mean is by relation, as in the paper and in PyG without its add-on. Errors: InvalidArgument for bases and
/// blocks at once, sizes that blocks do not divide, shapes, another number of relations.
struct RgcnConv {
  Tensor weight, comp, root, bias;
  RgcnConvOptions options;

  RgcnConv() = default;
  RgcnConv(int64_t in, int64_t out, int64_t num_relations, Generator& generator, RgcnConvOptions options = {});

  Tensor operator()(const Tensor& x, const RelationalGraph& graph) const;
  /// Between two sets of nodes: x_src (num_src, in) is aggregated, x_dst (num_dst, in) meets `root`.
  Tensor operator()(const Tensor& x_src, const Tensor& x_dst, const RelationalGraph& graph) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("comp", self.comp);
    visitor("root", self.root);
    visitor("bias", self.bias);
  }
};

}  // namespace tessera
