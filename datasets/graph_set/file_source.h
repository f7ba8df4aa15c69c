#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/core/io/zip.h"

namespace tessera {

/// The files of a data set: those of a folder, or of a zip archive, whose folder around everything is not a part of the
/// names. Names are relative, "raw/edge.csv.gz". What other programs leave in archives (`__MACOSX/`, `.DS_Store`) is not
/// there. Files that end in .gz are decompressed when they are read. All errors are IoError with the path.
class FileSource {
 public:
  /// Errors: neither a folder nor a zip archive.
  explicit FileSource(const std::string& path);
  /// Files in memory, by their names: `where` says "name: file".
  FileSource(std::string name, std::map<std::string, std::string> files);

  const std::string& path() const { return path_; }
  /// The set's own name, as the folder or the archive is called: "MUTAG" of "tu/zip/MUTAG.zip".
  const std::string& name() const { return name_; }
  /// The files in `folder` ("" for the top), and its folders with a '/' at their end; sorted. Empty when it is not there.
  std::vector<std::string> names(const std::string& folder = "") const;
  bool has(const std::string& name) const;
  /// Where a file is, for error texts.
  std::string where(const std::string& name) const;
  std::string read(const std::string& name);
  /// `GraphSet::sha256` of what was read; empty for files in memory.
  std::string sha256() const;

 private:
  enum class Kind : uint8_t { folder, zip, memory };
  const ZipMember* member(const std::string& name) const;

  Kind kind_ = Kind::folder;
  std::string path_, name_;
  std::unique_ptr<ZipFile> zip_;
  std::map<std::string, std::string> memory_;
  std::vector<std::pair<std::string, const ZipMember*>> members_;  // sorted by name
  std::vector<std::string> read_;
};

}  // namespace tessera
