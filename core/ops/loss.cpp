#include "tessera/core/ops/loss.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/loss_kernels.h"
#include "tessera/core/ops/unary.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

void check_float(const char* op, const Tensor& x) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
}

/// Element i of a floating tensor.
double value_at(const Tensor& x, int64_t i) { return x.dtype() == DType::f64 ? x.data<double>()[i] : double(x.data<float>()[i]); }

struct Terms {
  int64_t count;
  double weight;  // of those taken
};

/// Checks rows and labels, and adds up the weights.
Terms checked_terms(const char* op, const Tensor& x, const Tensor& labels, const Tensor& rows, const double* weights,
                    bool ignore_missing) {
  const int64_t n = x.dim(0), classes = x.dim(1), count = rows.defined() ? rows.dim(0) : n;
  check(count > 0, "{}: no row is chosen, the mean of no losses is undefined", op);
  const int32_t* chosen = rows.defined() ? rows.data<int32_t>() : nullptr;
  const int32_t* y = labels.data<int32_t>();
  Terms terms{0, 0};
  for (int64_t c = 0; c < count; ++c) {
    const int64_t i = chosen ? chosen[c] : c;
    check(i >= 0 && i < n, "{}: rows[{}] is {} but needs to be in [0, {})", op, c, i, n);
    if (ignore_missing && y[i] == -1) continue;
    check(y[i] >= 0 && y[i] < classes, "{}: labels[{}] is {} but needs to be in [0, {})", op, i, y[i], classes);
    ++terms.count;
    terms.weight += weights != nullptr ? weights[y[i]] : 1;
  }
  check(terms.count > 0, "{}: every chosen row has label -1, the mean of no losses is undefined", op);
  check(terms.weight > 0, "{}: the class weights of the chosen rows add up to {} but need to be above 0", op, terms.weight);
  return terms;
}

/// A copy of the class weights as doubles, undefined for none.
Tensor weights_of(const char* op, const Tensor& weights, const Tensor& x) {
  if (!weights.defined()) return {};
  check(weights.ndim() == 1 && weights.dim(0) == x.dim(1) && weights.dtype() == x.dtype(),
        "{}: class weights are {} {} but need to be {} [{}]", op, weights.dtype(), weights.shape(), x.dtype(), x.dim(1));
  return x.dtype() == DType::f64 ? clone(weights) : cast(weights.detach(), DType::f64);
}

Tensor class_loss(const char* op, bool is_nll, const Tensor& x, const Tensor& labels, const Tensor& rows,
                  const CrossEntropyOptions& options) {
  check(x.ndim() == 2, "{}: logits have shape {} but need two dimensions", op, x.shape());
  check_float(op, x);
  const int64_t n = x.dim(0), classes = x.dim(1);
  check(labels.ndim() == 1 && labels.dim(0) == n && labels.dtype() == DType::i32,
        "{}: labels are {} {} but need to be i32 [{}]", op, labels.dtype(), labels.shape(), n);
  if (rows.defined())
    check(rows.ndim() == 1 && rows.dtype() == DType::i32, "{}: rows are {} {} but need to be i32 of one dimension", op,
          rows.dtype(), rows.shape());
  const double smoothing = options.label_smoothing;
  check(smoothing >= 0 && smoothing < 1, "{}: label_smoothing is {} but needs to be in [0, 1)", op, smoothing);
  check(!is_nll || smoothing == 0, "{}: label_smoothing is {}, but only cross_entropy has it", op, smoothing);
  const Tensor weights = weights_of(op, options.class_weights, x);
  const double* w = weights.defined() ? weights.data<double>() : nullptr;
  const Terms terms = checked_terms(op, x, labels, rows, w, options.ignore_missing);
  const int64_t count = rows.defined() ? rows.dim(0) : n;
  Scratch<double> losses(count);
  run<CrossEntropyKernel>(x.device(), {x.dtype() == DType::f64, is_nll, n, classes, x.raw(), labels.data<int32_t>(),
                                       rows.defined() ? rows.data<int32_t>() : nullptr, count, w, smoothing, losses.data(),
                                       nullptr, 0, nullptr});
  const Reduction reduction = options.reduction;
  const double divisor = reduction == Reduction::mean ? terms.weight : 1;
  Tensor out;
  if (reduction == Reduction::none) {
    out = Tensor::empty(Shape{count}, x.dtype(), x.device());
    with_float(x.dtype(), op, [&]<class T>() {
      T* y = out.mutable_data<T>();
      for (int64_t c = 0; c < count; ++c) y[c] = T(losses[c]);
    });
  } else {
    const double total = parallel_sum(count, 1 << 14, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t c = begin; c < end; ++c) sum += losses[c];
      return sum;
    });
    out = full(Shape{}, total / divisor, x.dtype());
  }
  record(op, out, {x},
         [x = Saved(x), labels = Saved(labels), rows = Saved(rows), weights = Saved(weights), is_nll, smoothing, reduction,
          divisor](const Tensor& grad, Gradients& into) {
           const Tensor& logits = x.get();
           // Rows that were chosen, as often as they were; each occurrence with its own gradient for `none`.
           const bool each = reduction == Reduction::none;
           Tensor factors;
           if (rows.defined() || each) {
             factors = zeros(Shape{logits.dim(0)}, DType::f64);
             double* f = factors.mutable_data<double>();
             const int64_t m = rows.defined() ? rows.get().dim(0) : logits.dim(0);
             const int32_t* chosen = rows.defined() ? rows.get().data<int32_t>() : nullptr;
             const double one = each ? 0 : grad.item() / divisor;
             for (int64_t c = 0; c < m; ++c) f[chosen ? chosen[c] : c] += each ? value_at(grad, c) : one;
           }
           Tensor result = Tensor::empty(logits.shape(), logits.dtype(), logits.device());
           run<CrossEntropyKernel>(
               logits.device(),
               {logits.dtype() == DType::f64, is_nll, logits.dim(0), logits.dim(1), logits.raw(), labels.get().data<int32_t>(),
                nullptr, 0, weights.defined() ? weights.get().data<double>() : nullptr, smoothing, nullptr,
                factors.defined() ? factors.data<double>() : nullptr, factors.defined() ? 0 : grad.item() / divisor,
                result.mutable_raw()});
           into.add(0, std::move(result));
         });
  return out;
}

struct Pair {
  PairLoss op;
  const char* name;
  Reduction reduction;
  bool skip_nan = false;
  double beta = 0;
};

Tensor pair_loss(const Pair& pair, const Tensor& x, const Tensor& target, const Tensor& weights = {}) {
  const char* name = pair.name;
  check_float(name, x);
  check(x.dtype() == target.dtype() && x.shape() == target.shape(), "{}: the input is {} {} but the target is {} {}", name,
        x.dtype(), x.shape(), target.dtype(), target.shape());
  const bool each = pair.reduction == Reduction::none;
  Tensor out;
  if (each) out = Tensor::empty(x.shape(), x.dtype(), x.device());
  double sum = 0;
  int64_t taken = 0;
  const int64_t width = weights.defined() ? weights.dim(0) : 1;
  PairLossKernel::Args args{pair.op, x.dtype() == DType::f64, pair.skip_nan, x.numel(), width, x.raw(), target.raw(),
                            weights.defined() ? weights.raw() : nullptr, pair.beta, &sum, &taken,
                            each ? out.mutable_raw() : nullptr, nullptr, 0, false};
  run<PairLossKernel>(x.device(), args);
  double divisor = 1;
  if (!each) {
    if (pair.reduction == Reduction::mean) {
      check(taken > 0, "{}: there is no target (shape {}), the mean of no losses is undefined", name, x.shape());
      divisor = double(taken);
    }
    out = full(Shape{}, sum / divisor, x.dtype());
  }
  record(name, out, {x, target},
         [pair, x = Saved(x), target = Saved(target), weights = Saved(weights), divisor](const Tensor& grad, Gradients& into) {
           const bool single = pair.reduction != Reduction::none;
           Tensor result = Tensor::empty(x.get().shape(), x.get().dtype(), x.get().device());
           run<PairLossKernel>(x.get().device(),
                               {pair.op, x.get().dtype() == DType::f64, pair.skip_nan, x.get().numel(),
                                weights.defined() ? weights.get().dim(0) : 1, x.get().raw(), target.get().raw(),
                                weights.defined() ? weights.get().raw() : nullptr, pair.beta, nullptr, nullptr,
                                result.mutable_raw(), single ? nullptr : grad.raw(), single ? grad.item() / divisor : 0, true});
           if (into.wants(1)) into.add(1, neg(result));
           if (into.wants(0)) into.add(0, std::move(result));
         });
  return out;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const Tensor& rows, const CrossEntropyOptions& options) {
  return class_loss("cross_entropy", false, logits, labels, rows, options);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels, const Tensor& rows, const CrossEntropyOptions& options) {
  return class_loss("nll_loss", true, log_probabilities, labels, rows, options);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, const BceOptions& options) {
  if (options.positive_weights.defined())
    check(logits.ndim() >= 1 && options.positive_weights.shape() == Shape{logits.dim(-1)} &&
              options.positive_weights.dtype() == logits.dtype(),
          "bce_with_logits: positive weights are {} {} but need to be {} of the last size of {}", options.positive_weights.dtype(),
          options.positive_weights.shape(), logits.dtype(), logits.shape());
  // The target is a constant: its gradient would be minus the logit.
  return pair_loss({PairLoss::bce_with_logits, "bce_with_logits", options.reduction, options.skip_nan}, logits, targets.detach(),
                   options.positive_weights);
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return pair_loss({PairLoss::mse, "mse_loss", reduction}, x, target);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return pair_loss({PairLoss::l1, "l1_loss", reduction}, x, target);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, Reduction reduction) {
  check(beta > 0, "smooth_l1_loss: beta is {} but needs to be above 0", beta);
  return pair_loss({PairLoss::smooth_l1, "smooth_l1_loss", reduction, false, beta}, x, target);
}

}  // namespace tessera
