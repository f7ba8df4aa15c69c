#include "tessera/core/error.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/optim/adam.h"
#include "tessera/tests/fuzz/memory_file.h"

namespace {

struct Model {
  tessera::Tensor weight = tessera::Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}).set_requires_grad();
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
  }
};

/// Takes what a resumed run takes; whatever does not fit must be refused before anything is changed.
void resume(const tessera::Checkpoint& checkpoint) {
  Model model;
  tessera::Adam optimiser(tessera::parameters(model), {});
  tessera::Generator random(0);
  try {
    tessera::restore(checkpoint, model, optimiser, random);
  } catch (const tessera::InvalidArgument&) {
  }
  for (const char* name : {"run", "epoch", "lr", "plateau.best"}) {
    try {
      checkpoint.integer(name);
    } catch (const tessera::InvalidArgument&) {
    }
    try {
      checkpoint.number(name);
    } catch (const tessera::InvalidArgument&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tessera::fuzz::MemoryFile file(data, size);
  try {
    resume(tessera::load_checkpoint(file.path()));
  } catch (const tessera::IoError&) {
  }
  // The digest keeps a fuzzer out of what lies behind it: without it, too.
  try {
    tessera::SafeTensors parts = tessera::load_safetensors(file.path());
    resume({std::move(parts.tensors), std::move(parts.metadata)});
  } catch (const tessera::IoError&) {
  }
  return 0;
}
