#include "tessera/tests/support/repeated.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "tessera/core/error.h"

namespace tessera::test {
namespace {

struct Mapping {
  void* data = MAP_FAILED;
  size_t bytes = 0;
  ~Mapping() {
    if (data != MAP_FAILED) ::munmap(data, bytes);
  }
};

/// A file in memory with the tensor's bytes.
class File {
 public:
  explicit File(const Tensor& content)
      : descriptor_(::memfd_create("repeated", MFD_CLOEXEC)), bytes_(size_t(content.numel()) * size_of(content.dtype())) {
    check<InternalError>(descriptor_ >= 0 && ::write(descriptor_, content.raw(), bytes_) == ssize_t(bytes_),
                         "repeated: cannot make a file in memory of {} bytes", bytes_);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  size_t bytes() const { return bytes_; }
  void map(char* at) const {
    check<InternalError>(::mmap(at, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor_, 0) != MAP_FAILED,
                         "repeated: cannot map {} bytes", bytes_);
  }

 private:
  int descriptor_;
  size_t bytes_;
};

}  // namespace

Tensor repeated(const Tensor& pattern, const Tensor& tail, int64_t count, const Shape& shape) {
  const File body(pattern), end(tail);
  auto mapping = std::make_shared<Mapping>();
  mapping->bytes = size_t(count) * size_of(pattern.dtype());
  const size_t page = size_t(::sysconf(_SC_PAGESIZE));
  check<InternalError>(pattern.dtype() == tail.dtype() && body.bytes() % page == 0 && end.bytes() % page == 0 &&
                           (mapping->bytes - end.bytes()) % body.bytes() == 0,
                       "repeated: {} bytes are no whole patterns of {} and a tail of {}", mapping->bytes, body.bytes(),
                       end.bytes());
  mapping->data = ::mmap(nullptr, mapping->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check<InternalError>(mapping->data != MAP_FAILED, "repeated: cannot reserve {} bytes", mapping->bytes);
  char* data = static_cast<char*>(mapping->data);
  size_t at = 0;
  for (; at + end.bytes() < mapping->bytes; at += body.bytes()) body.map(data + at);
  end.map(data + at);
  return Tensor::borrow(data, shape, pattern.dtype(), mapping);
}

Tensor zeros_before(const Tensor& tail, const Shape& shape) {
  auto mapping = std::make_shared<Mapping>();
  mapping->bytes = size_t(shape.numel()) * size_of(tail.dtype());
  mapping->data =
      ::mmap(nullptr, mapping->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check<InternalError>(mapping->data != MAP_FAILED, "repeated: cannot reserve {} bytes", mapping->bytes);
  ::madvise(mapping->data, mapping->bytes, MADV_HUGEPAGE);  // one fault in 2 MB; a refusal only costs time
  const size_t bytes = size_t(tail.numel()) * size_of(tail.dtype());
  std::memcpy(static_cast<char*>(mapping->data) + mapping->bytes - bytes, tail.raw(), bytes);
  return Tensor::borrow(mapping->data, shape, tail.dtype(), mapping);
}

bool long_tests() { return past_int32_tests() && std::getenv("TESSERA_LONG") != nullptr; }

bool past_int32_tests() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

}  // namespace tessera::test
