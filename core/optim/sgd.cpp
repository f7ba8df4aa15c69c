#include "tessera/core/optim/sgd.h"

#include <algorithm>

#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/optim/sgd_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kPiece = 1 << 14;

}  // namespace

Sgd::Sgd(std::vector<Group> groups, Options options) : options_(options), has_momentum_(options.momentum > 0) {
  check(options.lr >= 0, "sgd: lr is {} but needs to be 0 or more", options.lr);
  check(options.momentum >= 0 && options.momentum < 1, "sgd: momentum is {} but needs to be in [0, 1)", options.momentum);
  check(!options.nesterov || has_momentum_, "sgd: nesterov needs a momentum above 0");
  first_piece_.push_back(0);
  for (const Group& group : groups) {
    check(group.weight_decay >= 0, "sgd: weight_decay is {} but needs to be 0 or more", group.weight_decay);
    for (const Tensor& parameter : group.parameters) {
      check(parameter.defined() && parameter.requires_grad(), "sgd: parameter {} does not require a gradient",
            slots_.size());
      check<Unsupported>(parameter.dtype() == DType::f32 || parameter.dtype() == DType::f64,
                         "sgd: dtype {} is not supported, use f32 or f64", parameter.dtype());
      for (const Slot& slot : slots_)
        check(!slot.parameter.is(parameter), "sgd: parameter {} was given before, and would be updated twice",
              slots_.size());
      slots_.push_back({parameter,
                        has_momentum_ ? zeros(parameter.shape(), parameter.dtype(), parameter.device()) : Tensor(),
                        group.weight_decay});
      first_piece_.push_back(first_piece_.back() + (parameter.numel() + kPiece - 1) / kPiece);
    }
  }
}

void Sgd::step() {
  ++steps_;
  Scratch<SgdKernel::Args> wholes(int64_t(slots_.size()));
  int64_t elements = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    elements += slots_[i].parameter.numel();
    const Tensor grad = slot.parameter.grad();
    SgdKernel::Args& whole = wholes[int64_t(i)];
    whole = {slot.parameter.dtype() == DType::f64,
             options_.nesterov,
             0,
             0,
             nullptr,
             nullptr,
             nullptr,
             options_.lr,
             options_.momentum,
             slot.weight_decay};
    if (!grad.defined()) continue;
    whole.w = slot.parameter.mutable_raw();
    whole.g = grad.raw();
    whole.b = has_momentum_ ? slot.b.mutable_raw() : nullptr;
  }
  const Device device = slots_.empty() ? Device::cpu : slots_[0].parameter.device();
  const int64_t grain = elements <= 2 * kPiece ? first_piece_.back() : 2;  // many small parameters are one small job
  parallel_for(first_piece_.back(), grain, [&](int64_t begin, int64_t end) {
    size_t slot = size_t(std::upper_bound(first_piece_.begin(), first_piece_.end(), begin) - first_piece_.begin()) - 1;
    for (int64_t piece = begin; piece < end; ++piece) {
      while (piece >= first_piece_[slot + 1]) ++slot;
      SgdKernel::Args args = wholes[int64_t(slot)];
      if (args.g == nullptr) continue;
      args.begin = (piece - first_piece_[slot]) * kPiece;
      args.end = std::min(args.begin + kPiece, slots_[slot].parameter.numel());
      run<SgdKernel>(device, args);
    }
  });
}

void Sgd::clear_grad() {
  for (Slot& slot : slots_) slot.parameter.clear_grad();
}

StateDict Sgd::state() const {
  StateDict out;
  out["steps"] = Tensor::from<int64_t>({steps_}, Shape{});
  out["lr"] = Tensor::from<double>({options_.lr}, Shape{});
  for (size_t i = 0; has_momentum_ && i < slots_.size(); ++i) out["b." + std::to_string(i)] = slots_[i].b.detach();
  return out;
}

void Sgd::load_state(const StateDict& source) {
  StateDict own = state();
  copy_state(source, {own.begin(), own.end()}, "sgd");
  steps_ = own["steps"].data<int64_t>()[0];
  options_.lr = own["lr"].item();
}

}  // namespace tessera
