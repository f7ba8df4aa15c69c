#pragma once

#include <cstdint>

/// How messages that meet at a row are combined; said once for every kernel. No std header: kernel files include it.
namespace tessera {

/// Of an empty row: sum, mean, max and min give 0 (winner -1), mul gives 1.
/// max and min: NaN wins over every number; among equal winners the lowest original edge id wins, and gets the whole
/// gradient.
enum class Reduce : uint8_t { sum, mean, max, min, mul };

/// "sum", "mean", "max", "min" or "mul".
constexpr const char* name(Reduce reduce) {
  switch (reduce) {
    case Reduce::sum: return "sum";
    case Reduce::mean: return "mean";
    case Reduce::max: return "max";
    case Reduce::min: return "min";
    case Reduce::mul: return "mul";
  }
  return "?";
}

}  // namespace tessera
