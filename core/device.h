#pragma once

#include <cstdint>

namespace tessera {

/// Where a tensor's memory is and its kernels run. `cuda` needs the CUDA plugin; without it asking is Unsupported.
enum class Device : uint8_t { cpu, cuda };

const char* name(Device device);

}  // namespace tessera
