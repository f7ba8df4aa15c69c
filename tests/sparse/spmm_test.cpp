#include "tessera/sparse/spmm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/edge_lists.h"

namespace tessera {
namespace {

using test::EdgeList;
using test::random_tensor;

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct Restore {
  Isa isa = active_isa();
  int count = threads();
  ~Restore() {
    set_isa(isa);
    set_threads(count);
  }
};

/// Values in double, and the sum of the absolute values of their terms, which the error bound is made of.
struct Reference {
  std::vector<double> value, size;
  std::vector<int64_t> terms;
};

struct Factors {
  std::vector<double> weight, src_scale, dst_scale;  // empty: ones
  double of(int64_t e, const EdgeList& list) const {
    return (weight.empty() ? 1 : weight[size_t(e)]) * (src_scale.empty() ? 1 : src_scale[size_t(list.src[size_t(e)])]);
  }
};

std::vector<double> row_factors(const EdgeList& list, bool mean, const Factors& f) {
  std::vector<double> degree(size_t(list.num_dst), 0);
  for (int32_t d : list.dst) ++degree[size_t(d)];
  std::vector<double> out(size_t(list.num_dst));
  for (size_t d = 0; d < out.size(); ++d)
    out[d] = (f.dst_scale.empty() ? 1 : f.dst_scale[d]) / (mean && degree[d] > 0 ? degree[d] : 1);
  return out;
}

Reference forward(const EdgeList& list, const std::vector<double>& x, int64_t width, bool mean, const Factors& f) {
  const size_t size = size_t(list.num_dst * width);
  Reference out{std::vector<double>(size), std::vector<double>(size), std::vector<int64_t>(size)};
  const std::vector<double> row = row_factors(list, mean, f);
  for (int64_t e = 0; e < list.count(); ++e)
    for (int64_t j = 0; j < width; ++j) {
      const size_t at = size_t(list.dst[size_t(e)] * width + j);
      const double term = row[size_t(list.dst[size_t(e)])] * f.of(e, list) * x[size_t(list.src[size_t(e)] * width + j)];
      out.value[at] += term;
      out.size[at] += std::fabs(term);
      ++out.terms[at];
    }
  return out;
}

Reference x_gradient(const EdgeList& list, const std::vector<double>& grad, int64_t width, bool mean, const Factors& f) {
  const size_t size = size_t(list.num_src * width);
  Reference out{std::vector<double>(size), std::vector<double>(size), std::vector<int64_t>(size)};
  const std::vector<double> row = row_factors(list, mean, f);
  for (int64_t e = 0; e < list.count(); ++e)
    for (int64_t j = 0; j < width; ++j) {
      const size_t at = size_t(list.src[size_t(e)] * width + j);
      const double term = row[size_t(list.dst[size_t(e)])] * f.of(e, list) * grad[size_t(list.dst[size_t(e)] * width + j)];
      out.value[at] += term;
      out.size[at] += std::fabs(term);
      ++out.terms[at];
    }
  return out;
}

Reference weight_gradient(const EdgeList& list, const std::vector<double>& x, const std::vector<double>& grad, int64_t width,
                          bool mean, const Factors& f) {
  Reference out{std::vector<double>(list.src.size()), std::vector<double>(list.src.size()),
                std::vector<int64_t>(list.src.size(), width)};
  const std::vector<double> row = row_factors(list, mean, f);
  for (size_t e = 0; e < list.src.size(); ++e)
    for (int64_t j = 0; j < width; ++j) {
      const double term = row[size_t(list.dst[e])] * (f.src_scale.empty() ? 1 : f.src_scale[size_t(list.src[e])]) *
                          x[size_t(list.src[e] * width + j)] * grad[size_t(list.dst[e] * width + j)];
      out.value[e] += term;
      out.size[e] += std::fabs(term);
    }
  return out;
}

template <class T>
std::vector<double> doubles(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return std::vector<double>(tensor.data<T>(), tensor.data<T>() + tensor.numel());
}

template <class T>
void expect_near(const Tensor& actual, const Reference& expected, const char* what) {
  ASSERT_EQ(size_t(actual.numel()), expected.value.size()) << what;
  const T* values = actual.data<T>();
  for (size_t i = 0; i < expected.value.size(); ++i) {
    const double bound = 4 * double(expected.terms[i] + 3) * std::numeric_limits<T>::epsilon() * expected.size[i];
    ASSERT_LE(std::fabs(double(values[i]) - expected.value[i]), bound)
        << what << "[" << i << "] is " << values[i] << ", expected " << expected.value[i];
  }
}

template <class T>
bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), size_t(a.numel()) * sizeof(T)) == 0;
}

enum Options { kWeight = 1, kSrcScale = 2, kDstScale = 4 };

/// Forward and both gradients of one configuration against the references, on the active instruction set.
template <class T>
void expect_right(const EdgeList& list, int64_t width, Reduce reduce, int options) {
  SCOPED_TRACE(list.name + ", width " + std::to_string(width) + ", " + name(reduce) + ", options " +
               std::to_string(options) + ", " + name(active_isa()) + ", " + name(dtype_of<T>));
  const Graph graph = list.graph();
  Tensor x = random_tensor<T>(Shape{list.num_src, width}, 11);
  SpmmOptions given;
  if (options & kWeight) given.weight = random_tensor<T>(Shape{list.count()}, 12);
  if (options & kSrcScale) given.src_scale = random_tensor<T>(Shape{list.num_src}, 13);
  if (options & kDstScale) given.dst_scale = random_tensor<T>(Shape{list.num_dst}, 14);
  const Factors factors{doubles<T>(given.weight), doubles<T>(given.src_scale), doubles<T>(given.dst_scale)};
  const bool mean = reduce == Reduce::mean;
  const Tensor grad = random_tensor<T>(Shape{list.num_dst, width}, 15);
  x.set_requires_grad();
  if (given.weight.defined()) given.weight.set_requires_grad();
  const Tensor out = spmm(graph, x, reduce, given);
  backward(out, grad);
  expect_near<T>(out, forward(list, doubles<T>(x), width, mean, factors), "out");
  expect_near<T>(x.grad(), x_gradient(list, doubles<T>(grad), width, mean, factors), "grad x");
  if (given.weight.defined())
    expect_near<T>(given.weight.grad(), weight_gradient(list, doubles<T>(x), doubles<T>(grad), width, mean, factors),
                   "grad weight");
}

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (is_supported(isa)) all.push_back(isa);
  return all;
}

TEST(Spmm, EqualsTheReferenceOnEveryGraph) {
  const Restore restore;
  for (Isa isa : isas()) {
    set_isa(isa);
    for (const EdgeList& list : test::edge_lists())
      for (Reduce reduce : {Reduce::sum, Reduce::mean})
        for (int options = 0; options < 8; ++options) {
          expect_right<float>(list, 5, reduce, options);
          expect_right<double>(list, 17, reduce, options);
        }
  }
}

TEST(Spmm, EqualsTheReferenceAtEveryWidth) {
  const Restore restore;
  const EdgeList list = test::random_list("random", 60, 40, 700, 21);
  for (Isa isa : isas()) {
    set_isa(isa);
    for (int64_t width = 0; width <= 150; ++width)
      for (int options : {0, kWeight | kSrcScale}) {
        expect_right<float>(list, width, Reduce::sum, options);
        expect_right<double>(list, width, Reduce::mean, options);
      }
    for (int64_t width : {255, 256, 257, 300, 512, 602}) {
      expect_right<float>(list, width, Reduce::sum, 0);
      expect_right<double>(list, width, Reduce::sum, kWeight);
    }
  }
}

/// Larger than the sizes from which rows are prefetched, near and far, and results bypass the caches.
TEST(Spmm, EqualsTheReferenceWithPrefetch) {
  const Restore restore;
  for (Isa isa : isas()) {
    set_isa(isa);
    for (int64_t width : {3, 8, 17, 64, 100}) {
      const EdgeList list = test::random_list("large x", (1 << 19) / width, 400, 6000, 22);
      expect_right<float>(list, width, Reduce::sum, 0);
      expect_right<float>(list, width, Reduce::mean, kWeight);
    }
    for (int64_t width : {40, 64}) {
      const EdgeList list = test::random_list("large x and out", (9 << 19) / width, (17 << 18) / width, 30000, 23);
      expect_right<float>(list, width, Reduce::sum, 0);
    }
    expect_right<double>(test::random_list("large x and out", 40000, 36000, 30000, 24), 64, Reduce::sum, kSrcScale);
  }
}

TEST(Spmm, SameBitsForEveryThreadCount) {
  const Restore restore;
  EdgeList list = test::random_list("random", 3000, 2000, 60000, 23);
  for (int64_t i = 0; i < 30000; ++i) list.add(i % 3000, 1000);
  for (int64_t width : {1, 8, 17, 64, 129}) {
    Tensor first_out, first_x, first_weight;
    for (int count : {1, 2, 3, 7}) {
      set_threads(count);
      const Graph graph = list.graph();
      Tensor x = random_tensor<float>(Shape{3000, width}, 24), weight = random_tensor<float>(Shape{list.count()}, 25);
      x.set_requires_grad();
      weight.set_requires_grad();
      const Tensor out = spmm(graph, x, Reduce::mean, {.weight = weight, .src_scale = {}, .dst_scale = {}});
      backward(out, random_tensor<float>(out.shape(), 26));
      if (!first_out.defined()) {
        first_out = out;
        first_x = x.grad();
        first_weight = weight.grad();
      }
      EXPECT_TRUE(same_bits<float>(out, first_out)) << width << " " << count;
      EXPECT_TRUE(same_bits<float>(x.grad(), first_x)) << width << " " << count;
      EXPECT_TRUE(same_bits<float>(weight.grad(), first_weight)) << width << " " << count;
    }
  }
}

/// Case H05.
TEST(Spmm, ValuesOfOneNumber) {
  const Graph graph =
      Graph::from_csr(Tensor::from<int64_t>({0, 2, 2, 3, 4}, Shape{5}), Tensor::from<int32_t>({1, 2, 0, 2}, Shape{4}), 3);
  const Tensor x = Tensor::from<float>({1, 10, 2, 20, 3, 30}, Shape{3, 2});
  for (const Tensor& weight : {Tensor(), ones(Shape{4})}) {
    const SpmmOptions options{.weight = weight, .src_scale = {}, .dst_scale = {}};
    EXPECT_EQ(spmm(graph, x, Reduce::sum, options).to_vector<float>(), (std::vector<float>{5, 50, 0, 0, 1, 10, 3, 30}));
    EXPECT_EQ(spmm(graph, x, Reduce::mean, options).to_vector<float>(), (std::vector<float>{2.5, 25, 0, 0, 1, 10, 3, 30}));
  }
}

/// Case H04: the neighbour term of a graph without edges is zero, and so are its gradients.
TEST(Spmm, MeanWithoutEdgesIsZero) {
  const Graph graph = EdgeList{"", 2, 2, {}, {}}.graph();
  Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, Shape{2, 4});
  x.set_requires_grad();
  const Tensor out = spmm(graph, x, Reduce::mean);
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(8, 0));
  backward(out, ones(out.shape()));
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(8, 0));
}

TEST(Spmm, NonFiniteValuesStayInTheirRowsAndColumns) {
  const Restore restore;
  const float inf = std::numeric_limits<float>::infinity();
  for (Isa isa : isas()) {
    set_isa(isa);
    for (int64_t width : {3, 17, 33}) {
      Tensor x = ones(Shape{3, width});
      x.mutable_data<float>()[2 * width - 1] = inf;  // last column of node 1
      const Graph graph = EdgeList{"", 3, 4, {0, 1, 2}, {0, 1, 2}}.graph();
      const Tensor out = spmm(graph, x, Reduce::sum, {.weight = {}, .src_scale = {}, .dst_scale = full(Shape{4}, inf)});
      const float* values = spmm(graph, x).data<float>();
      for (int64_t i = 0; i < 4 * width; ++i) EXPECT_EQ(values[i], i == 2 * width - 1 ? inf : i < 3 * width ? 1.0f : 0.0f);
      for (int64_t j = 0; j < width; ++j) EXPECT_EQ(out.data<float>()[3 * width + j], 0.0f);  // empty row, infinite scale
    }
  }
}

TEST(Spmm, ErrorsSayWhatIsAndWhatIsNeeded) {
  const Graph graph = EdgeList{"", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1}}.graph();
  const Tensor x = ones(Shape{3, 4});
  const auto call = [&](const Tensor& features, Reduce reduce = Reduce::sum, const SpmmOptions& options = {}) {
    return error_of([&] { spmm(graph, features, reduce, options); });
  };
  EXPECT_EQ(call(ones(Shape{2, 4})), "spmm: x has shape [2, 4] but the graph has 3 sources, so it needs [3, F]");
  EXPECT_EQ(call(ones(Shape{3})), "spmm: x has shape [3] but the graph has 3 sources, so it needs [3, F]");
  EXPECT_EQ(call(Tensor()), "spmm: x is undefined");
  EXPECT_EQ(error_of([&] { spmm(Graph(), x); }), "spmm: the graph is undefined");
  EXPECT_EQ(call(zeros(Shape{3, 4}, DType::i32)), "spmm: dtype i32 is not supported, use f32 or f64");
  EXPECT_EQ(call(x, Reduce::mul), "spmm: reduce mul is not supported, use sum or mean");
  EXPECT_EQ(call(x, Reduce::sum, {.weight = ones(Shape{3}), .src_scale = {}, .dst_scale = {}}),
            "spmm: weight has shape [3] but the graph has 4 edges, so it needs [4]");
  EXPECT_EQ(call(x, Reduce::sum, {.weight = ones(Shape{4}, DType::f64), .src_scale = {}, .dst_scale = {}}),
            "spmm: weight is f64 but x is f32");
  EXPECT_EQ(call(x, Reduce::sum, {.weight = {}, .src_scale = ones(Shape{2}), .dst_scale = {}}),
            "spmm: src_scale has shape [2] but the graph has 3 sources, so it needs [3]");
  EXPECT_EQ(call(x, Reduce::sum, {.weight = {}, .src_scale = {}, .dst_scale = ones(Shape{2, 1})}),
            "spmm: dst_scale has shape [2, 1] but the graph has 2 destinations, so it needs [2]");
  Tensor scale = ones(Shape{2});
  scale.set_requires_grad();
  EXPECT_EQ(call(x, Reduce::sum, {.weight = {}, .src_scale = {}, .dst_scale = scale}),
            "spmm: dst_scale requires a gradient, which only x and weight get");
}

TEST(Spmm, ChangedWeightIsNoticed) {
  const Graph graph = EdgeList{"", 2, 2, {0, 1}, {1, 0}}.graph();
  Tensor x = ones(Shape{2, 3}), weight = ones(Shape{2});
  x.set_requires_grad();
  const Tensor out = spmm(graph, x, Reduce::sum, {.weight = weight, .src_scale = {}, .dst_scale = {}});
  weight.mutable_data<float>()[0] = 2;
  EXPECT_EQ(error_of([&] { backward(out, ones(out.shape())); }),
            "backward: a tensor of shape [2] was changed in place after it was saved for the gradient");
}

}  // namespace
}  // namespace tessera
