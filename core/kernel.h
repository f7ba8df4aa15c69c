#pragma once

#include "tessera/core/device.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"

/// Choice of a kernel by device and instruction set. A kernel is a struct:
///
///     struct ReluKernel {                                  // core/ops/relu_kernels.h
///       struct Args { const float* x; float* y; int64_t count; };
///       static constexpr const char* name = "relu";
///       template <Isa> static void cpu(const Args&);       // defined in relu_cpu.cpp, compiled once per set
///       static inline void (*cuda)(const Args&) = nullptr; // filled when the CUDA plugin is loaded
///     };
///
/// and `run<ReluKernel>(device, args)` calls the right one.
namespace tessera {

template <class Kernel>
inline void run(Device device, const typename Kernel::Args& args) {
  if (device == Device::cuda) {
    check<Unsupported>(Kernel::cuda != nullptr, "{}: device cuda needs the CUDA plugin, which is not loaded", Kernel::name);
    Kernel::cuda(args);
    return;
  }
  with_isa([&]<Isa isa>() { Kernel::template cpu<isa>(args); });
}

}  // namespace tessera
