#include "tessera/datasets/graph/assemble.h"

#include <algorithm>
#include <utility>

#include "tessera/core/error.h"
#include "tessera/core/io/sha256.h"

namespace tessera {
namespace {

void check_csr(const Tensor& rowptr, const Tensor& col, int64_t rows, int64_t columns, const std::string& origin,
               std::string_view what) {
  check<IoError>(rows <= INT32_MAX && columns <= INT32_MAX, "{}: {} has the shape [{}, {}], at most 2^31 - 1 is read",
                 origin, what, rows, columns);
  check<IoError>(rowptr.numel() == rows + 1, "{}: {} has {} row pointers, expected {} for {} rows", origin, what,
                 rowptr.numel(), rows + 1, rows);
  const int64_t* pointers = rowptr.data<int64_t>();
  check<IoError>(pointers[0] == 0, "{}: {} has row pointers that start at {}, expected 0", origin, what, pointers[0]);
  for (int64_t row = 0; row < rows; ++row)
    check<IoError>(pointers[row] <= pointers[row + 1], "{}: {} has row pointers that fall from {} to {} after row {}",
                   origin, what, pointers[row], pointers[row + 1], row);
  check<IoError>(pointers[rows] == col.numel(), "{}: {} has row pointers that end at {} but {} column indices", origin, what,
                 pointers[rows], col.numel());
  const int64_t* columns_of = col.data<int64_t>();
  for (int64_t i = 0; i < col.numel(); ++i)
    check<IoError>(columns_of[i] >= 0 && columns_of[i] < columns,
                   "{}: {} has the column {} at position {}, expected 0 to {}", origin, what, columns_of[i], i, columns - 1);
}

}  // namespace

void set_edges(NodeDataset& dataset, const Tensor& from, const Tensor& to, const std::string& origin) {
  const Tensor a = to_int64(from, origin, "the edge list"), b = to_int64(to, origin, "the edge list");
  check<IoError>(a.numel() == b.numel(), "{}: {} edge starts but {} edge ends", origin, a.numel(), b.numel());
  std::vector<uint64_t> keys;
  keys.reserve(size_t(a.numel()) * 2);
  const int64_t *starts = a.data<int64_t>(), *ends = b.data<int64_t>();
  for (int64_t e = 0; e < a.numel(); ++e) {
    for (const int64_t id : {starts[e], ends[e]})
      check<IoError>(id >= 0 && id < dataset.num_nodes, "{}: edge {} has the node {}, expected 0 to {}", origin, e, id,
                     dataset.num_nodes - 1);
    if (starts[e] == ends[e]) continue;
    keys.push_back(uint64_t(starts[e]) << 32 | uint64_t(ends[e]));
    keys.push_back(uint64_t(ends[e]) << 32 | uint64_t(starts[e]));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const int64_t count = int64_t(keys.size());
  dataset.src = Tensor::empty({count}, DType::i32);
  dataset.dst = Tensor::empty({count}, DType::i32);
  int32_t *src = dataset.src.mutable_data<int32_t>(), *dst = dataset.dst.mutable_data<int32_t>();
  for (int64_t e = 0; e < count; ++e) {
    src[e] = int32_t(keys[size_t(e)] >> 32);
    dst[e] = int32_t(keys[size_t(e)] & 0xffffffffu);
  }
}

void set_sparse_features(NodeDataset& dataset, const Tensor& rowptr, const Tensor& col, const Tensor& values,
                         int64_t columns, const std::string& origin, std::string_view what) {
  const Tensor pointers = to_int64(rowptr, origin, what), indices = to_int64(col, origin, what), floats = to_float32(values);
  check_csr(pointers, indices, dataset.num_nodes, columns, origin, what);
  check<IoError>(floats.numel() == indices.numel(), "{}: {} has {} values but {} column indices", origin, what,
                 floats.numel(), indices.numel());
  const int64_t *at = pointers.data<int64_t>(), *column = indices.data<int64_t>();
  const float* value = floats.data<float>();

  std::vector<int64_t> row_ends{0};
  std::vector<int32_t> cols;
  std::vector<float> entries;
  cols.reserve(size_t(indices.numel()));
  entries.reserve(size_t(indices.numel()));
  std::vector<std::pair<int32_t, float>> row_entries;
  for (int64_t row = 0; row < dataset.num_nodes; ++row) {
    row_entries.clear();
    for (int64_t i = at[row]; i < at[row + 1]; ++i) row_entries.emplace_back(int32_t(column[i]), value[i]);
    std::stable_sort(row_entries.begin(), row_entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [c, v] : row_entries) {
      if (int64_t(cols.size()) > row_ends.back() && cols.back() == c) {
        entries.back() += v;
      } else {
        cols.push_back(c);
        entries.push_back(v);
      }
    }
    row_ends.push_back(int64_t(cols.size()));
  }
  dataset.num_features = columns;
  dataset.feature_rowptr = Tensor::from(row_ends, {dataset.num_nodes + 1});
  dataset.feature_col = Tensor::from(cols, {int64_t(cols.size())});
  dataset.feature_values = Tensor::from(entries, {int64_t(entries.size())});
}

Pairs csr_pairs(const Tensor& rowptr, const Tensor& col, int64_t rows, int64_t columns, const std::string& origin,
                std::string_view what) {
  const Tensor pointers = to_int64(rowptr, origin, what);
  Pairs pairs{Tensor::empty({col.numel()}, DType::i64), to_int64(col, origin, what)};
  check_csr(pointers, pairs.col, rows, columns, origin, what);
  const int64_t* at = pointers.data<int64_t>();
  int64_t* row_of = pairs.row.mutable_data<int64_t>();
  for (int64_t row = 0; row < rows; ++row) std::fill(row_of + at[row], row_of + at[row + 1], row);
  return pairs;
}

void set_labels(NodeDataset& dataset, const Tensor& labels, const std::string& origin, std::string_view what, int64_t most) {
  const Tensor values = to_int64(labels, origin, what);
  check<IoError>(values.numel() == dataset.num_nodes, "{}: {} has {} labels, expected {}, one per node", origin, what,
                 values.numel(), dataset.num_nodes);
  dataset.labels = Tensor::empty({dataset.num_nodes}, DType::i32);
  int32_t* out = dataset.labels.mutable_data<int32_t>();
  int64_t largest = -1;
  for (int64_t i = 0; i < dataset.num_nodes; ++i) {
    const int64_t label = values.data<int64_t>()[i];
    check<IoError>(label >= -1 && label <= most, "{}: {} has the label {} at node {}, expected -1 (none) or 0 to {}", origin,
                   what, label, i, most);
    out[i] = int32_t(label);
    largest = std::max(largest, label);
  }
  dataset.num_classes = largest + 1;
}

Tensor ids(const std::vector<int32_t>& values) { return Tensor::from(values, {int64_t(values.size())}); }

Tensor ids_of_mask(const uint8_t* mask, int64_t count) {
  std::vector<int32_t> found;
  for (int64_t i = 0; i < count; ++i)
    if (mask[i] != 0) found.push_back(int32_t(i));
  return ids(found);
}

Tensor to_int64(const Tensor& x, const std::string& origin, std::string_view what) {
  if (x.dtype() == DType::i64) return x;
  check<IoError>(!is_floating(x.dtype()), "{}: {} has elements of {}, expected integers", origin, what, x.dtype());
  Tensor out = Tensor::empty(x.shape(), DType::i64);
  int64_t* to = out.mutable_data<int64_t>();
  if (x.dtype() == DType::i32)
    std::copy_n(x.data<int32_t>(), x.numel(), to);
  else
    std::copy_n(x.data<uint8_t>(), x.numel(), to);
  return out;
}

Tensor to_float32(const Tensor& x) {
  if (x.dtype() == DType::f32) return x;
  Tensor out = Tensor::empty(x.shape(), DType::f32);
  float* to = out.mutable_data<float>();
  with_any(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = float(from[i]);
  });
  return out;
}

std::string sha256_of_files(const std::vector<std::string>& paths) {
  std::string lines;
  for (const std::string& path : paths) lines += sha256_file(path) + "  " + path.substr(path.rfind('/') + 1) + "\n";
  return sha256(lines);
}

}  // namespace tessera
