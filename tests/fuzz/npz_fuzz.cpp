#include "tessera/core/error.h"
#include "tessera/core/io/npy.h"
#include "tessera/tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tessera::parse_npy({reinterpret_cast<const char*>(data), size}, "npy");
  } catch (const tessera::IoError&) {
  }
  try {
    const tessera::fuzz::MemoryFile file(data, size);
    const tessera::NpzFile npz(file.path());
    for (const std::string& name : npz.names()) {
      try {
        npz.read(name);
      } catch (const tessera::IoError&) {
      }
    }
  } catch (const tessera::IoError&) {
  }
  return 0;
}
