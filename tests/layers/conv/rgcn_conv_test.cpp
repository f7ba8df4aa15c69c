#include "tessera/layers/conv/rgcn_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/core/module.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/sparse/relations.h"
#include "tessera/tests/support/cases.h"

namespace tessera {
namespace {

using namespace test;

/// The matrix of relation r, element (l, j), of `width` columns. Bases are given flat: (bases, in x out).
Real matrix(const Array& weight, const Array* comp, int64_t blocks, int64_t r, int64_t l, int64_t j, int64_t width) {
  if (comp != nullptr) {
    Real sum = 0;
    for (int64_t b = 0; b < weight.dim(0); ++b) sum += (*comp)(r, b) * weight(b, l * width + j);
    return sum;
  }
  if (blocks == 0) return weight(r, l, j);
  const int64_t in = weight.dim(2), out = weight.dim(3);
  if (l / in != j / out) return 0;
  return weight[((r * blocks + l / in) * in + l % in) * out + j % out];
}

/// Node by node: the mean (or sum) of each relation's neighbours, times its matrix, plus root and bias.
Array reference(const Relations& list, int64_t blocks, bool mean, const Array& x, const Array& weight, const Array* comp,
                const Array& root, const Array& bias) {
  const int64_t in = x.dim(1), out = bias.dim(0);
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> neighbours;  // of (node, relation)
  for (size_t e = 0; e < list.type.size(); ++e) neighbours[{list.edges.dst[e], list.type[e]}].push_back(list.edges.src[e]);
  Array result(Shape{list.edges.num_dst, out});
  for (int64_t d = 0; d < list.edges.num_dst; ++d)
    for (int64_t j = 0; j < out; ++j) {
      result(d, j) = bias[j];
      for (int64_t l = 0; l < in; ++l) result(d, j) += x(d, l) * root(l, j);
    }
  for (const auto& [key, sources] : neighbours)
    for (int64_t l = 0; l < in; ++l) {
      Real sum = 0;
      for (const int32_t s : sources) sum += x(s, l);
      if (mean) sum /= Real(double(sources.size()));
      for (int64_t j = 0; j < out; ++j) result(key.first, j) += sum * matrix(weight, comp, blocks, key.second, l, j, out);
    }
  return result;
}

void verify_rgcn(const Relations& list, int64_t in, int64_t out, RgcnConvOptions options) {
  const RelationalGraph graph = list.graph();
  const int64_t bases = options.num_bases, blocks = options.num_blocks;
  std::vector<Input> inputs = {real({list.edges.num_src, in}).saved(),
                               real(blocks > 0  ? Shape{list.relations, blocks, in / blocks, out / blocks}
                                    : bases > 0 ? Shape{bases, in * out}
                                                : Shape{list.relations, in, out})
                                   .saved(),
                               real({in, out}).saved(), real({out})};
  if (blocks > 0) inputs[1].is_saved = false;  // copies of its blocks are
  if (bases > 0) inputs.push_back(real({list.relations, bases}).saved());
  verify({.name = "rgcn_conv " + list.name() + " bases " + std::to_string(bases) + " blocks " + std::to_string(blocks),
          .inputs = inputs,
          .call =
              [=](const Tensors& t) {
                RgcnConv conv;
                conv.options = options;
                // The layer mixes bases flat and keeps them so; a refusal names that shape.
                conv.weight = bases > 0 ? reshape(t[1], Shape{bases, in, out}) : t[1];
                conv.root = t[2];
                conv.bias = t[3];
                if (bases > 0) conv.comp = t[4];
                return conv(t[0], graph);
              },
          .reference =
              [=](const Arrays& a) {
                return reference(list, blocks, options.aggr == Reduce::mean, a[0], a[1], bases > 0 ? &a[4] : nullptr, a[2],
                                 a[3]);
              },
          .k = 32,
          .grad_k = 64});
}

TEST(RgcnConv, EqualsTheFormula) {
  for (const EdgeList& g : graphs()) {
    if (g.num_nodes > 40 || g.name == "hub") continue;
    const Relations list = with_types(TwoSided(g), 4, 2);
    verify_rgcn(list, 4, 6, {});
    verify_rgcn(list, 6, 4, {});
    verify_rgcn(list, 4, 6, {.num_bases = 2});
    verify_rgcn(list, 4, 6, {.num_blocks = 2});
    verify_rgcn(list, 6, 3, {.num_blocks = 3, .aggr = Reduce::sum});
  }
}

TEST(RgcnConv, BetweenTwoSetsOfNodes) {
  const Relations list = with_types(random_two_sided(7, 11, 40, 1), 3, 1);
  Generator generator(1);
  const RgcnConv conv(4, 2, 3, generator);
  const Tensor out = conv(ones({7, 4}), zeros({11, 4}), list.graph());
  EXPECT_EQ(out.shape(), (Shape{11, 2}));
}

TEST(RgcnConv, StateAndInitialValues) {
  Generator generator(1);
  const auto names = [](const RgcnConv& conv) {
    std::string text;
    for (const auto& [name, tensor] : state_dict(conv)) text += name + " " + to_text(tensor.shape()) + "; ";
    return text;
  };
  EXPECT_EQ(names(RgcnConv(4, 6, 5, generator)), "bias [6]; root [4, 6]; weight [5, 4, 6]; ");
  EXPECT_EQ(names(RgcnConv(4, 6, 5, generator, {.num_bases = 3})), "bias [6]; comp [5, 3]; root [4, 6]; weight [3, 4, 6]; ");
  EXPECT_EQ(names(RgcnConv(4, 6, 5, generator, {.num_blocks = 2, .root_weight = false, .bias = false})),
            "weight [5, 2, 2, 3]; ");
  const RgcnConv conv(4, 6, 5, generator, {.num_blocks = 2});
  double most = 0;
  for (const float w : conv.weight.span<float>()) most = std::max(most, std::fabs(double(w)));
  EXPECT_LE(most, std::sqrt(6.0 / 5));
  EXPECT_GT(most, 0.8 * std::sqrt(6.0 / 5));
}

TEST(RgcnConv, Errors) {
  Generator generator(1);
  const RelationalGraph graph = with_types(random_two_sided(3, 3, 5, 1), 2, 1).graph();
  verify_errors({
      {[&] { RgcnConv(4, 4, 2, generator, {.num_bases = 2, .num_blocks = 2}); },
       "InvalidArgument: rgcn_conv: num_bases is 2 and num_blocks 2 but only one of them can be given"},
      {[&] { RgcnConv(4, 4, 2, generator, {.num_bases = -1}); },
       "InvalidArgument: rgcn_conv: num_bases is -1 and num_blocks 0 but neither may be negative"},
      {[&] { RgcnConv(4, 6, 2, generator, {.num_blocks = 4}); },
       "InvalidArgument: rgcn_conv: 4 blocks need to divide both the 4 columns in and the 6 out"},
      {[&] {
         RgcnConv(4, 6, 2, generator)(zeros({3, 4}), RelationalGraph());
       },
       "InvalidArgument: rgcn_conv: the graph is undefined"},
      {[&] {
         RgcnConv(4, 6, 3, generator)(zeros({3, 4}), graph);
       },
       "InvalidArgument: rgcn_conv: the graph has 2 relations but the layer 3"},
      {[&] {
         RgcnConv(4, 6, 2, generator)(zeros({3, 5}), graph);
       },
       "InvalidArgument: rgcn_conv: x has shape [3, 5] but 3 sources and the layer need [3, 4]"},
      {[&] {
         RgcnConv(4, 6, 2, generator)(zeros({3, 4}), zeros({2, 4}), graph);
       },
       "InvalidArgument: rgcn_conv: x has shape [2, 4] but 3 destinations and the layer need [3, 4]"},
  });
}

}  // namespace
}  // namespace tessera
