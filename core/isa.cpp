#include "tessera/core/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tessera/core/device.h"
#include "tessera/core/error.h"

namespace tessera {

const char* name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

const char* name(Isa isa) {
  switch (isa) {
    case Isa::baseline: return "baseline";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "?";
}

#if defined(__x86_64__)
namespace {
/// clang's __builtin_cpu_supports knows no "f16c" before version 16.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
}  // namespace
#endif

bool is_supported(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::baseline: return true;
    case Isa::avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case Isa::avx512:
      return is_supported(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
#else
  return isa == Isa::baseline;
#endif
}

Isa parse_isa(const char* text) {
  std::string known;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (!is_supported(isa)) continue;
    if (std::strcmp(text, name(isa)) == 0) return isa;
    known += std::string(known.empty() ? "" : ", ") + name(isa);
  }
  fail("TESSERA_ISA is '{}' but this CPU has: {}", text, known);
}

namespace {

Isa initial_isa() {
  if (const char* wanted = std::getenv("TESSERA_ISA"); wanted != nullptr && *wanted != '\0') return parse_isa(wanted);
  for (Isa isa : {Isa::avx512, Isa::avx2})
    if (is_supported(isa)) return isa;
  return Isa::baseline;
}

std::atomic<int> forced{-1};

}  // namespace

Isa active_isa() {
  if (const int isa = forced.load(std::memory_order_relaxed); isa >= 0) return Isa(isa);
  static const Isa chosen = initial_isa();
  return chosen;
}

void set_isa(Isa isa) {
  check(is_supported(isa), "set_isa: this CPU lacks {}", name(isa));
  forced.store(int(isa), std::memory_order_relaxed);
}

}  // namespace tessera
