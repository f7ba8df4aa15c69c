#include "tessera/core/error.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tessera::load_safetensors(tessera::fuzz::MemoryFile(data, size).path());
  } catch (const tessera::IoError&) {
  }
  return 0;
}
