#include "tessera/layers/molecule_encoder.h"

#include <limits>
#include <numeric>

#include "tessera/core/ops/arrange.h"
#include "tessera/layers/init.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

template <class I>
void fill(const char* who, const I* values, int64_t rows, std::span<const int64_t> counts, int32_t* col) {
  const int64_t width = int64_t(counts.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0, first = 0; k < width; first += counts[size_t(k++)]) {
      const int64_t value = int64_t(values[i * width + k]);
      check(value >= 0 && value < counts[size_t(k)], "{}: feature {} of row {} is {} but needs to be in [0, {})", who, k, i,
            value, counts[size_t(k)]);
      col[i * width + k] = int32_t(first + value);
    }
}

}  // namespace

Graph category_pattern(const char* who, const Tensor& features, std::span<const int64_t> counts) {
  check(features.defined(), "{}: the features are undefined", who);
  const int64_t width = int64_t(counts.size());
  check(features.ndim() == 2 && features.dim(1) == width, "{}: the features have shape {} but need to be [N, {}]", who,
        features.shape(), width);
  check(features.dtype() == DType::i32 || features.dtype() == DType::i64,
        "{}: the features are {} but need to be i32 or i64", who, features.dtype());
  const int64_t rows = features.dim(0), values = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  check(rows * width <= std::numeric_limits<int32_t>::max(), "{}: {} rows of {} features are more than 2^31 - 1", who, rows,
        width);
  Tensor rowptr = Tensor::empty(Shape{rows + 1}, DType::i64), col = Tensor::empty(Shape{rows * width}, DType::i32);
  for (int64_t i = 0; i <= rows; ++i) rowptr.mutable_data<int64_t>()[i] = i * width;
  if (features.dtype() == DType::i32)
    fill(who, features.data<int32_t>(), rows, counts, col.mutable_data<int32_t>());
  else
    fill(who, features.data<int64_t>(), rows, counts, col.mutable_data<int32_t>());
  return Graph::from_csr(rowptr, col, values);
}

EmbeddingSum::EmbeddingSum(std::span<const int64_t> counts, int64_t channels, Generator& generator) {
  for (const int64_t count : counts) {
    tables.emplace_back();
    tables.back().weight = glorot(Shape{count, channels}, generator);
  }
}

Tensor EmbeddingSum::joined() const {
  std::vector<Tensor> weights;
  for (const Embedding& table : tables) weights.push_back(table.weight);
  return concat(weights, 0);
}

AtomEncoder::AtomEncoder(int64_t channels, Generator& generator, std::span<const int64_t> given)
    : sum(given, channels, generator), counts(given.begin(), given.end()) {}

Tensor AtomEncoder::operator()(const Tensor& x) const {
  return spmm(category_pattern("atom_encoder", x, counts), sum.joined());
}

BondEncoder::BondEncoder(int64_t channels, Generator& generator) : sum(kBondValues, channels, generator) {}

Tensor BondEncoder::operator()(const Tensor& edge_attr) const {
  return spmm(category_pattern("bond_encoder", edge_attr, kBondValues), sum.joined());
}

}  // namespace tessera
