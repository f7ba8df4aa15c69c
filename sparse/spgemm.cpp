// Row by row (Gustavson): a dense row of sums, and a bit for each place that was met, which also puts the places in order.
// Blocks of rows collect their entries for themselves, so that pattern and values come out of one walk. The gradient of a is
// the product of the result's gradient and b^T at a's own places, and b's is the same of everything transposed: a dense row
// of gradients, and dot products with it.

#include "tessera/sparse/spgemm.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"

namespace tessera {
namespace {

constexpr int64_t kBlocks = 64;  // enough for every thread to stay busy; each makes a dense row

/// A pattern and its values in the order of its entries, 1 where there are none.
template <class T>
struct Rows {
  const int64_t* rowptr;
  const int32_t* col;
  Scratch<T> values;

  Rows(const Graph& pattern, const Tensor& by_id)
      : rowptr(pattern.rowptr().data<int64_t>()), col(pattern.col().data<int32_t>()), values(pattern.num_edges()) {
    const T* from = by_id.defined() ? by_id.data<T>() : nullptr;
    const int64_t* id = pattern.edge_id().defined() ? pattern.edge_id().data<int64_t>() : nullptr;
    parallel_for(pattern.num_edges(), 1 << 14, [=, to = values.data()](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) to[k] = from == nullptr ? T(1) : from[id != nullptr ? id[k] : k];
    });
  }
};

/// A dense row of sums, zero but for the places met; a bit for each of those, and one for each word of bits, so that going
/// through the places costs their number and a 4096th of the columns. Adding takes no branch.
class Row {
 public:
  explicit Row(int64_t columns)
      : sums_(size_t(columns), 0), bits_(size_t(columns / 64 + 1), 0), words_(size_t(columns / 4096 + 1), 0) {}

  [[gnu::always_inline]] void add(int32_t place, double term) {
    sums_[size_t(place)] += term;
    bits_[size_t(place) / 64] |= uint64_t{1} << (place % 64);
    words_[size_t(place) / 4096] |= uint64_t{1} << (place / 64 % 64);
  }

  /// Calls `use(place, sum)` for each place, ascending, and forgets them.
  template <class Use>
  void drain(const Use& use) {
    for (size_t v = 0; v < words_.size(); ++v) {
      for (uint64_t words = words_[v]; words != 0; words &= words - 1) {
        const size_t w = v * 64 + size_t(std::countr_zero(words));
        for (uint64_t bits = bits_[w]; bits != 0; bits &= bits - 1) {
          const size_t place = w * 64 + size_t(std::countr_zero(bits));
          use(int32_t(place), sums_[place]);
          sums_[place] = 0;
        }
        bits_[w] = 0;
      }
      words_[v] = 0;
    }
  }

 private:
  std::vector<double> sums_;
  std::vector<uint64_t> bits_, words_;
};

template <class T>
SparseMatrix product(const Rows<T>& a, const Rows<T>& b, int64_t rows, int64_t columns) {
  const int64_t blocks = std::min(kBlocks, std::max<int64_t>(rows / 64, 1));
  const auto start = [=](int64_t block) { return rows * block / blocks; };
  struct Block {
    std::vector<int32_t> col;
    std::vector<T> values;
  };
  std::vector<Block> made(static_cast<size_t>(blocks));
  Tensor rowptr = Tensor::empty(Shape{rows + 1}, DType::i64);
  int64_t* to = rowptr.mutable_data<int64_t>();
  to[0] = 0;
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    Row row(columns);
    for (int64_t block = begin; block < end; ++block) {
      Block& into = made[size_t(block)];
      for (int64_t i = start(block); i < start(block + 1); ++i) {
        for (int64_t k = a.rowptr[i]; k < a.rowptr[i + 1]; ++k) {
          const double factor = double(a.values[k]);
          for (int64_t j = b.rowptr[a.col[k]]; j < b.rowptr[a.col[k] + 1]; ++j)
            row.add(b.col[j], factor * double(b.values[j]));
        }
        const size_t before = into.col.size();
        row.drain([&](int32_t place, double sum) {
          into.col.push_back(place);
          into.values.push_back(T(sum));
        });
        to[i + 1] = int64_t(into.col.size() - before);
      }
    }
  });
  std::partial_sum(to, to + rows + 1, to);
  Tensor col = Tensor::empty(Shape{to[rows]}, DType::i32), values = Tensor::empty(Shape{to[rows]}, dtype_of<T>);
  parallel_for(blocks, 1,
               [&, cols = col.mutable_data<int32_t>(), out = values.mutable_data<T>()](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   std::copy(made[size_t(block)].col.begin(), made[size_t(block)].col.end(), cols + to[start(block)]);
                   std::copy(made[size_t(block)].values.begin(), made[size_t(block)].values.end(), out + to[start(block)]);
                 }
               });
  return {Graph::from_csr(rowptr, col, columns), values};
}

/// (grad b^T)[i, k] at the entries of `at`, by their ids: grad lies on c, of which row i has all places that row k of b has
/// wherever `at` holds (i, k).
Tensor sampled_products(const Graph& c, const Tensor& grad, const Graph& at, const Graph& b, const Tensor& b_values) {
  Tensor out = Tensor::empty(Shape{at.num_edges()}, grad.dtype());
  with_float(grad.dtype(), "spgemm", [&]<class T>() {
    const Rows<T> from(c, grad), right(b, b_values);
    const int64_t *rowptr = at.rowptr().data<int64_t>(),
                  *id = at.edge_id().defined() ? at.edge_id().data<int64_t>() : nullptr;
    const int32_t* col = at.col().data<int32_t>();
    T* values = out.mutable_data<T>();
    parallel_for(at.num_dst(), std::max<int64_t>(64, at.num_dst() / kBlocks), [&](int64_t begin, int64_t end) {
      Scratch<double> row(c.num_src());
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t k = from.rowptr[i]; k < from.rowptr[i + 1]; ++k) row[from.col[k]] = double(from.values[k]);
        for (int64_t k = rowptr[i]; k < rowptr[i + 1]; ++k) {
          double sum = 0;
          for (int64_t j = right.rowptr[col[k]]; j < right.rowptr[col[k] + 1]; ++j)
            sum += double(right.values[j]) * row[right.col[j]];
          values[id != nullptr ? id[k] : k] = T(sum);
        }
      }
    });
  });
  return out;
}

void check_values(const char* name, const SparseMatrix& x) {
  check(x.pattern.defined(), "spgemm: {} has no pattern", name);
  if (!x.values.defined()) return;
  check(x.values.ndim() == 1 && x.values.dim(0) == x.pattern.num_edges(),
        "spgemm: the values of {} have shape {} but it has {} entries", name, x.values.shape(), x.pattern.num_edges());
}

}  // namespace

SparseMatrix spgemm(const SparseMatrix& a, const SparseMatrix& b) {
  check_values("a", a);
  check_values("b", b);
  check(a.columns() == b.rows(), "spgemm: a has {} columns but b has {} rows", a.columns(), b.rows());
  if (a.values.defined() && b.values.defined())
    check(a.values.dtype() == b.values.dtype(), "spgemm: a is {} but b is {}", a.values.dtype(), b.values.dtype());
  const DType dtype = a.values.defined() ? a.values.dtype() : b.values.defined() ? b.values.dtype() : DType::f32;
  SparseMatrix out;
  with_float(dtype, "spgemm", [&]<class T>() {
    out = product(Rows<T>(a.pattern, a.values), Rows<T>(b.pattern, b.values), a.rows(), b.columns());
  });
  record("spgemm", out.values, {a.values, b.values},
         [a = a.pattern, b = b.pattern, c = out.pattern, a_values = Saved(a.values), b_values = Saved(b.values)](
             const Tensor& grad, Gradients& into) {
           const auto of = [](const Saved& values) { return values.defined() ? values.get() : Tensor(); };
           if (into.wants(0)) into.add(0, sampled_products(c, grad, a, b, of(b_values)));
           if (into.wants(1)) into.add(1, sampled_products(c.transpose(), grad, b.transpose(), a.transpose(), of(a_values)));
         });
  return out;
}

}  // namespace tessera
