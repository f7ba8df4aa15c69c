#include "tessera/core/io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tessera/core/error.h"
#include "tessera/core/io/sha256.h"

namespace tessera {
namespace {

std::string reason(int error) { return std::strerror(error); }

constexpr size_t kBufferBytes = size_t{1} << 18;

// read() and write() take at most 2^31 - 4096 bytes at a time on Linux.
constexpr size_t kMostAtOnce = size_t{1} << 30;

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int number;
  do number = ::open(path, flags | O_CLOEXEC, mode);
  while (number < 0 && errno == EINTR);
  return number;
}

struct Target {
  std::string folder, name, temporary;
};

// The file that a path names, through symbolic links, so that a link stays a link.
Target target_of(const std::string& path) {
  std::string real = path;
  if (char* resolved = ::realpath(path.c_str(), nullptr)) {
    real = resolved;
    std::free(resolved);
  }
  const size_t slash = real.rfind('/');
  Target target;
  target.folder = slash == std::string::npos ? "." : slash == 0 ? "/" : real.substr(0, slash);
  target.name = slash == std::string::npos ? real : real.substr(slash + 1);
  // File systems allow 255 bytes a name.
  const std::string stem = target.name.size() <= 240 ? target.name : sha256(target.name);
  target.temporary = target.folder + "/." + stem + ".tmp";
  target.name = real;
  return target;
}

// Opens the temporary file and takes its lock. Another process may rename or remove it between the two, so the lock
// counts only if the name still belongs to the locked file.
int open_locked(const std::string& path, const std::string& temporary) {
  for (;;) {
    Descriptor file{open_retrying(temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW, 0666)};
    check<IoError>(file.number >= 0, "{}: cannot be written: {}", path, reason(errno));
    if (::flock(file.number, LOCK_EX | LOCK_NB) != 0)
      check<IoError>(errno != EWOULDBLOCK, "{}: is being written by another process ({} is locked)", path, temporary);
    struct stat by_name, by_number;
    if (::stat(temporary.c_str(), &by_name) != 0 || ::fstat(file.number, &by_number) != 0 ||
        by_name.st_ino != by_number.st_ino || by_name.st_dev != by_number.st_dev)
      continue;
    check<IoError>(::ftruncate(file.number, 0) == 0, "{}: cannot be written: {}", path, reason(errno));
    return std::exchange(file.number, -1);
  }
}

}  // namespace

File::File(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe without a writer must not hang.
  Descriptor file{open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK)};
  check<IoError>(file.number >= 0, "{}: cannot be opened: {}", path, reason(errno));
  struct stat status;
  check<IoError>(::fstat(file.number, &status) == 0, "{}: cannot be opened: {}", path, reason(errno));
  check<IoError>(!S_ISDIR(status.st_mode), "{}: is a folder, expected a file", path);
  check<IoError>(S_ISREG(status.st_mode), "{}: is a device or pipe, expected a regular file", path);
  size_ = uint64_t(status.st_size);
  descriptor_ = std::exchange(file.number, -1);
}

File::~File() { ::close(descriptor_); }

void File::read(uint64_t offset, void* into, size_t bytes) const {
  check<IoError>(offset <= size_ && bytes <= size_ - offset, "{}: {} bytes are needed at offset {} but the file has {}",
                 path_, bytes, offset, size_);
  auto* next = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, next, std::min(bytes, kMostAtOnce), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    check<IoError>(got >= 0, "{}: cannot be read at offset {}: {}", path_, offset, reason(errno));
    check<IoError>(got > 0, "{}: ends at offset {} but had {} bytes when it was opened", path_, offset, size_);
    next += got;
    offset += uint64_t(got);
    bytes -= size_t(got);
  }
}

MappedFile::MappedFile(const std::string& path) {
  const File file(path);
  const size_t size = size_t(file.size());
  if (size == 0) return;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor_, 0);
  check<IoError>(data != MAP_FAILED, "{}: cannot be mapped: {}", path, reason(errno));
  owner_ = std::shared_ptr<const void>(data, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
  bytes_ = {static_cast<const char*>(data), size};
}

std::string read_file(const std::string& path, uint64_t limit) {
  const File file(path);
  check<IoError>(file.size() <= limit, "{}: has {} bytes, at most {} are read", path, file.size(), limit);
  std::string content(size_t(file.size()), '\0');
  file.read(0, content.data(), content.size());
  return content;
}

bool file_exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

void FileWriter::write(const void* data, size_t bytes) {
  size_ += bytes;
  const auto* next = static_cast<const char*>(data);
  if (pending_.size() + bytes < kBufferBytes) {
    pending_.append(next, bytes);
    return;
  }
  flush();
  if (bytes < kBufferBytes) {
    pending_.append(next, bytes);
    return;
  }
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor_, next, std::min(bytes, kMostAtOnce));
    if (put < 0 && errno == EINTR) continue;
    check<IoError>(put >= 0, "{}: cannot be written: {}", path_, reason(errno));
    next += put;
    bytes -= size_t(put);
  }
}

void FileWriter::flush() {
  const char* next = pending_.data();
  for (size_t left = pending_.size(); left > 0;) {
    const ssize_t put = ::write(descriptor_, next, left);
    if (put < 0 && errno == EINTR) continue;
    check<IoError>(put >= 0, "{}: cannot be written: {}", path_, reason(errno));
    next += put;
    left -= size_t(put);
  }
  pending_.clear();
}

void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& writer) {
  struct stat before;
  const bool exists = ::stat(path.c_str(), &before) == 0;
  check<IoError>(!path.empty() && path.back() != '/' && !(exists && S_ISDIR(before.st_mode)),
                 "{}: is a folder, expected a file name", path);
  if (exists && !S_ISREG(before.st_mode)) {
    const Descriptor device{open_retrying(path.c_str(), O_WRONLY)};
    check<IoError>(device.number >= 0, "{}: cannot be written: {}", path, reason(errno));
    FileWriter out(path, device.number);
    writer(out);
    out.flush();
    return;
  }
  const Target target = target_of(path);
  const Descriptor file{open_locked(path, target.temporary)};
  try {
    FileWriter out(path, file.number);
    writer(out);
    out.flush();
    if (exists) (void)!::fchmod(file.number, before.st_mode & 07777);
    check<IoError>(::fsync(file.number) == 0, "{}: cannot be written: {}", path, reason(errno));
    check<IoError>(::rename(target.temporary.c_str(), target.name.c_str()) == 0, "{}: cannot be written: {}", path,
                   reason(errno));
  } catch (...) {
    ::unlink(target.temporary.c_str());
    throw;
  }
  // The rename itself survives a power cut only when the folder is synced; some file systems do not offer it.
  const Descriptor folder{open_retrying(target.folder.c_str(), O_RDONLY | O_DIRECTORY)};
  if (folder.number >= 0) (void)!::fsync(folder.number);
}

void write_atomically(const std::string& path, std::string_view content) {
  write_atomically(path, [content](FileWriter& out) { out.write(content); });
}

}  // namespace tessera
