#pragma once

#include <vector>

#include "tessera/core/isa.h"

/// Evidence of what really ran, as opposed to what was asked for.
namespace tessera::test {

struct IsaProof {
  Isa compiled_for;  ///< the set that the kernel which was dispatched to was compiled for
  int vector_bytes;  ///< the register width its compiler flags gave it: 16, 32 or 64
};

/// Dispatches a kernel of the tests, compiled and chosen like every other, that reports on itself.
IsaProof isa_that_runs();

/// Bytes of a vector register of `isa`.
int vector_bytes(Isa isa);

/// How many different threads meet inside one parallel loop on the pool of `threads()`: each waits for the others, so
/// the answer does not depend on the load of the machine. Fewer than `threads()` after half a minute of waiting.
int threads_that_run();

/// The sets that this CPU and build can run, lowest first.
const std::vector<Isa>& isas();

/// Sets the instruction set and the thread count back at the end of a scope.
class Restore {
 public:
  Restore();
  ~Restore();
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  Isa isa_;
  int threads_;
};

}  // namespace tessera::test
