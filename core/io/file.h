#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tessera/core/printable.h"

/// Files as bytes. A path is a string of bytes that is passed on untouched (a std::filesystem::path converts by itself).
/// Every error is an IoError that starts with the path.
namespace tessera {

/// A regular file open for reading at any offset; safe from several threads.
class File {
 public:
  /// Errors: the file is missing, a folder, not readable.
  explicit File(const std::string& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  /// Bytes when it was opened.
  uint64_t size() const { return size_; }
  /// Exactly `bytes` bytes from `offset`. Errors: the file ends before.
  void read(uint64_t offset, void* into, size_t bytes) const;

 private:
  friend class MappedFile;
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// A file mapped read-only; copies share the mapping. For files of our own making: a file that another process cuts
/// short while it is mapped ends this one (SIGBUS), so files from outside are read with `File`.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  std::string_view bytes() const { return bytes_; }
  /// Keeps the mapping alive, for `Tensor::borrow`.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

/// The whole content. Errors: as `File`; more than `limit` bytes.
std::string read_file(const std::string& path, uint64_t limit = uint64_t{4} << 30);

/// Whether there is something other than a folder.
bool file_exists(const std::string& path);

/// Where `write_atomically`'s writer puts the content.
class FileWriter {
 public:
  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Bytes written so far.
  uint64_t size() const { return size_; }

 private:
  friend void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& writer);
  FileWriter(const std::string& path, int descriptor) : path_(path), descriptor_(descriptor) {}
  void flush();

  const std::string& path_;
  int descriptor_;
  uint64_t size_ = 0;
  std::string pending_;
};

/// Calls `writer`, whose content then stands under `path` whole, or not at all: it is written to ".NAME.tmp" beside it,
/// synced and renamed, and removed when anything fails, also when `writer` throws. What a killed process left behind under
/// that name is overwritten by the next call. A device or pipe (/dev/stdout) is written directly.
/// Errors: the system's reason; the path is a folder; another process is writing the same file.
void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& writer);
void write_atomically(const std::string& path, std::string_view content);

}  // namespace tessera
