#pragma once

#include <string>
#include <vector>

#include "tessera/core/ops/create.h"
#include "tessera/sparse/spmm.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"

/// Cases of spmm with their reference: every edge on its own, in the order of ids.
namespace tessera::test {

/// What a case gives beside x, in this order; relu is no input.
enum Given { kWeight = 1, kSrcScale = 2, kDstScale = 4, kBias = 8, kRelu = 16 };

inline bool is_best(Reduce reduce) { return reduce == Reduce::max || reduce == Reduce::min; }

/// Factors are cast to the type that 16-bit rows are computed in.
inline SpmmOptions options_of(const Tensors& in, int given) {
  SpmmOptions options;
  size_t next = 1;
  const auto take = [&] { return size_of(in[0].dtype()) == 2 ? cast(in[next++], DType::f32) : in[next++]; };
  if (given & kWeight) options.weight = take();
  if (given & kSrcScale) options.src_scale = take();
  if (given & kDstScale) options.dst_scale = take();
  if (given & kBias) options.bias = take();
  if (given & kRelu) options.activation = Activation::relu;
  return options;
}

inline Array spmm_reference(const TwoSided& g, const Arrays& in, int64_t width, Reduce reduce, int given) {
  size_t next = 1;
  const Array* weight = given & kWeight ? &in[next++] : nullptr;
  const Array* src_scale = given & kSrcScale ? &in[next++] : nullptr;
  const Array* dst_scale = given & kDstScale ? &in[next++] : nullptr;
  const Array* bias = given & kBias ? &in[next++] : nullptr;
  const int64_t heads = weight != nullptr && weight->shape.ndim() == 2 ? weight->dim(1) : 1;
  const std::vector<int64_t> degree = g.in_degree();
  Array out(Shape{g.num_dst, width});
  std::vector<bool> seen(size_t(g.num_dst * width));
  for (int64_t e = 0; e < g.num_edges(); ++e) {
    const int64_t s = g.src[size_t(e)], d = g.dst[size_t(e)];
    for (int64_t j = 0; j < width; ++j) {
      Real message = in[0](s, j);
      if (weight != nullptr) message *= (*weight)[e * heads + j / (width / heads)];
      if (src_scale != nullptr) message *= (*src_scale)[s];
      if (!is_best(reduce)) {
        out(d, j) += reduce == Reduce::mean ? message * Real(1.0 / double(degree[size_t(d)])) : message;
        continue;
      }
      const bool wins = reduce == Reduce::max ? message > out(d, j) : message < out(d, j);
      if (!seen[size_t(d * width + j)] || wins) out(d, j) = message;
      seen[size_t(d * width + j)] = true;
    }
  }
  for (int64_t d = 0; d < g.num_dst; ++d)
    for (int64_t j = 0; j < width; ++j) {
      Real& value = out(d, j);
      if (dst_scale != nullptr) value *= (*dst_scale)[d];
      if (bias != nullptr) value += (*bias)[j];
      if ((given & kRelu) && !(value > Real(0))) value = Real(0);
    }
  return out;
}

/// Of f32 and f64; heads 0: a weight for each edge.
inline Case spmm_case(const TwoSided& g, int64_t width, Reduce reduce, int given, int64_t heads = 0) {
  const Graph graph = g.graph();
  const bool best = is_best(reduce);
  Case c{.name = std::string("spmm ") + name(reduce) + " " + g.name + ", width " + std::to_string(width) + ", given " +
                 std::to_string(given) + ", heads " + std::to_string(heads),
         .inputs = {best ? apart(Shape{g.num_src, width}) : real(Shape{g.num_src, width})},
         .call = [=](const Tensors& in) { return spmm(graph, in[0], reduce, options_of(in, given)); },
         .reference = [=](const Arrays& in) { return spmm_reference(g, in, width, reduce, given); },
         .k = best ? 4.0 : double(g.largest_degree()) / 4 + 4,
         .grad_k = double(std::max({g.largest_degree(), width, g.num_dst})) / 4 + 4,
         // A product of random factors may come as close to another as it likes, a sum as close to 0.
         .smooth = !(given & kRelu) && (!best || (!(given & (kWeight | kSrcScale)) && g.num_src * width < 250)),
         .saves_output = (given & kRelu) != 0};
  if (given & kWeight) {
    c.inputs[0].saved();
    c.inputs.push_back(real(heads == 0 ? Shape{g.num_edges()} : Shape{g.num_edges(), heads}).saved());
  }
  if (given & kSrcScale) c.inputs.push_back(real(Shape{g.num_src}).no_grad().saved());
  if (given & kDstScale) c.inputs.push_back(real(Shape{g.num_dst}).no_grad().saved());
  if (given & kBias) c.inputs.push_back(real(Shape{width}));
  return c;
}

/// The same of bf16 and f16 rows.
inline Case half_case(const TwoSided& g, int64_t width, Reduce reduce, int given, int64_t heads = 0) {
  Case c = spmm_case(g, width, reduce, given, heads);
  c.dtypes = {DType::bf16, DType::f16};
  c.k = c.grad_k = 1;  // what is added in f32 is exact beside the one rounding to 16 bits
  for (size_t i = 1; i < c.inputs.size(); ++i) c.inputs[i].is_saved = false;  // their casts are
  return c;
}

}  // namespace tessera::test
