#include "tessera/layers/conv/rgcn_conv.h"

#include <vector>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/layers/init.h"
#include "tessera/sparse/relational_spmm.h"

namespace tessera {
namespace {

/// A matrix for each relation, mixed from the bases.
Tensor mixed(const Tensor& comp, const Tensor& bases) {
  const int64_t in = bases.dim(1), out = bases.dim(2);
  const Tensor flat = matmul(comp, reshape(bases, Shape{bases.dim(0), in * out}));
  return reshape(flat, Shape{comp.dim(0), in, out});
}

/// Each block maps its own columns of x to its own of the result.
Tensor by_blocks(const RelationalGraph& graph, const Tensor& x, const Tensor& weight, Reduce aggr) {
  const int64_t relations = weight.dim(0), blocks = weight.dim(1), in = weight.dim(2), out = weight.dim(3);
  std::vector<Tensor> parts;
  for (int64_t b = 0; b < blocks; ++b)
    parts.push_back(relational_spmm(graph, slice(x, 1, b * in, (b + 1) * in),
                                    reshape(slice(weight, 1, b, b + 1), Shape{relations, in, out}), aggr));
  return concat(parts, 1);
}

}  // namespace

RgcnConv::RgcnConv(int64_t in, int64_t out, int64_t num_relations, Generator& generator, RgcnConvOptions given)
    : options(given) {
  const int64_t bases = options.num_bases, blocks = options.num_blocks;
  check(bases >= 0 && blocks >= 0, "rgcn_conv: num_bases is {} and num_blocks {} but neither may be negative", bases,
        blocks);
  check(bases == 0 || blocks == 0, "rgcn_conv: num_bases is {} and num_blocks {} but only one of them can be given", bases,
        blocks);
  check(blocks == 0 || (in % blocks == 0 && out % blocks == 0),
        "rgcn_conv: {} blocks need to divide both the {} columns in and the {} out", blocks, in, out);
  if (bases > 0) {
    weight = glorot(Shape{bases, in, out}, generator);
    comp = glorot(Shape{num_relations, bases}, generator);
  } else if (blocks > 0) {
    weight = glorot(Shape{num_relations, blocks, in / blocks, out / blocks}, generator);
  } else {
    weight = glorot(Shape{num_relations, in, out}, generator);
  }
  if (options.root_weight) root = glorot(Shape{in, out}, generator);
  if (options.bias) bias = zero_parameter(Shape{out});
}

Tensor RgcnConv::operator()(const Tensor& x, const RelationalGraph& graph) const { return (*this)(x, x, graph); }

Tensor RgcnConv::operator()(const Tensor& x_src, const Tensor& x_dst, const RelationalGraph& graph) const {
  check(graph.defined(), "rgcn_conv: the graph is undefined");
  const int64_t relations = comp.defined() ? comp.dim(0) : weight.dim(0);
  check(graph.num_relations() == relations, "rgcn_conv: the graph has {} relations but the layer {}", graph.num_relations(),
        relations);
  const bool blocks = weight.ndim() == 4;
  const int64_t in = blocks ? weight.dim(1) * weight.dim(2) : weight.dim(1);
  check(x_src.ndim() == 2 && x_src.dim(0) == graph.num_src() && x_src.dim(1) == in,
        "rgcn_conv: x has shape {} but {} sources and the layer need [{}, {}]", x_src.shape(), graph.num_src(),
        graph.num_src(), in);
  Tensor out = blocks ? by_blocks(graph, x_src, weight, options.aggr)
                      : relational_spmm(graph, x_src, comp.defined() ? mixed(comp, weight) : weight, options.aggr);
  if (root.defined()) {
    check(x_dst.ndim() == 2 && x_dst.dim(0) == graph.num_dst() && x_dst.dim(1) == in,
          "rgcn_conv: x has shape {} but {} destinations and the layer need [{}, {}]", x_dst.shape(), graph.num_dst(),
          graph.num_dst(), in);
    out = add(out, matmul(x_dst, root));
  }
  return bias.defined() ? add_bias(out, bias) : out;
}

}  // namespace tessera
