// The only file that calls oneDNN for matrix products, so that 2.x and 3.x both serve.

#include <dnnl.h>

#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/matmul_kernels.h"

// oneDNN of Debian is built on GNU OpenMP. One thread each: the tiles are what runs in parallel, on our pool.
extern "C" void omp_set_num_threads(int);

namespace tessera {
namespace {

/// oneDNN follows TESSERA_ISA as it stood at the first product; it cannot change afterwards.
bool limit_isa() {
  switch (active_isa()) {
    case Isa::baseline: dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41); break;
    case Isa::avx2: dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2); break;
    case Isa::avx512: break;
  }
  return true;
}

}  // namespace

void onednn_sgemm(const GemmArgs& g) {
  static const bool limited = limit_isa();
  (void)limited;
  thread_local const bool single = (omp_set_num_threads(1), true);
  (void)single;
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.0f, static_cast<const float*>(g.a),
                 g.lda, static_cast<const float*>(g.b), g.ldb, 0.0f, static_cast<float*>(g.c), g.ldc);
  check<InternalError>(status == dnnl_success, "matmul: oneDNN refused a product of {} x {} x {} with status {}", g.m, g.n,
                       g.k, int(status));
}

}  // namespace tessera
