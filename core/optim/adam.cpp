#include "tessera/core/optim/adam.h"

#include <algorithm>
#include <cmath>

#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/optim/adam_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

// Every parameter is cut into pieces, and all pieces run as one loop: small parameters cost no fork each.
constexpr int64_t kPiece = 1 << 14;

}  // namespace

Adam::Adam(std::vector<Group> groups, Options options) : options_(options) {
  check(options.lr >= 0 && options.eps >= 0, "adam: lr is {} and eps {} but both need to be 0 or more", options.lr,
        options.eps);
  check(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
        "adam: beta1 is {} and beta2 {} but both need to be in [0, 1)", options.beta1, options.beta2);
  first_piece_.push_back(0);
  for (const Group& group : groups) {
    check(group.weight_decay >= 0, "adam: weight_decay is {} but needs to be 0 or more", group.weight_decay);
    for (const Tensor& parameter : group.parameters) {
      check(parameter.defined() && parameter.requires_grad(), "adam: parameter {} does not require a gradient",
            slots_.size());
      check<Unsupported>(parameter.dtype() == DType::f32 || parameter.dtype() == DType::f64,
                         "adam: dtype {} is not supported, use f32 or f64", parameter.dtype());
      for (const Slot& slot : slots_)
        check(!slot.parameter.is(parameter), "adam: parameter {} was given before, and would be updated twice",
              slots_.size());
      slots_.push_back({parameter, zeros(parameter.shape(), parameter.dtype(), parameter.device()),
                        zeros(parameter.shape(), parameter.dtype(), parameter.device()), group.weight_decay});
      first_piece_.push_back(first_piece_.back() + (parameter.numel() + kPiece - 1) / kPiece);
    }
  }
}

void Adam::step() {
  ++steps_;
  const double t = double(steps_), step_size = options_.lr / (1 - std::pow(options_.beta1, t)),
               inverse_root = 1 / std::sqrt(1 - std::pow(options_.beta2, t));
  Scratch<AdamKernel::Args> wholes(int64_t(slots_.size()));
  int64_t elements = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    elements += slot.parameter.numel();
    const Tensor grad = slot.parameter.grad();
    const double decay = slot.weight_decay;
    wholes[int64_t(i)] = {slot.parameter.dtype() == DType::f64,
                          0,
                          0,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          options_.beta1,
                          options_.beta2,
                          options_.eps,
                          options_.decoupled ? 0 : decay,
                          options_.decoupled ? 1 - options_.lr * decay : 1,
                          step_size,
                          inverse_root};
    if (!grad.defined()) continue;
    AdamKernel::Args& whole = wholes[int64_t(i)];
    whole.w = slot.parameter.mutable_raw();
    whole.g = grad.raw();
    whole.m = slot.m.mutable_raw();
    whole.v = slot.v.mutable_raw();
  }
  const Device device = slots_.empty() ? Device::cpu : slots_[0].parameter.device();
  const int64_t grain = elements <= 2 * kPiece ? first_piece_.back() : 2;  // many small parameters are one small job
  parallel_for(first_piece_.back(), grain, [&](int64_t begin, int64_t end) {
    size_t slot = size_t(std::upper_bound(first_piece_.begin(), first_piece_.end(), begin) - first_piece_.begin()) - 1;
    for (int64_t piece = begin; piece < end; ++piece) {
      while (piece >= first_piece_[slot + 1]) ++slot;
      AdamKernel::Args args = wholes[int64_t(slot)];
      if (args.g == nullptr) continue;
      args.begin = (piece - first_piece_[slot]) * kPiece;
      args.end = std::min(args.begin + kPiece, slots_[slot].parameter.numel());
      run<AdamKernel>(device, args);
    }
  });
}

void Adam::clear_grad() {
  for (Slot& slot : slots_) slot.parameter.clear_grad();
}

StateDict Adam::state() const {
  StateDict out;
  out["steps"] = Tensor::from<int64_t>({steps_}, Shape{});
  out["lr"] = Tensor::from<double>({options_.lr}, Shape{});
  for (size_t i = 0; i < slots_.size(); ++i) {
    out["m." + std::to_string(i)] = slots_[i].m.detach();
    out["v." + std::to_string(i)] = slots_[i].v.detach();
  }
  return out;
}

void Adam::load_state(const StateDict& source) {
  StateDict own = state();
  copy_state(source, {own.begin(), own.end()}, "adam");
  steps_ = own["steps"].data<int64_t>()[0];
  options_.lr = own["lr"].item();
}

}  // namespace tessera
