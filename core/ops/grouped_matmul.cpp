// Products by group as tasks of one list: tiles of at most 256 rows of one group, so that many small groups and a few large
// ones keep all threads busy alike. Each is a product on one thread, by the kernels of matmul.

#include "tessera/core/ops/grouped_matmul.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kTileRows = 256;
constexpr int64_t kForkWork = 1 << 20;  // multiply-adds below which one thread is quicker
constexpr int64_t kLeastDepth = 2048;   // rows of a piece of a gradient of b
constexpr int64_t kMostPieces = 64;     // beside the first of each group

/// Rows [begin, end) of a group; `piece` counts those of the group.
struct Tile {
  int64_t group, begin, end, piece;
};

std::vector<Tile> tiles_of(const Tensor& offsets, int64_t rows) {
  const int64_t* at = offsets.data<int64_t>();
  std::vector<Tile> tiles;
  for (int64_t g = 0; g + 1 < offsets.numel(); ++g)
    for (int64_t begin = at[g], piece = 0; begin < at[g + 1]; begin += rows, ++piece)
      tiles.push_back({g, begin, std::min(begin + rows, at[g + 1]), piece});
  return tiles;
}

void multiply_tile(const GemmArgs& g) {
  if (g.is_double)
    run<DgemmKernel>(Device::cpu, g);
  else
    onednn_sgemm(g);
}

const char* at(const Tensor& tensor, int64_t element) {
  return static_cast<const char*>(tensor.raw()) + element * int64_t(size_of(tensor.dtype()));
}

void check_operands(const char* op, const char* second, const Tensor& a, const Tensor& offsets, const Tensor& b) {
  check(a.defined() && offsets.defined() && b.defined(), "{}: a, offsets or {} is undefined", op, second);
  check(a.ndim() == 2, "{}: a has shape {} but needs two dimensions", op, a.shape());
  check(a.dtype() == b.dtype(), "{}: a is {} but {} is {}", op, a.dtype(), second, b.dtype());
  check<Unsupported>(a.dtype() == DType::f32 || a.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     a.dtype());
  check(offsets.dtype() == DType::i64 && offsets.ndim() == 1 && offsets.numel() >= 1,
        "{}: offsets is {} {} but needs to be i64 [groups + 1]", op, offsets.dtype(), offsets.shape());
  const int64_t* o = offsets.data<int64_t>();
  const int64_t groups = offsets.numel() - 1;
  check(o[0] == 0, "{}: offsets[0] is {} but needs to be 0", op, o[0]);
  for (int64_t g = 0; g < groups; ++g)
    check(o[g] <= o[g + 1], "{}: offsets[{}] is {} but offsets[{}] before it is {}; offsets must not fall", op, g + 1,
          o[g + 1], g, o[g]);
  check(o[groups] == a.dim(0), "{}: offsets ends at {} but a has {} rows", op, o[groups], a.dim(0));
}

}  // namespace

Tensor grouped_matmul(const Tensor& a, const Tensor& offsets, const Tensor& b, const GroupedOptions& options) {
  check_operands("grouped_matmul", "b", a, offsets, b);
  const bool tb = options.transpose_b;
  const int64_t groups = offsets.numel() - 1, m = a.dim(0), k = a.dim(1);
  check(b.ndim() == 3 && b.dim(0) == groups && b.dim(tb ? 2 : 1) == k,
        "grouped_matmul: b has shape {} but {} groups of rows of {} need {}", b.shape(), groups, k,
        tb ? "[G, N, K]" : "[G, K, N]");
  const int64_t n = b.dim(tb ? 1 : 2);
  Tensor out = Tensor::empty(Shape{m, n}, a.dtype(), a.device());
  const int64_t bytes = int64_t(size_of(a.dtype()));
  char* c = static_cast<char*>(out.mutable_raw());
  if (k == 0 && out.numel() > 0) {
    std::memset(c, 0, size_t(m * n * bytes));
  } else if (n > 0 && k > 0) {
    const std::vector<Tile> tiles = tiles_of(offsets, kTileRows);
    const int64_t work = std::max<int64_t>(1, m / std::max<int64_t>(1, int64_t(tiles.size()))) * k * n;
    parallel_for(int64_t(tiles.size()), kForkWork / work + 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        const Tile& tile = tiles[size_t(t)];
        multiply_tile({a.dtype() == DType::f64, false, tb, tile.end - tile.begin, n, k, at(a, tile.begin * k), k,
                       at(b, tile.group * k * n), tb ? k : n, c + tile.begin * n * bytes, n});
      }
    });
  }
  record("grouped_matmul", out, {a, b},
         [a = Saved(a), b = Saved(b), offsets = Saved(offsets), tb](const Tensor& grad, Gradients& into) {
           if (into.wants(0)) into.add(0, grouped_matmul(grad, offsets.get(), b.get(), {.transpose_b = !tb}));
           if (into.wants(1))
             into.add(1, tb ? grouped_outer(grad, offsets.get(), a.get()) : grouped_outer(a.get(), offsets.get(), grad));
         });
  return out;
}

Tensor grouped_outer(const Tensor& a, const Tensor& offsets, const Tensor& c) {
  check_operands("grouped_outer", "c", a, offsets, c);
  check(c.ndim() == 2 && c.dim(0) == a.dim(0), "grouped_outer: c has shape {} but a has {} rows", c.shape(), a.dim(0));
  const int64_t groups = offsets.numel() - 1, m = a.dim(0), k = a.dim(1), n = c.dim(1), size = k * n;
  Tensor out = Tensor::empty(Shape{groups, k, n}, a.dtype(), a.device());
  const int64_t bytes = int64_t(size_of(a.dtype()));
  char* sums = static_cast<char*>(out.mutable_raw());
  if (size == 0) return out;
  const int64_t* rows = offsets.data<int64_t>();
  for (int64_t g = 0; g < groups; ++g)
    if (rows[g] == rows[g + 1]) std::memset(sums + g * size * bytes, 0, size_t(size * bytes));
  const std::vector<Tile> tiles = tiles_of(offsets, std::max(kLeastDepth, (m + kMostPieces - 1) / kMostPieces));
  // A group's first piece goes to its place, the others beside it.
  std::vector<int64_t> place(tiles.size(), -1);
  int64_t rest_count = 0;
  for (size_t t = 0; t < tiles.size(); ++t)
    if (tiles[t].piece > 0) place[t] = rest_count++;
  Scratch<char> rest(rest_count * size * bytes);
  const int64_t work = std::max<int64_t>(1, m / std::max<int64_t>(1, int64_t(tiles.size()))) * size;
  parallel_for(int64_t(tiles.size()), kForkWork / work + 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const Tile& tile = tiles[size_t(t)];
      char* to = place[size_t(t)] < 0 ? sums + tile.group * size * bytes : rest.data() + place[size_t(t)] * size * bytes;
      multiply_tile({a.dtype() == DType::f64, true, false, k, n, tile.end - tile.begin, at(a, tile.begin * k), k,
                     at(c, tile.begin * n), n, to, n});
    }
  });
  if (rest_count == 0) return out;
  with_float(a.dtype(), "grouped_outer", [&]<class T>() {
    parallel_for(size, 1 << 12, [&](int64_t begin, int64_t end) {
      for (size_t t = 0; t < tiles.size(); ++t) {
        if (place[t] < 0) continue;
        const T* from = reinterpret_cast<const T*>(rest.data()) + place[t] * size;
        T* to = reinterpret_cast<T*>(sums) + tiles[t].group * size;
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      }
    });
  });
  return out;
}

}  // namespace tessera
