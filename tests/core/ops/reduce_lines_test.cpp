#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

// Reductions over one dimension, and those other than sums over all.
namespace tessera::test {
namespace {

std::vector<Shape> shapes() {
  std::vector<Shape> out = {{5}, {2, 3, 4}, {4, 1, 3}, {0, 3}, {70, 3}, {3, 1100, 2}, {2, 20000}, {3, 2, 300}};
  for (const int64_t width : kWidths) out.push_back({4, width});
  return out;
}

Shape without(const Shape& shape, int dim, bool keepdim) {
  std::vector<int64_t> sizes;
  for (int d = 0; d < shape.ndim(); ++d)
    if (d != dim)
      sizes.push_back(shape[d]);
    else if (keepdim)
      sizes.push_back(1);
  return Shape(sizes.data(), int(sizes.size()));
}

/// `of(line)` for each line of x.
template <class F>
Array by_line(const Array& x, int dim, bool keepdim, F of) {
  Array out(without(x.shape, dim, keepdim));
  const Lines lines = lines_of("", x.shape, dim);
  for (int64_t i = 0; i < out.numel(); ++i) {
    std::vector<Real> line;
    for (int64_t j = 0; j < lines.length; ++j)
      line.push_back(x[(i / lines.inner * lines.length + j) * lines.inner + i % lines.inner]);
    out[i] = of(line);
  }
  return out;
}

using Line = std::vector<Real>;

struct Reducer {
  const char* name;
  Tensor (*op)(const Tensor&, int, bool);
  Real (*reference)(const Line&);
  bool of_empty;         // defined for empty lines
  bool smooth = true;
  bool keeps = false;    // its input
  bool keeps_output = false;
  int64_t least = 0;     // elements of a line
};

Real total(const Line& line) {
  Real out(0);
  for (const Real& x : line) out += x;
  return out;
}

Real extreme(const Line& line, double sign) {
  Real best = line[0];
  for (const Real& x : line)
    if (double(x.value) * sign > double(best.value) * sign) best = x;
  return best;
}

Real variance(const Line& line, double correction) {
  const Real mean = total(line) / Real(double(line.size()));
  Real out(0);
  for (const Real& x : line) out += (x - mean) * (x - mean);
  return out / Real(double(line.size()) - correction);
}

const Reducer kReducers[] = {
    {"sum", [](const Tensor& x, int d, bool k) { return sum(x, d, k); }, total, true},
    {"mean", [](const Tensor& x, int d, bool k) { return mean(x, d, k); },
     [](const Line& line) { return total(line) / Real(double(line.size())); }, false, true, false, false, 1},
    {"max", [](const Tensor& x, int d, bool k) { return max(x, d, k).values; }, [](const Line& line) { return extreme(line, 1); },
     false, false, false, false, 1},
    {"min", [](const Tensor& x, int d, bool k) { return min(x, d, k).values; }, [](const Line& line) { return extreme(line, -1); },
     false, false, false, false, 1},
    {"var", [](const Tensor& x, int d, bool k) { return var(x, d, true, k); }, [](const Line& line) { return variance(line, 1); },
     false, true, true, false, 2},
    {"biased var", [](const Tensor& x, int d, bool k) { return var(x, d, false, k); },
     [](const Line& line) { return variance(line, 0); }, false, true, true, false, 1},
    {"l1", [](const Tensor& x, int d, bool k) { return norm(x, Norm::l1, d, k); },
     [](const Line& line) {
       Real out(0);
       for (const Real& x : line) out += abs(x);
       return out;
     },
     true, false, true},
    {"l2", [](const Tensor& x, int d, bool k) { return norm(x, Norm::l2, d, k); },
     [](const Line& line) {
       Real out(0);
       for (const Real& x : line) out += x * x;
       return sqrt(out);
     },
     false, true, true, true, 1},
    {"inf", [](const Tensor& x, int d, bool k) { return norm(x, Norm::inf, d, k); },
     [](const Line& line) {
       Real best(0);
       for (const Real& x : line)
         if (abs(x) > best) best = abs(x);
       return best;
     },
     false, false, true, false, 1},
};

TEST(ReduceLines, EveryReduction) {
  for (const Reducer& r : kReducers)
    for (const Shape& shape : shapes())
      for (int dim = 0; dim < shape.ndim(); ++dim) {
        if (shape[dim] < r.least || (shape[dim] == 0 && !r.of_empty)) continue;
        const bool small = shape.numel() < 250, keepdim = (dim + shape.ndim()) % 2 == 0;
        Input input = small ? apart(shape, 0.5, 2.5) : apart(shape);
        if (r.keeps) input = input.saved();
        verify({.name = std::string(r.name) + " " + to_text(shape) + " " + std::to_string(dim),
                .inputs = {input},
                .call = [op = r.op, dim, keepdim](const Tensors& in) { return op(in[0], dim - in[0].ndim(), keepdim); },
                .reference = [of = r.reference, dim, keepdim](const Arrays& in) { return by_line(in[0], dim, keepdim, of); },
                .k = shape[dim] > 100 ? 64.0 : 8.0,
                .grad_k = shape[dim] > 100 ? 64.0 : 8.0,
                .smooth = small && r.smooth,
                .saves_output = r.keeps_output});
      }
}

TEST(ReduceLines, ExtremesOverAll) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{40000}})
    for (const bool largest : {false, true})
      verify({.name = "extreme of all",
              .inputs = {apart(shape)},
              .call = [largest](const Tensors& in) { return largest ? max(in[0]) : min(in[0]); },
              .reference =
                  [largest](const Arrays& in) {
                    Array out{Shape{}};
                    out[0] = extreme(in[0].values, largest ? 1 : -1);
                    return out;
                  },
              .k = 0,
              .grad_k = 0,
              .smooth = false});
}

TEST(ReduceLines, NormOverAll) {
  verify({.name = "norm",
          .inputs = {real({3, 4}).saved()},
          .call = [](const Tensors& in) { return norm(in[0]); },
          .reference =
              [](const Arrays& in) {
                Array out{Shape{}};
                for (int64_t i = 0; i < in[0].numel(); ++i) out[0] += in[0][i] * in[0][i];
                out[0] = sqrt(out[0]);
                return out;
              },
          .k = 2,
          .grad_k = 4,
          .saves_output = true});
}

TEST(ReduceLines, IndicesAndTies) {
  for (const Shape& shape : shapes())
    for (int dim = 0; dim < shape.ndim(); ++dim) {
      if (shape[dim] == 0) continue;
      for (const bool largest : {false, true}) {
        const auto place = [largest](const Line& line) {
          size_t best = 0;
          for (size_t i = 1; i < line.size(); ++i)
            if (largest ? line[i] > line[best] : line[i] < line[best]) best = i;
          return Real(double(best));
        };
        // Few values: nearly every line has ties, and the first wins.
        Input input = ids(shape, 4, DType::i64);
        verify({.name = "argument of an extreme " + to_text(shape) + " " + std::to_string(dim),
                .inputs = {input},
                .call =
                    [dim, largest](const Tensors& in) {
                      const Tensor x = cast(in[0], DType::f32);
                      const Tensor index = largest ? argmax(x, dim) : argmin(x, dim);
                      EXPECT_TRUE(same_bits(index, (largest ? max(x, dim) : min(x, dim)).indices));
                      return index;
                    },
                .reference = [dim, place](const Arrays& in) { return by_line(in[0], dim, false, place); },
                .dtypes = {DType::f32}});
      }
    }
}

// The parts of a shared maximum's gradient add up to 1, and the first winner has it all.
TEST(ReduceLines, TiesGiveTheFirstTheWholeGradient) {
  for (const std::vector<float>& values : {std::vector<float>{3, 3, 1}, {0, 0, 0}}) {
    Tensor x = Tensor::from(values, {3});
    x.set_requires_grad();
    backward(max(x));
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 0, 0}));
  }
}

TEST(ReduceLines, NanAndInfinity) {
  const Restore restore;
  const float inf = INFINITY, nan = NAN;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t columns : {1, 33}) {
      // Lines {NaN, 5}, {5, NaN}, {-inf, -inf}, {inf, 1}, repeated over the columns.
      std::vector<float> values;
      for (const auto& [a, b] : {std::pair{nan, 5.0f}, {5.0f, nan}, {-inf, -inf}, {inf, 1.0f}})
        for (const float v : {a, b})
          for (int64_t j = 0; j < columns; ++j) values.push_back(v);
      const Tensor x = Tensor::from(values, {4, 2, columns});
      const Extreme top = max(x, 1), low = min(x, 1);
      for (int64_t j = 0; j < columns; ++j) {
        const auto at = [&](const Tensor& t, int64_t line) { return t.data<float>()[line * columns + j]; };
        EXPECT_TRUE(std::isnan(at(top.values, 0)) && std::isnan(at(top.values, 1)));
        EXPECT_TRUE(std::isnan(at(low.values, 0)) && std::isnan(at(low.values, 1)));
        EXPECT_EQ(at(top.values, 2), -inf);
        EXPECT_EQ(at(top.values, 3), inf);
        EXPECT_EQ(at(low.values, 2), -inf);
        EXPECT_EQ(at(low.values, 3), 1);
        EXPECT_EQ(top.indices.data<int32_t>()[j], 0);
        EXPECT_EQ(top.indices.data<int32_t>()[columns + j], 1);
      }
    }
    // Long enough for both passes; the first NaN counts.
    std::vector<float> line(1000, 1);
    line[700] = nan;
    line[900] = nan;
    EXPECT_EQ(argmax(Tensor::from(line, {1000}), 0).data<int32_t>()[0], 700);
    EXPECT_EQ(argmin(Tensor::from(line, {1000}), 0).data<int32_t>()[0], 700);
    std::vector<float> low(1000, -inf);
    EXPECT_EQ(argmax(Tensor::from(low, {1000}), 0).data<int32_t>()[0], 0);
    EXPECT_EQ(argmin(Tensor::from(low, {1000}), 0).data<int32_t>()[0], 0);
  }
}

TEST(ReduceLines, NormOfZeroHasNoGradient) {
  for (const Norm kind : {Norm::l1, Norm::l2, Norm::inf}) {
    Tensor x = zeros({2, 3});
    x.set_requires_grad();
    const Tensor y = norm(x, kind, 1);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 0}));
    backward(sum(y));
    EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(6, 0));
  }
  EXPECT_EQ(norm(zeros({2, 0}), Norm::inf, 1).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(norm(zeros({2, 0}), Norm::l2, 1).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(ReduceLines, Errors) {
  const Tensor x = zeros({4, 3}), ids = zeros({4, 3}, DType::i32), none = zeros({4, 0});
  verify_errors({
      {[&] { sum(x, 2); }, "InvalidArgument: sum: dimension 2 does not exist in shape [4, 3]"},
      {[&] { sum(ids, 0); }, "Unsupported: sum: dtype i32 is not supported, use f32 or f64"},
      {[&] { mean(none, 1); }, "InvalidArgument: mean: x has shape [4, 0], the mean of no elements is undefined"},
      {[&] { max(none, 1); }, "InvalidArgument: max: x has shape [4, 0], the extreme of no elements is undefined"},
      {[&] { min(none); }, "InvalidArgument: min: x has shape [4, 0], the extreme of no elements is undefined"},
      {[&] { argmax(ids, 1); }, "Unsupported: argmax: dtype i32 is not supported, use f32 or f64"},
      {[&] { var(zeros({1, 3}), 0); },
       "InvalidArgument: var: x has shape [1, 3] but needs 2 or more elements along dimension 0"},
      {[&] { var(zeros({0, 3}), 0, false); },
       "InvalidArgument: var: x has shape [0, 3] but needs 1 or more elements along dimension 0"},
      {[&] { norm(ids); }, "Unsupported: norm: dtype i32 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
