#include "tessera/sparse/sddmm.h"

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

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (is_supported(isa)) all.push_back(isa);
  return all;
}

template <class T>
void expect_right(const EdgeList& list, int64_t width) {
  SCOPED_TRACE(list.name + ", width " + std::to_string(width) + ", " + name(active_isa()) + ", " + name(dtype_of<T>));
  Tensor a = random_tensor<T>(Shape{list.num_dst, width}, 1), b = random_tensor<T>(Shape{list.num_src, width}, 2);
  const Tensor grad = random_tensor<T>(Shape{list.count()}, 3);
  a.set_requires_grad();
  b.set_requires_grad();
  const Tensor out = sddmm_dot(list.graph(), a, b);
  backward(out, grad);
  const T* av = a.data<T>();
  const T* bv = b.data<T>();
  const T* g = grad.data<T>();
  std::vector<double> grad_a(size_t(a.numel())), size_a(grad_a), grad_b(size_t(b.numel())), size_b(grad_b);
  for (int64_t e = 0; e < list.count(); ++e) {
    const int64_t d = list.dst[size_t(e)], s = list.src[size_t(e)];
    double dot = 0, size = 0;
    for (int64_t j = 0; j < width; ++j) {
      const double term = double(av[d * width + j]) * double(bv[s * width + j]);
      dot += term;
      size += std::fabs(term);
      grad_a[size_t(d * width + j)] += double(g[e]) * double(bv[s * width + j]);
      size_a[size_t(d * width + j)] += std::fabs(double(g[e]) * double(bv[s * width + j]));
      grad_b[size_t(s * width + j)] += double(g[e]) * double(av[d * width + j]);
      size_b[size_t(s * width + j)] += std::fabs(double(g[e]) * double(av[d * width + j]));
    }
    ASSERT_LE(std::fabs(double(out.data<T>()[e]) - dot), 4 * double(width) * std::numeric_limits<T>::epsilon() * size) << e;
  }
  const double eps = 4 * double(list.count()) * std::numeric_limits<T>::epsilon();
  for (size_t i = 0; i < grad_a.size(); ++i)
    ASSERT_LE(std::fabs(double(a.grad().data<T>()[i]) - grad_a[i]), eps * size_a[i]);
  for (size_t i = 0; i < grad_b.size(); ++i)
    ASSERT_LE(std::fabs(double(b.grad().data<T>()[i]) - grad_b[i]), eps * size_b[i]);
}

TEST(SddmmDot, EqualsTheReference) {
  const Restore restore;
  const EdgeList random = test::random_list("random", 60, 40, 700, 4);
  for (Isa isa : isas()) {
    set_isa(isa);
    for (const EdgeList& list : test::edge_lists()) {
      expect_right<float>(list, 7);
      expect_right<double>(list, 16);
    }
    for (int64_t width = 0; width <= 70; ++width) {
      expect_right<float>(random, width);
      expect_right<double>(random, width);
    }
    for (int64_t width : {100, 129, 602}) expect_right<float>(random, width);
    expect_right<float>(test::random_list("prefetched near", 4000, 100, 3000, 8), 100);
    expect_right<float>(test::random_list("prefetched far", 40000, 100, 3000, 9), 130);
  }
}

TEST(SddmmDot, SameBitsForEveryThreadCountAndPlace) {
  const Restore restore;
  EdgeList list = test::random_list("random", 3000, 2000, 60000, 5);
  for (int64_t i = 0; i < 9001; ++i) list.add(i % 3000, 1000);
  const Tensor a = random_tensor<float>(Shape{2000, 47}, 6), b = random_tensor<float>(Shape{3000, 47}, 7);
  Tensor first;
  for (int count : {1, 2, 3}) {
    set_threads(count);
    const Tensor out = sddmm_dot(list.graph(), a, b);
    if (!first.defined()) first = out;
    EXPECT_EQ(std::memcmp(out.raw(), first.raw(), size_t(out.numel()) * sizeof(float)), 0);
  }
  // An edge on its own has the same bits as among others.
  for (size_t e : {size_t{0}, size_t{777}, size_t{60000}}) {
    const EdgeList one{"one", 3000, 2000, {list.src[e]}, {list.dst[e]}};
    EXPECT_EQ(sddmm_dot(one.graph(), a, b).item(), double(first.data<float>()[e]));
  }
}

/// The lanes that the last, overlapping vector has twice must not turn an infinity into NaN.
TEST(SddmmDot, InfinityTimesOne) {
  const Restore restore;
  const float inf = std::numeric_limits<float>::infinity();
  const Graph graph = EdgeList{"", 1, 1, {0}, {0}}.graph();
  for (Isa isa : isas()) {
    set_isa(isa);
    for (int64_t width : {5, 17, 31}) {
      Tensor a = ones(Shape{1, width}), b = ones(Shape{1, width});
      a.mutable_data<float>()[width - 3] = inf;
      b.mutable_data<float>()[width - 4] = inf;
      EXPECT_EQ(sddmm_dot(graph, a, b).item(), double(inf)) << width;
    }
  }
}

TEST(SddmmDot, ErrorsSayWhatIsAndWhatIsNeeded) {
  const Graph graph = EdgeList{"", 3, 2, {0, 1}, {0, 1}}.graph();
  const auto call = [&](const Tensor& a, const Tensor& b) { return error_of([&] { sddmm_dot(graph, a, b); }); };
  EXPECT_EQ(call(ones(Shape{3, 4}), ones(Shape{3, 4})),
            "sddmm_dot: a_dst has shape [3, 4] but the graph has 2 destinations, so it needs [2, F]");
  EXPECT_EQ(call(ones(Shape{2, 4}), ones(Shape{2, 4})),
            "sddmm_dot: b_src has shape [2, 4] but the graph has 3 sources, so it needs [3, F]");
  EXPECT_EQ(call(ones(Shape{2, 4}), ones(Shape{3, 5})),
            "sddmm_dot: a_dst has shape [2, 4] and b_src [3, 5] but they need the same width");
  EXPECT_EQ(call(ones(Shape{2, 4}), ones(Shape{3, 4}, DType::f64)), "sddmm_dot: a_dst is f32 but b_src is f64");
  EXPECT_EQ(call(zeros(Shape{2, 4}, DType::i64), ones(Shape{3, 4})),
            "sddmm_dot: dtype i64 is not supported, use f32 or f64");
  EXPECT_EQ(call(Tensor(), ones(Shape{3, 4})), "sddmm_dot: a_dst is undefined");
  EXPECT_EQ(error_of([] { sddmm_dot(Graph(), Tensor(), Tensor()); }), "sddmm_dot: the graph is undefined");
}

}  // namespace
}  // namespace tessera
