#include "tessera/core/simd.h"
#include "tessera/tests/support/probe_kernels.h"

namespace tessera::test {

template <Isa>
void ProbeKernel::cpu(const Args& args) {
  *args.compiled_for = kIsa;
  *args.vector_bytes = simd::kVectorBytes;  // from the compiler's own macros, not from the name
}
template void ProbeKernel::cpu<kIsa>(const Args&);

}  // namespace tessera::test
