#include "tessera/core/error.h"
#include "tessera/core/io/torch_file.h"
#include "tessera/tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tessera::model_state(tessera::load_torch_file(tessera::fuzz::MemoryFile(data, size).path(),
                                                  {.max_bytes = 1 << 26, .max_entries = 1 << 14}));
  } catch (const tessera::IoError&) {
  }
  return 0;
}
