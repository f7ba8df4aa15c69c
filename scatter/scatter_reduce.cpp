#include "tessera/scatter/scatter_reduce.h"

#include <algorithm>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/ids.h"
#include "tessera/scatter/rows.h"
#include "tessera/scatter/scatter_reduce_kernels.h"
#include "tessera/scatter/segment_plan_state.h"

namespace tessera {
namespace {

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

void check_size(const char* op, int64_t size) {
  check(0 <= size && size <= kMaxSize, "{}: size is {} but needs to be in [0, {}]", op, size, kMaxSize);
}

/// What a general scatter and its gradient share.
struct Along {
  FloatType type;
  Reduce reduce;
  Initial content;
  int64_t outer = 1, length = 1, inner = 1, size = 0;
  bool narrow = false;

  ScatterAlongKernel::Args args(const Tensor& index) const {
    return {.type = type,
            .reduce = reduce,
            .content = content,
            .outer = outer,
            .length = length,
            .inner = inner,
            .size = size,
            .src = nullptr,
            .index32 = narrow ? index.data<int32_t>() : nullptr,
            .index64 = narrow ? nullptr : index.data<int64_t>(),
            .initial = nullptr,
            .work = nullptr,
            .state = nullptr,
            .out = nullptr,
            .grad = nullptr,
            .grad_src = nullptr};
  }
};

/// x by rows, each divided by its count and, with `more`, one; by 1 at least.
Tensor divided_rows(const Tensor& x, const Tensor& counts, int more) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  const int64_t width = row_width(x);
  with_float(x.dtype(), "scatter_reduce", [&]<class T>() {
    const T* from = x.data<T>();
    const int32_t* n = counts.data<int32_t>();
    T* to = out.mutable_data<T>();
    parallel_for(x.dim(0), (1 << 14) / (width + 1) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const T by = T(std::max<int64_t>(int64_t(n[s]) + more, 1));
        for (int64_t j = s * width; j < (s + 1) * width; ++j) to[j] = from[j] / by;
      }
    });
  });
  return out;
}

/// Sum or mean without a plan, by a checked index.
Tensor pushed(const Tensor& src, const Tensor& index, int64_t size, bool mean, const Tensor& initial) {
  const Shape shape = src.shape().with(0, size);
  Tensor out = initial.defined() ? clone(initial) : zeros(shape, src.dtype(), src.device());
  Tensor counts = mean ? Tensor::empty(Shape{size}, DType::i32) : Tensor();
  const int more = initial.defined() ? 1 : 0;
  const bool narrow = index.dtype() == DType::i32;
  run<ScatterAddKernel>(src.device(), {.is_double = src.dtype() == DType::f64,
                                       .count = index.numel(),
                                       .rows = size,
                                       .width = row_width(src),
                                       .src = src.raw(),
                                       .index32 = narrow ? index.data<int32_t>() : nullptr,
                                       .index64 = narrow ? nullptr : index.data<int64_t>(),
                                       .out = out.mutable_raw(),
                                       .counts = mean ? counts.mutable_data<int32_t>() : nullptr});
  if (mean) out = divided_rows(out, counts, more);
  record("scatter_reduce", out, {src, initial}, [=, ids = Saved(index)](const Tensor& grad, Gradients& into) {
    Tensor rows = mean ? divided_rows(grad, counts, more) : grad;
    if (into.wants(0)) into.add(0, gather(rows, ids.get()));
    if (into.wants(1)) into.add(1, std::move(rows));
  });
  return out;
}

/// grad where `keep(state)`, else 0.
template <class F>
Tensor where_state(const Tensor& grad, const Tensor& state, const F& keep) {
  Tensor out = Tensor::empty(grad.shape(), grad.dtype(), grad.device());
  with_any(grad.dtype(), [&]<class T>() {
    const T* g = grad.data<T>();
    const int32_t* s = state.data<int32_t>();
    T* to = out.mutable_data<T>();
    parallel_for(grad.numel(), 1 << 16, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = keep(s[i]) ? g[i] : T{};
    });
  });
  return out;
}

/// grad / (count + 1).
Tensor shared_with_initial(const Tensor& grad, const Tensor& count) {
  Tensor out = Tensor::empty(grad.shape(), grad.dtype(), grad.device());
  with_any(grad.dtype(), [&]<class T>() {
    const T* g = grad.data<T>();
    const int32_t* n = count.data<int32_t>();
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < grad.numel(); ++i) {
      if constexpr (sizeof(T) == 2)
        to[i] = T(float(g[i]) / (float(n[i]) + 1));
      else
        to[i] = T(double(g[i]) / (double(n[i]) + 1));
    }
  });
  return out;
}

}  // namespace

Tensor scatter_reduce(const Tensor& src, const Tensor& index, int64_t size, Reduce reduce,
                      const SegmentReduceOptions& options) {
  constexpr const char* op = "scatter_reduce";
  check(src.defined(), "scatter_reduce: src is undefined");
  check_id_list(op, "index", index);
  check(src.ndim() >= 1 && src.dim(0) == index.numel(),
        "scatter_reduce: src has shape {} but index has {} entries, so it needs [{}, ...]", src.shape(), index.numel(),
        index.numel());
  check_size(op, size);
  check_reduction(op, src.shape().with(0, size), src.dtype(), reduce, options);
  const bool adds = reduce == Reduce::sum || reduce == Reduce::mean;
  const bool starts = !options.initial.defined() || options.include_initial;
  const bool sorts = !adds || !starts || size_of(src.dtype()) < 4 || src.dtype() == DType::i32;
  if (logs_dispatch())
    log_dispatch("scatter_reduce {}: cpu {}, {} threads; {} rows to {}; {}", name(reduce), name(active_isa()), threads(),
                 src.dim(0), size, sorts ? "sorted by index first" : "added in their own order, the index not sorted");
  if (sorts)
    return segment_reduce_as(op, src, SegmentPlanState::of_ids(narrow_ids(op, "index", index, size), size), reduce, options);
  check_id_range(op, "index", index, size);
  return pushed(src, index, size, reduce == Reduce::mean, options.initial);
}

Tensor scatter_reduce_along(const Tensor& src, const Tensor& index, int dim, int64_t size, Reduce reduce,
                            const SegmentReduceOptions& options) {
  constexpr const char* op = "scatter_reduce_along";
  check(src.defined(), "scatter_reduce_along: src is undefined");
  check(index.defined(), "scatter_reduce_along: index is undefined");
  check(index.dtype() == DType::i32 || index.dtype() == DType::i64,
        "scatter_reduce_along: index has dtype {} but needs i32 or i64", index.dtype());
  check(index.shape() == src.shape(), "scatter_reduce_along: index has shape {} but src has {}", index.shape(), src.shape());
  check(-src.ndim() <= dim && dim < src.ndim(), "scatter_reduce_along: dim is {} but src has {} dimensions", dim,
        src.ndim());
  check_size(op, size);
  const int axis = dim < 0 ? dim + src.ndim() : dim;
  const Shape shape = src.shape().with(axis, size);
  check_reduction(op, shape, src.dtype(), reduce, options);
  check<Unsupported>(src.dim(axis) <= kMaxSize,
                     "scatter_reduce_along: dimension {} has {} elements but at most {} are supported", axis, src.dim(axis),
                     kMaxSize);
  if (src.ndim() == 1) {
    check_id_range(op, "index", index, size);
    return scatter_reduce(src, index, size, reduce, options);
  }
  if (src.dtype() == DType::i32) {
    check<Unsupported>(reduce == Reduce::max || reduce == Reduce::min,
                       "scatter_reduce_along: reduce {} with dtype i32 is not supported, use max or min", name(reduce));
    SegmentReduceOptions as_double = options;  // which holds every int32
    if (options.initial.defined()) as_double.initial = cast(options.initial, DType::f64);
    return cast(scatter_reduce_along(cast(src, DType::f64), index, dim, size, reduce, as_double), DType::i32);
  }
  check_id_range(op, "index", index, size);

  Along along{.type = float_type(op, src.dtype()), .reduce = reduce, .content = Initial::none};
  for (int i = 0; i < axis; ++i) along.outer *= src.dim(i);
  for (int i = axis + 1; i < src.ndim(); ++i) along.inner *= src.dim(i);
  along.length = src.dim(axis);
  along.size = size;
  along.narrow = index.dtype() == DType::i32;
  const Tensor& initial = options.initial;
  if (initial.defined()) along.content = options.include_initial ? Initial::include : Initial::keep;
  const bool best = reduce == Reduce::max || reduce == Reduce::min, is_half = size_of(src.dtype()) == 2;

  Tensor out = Tensor::empty(shape, src.dtype(), src.device()), state = Tensor::empty(shape, DType::i32);
  {
    Scratch<float> work(is_half ? out.numel() : 0);
    ScatterAlongKernel::Args args = along.args(index);
    args.src = src.raw();
    args.initial = initial.defined() ? initial.raw() : nullptr;
    args.out = out.mutable_raw();
    args.work = is_half ? work.data() : args.out;
    args.state = state.mutable_data<int32_t>();
    run<ScatterAlongKernel>(src.device(), args);
  }
  if (options.winner != nullptr) *options.winner = cast(state, DType::i64);
  if (!needs_record(op, out, {src, initial})) return out;
  const bool mul_op = reduce == Reduce::mul;
  attach(op, out, {src, initial},
         [=, kept = Saved(mul_op ? src : Tensor()),
          first = Saved(mul_op && along.content == Initial::include ? initial : Tensor()), ids = Saved(index),
          from = src.shape()](const Tensor& grad, Gradients& into) {
           const bool include = along.content == Initial::include;
           if (into.wants(0)) {
             Tensor grad_src = Tensor::empty(from, grad.dtype(), grad.device());
             Tensor work = mul_op ? Tensor::empty(grad.shape(), grad.dtype()) : Tensor();
             Tensor places = state;
             ScatterAlongKernel::Args args = along.args(ids.get());
             args.src = mul_op ? kept.get().raw() : nullptr;
             args.initial = first.defined() ? first.get().raw() : nullptr;
             args.work = mul_op ? work.mutable_raw() : nullptr;
             args.state = places.mutable_data<int32_t>();
             args.grad = grad.raw();
             args.grad_src = grad_src.mutable_raw();
             run<ScatterAlongKernel>(grad.device(), args);
             into.add(0, std::move(grad_src));
           }
           if (!into.wants(1)) return;
           if (best)
             into.add(1, where_state(grad, state, [](int32_t winner) { return winner < 0; }));
           else if (!include)
             into.add(1, where_state(grad, state, [](int32_t count) { return count == 0; }));
           else if (reduce == Reduce::sum)
             into.add(1, grad);
           else if (reduce == Reduce::mean)
             into.add(1, shared_with_initial(grad, state));
           else
             into.add(1, mul(grad, scatter_reduce_along(kept.get(), ids.get(), axis, along.size, Reduce::mul)));
         });
  return out;
}

}  // namespace tessera
