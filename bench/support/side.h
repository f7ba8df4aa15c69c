#pragma once

#include <cstdint>
#include <functional>

#include "tessera/bench/support/bench.h"

/// What our sides of the scripts in bench/peers share.
namespace tessera::bench {

/// Element (i, j) of every input: the same numbers on every side, in [-1, 1), few of them equal. `salt` tells arrays apart.
float element(int64_t i, int64_t j, uint32_t salt);

/// Peak resident memory of this process since it began, or since the last reset, which needs no privilege.
int64_t peak_bytes();
void reset_peak_bytes();

/// One call unmeasured, after which the peak is reset; then calls one by one, one at least, until `budget` seconds are used
/// up. `processor_time` counts that of all threads instead of the time that passes.
Timing time_calls(const std::function<void()>& call, double budget, bool processor_time);

}  // namespace tessera::bench
