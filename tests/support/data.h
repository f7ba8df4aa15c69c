#pragma once
#include <cstdlib>
#include <filesystem>
namespace tessera {
inline std::filesystem::path shared_data() {
  const char* set = std::getenv("TESSERA_SHARED");
  std::filesystem::path path = set ? set : "/work/shared";
  return std::filesystem::exists(path / "data") ? path / "data" : std::filesystem::path();
}
}  // namespace tessera
