// Cross-entropy never makes the table of probabilities: the forward pass keeps one number a row, and the gradient computes
// the softmax again. Rows of few classes are done sixteen at a time (softmax_lines_kernels.h).

#include "tessera/core/ops/loss_kernels.h"

#include "tessera/core/ops/softmax_lines_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

using softmax_lines::kGroup;
using softmax_lines::kShort;

/// For each row of a group its largest element m and log sum exp(x - m): apart, since beside a large m the logarithm
/// would lose its digits.
template <class T>
void log_sums(const T* const* rows, int count, int64_t width, T* buffer, T* m, T* log) {
  if (width > kShort) {
    for (int l = 0; l < count; ++l) {
      const T* x = rows[l];
      const T most = softmax_lines::row_largest(x, width);
      m[l] = most;
      log[l] = simd::log(softmax_lines::row_sum<T>(width, [=](int64_t j) { return simd::exp(x[j] - most); }));
    }
    return;
  }
  T sum[kGroup];
  softmax_lines::gather_rows(rows, count, width, buffer);
  softmax_lines::largest(buffer, kGroup, width, kGroup, m);
  softmax_lines::sum_exponentials(buffer, kGroup, width, kGroup, m, sum);
  for (int l = 0; l < kGroup; ++l) log[l] = simd::log(sum[l]);
}

template <class T>
void losses(const CrossEntropyKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const int64_t width = k.width, count = k.count;
  const int32_t* chosen = k.chosen;
  parallel_for((count + kGroup - 1) / kGroup, (1 << 13) / (kGroup * (width + 1)) + 1, [=, &k](int64_t first, int64_t last) {
    alignas(64) T buffer[kShort * kGroup];
    const T* rows[kGroup];
    int32_t label[kGroup];
    T m[kGroup], log[kGroup];
    for (int64_t group = first; group < last; ++group) {
      const int64_t c0 = group * kGroup;
      const int here = count - c0 < kGroup ? int(count - c0) : kGroup;
      for (int l = 0; l < here; ++l) {
        const int64_t i = chosen ? chosen[c0 + l] : c0 + l;
        rows[l] = x + i * width;
        label[l] = k.labels[i];
      }
      if (k.is_nll)
        for (int l = 0; l < here; ++l) m[l] = log[l] = 0;
      else
        log_sums(rows, here, width, buffer, m, log);
      for (int l = 0; l < here; ++l) {
        if (label[l] < 0) {
          k.losses[c0 + l] = 0;
          continue;
        }
        const auto term = [&](int64_t j) { return double(log[l]) - (double(rows[l][j]) - double(m[l])); };
        double loss = term(label[l]);
        if (k.weights != nullptr) loss *= k.weights[label[l]];
        if (k.smoothing > 0) {
          double all = 0;
          for (int64_t j = 0; j < width; ++j) all += term(j) * (k.weights ? k.weights[j] : 1);
          loss = (1 - k.smoothing) * loss + k.smoothing / double(width) * all;
        }
        k.losses[c0 + l] = loss;
      }
    }
  });
}

/// out = f (p W - (1 - s) w_y [j = y] - s / C w_j), W being what each p_j is worth in all.
template <class T>
TESSERA_INLINE void gradient_row(const CrossEntropyKernel::Args& k, int32_t label, double f, double weight_sum, T* out) {
  const double own = k.weights ? k.weights[label] : 1, spread = k.smoothing / double(k.width);
  if (k.is_nll) {
    for (int64_t j = 0; j < k.width; ++j) out[j] = T(0);
  } else {
    const T scale = T(f * ((1 - k.smoothing) * own + spread * weight_sum));
    for (int64_t j = 0; j < k.width; ++j) out[j] *= scale;
  }
  out[label] -= T(f * (1 - k.smoothing) * own);
  if (k.smoothing > 0)
    for (int64_t j = 0; j < k.width; ++j) out[j] -= T(f * spread * (k.weights ? k.weights[j] : 1));
}

template <class T>
void gradient(const CrossEntropyKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  T* grad = static_cast<T*>(k.grad);
  const int64_t width = k.width, rows = k.rows;
  double weight_sum = 0;
  for (int64_t j = 0; j < width; ++j) weight_sum += k.weights ? k.weights[j] : 1;
  parallel_for((rows + kGroup - 1) / kGroup, (1 << 13) / (kGroup * (width + 1)) + 1, [=, &k](int64_t first, int64_t last) {
    alignas(64) T buffer[kShort * kGroup];
    const T* from[kGroup];
    int64_t row[kGroup];
    int live = 0;
    // Rows that have a gradient gather until a group is full.
    const auto flush = [&] {
      if (live == 0) return;
      if (width <= kShort && !k.is_nll) {
        T m[kGroup], sum[kGroup];
        softmax_lines::gather_rows(from, live, width, buffer);
        softmax_lines::largest(buffer, kGroup, width, kGroup, m);
        softmax_lines::exponentials(buffer, kGroup, width, kGroup, m, buffer, kGroup, sum);
        for (int l = 0; l < kGroup; ++l) sum[l] = T(1) / sum[l];
        for (int l = 0; l < live; ++l)
          for (int64_t j = 0; j < width; ++j) grad[row[l] * width + j] = buffer[j * kGroup + l] * sum[l];
      } else if (!k.is_nll) {
        for (int l = 0; l < live; ++l) {
          const T* in = from[l];
          T* out = grad + row[l] * width;
          const T m = softmax_lines::row_largest(in, width);
          const T inverse =
              T(1) / softmax_lines::row_sum<T>(width, [=](int64_t j) { return out[j] = simd::exp(in[j] - m); });
          for (int64_t j = 0; j < width; ++j) out[j] *= inverse;
        }
      }
      for (int l = 0; l < live; ++l)
        gradient_row(k, k.labels[row[l]], k.row_factors ? k.row_factors[row[l]] : k.factor, weight_sum, grad + row[l] * width);
      live = 0;
    };
    const int64_t end = last * kGroup < rows ? last * kGroup : rows;
    for (int64_t i = first * kGroup; i < end; ++i) {
      // A row that was not chosen has factor 0, and its label is not to be read.
      if ((k.row_factors != nullptr && k.row_factors[i] == 0) || k.labels[i] < 0) {
        for (int64_t j = 0; j < width; ++j) grad[i * width + j] = T(0);
        continue;
      }
      from[live] = x + i * width;
      row[live++] = i;
      if (live == kGroup) flush();
    }
    flush();
  });
}

/// The loss of a pair with logit x, target t and positive weight w.
template <class T>
struct BinaryCrossEntropy {
  TESSERA_INLINE T loss(T x, T t, T w) const {
    const T negative = x < T(0) ? -x : T(0);
    return (T(1) - t) * x + (T(1) + (w - T(1)) * t) * (simd::log1p(simd::exp(-simd::abs(x))) + negative);
  }
  TESSERA_INLINE T slope(T x, T t, T w) const {
    return simd::sigmoid(x) * (T(1) + (w - T(1)) * t) - w * t;
  }
};
template <class T>
struct Square {
  TESSERA_INLINE T loss(T x, T t, T) const { return (x - t) * (x - t); }
  TESSERA_INLINE T slope(T x, T t, T) const { return T(2) * (x - t); }
};
template <class T>
struct Absolute {
  TESSERA_INLINE T loss(T x, T t, T) const { return simd::abs(x - t); }
  TESSERA_INLINE T slope(T x, T t, T) const { return x > t ? T(1) : x < t ? T(-1) : x - t; }
};
template <class T>
struct Smooth {
  T beta;
  TESSERA_INLINE T loss(T x, T t, T) const {
    const T d = simd::abs(x - t);
    return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
  }
  TESSERA_INLINE T slope(T x, T t, T) const {
    const T d = x - t;
    return simd::abs(d) < beta ? d / beta : d > T(0) ? T(1) : d < T(0) ? T(-1) : d;
  }
};

constexpr int64_t kPairs = 1 << 12;  // summed in one go, through a buffer of losses

template <class T, class L>
void pairs(const PairLossKernel::Args& k, L rule) {
  const T* x = static_cast<const T*>(k.x);
  const T* target = static_cast<const T*>(k.target);
  const T* weights = static_cast<const T*>(k.positive_weights);
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.out);
  const int64_t width = k.width;
  const bool skip = k.skip_nan;
  const T factor = T(k.factor);
  if (k.is_gradient) {
    parallel_for(k.count, 1 << 13, [=](int64_t begin, int64_t end) {
      int64_t column = weights != nullptr ? begin % width : 0;
      for (int64_t i = begin; i < end; ++i) {
        T w = T(1);
        if (weights != nullptr) {
          w = weights[column];
          column = column + 1 == width ? 0 : column + 1;
        }
        const T t = target[i], slope = rule.slope(x[i], t, w) * (grad != nullptr ? grad[i] : factor);
        out[i] = skip && t != t ? T(0) : slope;
      }
    });
    return;
  }
  const auto loss_at = [=](int64_t i, int64_t column) {
    const T t = target[i], loss = rule.loss(x[i], t, weights != nullptr ? weights[column] : T(1));
    return skip && t != t ? T(0) : loss;
  };
  if (out != nullptr) {
    parallel_for(k.count, 1 << 13, [=](int64_t begin, int64_t end) {
      if (weights == nullptr)
        for (int64_t i = begin; i < end; ++i) out[i] = loss_at(i, 0);
      else
        for (int64_t i = begin; i < end; ++i) out[i] = loss_at(i, i % width);
    });
    return;
  }
  *k.sum = parallel_sum(k.count, kPairs, [=](int64_t begin, int64_t end) {
    double lane[16] = {};
    int64_t i = begin;
    if (weights == nullptr)
      for (; i + 16 <= end; i += 16)
        for (int l = 0; l < 16; ++l) lane[l] += double(loss_at(i + l, 0));
    for (int l = 0; i < end; ++i, l = (l + 1) % 16) lane[l] += double(loss_at(i, weights != nullptr ? i % width : 0));
    return tree_sum(lane, 16);
  });
  *k.taken = k.count;
  if (skip)
    *k.taken = int64_t(parallel_sum(k.count, 1 << 14, [=](int64_t begin, int64_t end) {
      int64_t n = 0;
      for (int64_t i = begin; i < end; ++i) n += target[i] == target[i] ? 1 : 0;
      return double(n);
    }));
}

template <class T>
void run_pairs(const PairLossKernel::Args& k) {
  switch (k.op) {
    case PairLoss::bce_with_logits: return pairs<T>(k, BinaryCrossEntropy<T>{});
    case PairLoss::mse: return pairs<T>(k, Square<T>{});
    case PairLoss::l1: return pairs<T>(k, Absolute<T>{});
    case PairLoss::smooth_l1: return pairs<T>(k, Smooth<T>{T(k.beta)});
  }
}

}  // namespace

template <Isa>
void CrossEntropyKernel::cpu(const Args& args) {
  if (args.grad != nullptr)
    args.is_double ? gradient<double>(args) : gradient<float>(args);
  else
    args.is_double ? losses<double>(args) : losses<float>(args);
}
template void CrossEntropyKernel::cpu<kIsa>(const Args&);

template <Isa>
void PairLossKernel::cpu(const Args& args) {
  args.is_double ? run_pairs<double>(args) : run_pairs<float>(args);
}
template void PairLossKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
