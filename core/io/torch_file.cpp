#include "tessera/core/io/torch_file.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/numpy_dtype.h"
#include "tessera/core/io/pickle.h"
#include "tessera/core/io/zip.h"

namespace tessera {
namespace {

using Kind = PickleValue::Kind;

// A storage type as pickles name it, and its elements as numpy would (bf16 has no such name).
struct StorageType {
  const char* global;
  const char* numpy;
  int64_t bytes;
};

constexpr StorageType kStorageTypes[] = {
    {"torch FloatStorage", "<f4", 4}, {"torch DoubleStorage", "<f8", 8}, {"torch HalfStorage", "<f2", 2},
    {"torch BFloat16Storage", "", 2}, {"torch LongStorage", "<i8", 8},   {"torch IntStorage", "<i4", 4},
    {"torch ShortStorage", "<i2", 2}, {"torch CharStorage", "|i1", 1},   {"torch ByteStorage", "|u1", 1},
    {"torch BoolStorage", "|b1", 1},
};

PickleOptions pickle_options() {
  PickleOptions options{.globals = {"collections OrderedDict", "torch._utils _rebuild_tensor",
                                    "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"}};
  for (const StorageType& type : kStorageTypes) options.globals.push_back(type.global);
  return options;
}

// One storage of the file: what the references to it say, and its elements once they are read.
struct StoredArray {
  const StorageType* type = nullptr;
  int64_t count = 0;  // elements
  Tensor elements;
};

// A tensor as the pickle describes it.
struct View {
  std::string name;
  const PickleValue* value = nullptr;  // the same for two names of one tensor
  StoredArray* storage = nullptr;
  int64_t offset = 0, count = 0;
  std::vector<int64_t> sizes, strides;
};

bool is_text(const PickleValue& value) { return value.kind == Kind::text || value.kind == Kind::bytes; }

// Reads the tensors that a pickle describes and which storages they lie in; the elements come after.
class Description {
 public:
  Description(const std::string& path, const TorchFileOptions& options) : path_(path), options_(options) {}

  // Depth first without recursion. A dict that contains itself ends at the depth, one that doubles at each level at the
  // count of entries.
  void read(const PickleValue& root) {
    struct Level {
      std::vector<const PickleValue*> items;
      bool keyed;  // key, value, key, value, ...
      size_t at;
      size_t name_bytes;  // of `name` before this level
    };
    std::string name;
    std::vector<Level> levels;
    const auto enter = [&](const PickleValue& value, size_t name_bytes) {
      if (is_container(value)) {
        check<IoError>(levels.size() < kMostDepth, "{}: nests more than {} dicts or lists", path_, kMostDepth);
        const bool keyed = value.kind == Kind::dict || value.kind == Kind::object;
        check_entries(value.items.size() / (keyed ? 2 : 1));
        levels.push_back({items_of(value), keyed, 0, name_bytes});
        const size_t entries = levels.back().items.size() / (keyed ? 2 : 1);
        check_entries(entries);
        entries_ += int64_t(entries);
      } else {
        if (const PickleValue* tensor = tensor_of(value)) add(name, *tensor);
        name.resize(name_bytes);
      }
    };
    enter(root, 0);
    while (!levels.empty()) {
      Level& level = levels.back();
      if (level.at >= level.items.size()) {
        name.resize(level.name_bytes);
        levels.pop_back();
        continue;
      }
      const size_t before = name.size();
      if (levels.size() > 1) name += '.';
      name += level.keyed ? key_of(*level.items[level.at]) : std::to_string(level.at);
      check<IoError>(name.size() <= kMostNameBytes, "{}: the name '{}' has {} bytes, at most {} are read", path_,
                     printable(name), name.size(), kMostNameBytes);
      const PickleValue& value = *level.items[level.at + (level.keyed ? 1 : 0)];
      level.at += level.keyed ? 2 : 1;
      enter(value, before);
    }
  }

  std::vector<View> views;
  std::map<std::string, StoredArray> storages;  // by key

 private:
  static constexpr size_t kMostDepth = 32, kMostNameBytes = 1000;

  static bool is_container(const PickleValue& value) {
    return value.kind == Kind::dict || value.kind == Kind::list || value.kind == Kind::tuple ||
           is_call(value, "collections OrderedDict");
  }

  // Python 2 makes an OrderedDict by a call with a list of pairs, later ones set its entries.
  std::vector<const PickleValue*> items_of(const PickleValue& value) const {
    if (value.kind != Kind::object || value.args->items.empty()) return value.items;
    const PickleValue& pairs = *value.args->items[0];
    std::vector<const PickleValue*> out;
    bool valid = pairs.kind == Kind::list && value.args->items.size() == 1;
    if (valid) check_entries(pairs.items.size());
    for (size_t i = 0; valid && i < pairs.items.size(); ++i) {
      const PickleValue& pair = *pairs.items[i];
      valid = (pair.kind == Kind::list || pair.kind == Kind::tuple) && pair.items.size() == 2;
      if (valid) out.insert(out.end(), pair.items.begin(), pair.items.end());
    }
    check<IoError>(valid, "{}: has an OrderedDict that is not made of pairs", path_);
    out.insert(out.end(), value.items.begin(), value.items.end());
    return out;
  }

  void check_entries(size_t more) const {
    check<IoError>(int64_t(more) <= options_.max_entries - entries_, "{}: has more than {} entries", path_,
                   options_.max_entries);
  }

  std::string key_of(const PickleValue& key) const {
    if (key.kind == Kind::integer) return std::to_string(key.integer);
    check<IoError>(is_text(key), "{}: a dict has a key of type {}, expected str or int", path_, name(key.kind));
    return std::string(key.text);
  }

  // The call that rebuilds a tensor, out of a parameter too; null for anything that is no tensor.
  static const PickleValue* tensor_of(const PickleValue& value) {
    const PickleValue* tensor = &value;
    if (is_call(value, "torch._utils _rebuild_parameter") && !value.args->items.empty()) tensor = value.args->items[0];
    const bool rebuilt =
        is_call(*tensor, "torch._utils _rebuild_tensor_v2") || is_call(*tensor, "torch._utils _rebuild_tensor");
    return rebuilt ? tensor : nullptr;
  }

  void add(const std::string& name, const PickleValue& call) {
    if (const auto known = known_.find(&call); known != known_.end()) {
      View again = views[known->second];
      again.name = name;
      views.push_back(std::move(again));
      return;
    }
    known_.emplace(&call, views.size());
    const std::vector<const PickleValue*>& args = call.args->items;
    check<IoError>(args.size() >= 4 && args[0]->kind == Kind::persistent && args[1]->kind == Kind::integer &&
                       args[2]->kind == Kind::tuple && args[3]->kind == Kind::tuple,
                   "{}: tensor '{}' is not described by (storage, offset, sizes, strides, ...)", path_, printable(name));
    View view{.name = name, .value = &call, .offset = args[1]->integer};
    view.storage = &storage_of(*args[0]->args, name, view.offset);
    view.sizes = integers(*args[2], name, "sizes");
    view.strides = integers(*args[3], name, "strides");
    check<IoError>(view.sizes.size() == view.strides.size(), "{}: tensor '{}' has {} sizes but {} strides", path_,
                   printable(name), view.sizes.size(), view.strides.size());
    check<IoError>(view.sizes.size() <= size_t(Shape::kMaxDims), "{}: tensor '{}' has {} dimensions, at most {} are read",
                   path_, printable(name), view.sizes.size(), Shape::kMaxDims);
    check_range(view);
    views.push_back(std::move(view));
  }

  std::vector<int64_t> integers(const PickleValue& tuple, const std::string& name, const char* what) const {
    std::vector<int64_t> out;
    for (const PickleValue* item : tuple.items) {
      check<IoError>(item->kind == Kind::integer && item->integer >= 0,
                     "{}: tensor '{}' has {} that are not integers, 0 or more", path_, printable(name), what);
      out.push_back(item->integer);
    }
    return out;
  }

  // ("storage", type, key, device, count), in the older form with (view key, offset, count) or None after it: a storage
  // that is a part of another, whose count stands before it.
  StoredArray& storage_of(const PickleValue& id, const std::string& name, int64_t& offset) {
    const std::vector<const PickleValue*>& items = id.items;
    check<IoError>(id.kind == Kind::tuple && items.size() >= 5 && is_text(*items[0]) && items[0]->text == "storage" &&
                       items[1]->kind == Kind::global && is_text(*items[2]) && items[4]->kind == Kind::integer &&
                       items[4]->integer >= 0,
                   "{}: tensor '{}' has a storage that is not ('storage', type, key, device, count)", path_,
                   printable(name));
    const auto type = std::find_if(std::begin(kStorageTypes), std::end(kStorageTypes),
                                   [&](const StorageType& known) { return items[1]->text == known.global; });
    check<IoError>(type != std::end(kStorageTypes), "{}: tensor '{}' has a storage of type '{}'", path_, printable(name),
                   printable(items[1]->text));
    const std::string key(items[2]->text);
    StoredArray& storage = storages[key];
    if (storage.type == nullptr) {
      storage.type = type;
      storage.count = items[4]->integer;
    }
    check<IoError>(storage.type == type && storage.count == items[4]->integer,
                   "{}: storage '{}' is {} elements of {} for one tensor but {} of {} for '{}'", path_, printable(key),
                   storage.count, storage.type->global, items[4]->integer, type->global, printable(name));
    if (items.size() > 5 && items[5]->kind == Kind::tuple) {
      const std::vector<const PickleValue*>& part = items[5]->items;
      check<IoError>(part.size() == 3 && part[1]->kind == Kind::integer && part[1]->integer >= 0 &&
                         part[1]->integer <= storage.count && offset >= 0 && offset <= storage.count,
                     "{}: tensor '{}' has a storage that is a part of '{}' beyond its {} elements", path_, printable(name),
                     printable(key), storage.count);
      offset += part[1]->integer;
    }
    return storage;
  }

  void check_range(View& view) const {
    const int64_t in_storage = view.storage->count;
    view.count = 1;
    bool fits = view.offset >= 0;
    for (const int64_t size : view.sizes)
      if (size == 0) view.count = 0;
    if (view.count == 0) {
      // Shape wants a product of the other sizes that fits.
      int64_t product = 1;
      for (const int64_t size : view.sizes) fits = fits && (size == 0 || !__builtin_mul_overflow(product, size, &product));
      check<IoError>(fits, "{}: tensor '{}' has sizes beyond 2^63 - 1", path_, printable(view.name));
      return;
    }
    int64_t last = view.offset;
    for (size_t i = 0; i < view.sizes.size() && fits; ++i) {
      int64_t step = 0;
      fits = !__builtin_mul_overflow(view.sizes[i] - 1, view.strides[i], &step) &&
             !__builtin_add_overflow(last, step, &last) && !__builtin_mul_overflow(view.count, view.sizes[i], &view.count);
    }
    check<IoError>(fits && last < in_storage, "{}: tensor '{}' reaches beyond the {} elements of its storage", path_,
                   printable(view.name), in_storage);
    check<IoError>(view.count <= in_storage,
                   "{}: tensor '{}' has {} elements but its storage only {}: an expanded tensor, save its contiguous()",
                   path_, printable(view.name), view.count, in_storage);
  }

  const std::string& path_;
  const TorchFileOptions& options_;
  int64_t entries_ = 0;
  std::unordered_map<const PickleValue*, size_t> known_;  // positions in `views`
};

// Bytes of a storage as a tensor of one dimension.
Tensor elements_of(const StoredArray& storage, const char* bytes, bool big_endian, const std::string& where) {
  if (storage.type->numpy[0] == '\0') {
    Tensor out = Tensor::empty({storage.count}, DType::bf16);
    uint8_t* to = static_cast<uint8_t*>(out.mutable_raw());
    if (storage.count > 0) std::memcpy(to, bytes, size_t(storage.count) * 2);
    for (int64_t i = 0; big_endian && i < storage.count; ++i) std::swap(to[2 * i], to[2 * i + 1]);
    return out;
  }
  NumpyDType dtype = NumpyDType::parse(storage.type->numpy);
  dtype.big_endian = big_endian;
  return numpy_tensor(dtype, {storage.count}, false, bytes, where);
}

int64_t bytes_of(const StoredArray& storage, const std::string& path, const std::string& key) {
  int64_t bytes = 0;
  check<IoError>(!__builtin_mul_overflow(storage.count, storage.type->bytes, &bytes),
                 "{}: storage '{}' has {} elements, more than 2^63 - 1 bytes", path, printable(key), storage.count);
  return bytes;
}

bool row_major(const View& view) {
  int64_t stride = 1;
  for (size_t i = view.sizes.size(); i-- > 0;) {
    if (view.sizes[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.sizes[i];
  }
  return true;
}

template <class T>
void pack(const View& view, const T* from, T* to) {
  const int dims = int(view.sizes.size());
  int64_t at[Shape::kMaxDims] = {};
  int64_t source = view.offset;
  for (int64_t i = 0; i < view.count; ++i) {
    to[i] = from[source];
    for (int d = dims - 1; d >= 0; --d) {
      source += view.strides[size_t(d)];
      if (++at[d] < view.sizes[size_t(d)]) break;
      source -= view.strides[size_t(d)] * at[d];
      at[d] = 0;
    }
  }
}

Tensor tensor_of(const View& view) {
  const Tensor& all = view.storage->elements;
  const Shape shape(view.sizes.data(), int(view.sizes.size()));
  if (view.count == 0) return Tensor::empty(shape, all.dtype());
  if (row_major(view)) return all.view_rows(view.offset, view.offset + view.count).view_as(shape);
  Tensor out = Tensor::empty(shape, all.dtype());
  with_any(all.dtype(), [&]<class T>() { pack(view, all.data<T>(), out.mutable_data<T>()); });
  return out;
}

std::map<std::string, Tensor> tensors_of(const Description& what, const std::string& path, uint64_t file_bytes) {
  std::map<std::string, Tensor> out;
  std::unordered_map<const PickleValue*, Tensor> made;
  // Packed copies of one storage could be as many as there are tensors. No model needs more than a few.
  uint64_t packed = 0;
  const uint64_t most_packed = 8 * file_bytes;
  for (const View& view : what.views) {
    Tensor& tensor = made[view.value];
    if (!tensor.defined()) {
      if (!row_major(view)) packed += uint64_t(view.count) * size_of(view.storage->elements.dtype());
      check<IoError>(packed <= most_packed, "{}: tensors that are not row-major take more than {} bytes, 8 times the file",
                     path, most_packed);
      tensor = tensor_of(view);
    }
    check<IoError>(out.emplace(view.name, tensor).second, "{}: tensor '{}' occurs twice", path, printable(view.name));
  }
  return out;
}

std::map<std::string, Tensor> load_zip(const std::string& path, const TorchFileOptions& options, uint64_t file_bytes) {
  const ZipFile zip(path);
  const auto pickle_member = std::find_if(zip.members().begin(), zip.members().end(), [](const ZipMember& member) {
    return member.name == "data.pkl" || member.name.ends_with("/data.pkl");
  });
  check<IoError>(pickle_member != zip.members().end(), "{}: a zip without data.pkl, expected a file of torch.save", path);
  const std::string folder = pickle_member->name.substr(0, pickle_member->name.size() - 8);  // "NAME/" or ""
  check<IoError>(zip.find(folder + "constants.pkl") == nullptr,
                 "{}: a TorchScript archive, expected a state dict: save the module's state_dict() with torch.save", path);
  bool big_endian = false;
  if (const ZipMember* order = zip.find(folder + "byteorder")) {
    const std::string text = zip.read(*order, 16);
    check<IoError>(text == "little" || text == "big", "{}: byteorder is '{}', expected little or big", path,
                   printable(text));
    big_endian = text == "big";
  }
  const std::string bytes = zip.read(*pickle_member, options.max_bytes);
  const Pickle pickle(bytes, path + ": " + printable(pickle_member->name), pickle_options());
  Description what(path, options);
  what.read(pickle.root());

  uint64_t total = 0;
  for (auto& [key, storage] : what.storages) {
    const ZipMember* member = zip.find(folder + "data/" + key);
    check<IoError>(member != nullptr, "{}: lacks the storage {}data/{}", path, printable(folder), printable(key));
    const int64_t needed = bytes_of(storage, path, key);
    check<IoError>(member->size == uint64_t(needed), "{}: storage {} has {} bytes but {} elements of {} need {}", path,
                   printable(member->name), member->size, storage.count, storage.type->global, needed);
    total += uint64_t(needed);
    check<IoError>(total <= options.max_bytes, "{}: storages of more than {} bytes are not read", path, options.max_bytes);
    const std::string content = zip.read(*member, options.max_bytes);
    storage.elements = elements_of(storage, content.data(), big_endian, path + ": " + printable(member->name));
  }
  return tensors_of(what, path, file_bytes);
}

// Five pickles: a magic number, the protocol, facts of the machine, the object, the keys of its storages; then each storage
// as a count in 8 bytes and its elements, little-endian whatever the machine was.
std::map<std::string, Tensor> load_stream(const std::string& path, const TorchFileOptions& options) {
  constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  const std::string content = read_file(path, options.max_bytes);
  const std::string_view bytes = content;
  check<IoError>(bytes.size() >= 15 && bytes.substr(0, 2) == "\x80\x02" && bytes.substr(2, 2) == "\x8a\x0a" &&
                     bytes.substr(4, 10) == kMagic && bytes[14] == '.',
                 "{}: is neither a zip with data.pkl nor torch's older stream, expected a file of torch.save", path);
  size_t at = 15;
  const auto origin = [&] { return path + ": the pickle from byte " + std::to_string(at) + " on"; };
  const Pickle protocol(bytes.substr(at), origin(), pickle_options());
  at += protocol.end();
  check<IoError>(protocol.root().kind == Kind::integer && protocol.root().integer == 1001,
                 "{}: its protocol is not 1001, the only one of torch's older stream", path);
  at += Pickle(bytes.substr(at), origin(), pickle_options()).end();
  const Pickle object(bytes.substr(at), origin(), pickle_options());
  Description what(path, options);
  what.read(object.root());
  at += object.end();
  const Pickle keys(bytes.substr(at), origin(), pickle_options());
  at += keys.end();

  check<IoError>(keys.root().kind == Kind::list, "{}: has a {} where the list of storages should be", path,
                 name(keys.root().kind));
  for (const PickleValue* item : keys.root().items) {
    check<IoError>(is_text(*item), "{}: the list of storages holds a {}, expected str", path, name(item->kind));
    const auto found = what.storages.find(std::string(item->text));
    check<IoError>(found != what.storages.end(), "{}: no tensor lies in storage '{}', so its length is not known", path,
                   printable(item->text));
    StoredArray& storage = found->second;
    check<IoError>(!storage.elements.defined(), "{}: storage '{}' occurs twice", path, printable(item->text));
    const int64_t needed = bytes_of(storage, path, found->first);
    check<IoError>(bytes.size() - at >= 8 && bytes.size() - at - 8 >= uint64_t(needed),
                   "{}: ends at byte {}, but storage '{}' at byte {} needs {} bytes", path, bytes.size(),
                   printable(item->text), at, needed + 8);
    int64_t count = 0;
    std::memcpy(&count, bytes.data() + at, 8);
    check<IoError>(count == storage.count, "{}: storage '{}' at byte {} has {} elements but its tensors need {}", path,
                   printable(item->text), at, count, storage.count);
    storage.elements =
        elements_of(storage, bytes.data() + at + 8, false, path + ": storage '" + printable(item->text) + "'");
    at += 8 + size_t(needed);
  }
  for (const auto& [key, storage] : what.storages)
    check<IoError>(storage.elements.defined(), "{}: lacks the storage '{}'", path, printable(key));
  check<IoError>(at == bytes.size(), "{}: {} bytes follow the last storage, expected the end of the file", path,
                 bytes.size() - at);
  return tensors_of(what, path, bytes.size());
}

}  // namespace

std::map<std::string, Tensor> load_torch_file(const std::string& path, const TorchFileOptions& options) {
  char start[4] = {};
  uint64_t file_bytes = 0;
  {
    const File file(path);
    file_bytes = file.size();
    check<IoError>(file_bytes <= options.max_bytes, "{}: has {} bytes, at most {} are read", path, file_bytes,
                   options.max_bytes);
    file.read(0, start, size_t(std::min<uint64_t>(file_bytes, 4)));
  }
  const bool zip = std::memcmp(start, "PK\3\4", 4) == 0;
  std::map<std::string, Tensor> tensors = zip ? load_zip(path, options, file_bytes) : load_stream(path, options);
  check<IoError>(!tensors.empty(), "{}: holds no tensor", path);
  return tensors;
}

bool is_torch_file(const std::string& path) {
  char start[4] = {};
  const File file(path);
  file.read(0, start, size_t(std::min<uint64_t>(file.size(), 4)));
  return std::memcmp(start, "PK\3\4", 4) == 0 || std::memcmp(start, "\x80\x02\x8a\x0a", 4) == 0;
}

std::map<std::string, Tensor> model_state(const std::map<std::string, Tensor>& tensors) {
  const auto starting = [&](const std::map<std::string, Tensor>& from, const std::string& prefix) {
    std::map<std::string, Tensor> out;
    for (const auto& [name, tensor] : from)
      if (name.starts_with(prefix)) out.emplace(name.substr(prefix.size()), tensor);
    return out;
  };
  std::map<std::string, Tensor> state = tensors;
  for (const char* prefix : {"state_dict.", "model_state_dict.", "model.", "net."}) {
    std::map<std::string, Tensor> inner = starting(tensors, prefix);
    if (inner.empty()) continue;
    state = std::move(inner);
    break;
  }
  std::map<std::string, Tensor> bare = starting(state, "module.");
  return bare.size() == state.size() ? bare : state;
}

}  // namespace tessera
