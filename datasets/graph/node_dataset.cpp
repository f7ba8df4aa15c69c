#include "tessera/datasets/graph/node_dataset.h"

#include <cmath>

namespace tessera {
namespace {

void normalise(const float* from, float* to, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::fabs(double(from[i]));
  const double scale = sum == 0 ? 0 : 1 / sum;
  for (int64_t i = 0; i < count; ++i) to[i] = float(from[i] * scale);
}

}  // namespace

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
