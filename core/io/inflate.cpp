#include "tessera/core/io/inflate.h"

#include <algorithm>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"

#if TESSERA_ZLIB
#include <zlib.h>
#endif

namespace tessera {

bool is_gzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

std::string read_plain_or_gzip(const std::string& path, uint64_t limit) {
  std::string bytes = read_file(path, limit);
  return is_gzip(bytes) ? gunzip(bytes, limit, path) : bytes;
}

#if TESSERA_ZLIB

namespace {

// zlib counts in 32 bits.
constexpr size_t kMostAtOnce = size_t{1} << 30;

class Stream {
 public:
  Stream(int window_bits, std::string_view input) : input_(input) {
    if (::inflateInit2(&z_, window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { ::inflateEnd(&z_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Fills [out, out + room) as far as the input goes. Returns the bytes made; `result` is zlib's.
  size_t fill(char* out, size_t room, int& result) {
    size_t made = 0;
    do {
      const size_t in = std::min(input_.size(), kMostAtOnce), ask = std::min(room - made, kMostAtOnce);
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
      z_.avail_in = uInt(in);
      z_.next_out = reinterpret_cast<Bytef*>(out + made);
      z_.avail_out = uInt(ask);
      result = ::inflate(&z_, Z_NO_FLUSH);
      const size_t used = in - z_.avail_in, got = ask - z_.avail_out;
      input_.remove_prefix(used);
      made += got;
      if (used == 0 && got == 0) break;
    } while (result == Z_OK && made < room);
    return made;
  }
  bool next_member() { return ::inflateReset(&z_) == Z_OK; }
  std::string_view rest() const { return input_; }
  const char* message() const { return z_.msg != nullptr ? z_.msg : "no reason given"; }

 private:
  z_stream z_{};
  std::string_view input_;
};

}  // namespace

std::string inflate_raw(std::string_view compressed, uint64_t size, const std::string& where) {
  check<IoError>(size <= most_inflated(compressed.size()), "{}: {} compressed bytes cannot stand for {}", where,
                 compressed.size(), size);
  // One byte more than claimed, so that a longer stream is seen.
  std::string out(size_t(size) + 1, '\0');
  Stream stream(-15, compressed);
  int result = Z_OK;
  const size_t made = stream.fill(out.data(), out.size(), result);
  check<IoError>(result != Z_DATA_ERROR, "{}: the compressed data is broken after {} bytes ({})", where, made,
                 stream.message());
  check<IoError>(result != Z_MEM_ERROR && result != Z_NEED_DICT, "{}: the compressed data cannot be read", where);
  check<IoError>(made <= size, "{}: the compressed data stands for more than the {} bytes it claims", where, size);
  check<IoError>(result == Z_STREAM_END && made == size, "{}: the compressed data ends after {} bytes, expected {}", where,
                 made, size);
  check<IoError>(stream.rest().empty(), "{}: {} bytes follow the compressed data", where, stream.rest().size());
  out.resize(size_t(size));
  return out;
}

std::string gunzip(std::string_view bytes, uint64_t limit, const std::string& where) {
  std::string out;
  size_t made = 0;
  Stream stream(15 + 16, bytes);
  for (;;) {
    out.resize(std::max<size_t>(std::min<uint64_t>(made * 2, limit + 1), made + (size_t{1} << 16)));
    int result = Z_OK;
    made += stream.fill(out.data() + made, out.size() - made, result);
    check<IoError>(made <= limit, "{}: has more than {} bytes when decompressed", where, limit);
    check<IoError>(result != Z_DATA_ERROR, "{}: the gzip data is broken after {} bytes ({})", where, made, stream.message());
    check<IoError>(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR, "{}: the gzip data cannot be read",
                   where);
    if (result == Z_STREAM_END) {
      if (stream.rest().empty()) break;
      check<IoError>(is_gzip(stream.rest()), "{}: {} bytes follow the gzip data", where, stream.rest().size());
      stream.next_member();
    } else if (made < out.size()) {
      fail<IoError>("{}: the gzip data ends in the middle, after {} bytes", where, made);
    }
  }
  out.resize(made);
  return out;
}

uint32_t crc32(std::string_view bytes, const std::string&) {
  return uint32_t(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

#else

std::string inflate_raw(std::string_view, uint64_t, const std::string& where) {
  fail<Unsupported>("{}: compressed data needs zlib, which this build lacks", where);
}
std::string gunzip(std::string_view, uint64_t, const std::string& where) {
  fail<Unsupported>("{}: gzip data needs zlib, which this build lacks", where);
}
uint32_t crc32(std::string_view, const std::string& where) {
  fail<Unsupported>("{}: a zip archive needs zlib, which this build lacks", where);
}

#endif

}  // namespace tessera
