// All of these are one strided copy: the output is written in order, each of its dimensions walks the input by a stride of
// its own (0 repeats, negative runs backwards). Neighbouring dimensions are merged first. Where the innermost one runs, the
// copy is memcpy; where another one runs, tiles of 16 x 16 keep both sides in the cache; the rest is an element at a time.

#include "tessera/core/ops/arrange.h"

#include <algorithm>
#include <cstring>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/arrange_kernels.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 15;

struct View {
  int ndim = 0;
  int64_t size[Shape::kMaxDims], stride[Shape::kMaxDims];  // of the input, in elements

  void push(int64_t n, int64_t step) {
    if (n == 1) return;
    if (ndim > 0 && stride[ndim - 1] == step * n) {
      size[ndim - 1] *= n;
      stride[ndim - 1] = step;
    } else {
      size[ndim] = n;
      stride[ndim++] = step;
    }
  }
};

/// Strides of a contiguous tensor.
void strides_of(const Shape& shape, int64_t* stride) {
  int64_t run = 1;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    stride[i] = run;
    run *= shape[i];
  }
}

/// Where line `line` along the last dimension starts in the input, kept up to date from one line to the next.
struct LineStart {
  const View& view;
  int64_t index[Shape::kMaxDims];
  int64_t offset = 0;

  LineStart(const View& v, int64_t line) : view(v) {
    for (int d = view.ndim - 2; d >= 0; --d) {
      index[d] = line % view.size[d];
      line /= view.size[d];
      offset += index[d] * view.stride[d];
    }
  }
  void next() {
    for (int d = view.ndim - 2; d >= 0; --d) {
      offset += view.stride[d];
      if (++index[d] < view.size[d]) return;
      offset -= view.size[d] * view.stride[d];
      index[d] = 0;
    }
  }
};

template <class U>
void copy_lines(const U* from, U* to, const View& v, int64_t count) {
  const int last = v.ndim - 1;
  const int64_t width = v.size[last], step = v.stride[last];
  parallel_for(count / width, kGrain / width + 1, [&](int64_t begin, int64_t end) {
    if constexpr (sizeof(U) == 4)
      if (v.ndim == 2 && step == 0 && v.stride[0] == 1) {
        tessera::run<SpreadKernel>(Device::cpu, {end - begin, width, from + begin, to + begin * width});
        return;
      }
    LineStart start(v, begin);
    for (int64_t line = begin; line < end; ++line, start.next()) {
      const U* x = from + start.offset;
      U* y = to + line * width;
      if (step == 1)
        std::memcpy(y, x, size_t(width) * sizeof(U));
      else
        for (int64_t j = 0; j < width; ++j) y[j] = x[j * step];
    }
  });
}

/// The last dimension strides and dimension `fast` runs: tiles of both.
template <class U>
void copy_tiles(const U* from, U* to, const View& v, int fast, int64_t count) {
  constexpr int64_t kTile = 16;
  const int last = v.ndim - 1;
  const int64_t rows = v.size[fast], columns = v.size[last], step = v.stride[last];
  int64_t to_row = 1;  // distance in the output of neighbours along `fast`
  for (int d = fast + 1; d <= last; ++d) to_row *= v.size[d];
  const int64_t tiles = (rows + kTile - 1) / kTile, outer = count / (rows * columns);
  parallel_for(outer * tiles, kGrain / (kTile * columns) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t rest = task / tiles, in = 0, out = 0, run = columns;
      for (int d = last - 1; d >= 0; --d) {
        if (d != fast) {
          in += rest % v.size[d] * v.stride[d];
          out += rest % v.size[d] * run;
          rest /= v.size[d];
        }
        run *= v.size[d];
      }
      const int64_t i0 = task % tiles * kTile, i1 = std::min(rows, i0 + kTile);
      if constexpr (sizeof(U) == 4) {
        tessera::run<TransposeKernel>(Device::cpu, {i1 - i0, columns, from + in + i0, step, to + out + i0 * to_row, to_row});
        continue;
      }
      for (int64_t j0 = 0; j0 < columns; j0 += kTile)
        for (int64_t i = i0; i < i1; ++i)
          for (int64_t j = j0; j < std::min(columns, j0 + kTile); ++j) to[out + i * to_row + j] = from[in + i + j * step];
    }
  });
}

template <class U>
void copy_as(const void* from_bytes, int64_t offset, void* to_bytes, const View& v, int64_t count) {
  const U* from = static_cast<const U*>(from_bytes) + offset;
  U* to = static_cast<U*>(to_bytes);
  if (v.ndim == 0) {
    *to = *from;
    return;
  }
  if (v.stride[v.ndim - 1] != 1 && v.stride[v.ndim - 1] != 0)
    for (int d = 0; d < v.ndim - 1; ++d)
      if (v.stride[d] == 1) return copy_tiles(from, to, v, d, count);
  copy_lines(from, to, v, count);
}

/// A new tensor of `shape`, whose element at (i, j, ..) is x's at offset + i stride[0] + j stride[1] + ...
Tensor gathered(const Tensor& x, const Shape& shape, const int64_t* stride, int64_t offset = 0) {
  Tensor out = Tensor::empty(shape, x.dtype(), x.device());
  if (shape.numel() == 0) return out;
  View view;
  for (int i = 0; i < shape.ndim(); ++i) view.push(shape[i], stride[i]);
  void* to = out.mutable_raw();
  switch (size_of(x.dtype())) {
    case 1: copy_as<uint8_t>(x.raw(), offset, to, view, shape.numel()); break;
    case 2: copy_as<uint16_t>(x.raw(), offset, to, view, shape.numel()); break;
    case 4: copy_as<uint32_t>(x.raw(), offset, to, view, shape.numel()); break;
    default: copy_as<uint64_t>(x.raw(), offset, to, view, shape.numel()); break;
  }
  return out;
}

/// Copies `parts` one after another along dimension `dim` of `out`, line by line, so that `out` is written in its order.
void place_all(std::span<const Tensor> parts, Tensor& out, int dim) {
  const Lines lines = lines_of("concat", out.shape(), dim);
  const int64_t bytes = int64_t(size_of(out.dtype())) * lines.inner, step = lines.length * bytes;
  if (step == 0) return;
  char* to = static_cast<char*>(out.mutable_raw());
  struct Piece {
    const char* from;
    int64_t run;
  };
  std::vector<Piece> pieces;
  for (const Tensor& part : parts)
    if (part.numel() > 0) pieces.push_back({static_cast<const char*>(part.raw()), part.dim(dim) * bytes});
  parallel_for(lines.outer, kGrain * 4 / step + 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      char* line = to + i * step;
      for (const Piece& piece : pieces) {
        std::memcpy(line, piece.from + i * piece.run, size_t(piece.run));
        line += piece.run;
      }
    }
  });
}

/// Copies `x` to the elements from `begin` on of dimension `dim` of `out`.
void place(const Tensor& x, Tensor& out, int dim, int64_t begin) {
  const Lines lines = lines_of("concat", out.shape(), dim);
  const int64_t bytes = int64_t(size_of(x.dtype())), run = x.dim(dim) * lines.inner * bytes,
                step = lines.length * lines.inner * bytes;
  if (run == 0) return;
  const char* from = static_cast<const char*>(x.raw());
  char* to = static_cast<char*>(out.mutable_raw()) + begin * lines.inner * bytes;
  parallel_for(lines.outer, kGrain * 4 / run + 1, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) std::memcpy(to + i * step, from + i * run, size_t(run));
  });
}

Tensor sliced(const Tensor& x, int dim, int64_t begin, int64_t end) {
  if (dim == 0) return x.view_rows(begin, end);
  int64_t stride[Shape::kMaxDims];
  strides_of(x.shape(), stride);
  return gathered(x, x.shape().with(dim, end - begin), stride, begin * stride[dim]);
}

Tensor permuted(const Tensor& x, const int* order) {
  int64_t stride[Shape::kMaxDims], sizes[Shape::kMaxDims], steps[Shape::kMaxDims];
  strides_of(x.shape(), stride);
  for (int i = 0; i < x.ndim(); ++i) {
    sizes[i] = x.dim(order[i]);
    steps[i] = stride[order[i]];
  }
  return gathered(x, Shape(sizes, x.ndim()), steps);
}

struct Order {
  int of[Shape::kMaxDims];
};

Tensor permute_by(const char* name, const Tensor& x, const Order& order) {
  Tensor out = permuted(x, order.of);
  Order back{};
  for (int i = 0; i < x.ndim(); ++i) back.of[order.of[i]] = i;
  record(name, out, {x}, [back](const Tensor& grad, Gradients& into) { into.add(0, permuted(grad, back.of)); });
  return out;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  check(shape.numel() == x.numel(), "reshape: x has shape {}, which does not fit into {}", x.shape(), shape);
  Tensor out = x.view_as(shape);
  record("reshape", out, {x}, [of_x = x.shape()](const Tensor& grad, Gradients& into) { into.add(0, grad.view_as(of_x)); });
  return out;
}

Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end) {
  const int at = dim_of("slice", x.shape(), dim);
  check(0 <= begin && begin <= end && end <= x.dim(at), "slice: [{}, {}) of dimension {} is not within shape {}", begin, end,
        at, x.shape());
  Tensor out = sliced(x, at, begin, end);
  record("slice", out, {x}, [of_x = x.shape(), at, begin](const Tensor& grad, Gradients& into) {
    Tensor whole = zeros(of_x, grad.dtype(), grad.device());
    place(grad, whole, at, begin);
    into.add(0, std::move(whole));
  });
  return out;
}

Tensor permute(const Tensor& x, std::initializer_list<int> order) {
  check(int(order.size()) == x.ndim(), "permute: {} dimensions given but x has shape {}", order.size(), x.shape());
  Order by{};
  bool seen[Shape::kMaxDims] = {};
  int i = 0;
  for (const int dim : order) {
    const int at = dim_of("permute", x.shape(), dim);
    check(!seen[at], "permute: dimension {} is given twice", at);
    seen[at] = true;
    by.of[i++] = at;
  }
  return permute_by("permute", x, by);
}

Tensor transpose(const Tensor& x, int dim0, int dim1) {
  const int a = dim_of("transpose", x.shape(), dim0), b = dim_of("transpose", x.shape(), dim1);
  Order order{};
  for (int i = 0; i < x.ndim(); ++i) order.of[i] = i == a ? b : i == b ? a : i;
  return permute_by("transpose", x, order);
}

Tensor transpose(const Tensor& x) {
  check(x.ndim() == 2, "transpose: x has shape {} but needs two dimensions", x.shape());
  return transpose(x, 0, 1);
}

Tensor expand(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  bool fits = x.ndim() <= shape.ndim();
  int64_t stride[Shape::kMaxDims], steps[Shape::kMaxDims] = {};
  strides_of(x.shape(), stride);
  for (int i = 1; fits && i <= x.ndim(); ++i) {
    fits = x.dim(-i) == shape[-i] || x.dim(-i) == 1;
    steps[shape.ndim() - i] = x.dim(-i) == 1 ? 0 : stride[x.ndim() - i];
  }
  check(fits, "expand: x has shape {}, which does not broadcast to {}", x.shape(), shape);
  Tensor out = gathered(x, shape, steps);
  record("expand", out, {x}, [of_x = x.shape()](const Tensor& grad, Gradients& into) { into.add(0, sum_to(grad, of_x)); });
  return out;
}

Tensor flip(const Tensor& x, int dim) {
  const int at = dim_of("flip", x.shape(), dim);
  int64_t stride[Shape::kMaxDims];
  strides_of(x.shape(), stride);
  const int64_t last = x.numel() == 0 ? 0 : (x.dim(at) - 1) * stride[at];
  stride[at] = -stride[at];
  Tensor out = gathered(x, x.shape(), stride, last);
  record("flip", out, {x}, [at](const Tensor& grad, Gradients& into) { into.add(0, flip(grad, at)); });
  return out;
}

namespace {

/// concat's work, for parts that fit together. More parts than a node has inputs are joined in a tree of nodes.
Tensor joined(const char* name, std::span<const Tensor> parts, int at) {
  constexpr size_t kMost = Gradients::kMaxInputs;
  bool wanted = false;
  for (const Tensor& part : parts) wanted = wanted || part.requires_grad();
  if (wanted && parts.size() > kMost) {
    std::vector<Tensor> halves;
    const size_t each = (parts.size() + kMost - 1) / kMost;
    for (size_t i = 0; i < parts.size(); i += each)
      halves.push_back(joined(name, parts.subspan(i, std::min(each, parts.size() - i)), at));
    return joined(name, halves, at);
  }
  int64_t length = 0;
  for (const Tensor& part : parts) length += part.dim(at);
  Tensor out = Tensor::empty(parts[0].shape().with(at, length), parts[0].dtype(), parts[0].device());
  place_all(parts, out, at);
  if (!wanted) return out;
  struct Ends {
    int64_t of[kMost];
  } ends{};
  Tensor inputs[kMost];
  for (size_t i = 0; i < parts.size(); ++i) {
    inputs[i] = parts[i];
    ends.of[i] = (i > 0 ? ends.of[i - 1] : 0) + parts[i].dim(at);
  }
  const auto backward = [ends, at, count = int(parts.size())](const Tensor& grad, Gradients& into) {
    for (int i = 0; i < count; ++i)
      if (into.wants(i)) into.add(i, sliced(grad, at, i > 0 ? ends.of[i - 1] : 0, ends.of[i]));
  };
  record(name, out, {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], inputs[6], inputs[7]}, backward);
  return out;
}

}  // namespace

Tensor concat(std::span<const Tensor> parts, int dim) {
  check(!parts.empty(), "concat: no tensor was given, one or more are needed");
  const Tensor& first = parts[0];
  const int at = dim_of("concat", first.shape(), dim);
  for (size_t i = 1; i < parts.size(); ++i) {
    check(parts[i].dtype() == first.dtype(), "concat: tensor 0 is {} but tensor {} is {}", first.dtype(), i,
          parts[i].dtype());
    check(parts[i].ndim() == first.ndim() && parts[i].shape().with(at, 0) == first.shape().with(at, 0),
          "concat: tensor 0 has shape {} and tensor {} has {}, which differ beyond dimension {}", first.shape(), i,
          parts[i].shape(), at);
  }
  if (parts.size() == 1) return reshape(first, first.shape());
  return joined("concat", parts, at);
}

Tensor concat(std::initializer_list<Tensor> parts, int dim) { return concat(std::span(parts.begin(), parts.size()), dim); }

Tensor stack(std::span<const Tensor> parts, int dim) {
  check(!parts.empty(), "stack: no tensor was given, one or more are needed");
  const Shape& shape = parts[0].shape();
  check(shape.ndim() < Shape::kMaxDims, "stack: tensor 0 has shape {}, which leaves no room for one more dimension", shape);
  const int at = dim < 0 ? dim + shape.ndim() + 1 : dim;
  check(at >= 0 && at <= shape.ndim(), "stack: dimension {} does not exist when shape {} gets one more", dim, shape);
  int64_t sizes[Shape::kMaxDims];
  for (int i = 0; i <= shape.ndim(); ++i) sizes[i] = i < at ? shape[i] : i == at ? 1 : shape[i - 1];
  std::vector<Tensor> raised;
  for (size_t i = 0; i < parts.size(); ++i) {
    check(parts[i].dtype() == parts[0].dtype() && parts[i].shape() == shape,
          "stack: tensor 0 is {} {} but tensor {} is {} {}", parts[0].dtype(), shape, i, parts[i].dtype(), parts[i].shape());
    raised.push_back(reshape(parts[i], Shape(sizes, shape.ndim() + 1)));
  }
  return concat(raised, at);
}

Tensor stack(std::initializer_list<Tensor> parts, int dim) { return stack(std::span(parts.begin(), parts.size()), dim); }

std::vector<Tensor> split(const Tensor& x, int64_t count, int dim) {
  const int at = dim_of("split", x.shape(), dim);
  check(count >= 1 && x.dim(at) % count == 0, "split: dimension {} of shape {} cannot be cut into {} equal parts", at,
        x.shape(), count);
  const int64_t each = x.dim(at) / count;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back(slice(x, at, i * each, (i + 1) * each));
  return parts;
}

}  // namespace tessera
