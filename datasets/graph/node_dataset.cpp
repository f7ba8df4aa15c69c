#include "tessera/datasets/graph/node_dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/sparse/components.h"

namespace tessera {
namespace {

void normalise(const float* from, float* to, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::fabs(double(from[i]));
  const double scale = sum == 0 ? 0 : 1 / sum;
  for (int64_t i = 0; i < count; ++i) to[i] = float(from[i] * scale);
}

template <class T>
Tensor as_tensor(const std::vector<T>& values) {
  return Tensor::from(values, {int64_t(values.size())});
}

}  // namespace

bool sparsify_features(NodeDataset& dataset, double most) {
  if (!dataset.features.defined()) return false;
  const int64_t n = dataset.num_nodes, width = dataset.num_features;
  const auto values = dataset.features.span<float>();
  const int64_t entries = std::count_if(values.begin(), values.end(), [](float x) { return x != 0; });
  if (double(entries) > most * double(values.size())) return false;
  Tensor rowptr = Tensor::empty({n + 1}, DType::i64), col = Tensor::empty({entries}, DType::i32),
         kept = Tensor::empty({entries});
  int64_t* end = rowptr.mutable_data<int64_t>();
  int32_t* column = col.mutable_data<int32_t>();
  float* value = kept.mutable_data<float>();
  *end++ = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const float x = values[size_t(i * width + j)];
      if (x == 0) continue;
      column[at] = int32_t(j);
      value[at++] = x;
    }
    *end++ = at;
  }
  dataset.features = Tensor();
  dataset.feature_rowptr = rowptr;
  dataset.feature_col = col;
  dataset.feature_values = kept;
  return true;
}

void set_identity_features(NodeDataset& dataset) {
  const int64_t n = dataset.num_nodes;
  dataset.features = Tensor();
  dataset.num_features = n;
  dataset.feature_rowptr = Tensor::empty({n + 1}, DType::i64);
  dataset.feature_col = Tensor::empty({n}, DType::i32);
  dataset.feature_values = Tensor::empty({n});
  std::iota(dataset.feature_rowptr.mutable_data<int64_t>(), dataset.feature_rowptr.mutable_data<int64_t>() + n + 1, 0);
  std::iota(dataset.feature_col.mutable_data<int32_t>(), dataset.feature_col.mutable_data<int32_t>() + n, 0);
  std::fill_n(dataset.feature_values.mutable_data<float>(), n, 1.0f);
}

int64_t drop_unlabelled(NodeDataset& dataset) {
  const int32_t* label = dataset.labels.data<int32_t>();
  std::vector<int32_t> dropped;
  for (NodeSplit& split : dataset.splits)
    for (Tensor* part : {&split.train, &split.valid, &split.test}) {
      std::vector<int32_t> kept;
      for (const int32_t node : part->span<int32_t>()) (label[node] >= 0 ? kept : dropped).push_back(node);
      if (int64_t(kept.size()) < part->numel()) *part = as_tensor(kept);
    }
  std::sort(dropped.begin(), dropped.end());
  return std::unique(dropped.begin(), dropped.end()) - dropped.begin();
}

void keep_largest_component(NodeDataset& dataset) {
  if (dataset.num_nodes == 0) return;
  const Graph graph = Graph::from_coo(dataset.src, dataset.dst, dataset.num_nodes, dataset.num_nodes);
  const std::vector<int32_t> kept = largest_component(graph).to_vector<int32_t>();
  std::vector<int32_t> new_id(static_cast<size_t>(dataset.num_nodes), -1);
  for (size_t i = 0; i < kept.size(); ++i) new_id[size_t(kept[i])] = int32_t(i);
  const int64_t count = int64_t(kept.size());

  std::vector<int32_t> src, dst;
  for (int64_t e = 0; e < dataset.src.numel(); ++e) {
    const int32_t a = new_id[size_t(dataset.src.data<int32_t>()[e])], b = new_id[size_t(dataset.dst.data<int32_t>()[e])];
    if (a < 0) continue;
    src.push_back(a);
    dst.push_back(b);
  }
  dataset.src = as_tensor(src);
  dataset.dst = as_tensor(dst);

  if (dataset.labels.defined()) {
    std::vector<int32_t> labels;
    for (const int32_t i : kept) labels.push_back(dataset.labels.data<int32_t>()[i]);
    dataset.labels = as_tensor(labels);
  }
  if (dataset.features.defined()) {
    Tensor features = Tensor::empty({count, dataset.num_features});
    const float* from = dataset.features.data<float>();
    float* to = features.mutable_data<float>();
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(from + kept[size_t(i)] * dataset.num_features, dataset.num_features, to + i * dataset.num_features);
    dataset.features = features;
  }
  if (dataset.sparse_features()) {
    std::vector<int64_t> rowptr{0};
    std::vector<int32_t> col;
    std::vector<float> values;
    const int64_t* at = dataset.feature_rowptr.data<int64_t>();
    for (const int32_t i : kept) {
      col.insert(col.end(), dataset.feature_col.data<int32_t>() + at[i], dataset.feature_col.data<int32_t>() + at[i + 1]);
      values.insert(values.end(), dataset.feature_values.data<float>() + at[i],
                    dataset.feature_values.data<float>() + at[i + 1]);
      rowptr.push_back(int64_t(col.size()));
    }
    dataset.feature_rowptr = as_tensor(rowptr);
    dataset.feature_col = as_tensor(col);
    dataset.feature_values = as_tensor(values);
  }
  for (NodeSplit& split : dataset.splits)
    for (Tensor* part : {&split.train, &split.valid, &split.test}) {
      std::vector<int32_t> ids;
      for (const int32_t id : part->to_vector<int32_t>())
        if (new_id[size_t(id)] >= 0) ids.push_back(new_id[size_t(id)]);
      *part = as_tensor(ids);
    }
  dataset.num_nodes = count;
}

void normalise_rows(NodeDataset& dataset) {
  if (dataset.sparse_features()) {
    Tensor values = Tensor::empty(dataset.feature_values.shape());
    const int64_t* rowptr = dataset.feature_rowptr.data<int64_t>();
    const float* from = dataset.feature_values.data<float>();
    float* to = values.mutable_data<float>();
    for (int64_t row = 0; row < dataset.num_nodes; ++row)
      normalise(from + rowptr[row], to + rowptr[row], rowptr[row + 1] - rowptr[row]);
    dataset.feature_values = values;
  } else if (dataset.features.defined()) {
    Tensor features = Tensor::empty(dataset.features.shape());
    const float* from = dataset.features.data<float>();
    float* to = features.mutable_data<float>();
    for (int64_t row = 0; row < dataset.num_nodes; ++row)
      normalise(from + row * dataset.num_features, to + row * dataset.num_features, dataset.num_features);
    dataset.features = features;
  }
}

}  // namespace tessera
