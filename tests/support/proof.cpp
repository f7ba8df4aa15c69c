#include "tessera/tests/support/proof.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "tessera/core/kernel.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/probe_kernels.h"

namespace tessera::test {

IsaProof isa_that_runs() {
  IsaProof proof{};
  run<ProbeKernel>(Device::cpu, {&proof.compiled_for, &proof.vector_bytes});
  return proof;
}

int vector_bytes(Isa isa) { return isa == Isa::avx512 ? 64 : isa == Isa::avx2 ? 32 : 16; }

int threads_that_run() {
  std::mutex mutex;
  std::condition_variable arrived;
  std::set<std::thread::id> ids;
  const int wanted = threads();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  parallel_for(int64_t{64} * wanted, 1, [&](int64_t, int64_t) {
    std::unique_lock lock(mutex);
    ids.insert(std::this_thread::get_id());
    arrived.notify_all();
    arrived.wait_until(lock, deadline, [&] { return int(ids.size()) >= wanted; });
  });
  return int(ids.size());
}

const std::vector<Isa>& isas() {
  static const std::vector<Isa> list = [] {
    std::vector<Isa> found;
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
      if (isa <= kBestBuiltIsa && is_supported(isa)) found.push_back(isa);
    return found;
  }();
  return list;
}

Restore::Restore() : isa_(active_isa()), threads_(threads()) {}

Restore::~Restore() {
  set_isa(isa_);
  set_threads(threads_);
}

}  // namespace tessera::test
