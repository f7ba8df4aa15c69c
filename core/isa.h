#pragma once

/// Instruction sets. Every CPU kernel file is compiled once per set; one is chosen at run time, outside the loops.
/// `TESSERA_ISA=baseline|avx2|avx512` in the environment lowers the choice; a value that this CPU lacks is an error.
namespace tessera {

enum class Isa { baseline, avx2, avx512 };

#if defined(__x86_64__)
inline constexpr Isa kBestBuiltIsa = Isa::avx512;
#else
inline constexpr Isa kBestBuiltIsa = Isa::baseline;
#endif

const char* name(Isa isa);

/// Whether this CPU and this build can run `isa`.
bool is_supported(Isa isa);

/// The set in use: the best supported one, or what TESSERA_ISA or `set_isa` says.
/// Errors: InvalidArgument when TESSERA_ISA names no set that this CPU has; the text lists those it has.
Isa active_isa();

/// For tests: switches the set; not while kernels run. Errors: InvalidArgument when unsupported.
void set_isa(Isa isa);

/// The set named `text`. Errors as `active_isa`.
Isa parse_isa(const char* text);

/// Calls `f.template operator()<isa>()` for the active set.
template <class F>
inline decltype(auto) with_isa(F&& f) {
#if defined(__x86_64__)
  switch (active_isa()) {
    case Isa::avx512: return f.template operator()<Isa::avx512>();
    case Isa::avx2: return f.template operator()<Isa::avx2>();
    case Isa::baseline: break;
  }
#endif
  return f.template operator()<Isa::baseline>();
}

}  // namespace tessera
