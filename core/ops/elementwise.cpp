#include "tessera/core/ops/elementwise.h"

#include <cstring>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise_kernels.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/storage16.h"

namespace tessera {

bool broadcasts(const Shape& a, const Shape& b, Shape& joined) {
  if (a == b) {
    joined = a;
    return true;
  }
  const int ndim = a.ndim() > b.ndim() ? a.ndim() : b.ndim();
  int64_t sizes[Shape::kMaxDims];
  for (int i = 1; i <= ndim; ++i) {
    const int64_t of_a = i <= a.ndim() ? a[-i] : 1, of_b = i <= b.ndim() ? b[-i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return false;
    sizes[ndim - i] = of_a == 1 ? of_b : of_a;
  }
  joined = Shape(sizes, ndim);
  return true;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  Shape joined;
  check(broadcasts(a, b, joined), "{}: a has shape {} but b has shape {}", op, a, b);
  return joined;
}

namespace {

void check_float(const char* op, const Tensor& x) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
}

Element element_of(const char* op, DType dtype) {
  switch (dtype) {
    case DType::f32: return Element::f32;
    case DType::f64: return Element::f64;
    case DType::i32: return Element::i32;
    case DType::i64: return Element::i64;
    default: fail<Unsupported>("{}: dtype {} is not supported, use f32, f64, i32 or i64", op, dtype);
  }
}

void check_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "{}: a is {} but b is {}", op, a.dtype(), b.dtype());
}

bool both16(const Tensor& a, const Tensor& b) { return is_storage16(a.dtype()) && a.dtype() == b.dtype(); }

/// The walk over `out`, with neighbouring dimensions merged where both inputs allow it.
Walk2 walk_of(const Shape& a, const Shape& b, const Shape& out) {
  Walk2 walk;
  walk.ndim = 1;
  walk.size[0] = out.numel();
  walk.stride_a[0] = walk.stride_b[0] = 1;
  if (a == b) return walk;
  // Outwards from the last dimension into the end of the arrays, then moved to their front.
  int64_t size[Shape::kMaxDims], of_a[Shape::kMaxDims], of_b[Shape::kMaxDims], run_a = 1, run_b = 1;
  int ndim = 0;
  for (int i = 1; i <= out.ndim(); ++i) {
    if (out[-i] == 1) continue;
    const bool a_runs = i <= a.ndim() && a[-i] != 1, b_runs = i <= b.ndim() && b[-i] != 1;
    const int64_t stride_a = a_runs ? run_a : 0, stride_b = b_runs ? run_b : 0;
    if (ndim > 0 && stride_a == of_a[ndim - 1] * size[ndim - 1] && stride_b == of_b[ndim - 1] * size[ndim - 1] &&
        a_runs == (of_a[ndim - 1] != 0) && b_runs == (of_b[ndim - 1] != 0)) {
      size[ndim - 1] *= out[-i];
    } else {
      size[ndim] = out[-i];
      of_a[ndim] = stride_a;
      of_b[ndim++] = stride_b;
    }
    if (a_runs) run_a *= a[-i];
    if (b_runs) run_b *= b[-i];
  }
  if (ndim == 0) return walk;
  walk.ndim = ndim;
  for (int d = 0; d < ndim; ++d) {
    walk.size[d] = size[ndim - 1 - d];
    walk.stride_a[d] = of_a[ndim - 1 - d];
    walk.stride_b[d] = of_b[ndim - 1 - d];
  }
  return walk;
}

void apply(Binary op, Element element, const Tensor& a, const Tensor& b, Tensor& out, bool negate = false) {
  void* to = out.mutable_raw();
  if (out.numel() == 0) return;
  run<BinaryKernel>(a.device(),
                    {op, element, negate, out.numel(), a.raw(), b.raw(), to, walk_of(a.shape(), b.shape(), out.shape())});
}

Tensor arithmetic(const char* name, Binary op, const Tensor& a, const Tensor& b) {
  check_dtypes(name, a, b);
  check_float(name, a);
  Tensor out = Tensor::empty(broadcast_shape(name, a.shape(), b.shape()), a.dtype(), a.device());
  apply(op, element_of(name, a.dtype()), a, b, out);
  return out;
}

struct Form {
  bool negate = false, swap = false;
};

Tensor comparison(const char* name, Binary op, const Tensor& a, const Tensor& b, Form form = {}) {
  if (both16(a, b)) return comparison(name, op, widened(a.detach()), widened(b.detach()), form);
  const Element element = element_of(name, a.dtype());
  check_dtypes(name, a, b);
  Tensor out = Tensor::empty(broadcast_shape(name, a.shape(), b.shape()), DType::u8, a.device());
  form.swap ? apply(op, element, b, a, out, form.negate) : apply(op, element, a, b, out, form.negate);
  return out;
}

Tensor select(const Tensor& choice, bool invert, const Tensor* a, const Tensor* b) {
  const Tensor& any = a != nullptr ? *a : *b;
  Tensor out = Tensor::empty(any.shape(), any.dtype(), any.device());
  run<SelectKernel>(any.device(), {size_of(any.dtype()) == 8, invert, out.numel(), choice.data<uint8_t>(),
                                   a ? a->raw() : nullptr, b ? b->raw() : nullptr, out.mutable_raw()});
  return out;
}

Tensor extreme(const char* name, Binary op, Binary is_a, const Tensor& a, const Tensor& b) {
  if (both16(a, b))
    return through_f32(a, b, [&](const Tensor& x, const Tensor& y) { return extreme(name, op, is_a, x, y); });
  Tensor out = arithmetic(name, op, a, b);
  record(name, out, {a, b}, [a = Saved(a), b = Saved(b), is_a](const Tensor& grad, Gradients& into) {
    const Tensor choice = comparison("", is_a, a.get(), b.get());
    if (into.wants(0)) into.add(0, sum_to(select(choice, false, &grad, nullptr), a.get().shape()));
    if (into.wants(1)) into.add(1, sum_to(select(choice, true, &grad, nullptr), b.get().shape()));
  });
  return out;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  if (both16(a, b)) return through_f32(a, b, [](const Tensor& x, const Tensor& y) { return add(x, y); });
  Tensor out = arithmetic("add", Binary::add, a, b);
  record("add", out, {a, b}, [of_a = a.shape(), of_b = b.shape()](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, sum_to(grad, of_a));
    if (into.wants(1)) into.add(1, sum_to(grad, of_b));
  });
  return out;
}

Tensor sub(const Tensor& a, const Tensor& b) {
  if (both16(a, b)) return through_f32(a, b, [](const Tensor& x, const Tensor& y) { return sub(x, y); });
  Tensor out = arithmetic("sub", Binary::sub, a, b);
  record("sub", out, {a, b}, [of_a = a.shape(), of_b = b.shape()](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, sum_to(grad, of_a));
    if (into.wants(1)) into.add(1, neg(sum_to(grad, of_b)));
  });
  return out;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  if (both16(a, b)) return through_f32(a, b, [](const Tensor& x, const Tensor& y) { return mul(x, y); });
  Tensor out = arithmetic("mul", Binary::mul, a, b);
  record("mul", out, {a, b}, [a = Saved(a), b = Saved(b)](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, sum_to(mul(grad, b.get()), a.get().shape()));
    if (into.wants(1)) into.add(1, sum_to(mul(grad, a.get()), b.get().shape()));
  });
  return out;
}

Tensor div(const Tensor& a, const Tensor& b) {
  if (both16(a, b)) return through_f32(a, b, [](const Tensor& x, const Tensor& y) { return div(x, y); });
  Tensor out = arithmetic("div", Binary::div, a, b);
  record("div", out, {a, b}, [out = Saved(out), of_a = a.shape(), b = Saved(b)](const Tensor& grad, Gradients& into) {
    const Tensor quotient = div(grad, b.get());
    if (into.wants(0)) into.add(0, sum_to(quotient, of_a));
    if (into.wants(1)) into.add(1, neg(sum_to(mul(quotient, out.get()), b.get().shape())));
  });
  return out;
}

Tensor minimum(const Tensor& a, const Tensor& b) { return extreme("minimum", Binary::minimum, Binary::min_is_a, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return extreme("maximum", Binary::maximum, Binary::max_is_a, a, b); }

Tensor equal(const Tensor& a, const Tensor& b) { return comparison("equal", Binary::equal, a, b); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return comparison("not_equal", Binary::equal, a, b, {.negate = true}); }
Tensor less(const Tensor& a, const Tensor& b) { return comparison("less", Binary::less, a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return comparison("less_equal", Binary::less_equal, a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return comparison("greater", Binary::less, a, b, {.swap = true}); }
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return comparison("greater_equal", Binary::less_equal, a, b, {.swap = true});
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check(condition.dtype() == DType::u8, "where: the condition is {} but needs to be u8", condition.dtype());
  if (both16(a, b)) return through_f32(a, b, [&](const Tensor& x, const Tensor& y) { return where(condition, x, y); });
  element_of("where", a.dtype());
  check_dtypes("where", a, b);
  const Shape pair = broadcast_shape("where", a.shape(), b.shape());
  Shape shape;
  check(broadcasts(condition.shape(), pair, shape), "where: the condition has shape {} but the values have {}",
        condition.shape(), pair);
  const Tensor choice = expand(condition, shape), x = expand(a.detach(), shape), y = expand(b.detach(), shape);
  Tensor out = select(choice, false, &x, &y);
  record("where", out, {a, b},
         [choice = Saved(choice), of_a = a.shape(), of_b = b.shape()](const Tensor& grad, Gradients& into) {
           if (into.wants(0)) into.add(0, sum_to(select(choice.get(), false, &grad, nullptr), of_a));
           if (into.wants(1)) into.add(1, sum_to(select(choice.get(), true, &grad, nullptr), of_b));
         });
  return out;
}

void add_in_place(Tensor& a, const Tensor& b) {
  check_dtypes("add_in_place", a, b);
  if (!is_storage16(a.dtype())) check_float("add_in_place", a);
  check(a.shape() == b.shape(), "add_in_place: a has shape {} but b has shape {}", a.shape(), b.shape());
  Tensor none = a.detach();
  check(!needs_record("add_in_place", none, {a, b}),
        "add_in_place: a tensor on the way to a gradient cannot be changed in place");
  if (is_storage16(a.dtype())) {
    const Tensor sum = add(a.detach(), b.detach());
    if (a.numel() > 0) std::memcpy(a.mutable_raw(), sum.raw(), size_t(a.numel()) * size_of(a.dtype()));
    return;
  }
  apply(Binary::add, element_of("", a.dtype()), a, b, a);
}

Tensor add_bias(const Tensor& x, const Tensor& bias) {
  if (!is_storage16(x.dtype())) check_float("add_bias", x);
  check(x.ndim() == 2 && bias.ndim() == 1 && bias.dim(0) == x.dim(1),
        "add_bias: x has shape {} and bias {} but they need to be [N, F] and [F]", x.shape(), bias.shape());
  check(x.dtype() == bias.dtype(), "add_bias: x is {} but bias is {}", x.dtype(), bias.dtype());
  return add(x, bias);
}

}  // namespace tessera
