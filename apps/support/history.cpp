#include "tessera/apps/support/history.h"

namespace tessera::apps {

Tensor to_tensor(const std::vector<double>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); }

std::vector<double> numbers_of(const StateDict& state, const std::string& name) {
  const auto found = state.find(name);
  check(found != state.end(), "checkpoint: {} is missing", name);
  check(found->second.ndim() == 1 && found->second.dtype() == DType::f64,
        "checkpoint: {} is {} {} but needs to be f64 of one dimension", name, found->second.dtype(), found->second.shape());
  return found->second.to_vector<double>();
}

void History::add(double loss, double train, double validation_loss, double validation) {
  train_loss.push_back(loss);
  train_score.push_back(train);
  valid_loss.push_back(validation_loss);
  valid_score.push_back(validation);
}

StateDict History::state() const {
  return {{"train_loss", to_tensor(train_loss)},
          {"train_score", to_tensor(train_score)},
          {"valid_loss", to_tensor(valid_loss)},
          {"valid_score", to_tensor(valid_score)}};
}

History History::from(const StateDict& state) {
  History out{numbers_of(state, "train_loss"), numbers_of(state, "train_score"), numbers_of(state, "valid_loss"),
              numbers_of(state, "valid_score")};
  const size_t n = out.train_loss.size();
  check(out.train_score.size() == n && out.valid_loss.size() == n && out.valid_score.size() == n,
        "checkpoint: the curves have {}, {}, {} and {} points but need the same number", n, out.train_score.size(),
        out.valid_loss.size(), out.valid_score.size());
  return out;
}

}  // namespace tessera::apps
