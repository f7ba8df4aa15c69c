#include "tessera/core/optim/adam.h"

#include <algorithm>
#include <cmath>

#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/optim/adam_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {

Adam::Adam(std::vector<Group> groups, Options options) : options_(options) {
  check(options.lr >= 0 && options.eps >= 0, "adam: lr is {} and eps {} but both need to be 0 or more", options.lr,
        options.eps);
  check(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
        "adam: beta1 is {} and beta2 {} but both need to be in [0, 1)", options.beta1, options.beta2);
  for (const Group& group : groups) {
    check(group.weight_decay >= 0, "adam: weight_decay is {} but needs to be 0 or more", group.weight_decay);
    for (const Tensor& parameter : group.parameters) {
      check(parameter.defined() && parameter.requires_grad(), "adam: parameter {} does not require a gradient",
            slots_.size());
      check<Unsupported>(parameter.dtype() == DType::f32 || parameter.dtype() == DType::f64,
                         "adam: dtype {} is not supported, use f32 or f64", parameter.dtype());
      slots_.push_back({parameter, zeros(parameter.shape(), parameter.dtype(), parameter.device()),
                        zeros(parameter.shape(), parameter.dtype(), parameter.device()), group.weight_decay});
    }
  }
}

void Adam::step() {
  ++steps_;
  const double t = double(steps_), step_size = options_.lr / (1 - std::pow(options_.beta1, t)),
               inverse_root = 1 / std::sqrt(1 - std::pow(options_.beta2, t));
  // Every parameter is cut into pieces, and all pieces run as one loop: small parameters cost no fork each.
  constexpr int64_t kPiece = 1 << 14;
  std::vector<AdamKernel::Args> pieces;
  int64_t elements = 0;
  pieces.reserve(slots_.size() * 2);
  Device device = Device::cpu;
  for (Slot& slot : slots_) {
    const Tensor grad = slot.parameter.grad();
    if (!grad.defined()) continue;
    device = slot.parameter.device();
    elements += slot.parameter.numel();
    const AdamKernel::Args whole{slot.parameter.dtype() == DType::f64,
                                 0,
                                 0,
                                 slot.parameter.mutable_raw(),
                                 grad.raw(),
                                 slot.m.mutable_raw(),
                                 slot.v.mutable_raw(),
                                 options_.beta1,
                                 options_.beta2,
                                 options_.eps,
                                 slot.weight_decay,
                                 step_size,
                                 inverse_root};
    for (int64_t begin = 0; begin < slot.parameter.numel(); begin += kPiece) {
      AdamKernel::Args piece = whole;
      piece.begin = begin;
      piece.end = std::min(begin + kPiece, slot.parameter.numel());
      pieces.push_back(piece);
    }
  }
  const int64_t grain = elements <= 2 * kPiece ? int64_t(pieces.size()) : 2;
  parallel_for(int64_t(pieces.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run<AdamKernel>(device, pieces[size_t(i)]);
  });
}

StateDict Adam::state() const {
  StateDict out{{"steps", Tensor::from({steps_}, Shape{1})}};
  for (size_t i = 0; i < slots_.size(); ++i) {
    out.emplace("m." + std::to_string(i), slots_[i].m);
    out.emplace("v." + std::to_string(i), slots_[i].v);
  }
  return out;
}

void Adam::load_state(const StateDict& state) {
  const StateDict own = this->state();
  copy_state(state, {own.begin(), own.end()});
  steps_ = own.at("steps").data<int64_t>()[0];
}

void Adam::clear_grad() {
  for (Slot& slot : slots_) slot.parameter.clear_grad();
}

}  // namespace tessera
