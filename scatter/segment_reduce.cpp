#include "tessera/scatter/segment_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/rows.h"
#include "tessera/scatter/segment_plan_state.h"
#include "tessera/scatter/segment_reduce_kernels.h"
#include "tessera/scatter/segment_spread.h"

namespace tessera {
namespace {

/// The type that elements of `dtype` are computed in.
DType computed_in(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

struct Reduction {
  SegmentOp op = SegmentOp::sum;
  bool smallest = false, divide = false;
  int64_t less = 0;
  Initial content = Initial::none;
};

Tensor reduce_rows(const char* op, const Tensor& x, const SegmentPlan& plan, const Reduction& how, const Tensor& initial,
                   const Tensor& center, Tensor* winner) {
  const SegmentView view = SegmentPlanState::view(plan);
  const int64_t width = row_width(x);
  Tensor out = Tensor::empty(x.shape().with(0, plan.num_segments()), x.dtype(), x.device());
  const bool best = how.op == SegmentOp::best;
  if (winner != nullptr) *winner = Tensor::empty(out.shape(), DType::i32, x.device());
  Scratch<char> partials(view.num_slots * width * int64_t(size_of(computed_in(x.dtype()))));
  Scratch<int32_t> partial_winners(best ? view.num_slots * width : 0);
  run<SegmentReduceKernel>(x.device(), {.type = float_type(op, x.dtype()),
                                        .op = how.op,
                                        .smallest = how.smallest,
                                        .divide = how.divide,
                                        .less = how.less,
                                        .content = how.content,
                                        .plan = view,
                                        .width = width,
                                        .x = x.raw(),
                                        .center = center.defined() ? center.raw() : nullptr,
                                        .initial = initial.defined() ? initial.raw() : nullptr,
                                        .out = out.mutable_raw(),
                                        .winner = winner != nullptr ? winner->mutable_data<int32_t>() : nullptr,
                                        .partials = partials.data(),
                                        .partial_winners = partial_winners.data()});
  return out;
}

/// values[s, :] = f(s, values[s, :] element), by segment; in double, rounded once.
template <class F>
Tensor by_segment(const Tensor& values, const F& f) {
  Tensor out = Tensor::empty(values.shape(), values.dtype(), values.device());
  const int64_t width = row_width(values);
  const auto apply = [&]<class T>() {
    const T* from = values.data<T>();
    T* to = out.mutable_data<T>();
    parallel_for(values.dim(0), (1 << 14) / (width + 1) + 1, [&, from, to](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s)
        for (int64_t i = s * width; i < (s + 1) * width; ++i) {
          if constexpr (sizeof(T) == 2)
            to[i] = T(float(f(s, i, double(float(from[i])))));
          else
            to[i] = T(f(s, i, double(from[i])));
        }
    });
  };
  switch (values.dtype()) {
    case DType::f64: apply.template operator()<double>(); break;
    case DType::bf16: apply.template operator()<bf16>(); break;
    case DType::f16: apply.template operator()<f16>(); break;
    default: apply.template operator()<float>(); break;
  }
  return out;
}

/// Rows of the winners: i64, -1 for none.
Tensor winner_rows(const Tensor& winner, const SegmentPlan& plan) {
  Tensor out = Tensor::empty(winner.shape(), DType::i64);
  const int64_t width = row_width(winner);
  const int64_t* offsets = plan.offsets().data<int64_t>();
  const int64_t* order = plan.order().defined() ? plan.order().data<int64_t>() : nullptr;
  const int32_t* from = winner.data<int32_t>();
  int64_t* to = out.mutable_data<int64_t>();
  parallel_for(winner.dim(0), (1 << 14) / (width + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      for (int64_t i = s * width; i < (s + 1) * width; ++i) {
        const int64_t place = offsets[s] + from[i];
        to[i] = from[i] < 0 ? -1 : order != nullptr ? order[place] : place;
      }
  });
  return out;
}

Tensor reduce_integers(const char* op, const Tensor& x, const SegmentPlan& plan, Reduce reduce,
                       const SegmentReduceOptions& options) {
  check<Unsupported>(reduce == Reduce::max || reduce == Reduce::min,
                     "{}: reduce {} with dtype i32 is not supported, use max or min", op, name(reduce));
  SegmentReduceOptions as_double = options;  // which holds every int32
  if (options.initial.defined()) as_double.initial = cast(options.initial, DType::f64);
  return cast(segment_reduce_as(op, cast(x, DType::f64), plan, reduce, as_double), DType::i32);
}

}  // namespace

Tensor segment_reduce(const Tensor& x, const SegmentPlan& plan, Reduce reduce, const SegmentReduceOptions& options) {
  check_rows("segment_reduce", x, plan);
  return segment_reduce_as("segment_reduce", x, plan, reduce, options);
}

Tensor segment_reduce_as(const char* op, const Tensor& x, const SegmentPlan& plan, Reduce reduce,
                         const SegmentReduceOptions& options) {
  const Tensor& initial = options.initial;
  if (logs_dispatch())
    log_dispatch("segment_reduce {}: cpu {}, {} threads; {} rows to {} by a plan", name(reduce), name(active_isa()),
                 threads(), x.dim(0), plan.num_segments());
  check_reduction(op, x.shape().with(0, plan.num_segments()), x.dtype(), reduce, options);
  if (x.dtype() == DType::i32) return reduce_integers(op, x, plan, reduce, options);
  const bool best = reduce == Reduce::max || reduce == Reduce::min;
  if (best) {
    const int64_t longest = SegmentPlanState::schedule_of(plan).longest;
    check<Unsupported>(longest <= std::numeric_limits<int32_t>::max(),
                       "{}: a segment has {} rows but {} can choose among at most 2147483647", op, longest, name(reduce));
  }

  Reduction how;
  how.op = best ? SegmentOp::best : reduce == Reduce::mul ? SegmentOp::mul : SegmentOp::sum;
  how.smallest = reduce == Reduce::min;
  how.divide = reduce == Reduce::mean;
  if (initial.defined()) how.content = options.include_initial ? Initial::include : Initial::keep;

  Tensor probe = x.detach(), winner;
  const bool recorded = needs_record(op, probe, {x, initial});
  Tensor out =
      reduce_rows(op, x, plan, how, initial, {}, best && (recorded || options.winner != nullptr) ? &winner : nullptr);
  if (options.winner != nullptr) *options.winner = winner_rows(winner, plan);
  if (!needs_record(op, out, {x, initial})) return out;

  const Initial content = how.content;
  const int64_t* offsets = plan.offsets().data<int64_t>();
  const auto count = [offsets](int64_t s) { return offsets[s + 1] - offsets[s]; };  // `plan` keeps the array
  if (best) {
    attach(op, out, {x, initial}, [plan, winner](const Tensor& grad, Gradients& into) {
      if (into.wants(0)) into.add(0, segment_spread(SpreadOp::winner, plan, grad, {.winner = winner}));
      if (into.wants(1)) {
        const int32_t* places = winner.data<int32_t>();
        into.add(1, by_segment(grad, [places](int64_t, int64_t i, double g) { return places[i] < 0 ? g : 0.0; }));
      }
    });
  } else if (reduce == Reduce::mul) {
    attach(op, out, {x, initial},
           [plan, content, count, x = Saved(x), initial = Saved(content == Initial::include ? initial : Tensor())](
               const Tensor& grad, Gradients& into) {
             if (into.wants(0))
               into.add(0, segment_spread(SpreadOp::product, plan, grad, {.x = x.get(), .initial = initial.get()}));
             if (!into.wants(1)) return;
             if (content == Initial::include)
               into.add(1, mul(grad, reduce_rows("segment_reduce", x.get(), plan, {.op = SegmentOp::mul}, {}, {}, nullptr)));
             else
               into.add(1, by_segment(grad, [count](int64_t s, int64_t, double g) { return count(s) == 0 ? g : 0.0; }));
           });
  } else {
    attach(op, out, {x, initial},
           [plan, content, count, mean = reduce == Reduce::mean](const Tensor& grad, Gradients& into) {
             const int64_t more = content == Initial::include ? 1 : 0;
             Tensor divided = grad;
             if (mean)
               divided = by_segment(grad, [=](int64_t s, int64_t, double g) {
                 const int64_t n = count(s) + more;
                 return n == 0 ? 0.0 : g / double(n);
               });
             if (into.wants(0)) into.add(0, gather(divided, plan));
             if (!into.wants(1)) return;
             if (more == 1)
               into.add(1, mean ? divided : grad);
             else
               into.add(1, by_segment(grad, [count](int64_t s, int64_t, double g) { return count(s) == 0 ? g : 0.0; }));
           });
  }
  return out;
}

namespace {

/// Variance, or its root, with the means on the way.
Tensor spread_of_rows(const char* op, const Tensor& x, const SegmentPlan& plan, int correction, bool root) {
  check_rows(op, x, plan);
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
  const Tensor mean = reduce_rows(op, x, plan, {.op = SegmentOp::sum, .divide = true}, {}, {}, nullptr);
  Tensor out = reduce_rows(op, x, plan, {.op = SegmentOp::square, .divide = true, .less = correction}, {}, mean, nullptr);
  if (root) out = by_segment(out, [](int64_t, int64_t, double v) { return std::sqrt(v); });
  record(op, out, {x},
         [plan, mean, correction, x = Saved(x), y = root ? Saved(out) : Saved()](const Tensor& grad, Gradients& into) {
           const int64_t* offsets = plan.offsets().data<int64_t>();
           const auto slope = [&](auto std_of) {
             return by_segment(grad, [&](int64_t s, int64_t i, double g) {
               const double n = double(std::max<int64_t>(offsets[s + 1] - offsets[s] - correction, 1));
               const double std = std_of(i);
               return std == 0 ? 0 : g / (n * std);
             });
           };
           const Tensor factor = !y.defined() ? slope([](int64_t) { return 0.5; })
                                 : grad.dtype() == DType::f64
                                     ? slope([p = y.get().data<double>()](int64_t i) { return p[i]; })
                                     : slope([p = y.get().data<float>()](int64_t i) { return double(p[i]); });
           into.add(0, segment_spread(SpreadOp::deviation, plan, factor, {.x = x.get(), .center = mean}));
         });
  return out;
}

}  // namespace

Tensor segment_var(const Tensor& x, const SegmentPlan& plan, int correction) {
  return spread_of_rows("segment_var", x, plan, correction, false);
}

Tensor segment_std(const Tensor& x, const SegmentPlan& plan, int correction) {
  return spread_of_rows("segment_std", x, plan, correction, true);
}

}  // namespace tessera
