#include "tessera/core/error.h"
#include "tessera/core/io/pickle.h"
#include "tessera/core/io/pickle_numpy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tessera::PickleOptions options{.globals = tessera::numpy_globals()};
    options.globals.push_back("scipy.sparse.csr csr_matrix");
    options.globals.push_back("collections OrderedDict");
    options.globals.push_back("torch._utils _rebuild_tensor_v2");
    const tessera::Pickle pickle({reinterpret_cast<const char*>(data), size}, "pickle", options);
    const tessera::PickleValue& root = pickle.root();
    tessera::find(root, "data");
    if (root.state != nullptr)
      if (const tessera::PickleValue* part = tessera::find(*root.state, "data"))
        tessera::numpy_array(*part, "pickle", "data");
    tessera::numpy_array(root, "pickle", "root");
  } catch (const tessera::IoError&) {
  }
  return 0;
}
