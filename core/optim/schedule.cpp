#include "tessera/core/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "tessera/core/error.h"

namespace tessera {

double StepSchedule::at(int64_t epoch) const {
  check(every >= 1, "step schedule: every is {} but needs to be 1 or more", every);
  return lr * std::pow(gamma, double(epoch / every));
}

double CosineSchedule::at(int64_t epoch) const {
  check(total >= 1, "cosine schedule: total is {} but needs to be 1 or more", total);
  const double part = double(std::clamp<int64_t>(epoch, 0, total)) / double(total);
  return least + (lr - least) * (1 + std::cos(3.14159265358979323846 * part)) / 2;
}

double WarmUp::at(int64_t step) const {
  return step >= steps ? 1 : start + (1 - start) * double(std::max<int64_t>(step, 0)) / double(steps);
}

double Plateau::update(double metric) {
  const double margin = std::isfinite(best) ? threshold * std::fabs(best) : 0;
  const bool better =
      !std::isnan(metric) && (!has_best || (larger_is_better ? metric > best + margin : metric < best - margin));
  if (better) {
    best = metric;
    has_best = true;
    bad_epochs = 0;
  } else {
    ++bad_epochs;
  }
  if (cooling > 0) {
    --cooling;
    bad_epochs = 0;
  }
  if (bad_epochs > patience) {
    lr = std::max(lr * factor, least);
    cooling = cooldown;
    bad_epochs = 0;
  }
  return lr;
}

}  // namespace tessera
