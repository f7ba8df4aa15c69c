#include "tessera/core/ops/norm.h"

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/norm_kernels.h"
#include "tessera/core/ops/storage16.h"

namespace tessera {
namespace {

void check_float(const char* op, const Tensor& x) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
}

void check_channels(const char* op, const char* what, const Tensor& value, const Tensor& x, int64_t channels) {
  check(!value.defined() || (value.ndim() == 1 && value.dim(0) == channels && value.dtype() == x.dtype()),
        "{}: {} is {} {} but needs to be {} [{}]", op, what, value.defined() ? value.dtype() : x.dtype(),
        value.defined() ? value.shape() : Shape{}, x.dtype(), channels);
}

const void* raw(const Tensor& x) { return x.defined() ? x.raw() : nullptr; }

double at(const Tensor& x, int64_t i, double without) {
  if (!x.defined()) return without;
  return x.dtype() == DType::f64 ? x.data<double>()[i] : double(x.data<float>()[i]);
}

/// `channels` numbers as a tensor (C).
Tensor from_doubles(const double* values, int64_t channels, DType dtype) {
  Tensor out = Tensor::empty(Shape{channels}, dtype);
  with_float(dtype, "batch_norm", [&]<class T>() {
    T* y = out.mutable_data<T>();
    for (int64_t c = 0; c < channels; ++c) y[c] = T(values[c]);
  });
  return out;
}

struct Block {
  int64_t rows, channels, inner;
};

void channel_sums(ChannelSumsKernel::Op op, const Tensor& x, const Block& b, const Tensor* grad, const double* moments,
                  double* out) {
  Scratch<double> partials(ChannelSumsKernel::blocks_of(b.rows, b.inner) * b.channels * 2);
  run<ChannelSumsKernel>(x.device(), {op, x.dtype() == DType::f64, b.rows, b.channels, b.inner, x.raw(),
                                      grad ? grad->raw() : nullptr, moments, out, partials.data()});
}

struct Coefficients {
  double centre, of_x, offset, of_grad;
};

/// `of(c)` are channel c's coefficients.
template <class F>
Tensor channel_map(const Tensor& x, const Block& b, const Tensor* grad, F of) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device()),
         coefficients = Tensor::empty(Shape{4, b.channels}, x.dtype());
  with_float(x.dtype(), "batch_norm", [&]<class T>() {
    T* y = coefficients.mutable_data<T>();
    for (int64_t c = 0; c < b.channels; ++c) {
      const Coefficients f = of(c);
      y[c] = T(f.centre);
      y[b.channels + c] = T(f.of_x);
      y[2 * b.channels + c] = T(f.offset);
      y[3 * b.channels + c] = T(f.of_grad);
    }
  });
  run<ChannelMapKernel>(x.device(), {x.dtype() == DType::f64, b.rows, b.channels, b.inner, x.raw(),
                                     grad ? grad->raw() : nullptr, coefficients.raw(), out.mutable_raw()});
  return out;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) { return layer_norm(wide, widened(weight), widened(bias), eps); });
  check_float("layer_norm", x);
  check(x.ndim() >= 1, "layer_norm: x is a scalar but needs a dimension");
  const int64_t width = x.dim(-1), rows = width == 0 ? 0 : x.numel() / width;
  check_channels("layer_norm", "weight", weight, x, width);
  check_channels("layer_norm", "bias", bias, x, width);
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device()),
         moments = Tensor::empty(Shape{rows, 2}, DType::f64, x.device());
  run<LayerNormKernel>(x.device(), {x.dtype() == DType::f64, rows, width, x.raw(), raw(weight), raw(bias), eps,
                                    out.mutable_raw(), moments.mutable_data<double>(), nullptr, nullptr, nullptr});
  record("layer_norm", out, {x, weight, bias},
         [x = Saved(x), weight = Saved(weight), moments = Saved(moments), rows, width](const Tensor& grad, Gradients& into) {
           const Tensor& input = x.get();
           const Tensor saved = moments.get();
           Tensor of_x;
           if (into.wants(0)) of_x = Tensor::empty(input.shape(), input.dtype(), input.device());
           const bool of_parameters = into.wants(1) || into.wants(2);
           Scratch<double> sums(of_parameters ? 2 * width : 0),
               partials(of_parameters ? LayerNormKernel::blocks_of(rows) * 2 * width : 0);
           run<LayerNormKernel>(input.device(),
                                {input.dtype() == DType::f64, rows, width, input.raw(), raw(weight.get()), nullptr, 0,
                                 of_x.defined() ? of_x.mutable_raw() : nullptr, const_cast<double*>(saved.data<double>()),
                                 grad.raw(), of_parameters ? sums.data() : nullptr, partials.data()});
           if (of_x.defined()) into.add(0, std::move(of_x));
           if (into.wants(1)) into.add(1, from_doubles(sums.data() + width, width, input.dtype()));
           if (into.wants(2)) into.add(2, from_doubles(sums.data(), width, input.dtype()));
         });
  return out;
}

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& running_mean, Tensor& running_var,
                  BatchNormOptions options) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) {
      return batch_norm(wide, widened(weight), widened(bias), running_mean, running_var, options);
    });
  check_float("batch_norm", x);
  check(x.ndim() >= 2, "batch_norm: x has shape {} but needs to be [N, C, ..]", x.shape());
  const int64_t channels = x.dim(1);
  Block block{x.dim(0), channels, 1};
  for (int d = 2; d < x.ndim(); ++d) block.inner *= x.dim(d);
  check_channels("batch_norm", "weight", weight, x, channels);
  check_channels("batch_norm", "bias", bias, x, channels);
  check_channels("batch_norm", "running_mean", running_mean, x, channels);
  check_channels("batch_norm", "running_var", running_var, x, channels);
  check(running_mean.defined() == running_var.defined(),
        "batch_norm: running_mean and running_var need to be given together");
  const bool of_batch = options.training || !running_mean.defined();
  const int64_t count = block.rows * block.inner;
  check(!of_batch || count >= 2,
        "batch_norm: x has shape {}, {} value(s) a channel have no variance in training; use larger batches, or evaluation",
        x.shape(), count);
  // Means of the channels, then 1 / deviation.
  Tensor moments = Tensor::empty(Shape{2, channels}, DType::f64);
  double *mean = moments.mutable_data<double>(), *inverse = mean + channels;
  if (of_batch) {
    Scratch<double> of_x(2 * channels);
    channel_sums(ChannelSumsKernel::Op::moments, x, block, nullptr, nullptr, of_x.data());
    const double* squares = of_x.data() + channels;
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] = of_x.data()[c];
      inverse[c] = 1 / std::sqrt(squares[c] / double(count) + options.eps);
    }
    if (options.training && running_mean.defined())
      with_float(x.dtype(), "batch_norm", [&]<class T>() {
        T *of_mean = running_mean.mutable_data<T>(), *of_var = running_var.mutable_data<T>();
        const double keep = 1 - options.momentum;
        for (int64_t c = 0; c < channels; ++c) {
          of_mean[c] = T(keep * double(of_mean[c]) + options.momentum * mean[c]);
          of_var[c] = T(keep * double(of_var[c]) + options.momentum * squares[c] / double(count - 1));
        }
      });
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] = at(running_mean, c, 0);
      inverse[c] = 1 / std::sqrt(at(running_var, c, 1) + options.eps);
    }
  }
  Tensor out = channel_map(x, block, nullptr, [&](int64_t c) {
    return Coefficients{mean[c], inverse[c] * at(weight, c, 1), at(bias, c, 0), 0};
  });
  record("batch_norm", out, {x, weight, bias},
         [x = Saved(x), weight = Saved(weight), moments = Saved(moments), block, of_batch, count](const Tensor& grad,
                                                                                                  Gradients& into) {
           const Tensor& input = x.get();
           const double *centre = moments.get().data<double>(), *slope = centre + block.channels;
           Scratch<double> sums(2 * block.channels);
           if (of_batch || into.wants(1) || into.wants(2))
             channel_sums(ChannelSumsKernel::Op::gradients, input, block, &grad, centre, sums.data());
           // a (g - mean(g) - xhat mean(g xhat)), a = weight / deviation; only the first term without batch moments.
           if (into.wants(0))
             into.add(0, channel_map(input, block, &grad, [&](int64_t c) {
                        const double a = at(weight.get(), c, 1) * slope[c];
                        if (!of_batch) return Coefficients{centre[c], 0, 0, a};
                        return Coefficients{centre[c], -a * slope[c] * sums[block.channels + c] / double(count),
                                            -a * sums[c] / double(count), a};
                      }));
           if (into.wants(1)) into.add(1, from_doubles(sums.data() + block.channels, block.channels, input.dtype()));
           if (into.wants(2)) into.add(2, from_doubles(sums.data(), block.channels, input.dtype()));
         });
  return out;
}

}  // namespace tessera
