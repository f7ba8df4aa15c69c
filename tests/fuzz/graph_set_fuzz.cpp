#include "tessera/core/error.h"
#include "tessera/datasets/graph_set/gin_text.h"
#include "tessera/datasets/graph_set/ogb_graphs.h"
#include "tessera/datasets/graph_set/tu.h"

// Files as "name, byte 2, content", with a byte 1 between them. The readers take those whose form they are of.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::map<std::string, std::string> contents;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(input.find('\1', begin), size);
    const std::string_view file = input.substr(begin, end - begin);
    const size_t cut = std::min(file.find('\2'), file.size());
    contents[std::string(file.substr(0, cut))] = std::string(file.substr(std::min(cut + 1, file.size())));
    begin = end + 1;
  }
  for (const bool unlisted : {false, true}) try {
      tessera::FileSource files("S", contents);
      tessera::GraphSet set;
      if (tessera::is_tu(files)) set = tessera::load_tu(files);
      if (tessera::is_gin_text(files)) set = tessera::load_gin_text(files);
      if (tessera::is_ogb_graphs(files)) set = tessera::load_ogb_graphs(files, unlisted ? "own" : "ogbg-molhiv");
      if (set.num_graphs() == 0 || set.node_label_values.size() > 8) continue;
      // Labels may ask for wide rows; what a set says of itself must hold.
      if (!set.x.defined() || set.x.dtype() == tessera::DType::f32)
        tessera::choose_features(set, tessera::GraphFeatures::constant);
      const int32_t ids[] = {0, int32_t(set.num_graphs() - 1)};
      set.sample(ids);
    } catch (const tessera::IoError&) {
    }
  return 0;
}
