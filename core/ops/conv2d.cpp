// A convolution in f32 is cut into tiles, each one call of oneDNN on one thread. Forward and for the gradient of x a tile is
// an image, or where the images are few, some of its output (input) channels. For the gradient of the weights a tile is a
// run of images and some of the output channels: runs are long enough that their partial results, which are added in a
// fixed tree, cost little beside reading the images. All of it is a function of the shapes, so the bits do not depend on
// the threads. In f64, which oneDNN has not, images are unfolded into a matrix, one column for each window.

#include "tessera/core/ops/conv2d.h"

#include <algorithm>
#include <cstring>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/conv2d_onednn.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/storage16.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kLeastTasks = 8;      // that a batch is cut into, where it can be
constexpr int64_t kForkWork = 1 << 20;  // multiply-adds below which one thread is quicker

struct Conv {
  int64_t images, groups, in, out;  // channels of all groups
  int64_t in_size[2], out_size[2], kernel[2], stride[2], padding[2], dilation[2];

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t in_image() const { return in * in_size[0] * in_size[1]; }
  int64_t out_area() const { return out_size[0] * out_size[1]; }
  int64_t out_image() const { return out * out_area(); }
  int64_t weights() const { return out * (in / groups) * taps(); }
  int64_t work() const { return weights() * out_area(); }  // multiply-adds of an image
};

ConvTile tile_of(const Conv& c, bool bias) {
  ConvTile t{1,   c.groups, c.in, c.out, {}, {}, {}, {}, {}, {}, c.in_image(), c.out_image(), c.in / c.groups * c.taps(),
             bias};
  for (int d = 0; d < 2; ++d) {
    t.in_size[d] = c.in_size[d];
    t.out_size[d] = c.out_size[d];
    t.kernel[d] = c.kernel[d];
    t.stride[d] = c.stride[d];
    t.padding[d] = c.padding[d];
    t.dilation[d] = c.dilation[d];
  }
  return t;
}

/// In how many equal parts of at least 32 channels (or one group) `channels` are cut, `wanted` at the most.
int64_t parts_of(int64_t channels, int64_t least, int64_t wanted) {
  int64_t parts = 1;
  while (parts * 2 <= wanted && channels % (parts * 2 * least) == 0) parts *= 2;
  return parts;
}

/// Where part `p` of the channels begins in an image of x, an image of y, and the weights.
struct Parts {
  int64_t count, x = 0, y = 0, w = 0, bias = 0;
};

/// Cuts `tile` into parts by groups, or by the channels of its result.
Parts cut(const Conv& c, bool by_input, int64_t wanted, ConvTile& tile) {
  Parts parts{1};
  if (c.groups > 1) {
    parts.count = parts_of(c.groups, 1, wanted);
    tile.groups /= parts.count;
    tile.in /= parts.count;
    tile.out /= parts.count;
  } else if (by_input) {
    parts.count = parts_of(c.in, 32, wanted);
    tile.in /= parts.count;
  } else {
    parts.count = parts_of(c.out, 32, wanted);
    tile.out /= parts.count;
  }
  parts.x = c.groups > 1 || by_input ? tile.in * c.in_size[0] * c.in_size[1] : 0;
  parts.y = c.groups > 1 || !by_input ? tile.out * c.out_area() : 0;
  parts.w = c.groups > 1 || !by_input ? tile.out * tile.w_out : tile.in * c.taps();
  parts.bias = c.groups > 1 || !by_input ? tile.out : 0;
  return parts;
}

int64_t parts_wanted(const Conv& c) { return (kLeastTasks + c.images - 1) / c.images; }

/// The packed weights of every part, one after another.
struct Packed {
  int64_t bytes;
  Scratch<char> data;
  Packed(const ConvPlan& plan, const Parts& parts, const float* w)
      : bytes((packed_bytes(plan) + 63) / 64 * 64), data(bytes * parts.count) {
    parallel_for(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) pack_weights(plan, w + p * parts.w, data.data() + p * bytes);
    });
  }
};

void forward(const Conv& c, const float* x, const float* w, const float* bias, Activation activation, float* y) {
  ConvTile tile = tile_of(c, bias != nullptr);
  const Parts parts = cut(c, false, parts_wanted(c), tile);
  const auto plan = conv_plan(ConvPass::forward, tile);
  const Packed packed(*plan, parts, w);
  const int64_t size = tile.out * c.out_area();
  parallel_for(c.images * parts.count, kForkWork / (c.work() / parts.count + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / parts.count, p = task % parts.count;
      float* to = y + image * c.out_image() + p * parts.y;
      convolve(*plan, x + image * c.in_image() + p * parts.x, packed.data.data() + p * packed.bytes,
               bias != nullptr ? bias + p * parts.bias : nullptr, to);
      if (activation != Activation::none) run<EpilogueKernel>(Device::cpu, {false, activation, 1, size, to, nullptr});
    }
  });
}

void backward_data(const Conv& c, const float* grad, const float* w, float* x) {
  ConvTile tile = tile_of(c, false);
  const Parts parts = cut(c, true, parts_wanted(c), tile);
  const auto plan = conv_plan(ConvPass::data, tile);
  const Packed packed(*plan, parts, w);
  parallel_for(c.images * parts.count, kForkWork / (c.work() / parts.count + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / parts.count, p = task % parts.count;
      convolve_data(*plan, grad + image * c.out_image() + p * parts.y, packed.data.data() + p * packed.bytes,
                    x + image * c.in_image() + p * parts.x);
    }
  });
}

void backward_weights(const Conv& c, const float* x, const float* grad, float* w) {
  // A run's images are as many floats as twice its partial result, or more.
  const int64_t run_images = std::min(c.images,
                                      (2 * c.weights() + c.in_image() + c.out_image() - 1) / (c.in_image() + c.out_image())),
                runs = (c.images + run_images - 1) / run_images, last = c.images - (runs - 1) * run_images;
  ConvTile tile = tile_of(c, false);
  const Parts parts = cut(c, false, (kLeastTasks + runs - 1) / runs, tile);
  tile.images = run_images;
  const auto plan = conv_plan(ConvPass::weights, tile);
  tile.images = last;
  const auto last_plan = conv_plan(ConvPass::weights, tile);
  const int64_t size = c.weights();
  Scratch<float> rest((runs - 1) * size);
  const auto piece = [&](int64_t r) { return r == 0 ? w : rest.data() + (r - 1) * size; };
  parallel_for(runs * parts.count, kForkWork / (c.work() * run_images / parts.count + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t r = task / parts.count, p = task % parts.count, image = r * run_images;
                   convolve_weights(r == runs - 1 ? *last_plan : *plan, x + image * c.in_image() + p * parts.x,
                                    grad + image * c.out_image() + p * parts.y, piece(r) + p * parts.w);
                 }
               });
  if (runs == 1) return;
  parallel_for(size, (1 << 15) / runs + 1, [&](int64_t begin, int64_t end) {
    for (int64_t step = 1; step < runs; step *= 2)
      for (int64_t r = 0; r + step < runs; r += 2 * step) {
        float* to = piece(r);
        const float* from = piece(r + step);
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      }
  });
}

/// Calls f(element of the image, element of the unfolded matrix) for all that lie inside; channels of one group.
template <class F>
void unfold(const Conv& c, F f) {
  const int64_t channels = c.in / c.groups, area = c.out_area();
  for (int64_t k = 0; k < channels * c.taps(); ++k) {
    const int64_t p = k / c.kernel[1] % c.kernel[0], q = k % c.kernel[1], channel = k / c.taps();
    for (int64_t i = 0; i < c.out_size[0]; ++i) {
      const int64_t row = i * c.stride[0] - c.padding[0] + p * c.dilation[0];
      if (row < 0 || row >= c.in_size[0]) continue;
      for (int64_t j = 0; j < c.out_size[1]; ++j) {
        const int64_t column = j * c.stride[1] - c.padding[1] + q * c.dilation[1];
        if (column < 0 || column >= c.in_size[1]) continue;
        f((channel * c.in_size[0] + row) * c.in_size[1] + column, k * area + i * c.out_size[1] + j);
      }
    }
  }
}

/// One group of one image in f64: `unfolded` is depth x area.
struct Unfolded {
  int64_t depth, area, out, in;
  Scratch<double> data;
  explicit Unfolded(const Conv& c)
      : depth(c.in / c.groups * c.taps()),
        area(c.out_area()),
        out(c.out / c.groups),
        in(c.in_image() / c.groups),
        data(depth * area) {}
  void read(const Conv& c, const double* image) const {
    std::memset(data.data(), 0, size_t(depth * area) * sizeof(double));
    unfold(c, [&](int64_t from, int64_t to) { data[to] = image[from]; });
  }
};

void forward(const Conv& c, const double* x, const double* w, const double* bias, Activation activation, double* y) {
  parallel_for(c.images, kForkWork / (c.work() + 1) + 1, [&](int64_t begin, int64_t end) {
    const Unfolded u(c);
    for (int64_t part = begin * c.groups; part < end * c.groups; ++part) {
      const int64_t g = part % c.groups;
      double* to = y + part * u.out * u.area;
      u.read(c, x + part * u.in);
      run<DgemmKernel>(Device::cpu, {true, false, false, u.out, u.area, u.depth, w + g * u.out * u.depth, u.depth,
                                     u.data.data(), u.area, to, u.area});
      if (bias != nullptr)
        for (int64_t o = 0; o < u.out; ++o)
          for (int64_t i = 0; i < u.area; ++i) to[o * u.area + i] += bias[g * u.out + o];
      if (activation != Activation::none)
        run<EpilogueKernel>(Device::cpu, {true, activation, 1, u.out * u.area, to, nullptr});
    }
  });
}

void backward_data(const Conv& c, const double* grad, const double* w, double* x) {
  parallel_for(c.images, kForkWork / (c.work() + 1) + 1, [&](int64_t begin, int64_t end) {
    const Unfolded u(c);
    for (int64_t part = begin * c.groups; part < end * c.groups; ++part) {
      double* image = x + part * u.in;
      run<DgemmKernel>(Device::cpu, {true, true, false, u.depth, u.area, u.out, w + part % c.groups * u.out * u.depth,
                                     u.depth, grad + part * u.out * u.area, u.area, u.data.data(), u.area});
      std::memset(image, 0, size_t(u.in) * sizeof(double));
      unfold(c, [&](int64_t to, int64_t from) { image[to] += u.data[from]; });
    }
  });
}

void backward_weights(const Conv& c, const double* x, const double* grad, double* w) {
  parallel_for(c.groups, 1, [&](int64_t begin, int64_t end) {
    const Unfolded u(c);
    Scratch<double> sum(u.out * u.depth);
    for (int64_t g = begin; g < end; ++g)
      for (int64_t image = 0; image < c.images; ++image) {
        const int64_t part = image * c.groups + g;
        double* to = w + g * u.out * u.depth;
        u.read(c, x + part * u.in);
        run<DgemmKernel>(Device::cpu, {true, false, true, u.out, u.depth, u.area, grad + part * u.out * u.area, u.area,
                                       u.data.data(), u.area, image == 0 ? to : sum.data(), u.depth});
        for (int64_t i = 0; image > 0 && i < u.out * u.depth; ++i) to[i] += sum[i];
      }
  });
}

Conv checked(const Tensor& x, const Tensor& weight, const Conv2dOptions& o) {
  check(x.ndim() == 4 && weight.ndim() == 4,
        "conv2d: x has shape {} and weight {} but they need to be [N, C, H, W] and [O, C / groups, KH, KW]", x.shape(),
        weight.shape());
  check(weight.dtype() == x.dtype(), "conv2d: x is {} but weight is {}", x.dtype(), weight.dtype());
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "conv2d: dtype {} is not supported, use f32 or f64",
                     x.dtype());
  check(o.stride.rows >= 1 && o.stride.columns >= 1 && o.dilation.rows >= 1 && o.dilation.columns >= 1 &&
            o.padding.rows >= 0 && o.padding.columns >= 0,
        "conv2d: stride is ({}, {}), padding ({}, {}) and dilation ({}, {}) but they need to be at least 1, 0 and 1",
        o.stride.rows, o.stride.columns, o.padding.rows, o.padding.columns, o.dilation.rows, o.dilation.columns);
  check(o.groups >= 1 && x.dim(1) % o.groups == 0 && weight.dim(0) % o.groups == 0,
        "conv2d: {} groups do not divide {} input and {} output channels", o.groups, x.dim(1), weight.dim(0));
  check(weight.dim(1) * o.groups == x.dim(1),
        "conv2d: x has shape {} in {} group(s) but weight {}, which is for {} channels", x.shape(), o.groups, weight.shape(),
        weight.dim(1) * o.groups);
  check(weight.numel() > 0, "conv2d: weight has shape {} but needs an element", weight.shape());
  const Conv c{x.dim(0),
               o.groups,
               x.dim(1),
               weight.dim(0),
               {x.dim(2), x.dim(3)},
               {window_count(x.dim(2), weight.dim(2), o.stride.rows, o.padding.rows, o.dilation.rows),
                window_count(x.dim(3), weight.dim(3), o.stride.columns, o.padding.columns, o.dilation.columns)},
               {weight.dim(2), weight.dim(3)},
               {o.stride.rows, o.stride.columns},
               {o.padding.rows, o.padding.columns},
               {o.dilation.rows, o.dilation.columns}};
  check(c.out_area() > 0 && x.dim(2) > 0 && x.dim(3) > 0,
        "conv2d: x has shape {} and padding ({}, {}), which a kernel of {} x {} with dilation ({}, {}) does not fit into",
        x.shape(), o.padding.rows, o.padding.columns, c.kernel[0], c.kernel[1], o.dilation.rows, o.dilation.columns);
  if (o.bias.defined())
    check(o.bias.ndim() == 1 && o.bias.dim(0) == c.out && o.bias.dtype() == x.dtype(),
          "conv2d: bias is {} {} but needs to be {} [{}]", o.bias.dtype(), o.bias.shape(), x.dtype(), c.out);
  return c;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options) {
  if (is_storage16(x.dtype()) && weight.dtype() == x.dtype())
    return through_f32(x, weight, [&](const Tensor& of_x, const Tensor& of_weight) {
      Conv2dOptions wide = options;
      wide.bias = widened(options.bias);
      return conv2d(of_x, of_weight, wide);
    });
  const Conv c = checked(x, weight, options);
  const Tensor& bias = options.bias;
  const Activation activation = options.activation;
  Tensor out = Tensor::empty(Shape{c.images, c.out, c.out_size[0], c.out_size[1]}, x.dtype(), x.device());
  if (c.images > 0)
    with_float(x.dtype(), "conv2d", [&]<class T>() {
      forward(c, x.data<T>(), weight.data<T>(), bias.defined() ? bias.data<T>() : nullptr, activation,
              out.mutable_data<T>());
    });
  record("conv2d", out, {x, weight, bias},
         [x = Saved(x), weight = Saved(weight), y = activation == Activation::none ? Saved() : Saved(out), c, activation](
             const Tensor& grad_out, Gradients& into) {
           const Tensor grad = activation_gradient(activation, y.get(), grad_out);
           const DType dtype = grad.dtype();
           if (into.wants(0)) {
             Tensor of_x = Tensor::empty(x.get().shape(), dtype, grad.device());
             if (c.images > 0)
               with_float(dtype, "conv2d", [&]<class T>() {
                 backward_data(c, grad.data<T>(), weight.get().data<T>(), of_x.mutable_data<T>());
               });
             into.add(0, std::move(of_x));
           }
           if (into.wants(1)) {
             Tensor of_weight = c.images > 0 ? Tensor::empty(weight.get().shape(), dtype, grad.device())
                                             : zeros(weight.get().shape(), dtype, grad.device());
             if (c.images > 0)
               with_float(dtype, "conv2d", [&]<class T>() {
                 backward_weights(c, x.get().data<T>(), grad.data<T>(), of_weight.mutable_data<T>());
               });
             into.add(1, std::move(of_weight));
           }
           if (into.wants(2)) into.add(2, sum_to(grad, Shape{c.out, 1, 1}).view_as(Shape{c.out}));
         });
  return out;
}

}  // namespace tessera
