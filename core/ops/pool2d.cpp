#include "tessera/core/ops/pool2d.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/pool2d_kernels.h"
#include "tessera/core/ops/storage16.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

/// The windows of a pooling, shared with its backward pass.
struct Windows {
  std::vector<Window> rows, columns;
  int32_t dilation[2] = {1, 1};
};

void check_input(const char* op, const Tensor& x) {
  check(x.ndim() == 4, "{}: x has shape {} but needs to be [N, C, H, W]", op, x.shape());
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
  check(x.dim(2) > 0 && x.dim(3) > 0 && x.dim(2) <= INT32_MAX / x.dim(3),
        "{}: x has shape {} but an image needs 1 to 2^31 - 1 elements", op, x.shape());
}

std::vector<Window> windows_of(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                               bool count_padding) {
  std::vector<Window> windows;
  const int64_t count = window_count(size, kernel, stride, padding, dilation);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * stride - padding, end = begin + dilation * (kernel - 1) + 1;
    const int64_t skipped = begin < 0 ? (-begin + dilation - 1) / dilation * dilation : 0;
    const int64_t inside = std::min(end, size) - std::max<int64_t>(begin, 0);
    windows.push_back({int32_t(begin + skipped), int32_t(std::min(end, size)), int32_t(count_padding ? kernel : inside)});
  }
  return windows;
}

std::shared_ptr<Windows> checked(const char* op, const Tensor& x, Pair kernel, Pair& stride, Pair padding, Pair dilation,
                                 bool count_padding) {
  check_input(op, x);
  if (stride == Pair(0)) stride = kernel;
  check(kernel.rows >= 1 && kernel.columns >= 1 && stride.rows >= 1 && stride.columns >= 1 && dilation.rows >= 1 &&
            dilation.columns >= 1,
        "{}: kernel is ({}, {}), stride ({}, {}) and dilation ({}, {}) but they need to be at least 1", op, kernel.rows,
        kernel.columns, stride.rows, stride.columns, dilation.rows, dilation.columns);
  check(padding.rows >= 0 && padding.columns >= 0 && 2 * padding.rows <= dilation.rows * (kernel.rows - 1) + 1 &&
            2 * padding.columns <= dilation.columns * (kernel.columns - 1) + 1,
        "{}: padding is ({}, {}) but needs to be in [0, half of the kernel's ({}, {})]", op, padding.rows, padding.columns,
        dilation.rows * (kernel.rows - 1) + 1, dilation.columns * (kernel.columns - 1) + 1);
  auto windows = std::make_shared<Windows>();
  windows->rows = windows_of(x.dim(2), kernel.rows, stride.rows, padding.rows, dilation.rows, count_padding);
  windows->columns = windows_of(x.dim(3), kernel.columns, stride.columns, padding.columns, dilation.columns, count_padding);
  windows->dilation[0] = int32_t(dilation.rows);
  windows->dilation[1] = int32_t(dilation.columns);
  check(!windows->rows.empty() && !windows->columns.empty(),
        "{}: x has shape {} and padding ({}, {}), which a kernel of {} x {} with dilation ({}, {}) does not fit into", op,
        x.shape(), padding.rows, padding.columns, kernel.rows, kernel.columns, dilation.rows, dilation.columns);
  for (const auto* list : {&windows->rows, &windows->columns})
    for (const Window& w : *list)
      check(w.begin < w.end, "{}: x has shape {}, of which a window with dilation ({}, {}) holds nothing but padding", op,
            x.shape(), dilation.rows, dilation.columns);
  return windows;
}

/// `x` stands for whatever has the shape of the input; `place` may be null.
void pool(PoolKernel::Op op, const Windows& w, const Shape& x, const Tensor& from, Tensor& to, int32_t* place) {
  const int64_t in_size[2] = {x[2], x[3]}, out_size[2] = {int64_t(w.rows.size()), int64_t(w.columns.size())};
  const int64_t in = in_size[0] * in_size[1], out = out_size[0] * out_size[1], bytes = int64_t(size_of(from.dtype()));
  const bool forward = op == PoolKernel::Op::max || op == PoolKernel::Op::average;
  const char* source = static_cast<const char*>(from.raw());
  char* target = static_cast<char*>(to.mutable_raw());
  parallel_for(x[0] * x[1], (1 << 14) / (in + out) + 1, [&](int64_t begin, int64_t end) {
    Scratch<double> line(in_size[1]);
    Scratch<int32_t> line_place(in_size[1]);
    run<PoolKernel>(Device::cpu, {op,
                                  from.dtype() == DType::f64,
                                  end - begin,
                                  {in_size[0], in_size[1]},
                                  {out_size[0], out_size[1]},
                                  w.rows.data(),
                                  w.columns.data(),
                                  {w.dilation[0], w.dilation[1]},
                                  source + begin * (forward ? in : out) * bytes,
                                  target + begin * (forward ? out : in) * bytes,
                                  place != nullptr ? place + begin * out : nullptr,
                                  line.data(),
                                  line_place.data()});
  });
}

Tensor averaged(const char* name, const Tensor& x, std::shared_ptr<Windows> windows) {
  Tensor out = Tensor::empty(Shape{x.dim(0), x.dim(1), int64_t(windows->rows.size()), int64_t(windows->columns.size())},
                             x.dtype(), x.device());
  pool(PoolKernel::Op::average, *windows, x.shape(), x, out, nullptr);
  record(name, out, {x}, [windows, of_x = x.shape()](const Tensor& grad, Gradients& into) {
    Tensor result = Tensor::empty(of_x, grad.dtype(), grad.device());
    pool(PoolKernel::Op::average_gradient, *windows, of_x, grad, result, nullptr);
    into.add(0, std::move(result));
  });
  return out;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair kernel, MaxPool2dOptions o) {
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return max_pool2d(wide, kernel, o); });
  const auto windows = checked("max_pool2d", x, kernel, o.stride, o.padding, o.dilation, false);
  const Shape shape{x.dim(0), x.dim(1), int64_t(windows->rows.size()), int64_t(windows->columns.size())};
  Tensor out = Tensor::empty(shape, x.dtype(), x.device()), place;
  const bool recorded = needs_record("max_pool2d", out, {x});
  if (recorded) place = Tensor::empty(shape, DType::i32, x.device());
  pool(PoolKernel::Op::max, *windows, x.shape(), x, out, recorded ? place.mutable_data<int32_t>() : nullptr);
  if (recorded)
    attach("max_pool2d", out, {x}, [windows, of_x = x.shape(), place = Saved(place)](const Tensor& grad, Gradients& into) {
      Tensor result = Tensor::empty(of_x, grad.dtype(), grad.device());
      pool(PoolKernel::Op::max_gradient, *windows, of_x, grad, result, const_cast<int32_t*>(place.get().data<int32_t>()));
      into.add(0, std::move(result));
    });
  return out;
}

Tensor avg_pool2d(const Tensor& x, Pair kernel, AvgPool2dOptions o) {
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return avg_pool2d(wide, kernel, o); });
  return averaged("avg_pool2d", x, checked("avg_pool2d", x, kernel, o.stride, o.padding, 1, o.count_padding));
}

Tensor adaptive_avg_pool2d(const Tensor& x, Pair size) {
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return adaptive_avg_pool2d(wide, size); });
  check_input("adaptive_avg_pool2d", x);
  check(size.rows >= 1 && size.columns >= 1,
        "adaptive_avg_pool2d: a size of ({}, {}) was asked but it needs to be at least 1", size.rows, size.columns);
  const auto even = [](int64_t in, int64_t out) {
    std::vector<Window> windows;
    for (int64_t i = 0; i < out; ++i) {
      const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
      windows.push_back({int32_t(begin), int32_t(end), int32_t(end - begin)});
    }
    return windows;
  };
  auto windows = std::make_shared<Windows>();
  windows->rows = even(x.dim(2), size.rows);
  windows->columns = even(x.dim(3), size.columns);
  return averaged("adaptive_avg_pool2d", x, windows);
}

}  // namespace tessera
