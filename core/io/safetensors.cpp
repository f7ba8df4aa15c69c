#include "tessera/core/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <vector>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using json = nlohmann::json;

constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the reference implementation

struct Entry {
  std::string name;
  std::string dtype_text;
  std::vector<int64_t> shape;
  std::vector<uint64_t> range;
  bool has_dtype = false, has_shape = false, has_range = false;
  DType dtype = DType::f32;
  bool boolean = false;
};

// Reads the header as it is parsed: nothing is built that the format does not allow, so depth and kind are checked by
// construction, and a name that occurs twice is seen (a JSON object in memory would keep the last one silently).
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  HeaderReader(const std::string& path, SafeTensors& into) : path_(path), into_(into) {}
  std::vector<Entry> entries;

  bool start_object(std::size_t) override {
    switch (at_) {
      case At::start: at_ = At::names; return true;
      case At::tensor_value:
        entries.back().name = name_;
        at_ = At::fields;
        return true;
      case At::metadata_value: at_ = At::metadata; return true;
      default: unexpected("an object");
    }
  }
  bool end_object() override {
    at_ = at_ == At::names ? At::end : At::names;
    return true;
  }
  bool key(std::string& text) override {
    if (at_ == At::names) {
      name_ = text;
      if (name_ == "__metadata__") {
        check<IoError>(!seen_metadata_, "{}: __metadata__ occurs twice in the header", path_);
        seen_metadata_ = true;
        at_ = At::metadata_value;
      } else {
        at_ = At::tensor_value;
        entries.emplace_back();
      }
    } else if (at_ == At::metadata) {
      check<IoError>(!into_.metadata.contains(text), "{}: __metadata__ has the key '{}' twice", path_, printable(text));
      field_ = text;
      at_ = At::metadata_text;
    } else {
      Entry& entry = entries.back();
      const auto once = [&](bool& seen, At next) {
        check<IoError>(!seen, "{}: tensor '{}' has {} twice", path_, printable(name_), printable(text));
        seen = true;
        at_ = next;
      };
      if (text == "dtype")
        once(entry.has_dtype, At::dtype);
      else if (text == "shape")
        once(entry.has_shape, At::shape);
      else if (text == "data_offsets")
        once(entry.has_range, At::range);
      else
        fail<IoError>("{}: tensor '{}' has the field '{}', expected dtype, shape and data_offsets", path_, printable(name_),
                      printable(text));
    }
    return true;
  }
  bool string(std::string& text) override {
    if (at_ == At::dtype) {
      entries.back().dtype_text = text;
      at_ = At::fields;
    } else if (at_ == At::metadata_text) {
      into_.metadata.emplace(field_, text);
      at_ = At::metadata;
    } else {
      unexpected("a string");
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (at_ == At::shape)
      at_ = At::shape_items;
    else if (at_ == At::range)
      at_ = At::range_items;
    else
      unexpected("an array");
    return true;
  }
  bool end_array() override {
    at_ = At::fields;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (at_ == At::shape_items) {
      check<IoError>(entries.back().shape.size() < size_t(Shape::kMaxDims), "{}: tensor '{}' has more than {} dimensions",
                     path_, printable(name_), Shape::kMaxDims);
      check<IoError>(value <= uint64_t(INT64_MAX), "{}: tensor '{}' has a dimension of size {}, at most 2^63 - 1 is read",
                     path_, printable(name_), value);
      entries.back().shape.push_back(int64_t(value));
    } else if (at_ == At::range_items) {
      check<IoError>(entries.back().range.size() < 2, "{}: tensor '{}' has more than 2 data_offsets", path_,
                     printable(name_));
      entries.back().range.push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }
  bool number_integer(std::int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a number with a fraction"); }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool binary(json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    fail<IoError>("{}: the header is not valid JSON at byte {}", path_, 8 + position - 1);
  }

 private:
  enum class At {
    start,
    names,
    tensor_value,
    fields,
    dtype,
    shape,
    shape_items,
    range,
    range_items,
    metadata_value,
    metadata,
    metadata_text,
    end
  };

  [[noreturn]] void unexpected(const char* what) const {
    const auto wanted = [&]() -> const char* {
      switch (at_) {
        case At::start: return "the header to be an object";
        case At::tensor_value: return "an object with dtype, shape and data_offsets";
        case At::dtype: return "a dtype name";
        case At::shape: return "an array of sizes";
        case At::shape_items: return "sizes that are integers, 0 or more";
        case At::range: return "an array of two offsets";
        case At::range_items: return "offsets that are integers, 0 or more";
        case At::metadata_value: return "an object of strings";
        case At::metadata_text: return "a string";
        default: return "nothing";
      }
    }();
    if (at_ == At::start) fail<IoError>("{}: the header is {}, expected {}", path_, what, wanted);
    if (at_ == At::metadata_value || at_ == At::metadata_text)
      fail<IoError>("{}: __metadata__ holds {}, expected {}", path_, what, wanted);
    fail<IoError>("{}: tensor '{}' holds {}, expected {}", path_, printable(name_), what, wanted);
  }

  const std::string& path_;
  SafeTensors& into_;
  At at_ = At::start;
  std::string name_, field_;
  bool seen_metadata_ = false;
};

void check_dtype(const std::string& path, Entry& entry) {
  struct Known {
    const char* text;
    DType dtype;
  };
  static constexpr Known kKnown[] = {{"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"F16", DType::f16},
                                     {"I32", DType::i32}, {"I64", DType::i64}, {"U8", DType::u8},     {"BOOL", DType::u8}};
  for (const Known& known : kKnown)
    if (entry.dtype_text == known.text) {
      entry.dtype = known.dtype;
      entry.boolean = entry.dtype_text == "BOOL";
      return;
    }
  fail<IoError>("{}: tensor '{}' has dtype {}, expected F64, F32, F16, BF16, I64, I32, U8 or BOOL", path,
                printable(entry.name), printable(entry.dtype_text));
}

const char* format_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::f64: return "F64";
    case DType::bf16: return "BF16";
    case DType::f16: return "F16";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::u8: return "U8";
  }
  return "?";
}

std::string quoted(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    fail("save_safetensors: a name or text is not valid UTF-8: '{}'", printable(text));
  }
}

}  // namespace

SafeTensors load_safetensors(const std::string& path) {
  const File file(path);
  check<IoError>(file.size() >= 8, "{}: has {} bytes, expected a safetensors file (8 bytes of header length first)", path,
                 file.size());
  uint64_t header_bytes = 0;
  file.read(0, &header_bytes, 8);
  check<IoError>(header_bytes <= kMostHeaderBytes, "{}: the header has {} bytes, at most {} are read", path, header_bytes,
                 kMostHeaderBytes);
  check<IoError>(header_bytes <= file.size() - 8, "{}: the header has {} bytes but the file ends {} bytes after its length",
                 path, header_bytes, file.size() - 8);
  std::string header(size_t(header_bytes), '\0');
  file.read(8, header.data(), header.size());

  SafeTensors result;
  HeaderReader reader(path, result);
  json::sax_parse(header, &reader);
  std::vector<Entry>& entries = reader.entries;

  std::vector<const Entry*> by_name, by_offset;
  for (Entry& entry : entries) {
    check<IoError>(entry.has_dtype && entry.has_shape && entry.has_range, "{}: tensor '{}' lacks {}", path,
                   printable(entry.name),
                   !entry.has_dtype   ? "dtype"
                   : !entry.has_shape ? "shape"
                                      : "data_offsets");
    check<IoError>(entry.range.size() == 2, "{}: tensor '{}' has {} data_offsets, expected 2", path, printable(entry.name),
                   entry.range.size());
    check_dtype(path, entry);
    check<IoError>(entry.range[0] <= entry.range[1], "{}: tensor '{}' ends at offset {}, before its start {}", path,
                   printable(entry.name), entry.range[1], entry.range[0]);
    uint64_t bytes = size_of(entry.dtype);
    bool overflow = false;
    for (const int64_t size : entry.shape) overflow |= size != 0 && __builtin_mul_overflow(bytes, uint64_t(size), &bytes);
    // A size 0 hides an overflow of the others from the byte count but not from Shape.
    if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) bytes = 0;
    check<IoError>(!overflow && bytes <= uint64_t(INT64_MAX), "{}: tensor '{}' has a shape of more than 2^63 - 1 bytes",
                   path, printable(entry.name));
    check<IoError>(bytes == entry.range[1] - entry.range[0],
                   "{}: tensor '{}' has {} bytes (offsets {} to {}) but its shape and dtype need {}", path,
                   printable(entry.name), entry.range[1] - entry.range[0], entry.range[0], entry.range[1], bytes);
    by_name.push_back(&entry);
    by_offset.push_back(&entry);
  }
  std::sort(by_name.begin(), by_name.end(), [](const Entry* a, const Entry* b) { return a->name < b->name; });
  for (size_t i = 1; i < by_name.size(); ++i)
    check<IoError>(by_name[i - 1]->name != by_name[i]->name, "{}: tensor '{}' occurs twice in the header", path,
                   printable(by_name[i]->name));
  std::sort(by_offset.begin(), by_offset.end(), [](const Entry* a, const Entry* b) { return a->range < b->range; });
  const uint64_t data_bytes = file.size() - 8 - header_bytes;
  uint64_t end = 0;
  for (const Entry* entry : by_offset) {
    check<IoError>(entry->range[0] >= end, "{}: tensor '{}' starts at offset {}, inside the one that ends at {}", path,
                   printable(entry->name), entry->range[0], end);
    check<IoError>(entry->range[0] == end, "{}: offsets {} to {} belong to no tensor, '{}' starts after them", path, end,
                   entry->range[0], printable(entry->name));
    check<IoError>(entry->range[1] <= data_bytes,
                   "{}: tensor '{}' ends at offset {} but the file has {} bytes after the header", path,
                   printable(entry->name), entry->range[1], data_bytes);
    end = entry->range[1];
  }
  check<IoError>(end == data_bytes, "{}: {} bytes follow the last tensor, expected the end of the file", path,
                 data_bytes - end);

  for (const Entry* entry : by_offset) {
    Tensor tensor = Tensor::empty(Shape(entry->shape.data(), int(entry->shape.size())), entry->dtype);
    const size_t bytes = size_t(entry->range[1] - entry->range[0]);
    if (bytes > 0) file.read(8 + header_bytes + entry->range[0], tensor.mutable_raw(), bytes);
    if (entry->boolean) {
      const uint8_t* values = tensor.data<uint8_t>();
      for (size_t i = 0; i < bytes; ++i)
        check<IoError>(values[i] <= 1, "{}: tensor '{}' of dtype BOOL has the value {} at position {}, expected 0 or 1",
                       path, printable(entry->name), int(values[i]), i);
    }
    result.tensors.emplace(entry->name, std::move(tensor));
  }
  return result;
}

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& named : tensors) {
    check(named.first != "__metadata__", "save_safetensors: a tensor cannot be named __metadata__");
    check(named.second.defined(), "save_safetensors: tensor '{}' is undefined", named.first);
    check(named.second.device() == Device::cpu, "save_safetensors: tensor '{}' is on {}, copy it to the cpu first",
          named.first, name(named.second.device()));
    order.push_back(&named);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return size_of(a->second.dtype()) > size_of(b->second.dtype()); });

  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, text] : metadata) header += quoted(key) + ":" + quoted(text) + ",";
    header.back() = '}';
    header += ',';
  }
  uint64_t offset = 0;
  for (const auto* named : order) {
    const Tensor& tensor = named->second;
    std::string sizes;
    for (int i = 0; i < tensor.ndim(); ++i) sizes.append(i == 0 ? "" : ",").append(std::to_string(tensor.dim(i)));
    const uint64_t end = offset + uint64_t(tensor.numel()) * size_of(tensor.dtype());
    header += quoted(named->first) + ":{\"dtype\":\"" + format_name(tensor.dtype()) + "\",\"shape\":[" + sizes +
              "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]},";
    offset = end;
  }
  if (header.size() > 1) header.pop_back();
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  check(header.size() <= kMostHeaderBytes, "save_safetensors: the header has {} bytes, at most {} are allowed",
        header.size(), kMostHeaderBytes);

  write_atomically(path, [&](FileWriter& out) {
    const uint64_t header_bytes = header.size();
    out.write(&header_bytes, 8);
    out.write(header);
    for (const auto* named : order) {
      const size_t bytes = size_t(named->second.numel()) * size_of(named->second.dtype());
      if (bytes > 0) out.write(named->second.raw(), bytes);
    }
  });
}

}  // namespace tessera
