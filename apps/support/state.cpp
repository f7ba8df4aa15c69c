#include "tessera/apps/support/state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/core/io/sha256.h"

namespace tessera::apps {
namespace {

Tensor copy_of(const Tensor& x) {
  Tensor out = Tensor::empty(x.shape(), x.dtype());
  if (x.numel() > 0) std::memcpy(out.mutable_raw(), x.raw(), size_t(x.numel()) * size_of(x.dtype()));
  return out;
}

}  // namespace

StateDict copies_of(const StateDict& state) {
  StateDict out;
  for (const auto& [name, tensor] : state) out.emplace(name, copy_of(tensor));
  return out;
}

std::string digest_of(const StateDict& weights) {
  Sha256 hash;
  for (const auto& [name, tensor] : weights) {
    const std::string head = name + " " + to_text(tensor.dtype()) + " " + to_text(tensor.shape()) + "\n";
    hash.update(head.data(), head.size());
    hash.update(tensor.raw(), size_t(tensor.numel()) * size_of(tensor.dtype()));
  }
  return hash.hex();
}

bool all_finite(const Tensor& x) {
  if (!is_floating(x.dtype())) return true;
  const auto values = x.span<float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace tessera::apps
