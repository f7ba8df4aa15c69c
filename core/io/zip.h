#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/io/file.h"

namespace tessera {

struct ZipMember {
  std::string name;   ///< bytes as stored; a folder ends in '/'
  uint64_t size = 0;  ///< decompressed
  uint64_t compressed_size = 0;
  uint64_t offset = 0;  ///< of its local header in the file
  uint32_t crc = 0;
  int method = 0;  ///< 0 stored, 8 deflate
  bool encrypted = false;
};

/// A zip archive, zip64 included, open for reading. The central directory alone says where members lie and how long they
/// are: the sizes in local headers (0 before a data descriptor, 0xffffffff before a zip64 block) are not looked at.
/// Errors are IoError naming the path and the member.
class ZipFile {
 public:
  /// Reads the directory. Errors: no directory, one that does not fit the file, an archive in several parts.
  explicit ZipFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<ZipMember>& members() const { return members_; }
  /// The last member of that name (later ones replace earlier ones); null when there is none.
  const ZipMember* find(std::string_view name) const;

  /// A member's content, its CRC checked. Errors: methods other than stored and deflate, encryption, broken data, a wrong
  /// CRC, a size that its compressed bytes cannot stand for, more than `limit` bytes.
  std::string read(const ZipMember& member, uint64_t limit = uint64_t{8} << 30) const;

 private:
  File file_;
  std::vector<ZipMember> members_;
};

}  // namespace tessera
