#include "tessera/core/error.h"
#include "tessera/core/io/csv.h"
#include "tessera/datasets/graph/csv_graph.h"
#include "tessera/tests/fuzz/memory_file.h"

// The input up to a byte 1 is the edge list, the rest the node table; without that byte there is no node table.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t cut = 0;
  while (cut < size && data[cut] != 1) ++cut;
  const tessera::fuzz::MemoryFile edges(data, cut), nodes(data + cut + (cut < size), size - cut - (cut < size));
  try {
    tessera::load_csv_graph(edges.path(), cut < size ? nodes.path() : "");
  } catch (const tessera::IoError&) {
  }
  return 0;
}
