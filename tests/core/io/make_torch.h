#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/tensor.h"
#include "tessera/tests/core/io/make_zip.h"

/// Files as torch.save makes them, put together by hand.
namespace tessera {

/// Pickled values.
namespace pickled {

using namespace std::string_literals;

inline std::string text(const std::string& s) { return "X" + little_endian(uint32_t(s.size())) + s; }
inline std::string number(int64_t n) { return "\x8a\x08"s + little_endian(uint64_t(n)); }
inline std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
inline std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}
inline std::string tuple_of(const std::vector<int64_t>& numbers) {
  std::vector<std::string> items;
  for (const int64_t n : numbers) items.push_back(number(n));
  return tuple(items);
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "}(";
  for (const auto& [key, value] : entries) out += text(key) + value;
  return out + "u";
}
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

inline std::string storage(int64_t count, const std::string& type = "FloatStorage", const std::string& key = "0",
                           const std::string& part = "") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(count), part}) + "Q";
}
inline std::string tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({storage, number(offset), tuple_of(sizes), tuple_of(strides), "\x89", "}"}) + "R";
}

}  // namespace pickled

/// The older stream around a pickled object, the keys of its storages, and these one after the other.
inline std::string torch_stream(const std::string& object, const std::vector<std::string>& keys,
                                const std::string& storages) {
  std::string list = "](";
  for (const std::string& key : keys) list += pickled::text(key);
  return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.") + pickled::pickle("M\xe9\x03") +
         pickled::pickle("}") + pickled::pickle(object) + pickled::pickle(list + "e") + storages;
}

/// A state dict of f32 and i64 tensors as torch.save writes it in a zip.
inline std::string torch_zip(const std::map<std::string, Tensor>& state) {
  std::vector<std::pair<std::string, std::string>> entries, members;
  for (const auto& [name, tensor] : state) {
    const std::string key = std::to_string(entries.size());
    std::vector<int64_t> sizes, strides;
    for (int i = 0; i < tensor.ndim(); ++i) sizes.push_back(tensor.dim(i));
    int64_t stride = 1;
    for (int i = tensor.ndim(); i-- > 0; stride *= tensor.dim(i)) strides.insert(strides.begin(), stride);
    const char* type = tensor.dtype() == DType::i64 ? "LongStorage" : "FloatStorage";
    entries.emplace_back(name, pickled::tensor(pickled::storage(tensor.numel(), type, key), 0, sizes, strides));
    members.emplace_back("archive/data/" + key, std::string(static_cast<const char*>(tensor.raw()),
                                                            size_t(tensor.numel()) * size_of(tensor.dtype())));
  }
  members.insert(members.begin(), {"archive/data.pkl", pickled::pickle(pickled::dict(entries))});
  return make_zip(members);
}

}  // namespace tessera
