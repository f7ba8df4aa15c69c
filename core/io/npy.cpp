#include "tessera/core/io/npy.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/numpy_dtype.h"

namespace tessera {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMostHeaderBytes = 65536;

struct Header {
  NumpyDType dtype;
  bool fortran_order = false;
  Shape shape;
  uint64_t bytes = 0;  // of the elements
};

// The header is a Python dict literal of three known keys: "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }".
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Header read() {
    Header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        skip();
        check<IoError>(at_ < text_.size() && text_[at_] != '[', "{}: a record dtype, record arrays are not read", where_);
        const std::string_view spelling = quoted();
        header.dtype = NumpyDType::parse(spelling);
        check<IoError>(header.dtype.kind != 'O', "{}: dtype {}, object arrays are not read", where_, printable(spelling));
        check<IoError>(header.dtype.kind != 'U' && header.dtype.kind != 'S', "{}: dtype {}, text arrays are not read",
                       where_, printable(spelling));
        check<IoError>(header.dtype.readable, "{}: dtype {}, expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 or b1", where_,
                       printable(spelling));
      } else if (key == "fortran_order" && !order) {
        order = true;
        skip();
        if (text_.substr(at_, 4) == "True") {
          header.fortran_order = true;
          at_ += 4;
        } else if (text_.substr(at_, 5) == "False") {
          at_ += 5;
        } else {
          broken();
        }
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = sizes();
      } else {
        broken();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size() || !descr || !order || !shape) broken();
    int64_t bytes = 0;
    check<IoError>(!__builtin_mul_overflow(header.shape.numel(), header.dtype.bytes, &bytes),
                   "{}: the shape {} has more than 2^63 - 1 bytes", where_, header.shape);
    header.bytes = uint64_t(bytes);
    return header;
  }

 private:
  [[noreturn]] void broken() const {
    fail<IoError>("{}: the npy header is broken at byte {} of its text, expected a dict of descr, fortran_order and shape",
                  where_, at_);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\0'))
      ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) broken();
  }
  std::string_view quoted() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) broken();
    const size_t begin = at_ + 1, end = text_.find(text_[at_], begin);
    if (end == std::string_view::npos) broken();
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  Shape sizes() {
    int64_t dims[Shape::kMaxDims], numel = 1;
    int count = 0;
    expect('(');
    while (!accept(')')) {
      skip();
      const size_t begin = at_;
      int64_t size = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
        if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, text_[at_++] - '0', &size)) broken();
      if (at_ == begin) broken();
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
      check<IoError>(count < Shape::kMaxDims, "{}: has more than {} dimensions", where_, Shape::kMaxDims);
      check<IoError>(!__builtin_mul_overflow(numel, size, &numel), "{}: the shape has more than 2^63 - 1 elements", where_);
      dims[count++] = size;
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return Shape(dims, count);
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

// Bytes before the elements, from the first 12 bytes of a file of `size` bytes.
uint64_t data_offset(std::string_view start, uint64_t size, const std::string& where, size_t& text_offset) {
  check<IoError>(start.size() >= 10 && start.substr(0, 6) == kMagic,
                 "{}: is no npy file (it does not start with \\x93NUMPY)", where);
  const int major = uint8_t(start[6]);
  check<IoError>(major >= 1 && major <= 3, "{}: npy version {}.{} is not read, expected 1 to 3", where, major,
                 int(uint8_t(start[7])));
  uint64_t length = 0;
  if (major == 1) {
    length = uint8_t(start[8]) | uint64_t(uint8_t(start[9])) << 8;
    text_offset = 10;
  } else {
    check<IoError>(start.size() >= 12, "{}: ends in the npy header", where);
    for (size_t i = 0; i < 4; ++i) length |= uint64_t(uint8_t(start[8 + i])) << (8 * i);
    text_offset = 12;
  }
  check<IoError>(length <= kMostHeaderBytes, "{}: the npy header has {} bytes, at most {} are read", where, length,
                 kMostHeaderBytes);
  check<IoError>(text_offset + length <= size, "{}: ends in the npy header", where);
  return text_offset + length;
}

void check_size(const Header& header, uint64_t bytes, const std::string& where) {
  check<IoError>(bytes == header.bytes, "{}: has {} bytes after the header but the shape {} needs {}", where, bytes,
                 header.shape, header.bytes);
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& where) {
  size_t text_offset = 0;
  const uint64_t data = data_offset(bytes.substr(0, 12), bytes.size(), where, text_offset);
  const Header header = HeaderText(bytes.substr(text_offset, size_t(data) - text_offset), where).read();
  check_size(header, bytes.size() - data, where);
  return numpy_tensor(header.dtype, header.shape, header.fortran_order, bytes.data() + data, where);
}

Tensor load_npy(const std::string& path) {
  const File file(path);
  std::string start(size_t(std::min<uint64_t>(file.size(), 12)), '\0');
  file.read(0, start.data(), start.size());
  size_t text_offset = 0;
  const uint64_t data = data_offset(start, file.size(), path, text_offset);
  std::string text(size_t(data) - text_offset, '\0');
  file.read(text_offset, text.data(), text.size());
  const Header header = HeaderText(text, path).read();
  check_size(header, file.size() - data, path);
  const NumpyDType& dtype = header.dtype;
  const bool in_order = !dtype.big_endian && (!header.fortran_order || header.shape.ndim() < 2);
  const bool as_it_is =
      dtype.kind == 'f' || (dtype.kind == 'i' && dtype.bytes >= 4) || (dtype.kind == 'u' && dtype.bytes == 1);
  if (in_order && as_it_is) {
    Tensor tensor = Tensor::empty(header.shape, dtype.dtype);
    if (header.bytes > 0) file.read(data, tensor.mutable_raw(), size_t(header.bytes));
    return tensor;
  }
  std::string bytes(size_t(header.bytes), '\0');
  file.read(data, bytes.data(), bytes.size());
  return numpy_tensor(dtype, header.shape, header.fortran_order, bytes.data(), path);
}

void save_npy(const std::string& path, const Tensor& tensor) {
  check(tensor.defined(), "save_npy: the tensor is undefined");
  check(tensor.device() == Device::cpu, "save_npy: the tensor is on {}, copy it to the cpu first", name(tensor.device()));
  const char* spelling = "";
  switch (tensor.dtype()) {
    case DType::f32: spelling = "<f4"; break;
    case DType::f64: spelling = "<f8"; break;
    case DType::f16: spelling = "<f2"; break;
    case DType::i32: spelling = "<i4"; break;
    case DType::i64: spelling = "<i8"; break;
    case DType::u8: spelling = "|u1"; break;
    case DType::bf16: fail("save_npy: numpy has no dtype bf16, cast the tensor to f32 first");
  }
  std::string header = "{'descr': '";
  header.append(spelling).append("', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < tensor.ndim(); ++i)
    header.append(std::to_string(tensor.dim(i))).append(i + 1 < tensor.ndim() ? ", " : "");
  header.append(tensor.ndim() == 1 ? ",), }" : "), }");
  // Elements start at a multiple of 64.
  header.append((63 - (10 + header.size()) % 64), ' ').append("\n");
  write_atomically(path, [&](FileWriter& out) {
    out.write(kMagic);
    const char version_and_length[] = {1, 0, char(header.size() & 0xff), char(header.size() >> 8)};
    out.write(version_and_length, 4);
    out.write(header);
    if (tensor.numel() > 0) out.write(tensor.raw(), size_t(tensor.numel()) * size_of(tensor.dtype()));
  });
}

NpzFile::NpzFile(const std::string& path) : zip_(path) {
  std::unordered_set<std::string_view> seen;
  for (const ZipMember& member : zip_.members()) {
    if (!member.name.ends_with(".npy")) continue;
    check<IoError>(seen.insert(member.name).second, "{}: member '{}' occurs twice", path, printable(member.name));
    names_.push_back(member.name.substr(0, member.name.size() - 4));
  }
}

bool NpzFile::contains(std::string_view name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

Tensor NpzFile::read(std::string_view name) const {
  const ZipMember* member = zip_.find(std::string(name) + ".npy");
  if (member == nullptr) {
    std::string list;
    for (const std::string& other : names_) list.append(list.empty() ? "" : ", ").append(other);
    fail<IoError>("{}: has no array '{}', only {}", path(), printable(name), names_.empty() ? "none" : list);
  }
  std::string where = path();
  where.append(": member '").append(printable(name)).append("'");
  return parse_npy(zip_.read(*member), where);
}

}  // namespace tessera
