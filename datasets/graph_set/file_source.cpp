#include "tessera/datasets/graph_set/file_source.h"

#include <algorithm>
#include <filesystem>

#include "tessera/core/error.h"
#include "tessera/core/io/inflate.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{8} << 30;

/// "MUTAG/MUTAG_A.txt" of "./MUTAG//MUTAG_A.txt".
std::string plain_name(const std::string& stored) {
  std::string out;
  for (size_t i = 0; i < stored.size(); ++i)
    if (stored[i] != '/' || (!out.empty() && out.back() != '/')) out += stored[i];
  return out.starts_with("./") ? out.substr(2) : out;
}

bool is_litter(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return name.starts_with("__MACOSX/") || last == ".DS_Store" || last.ends_with('~');
}

}  // namespace

FileSource::FileSource(const std::string& path) : path_(path) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  fs::path whole = fs::absolute(path).lexically_normal();
  if (whole.filename().empty()) whole = whole.parent_path();
  if (whole.filename() == "raw") whole = whole.parent_path();  // as PyG stores downloads
  name_ = folder ? whole.filename().string() : whole.stem().string();
  if (folder) return;
  kind_ = Kind::zip;
  zip_ = std::make_unique<ZipFile>(path);
  for (const ZipMember& member : zip_->members())
    if (std::string name = plain_name(member.name); !name.empty() && name.back() != '/' && !is_litter(name))
      members_.emplace_back(std::move(name), &member);
  std::stable_sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (members_.empty()) return;
  const std::string top = members_[0].first.substr(0, members_[0].first.find('/') + 1);
  if (top.empty() || !std::all_of(members_.begin(), members_.end(), [&](const auto& m) { return m.first.starts_with(top); }))
    return;
  for (auto& [name, member] : members_) name.erase(0, top.size());
}

FileSource::FileSource(std::string name, std::map<std::string, std::string> files)
    : kind_(Kind::memory), path_(name), name_(std::move(name)), memory_(std::move(files)) {}

std::vector<std::string> FileSource::names(const std::string& folder) const {
  std::vector<std::string> out;
  const std::string prefix = folder.empty() ? "" : folder + "/";
  // Of a file below, the folder on the way.
  const auto add = [&](const std::string& name) {
    if (!name.starts_with(prefix)) return;
    const size_t slash = name.find('/', prefix.size());
    out.push_back(name.substr(prefix.size(), slash == std::string::npos ? slash : slash + 1 - prefix.size()));
  };
  for (const auto& [name, member] : members_) add(name);
  for (const auto& [name, text] : memory_) add(name);
  if (kind_ == Kind::folder) {
    std::error_code error;
    for (fs::directory_iterator it(path_ + "/" + folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      std::error_code ignored;
      if (!is_litter(name)) out.push_back(it->is_directory(ignored) ? name + "/" : name);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

const ZipMember* FileSource::member(const std::string& name) const {
  // Of members with one name the last counts.
  const auto found = std::upper_bound(members_.begin(), members_.end(), name,
                                      [](const std::string& a, const auto& b) { return a < b.first; });
  return found != members_.begin() && std::prev(found)->first == name ? std::prev(found)->second : nullptr;
}

bool FileSource::has(const std::string& name) const {
  if (kind_ == Kind::memory) return memory_.contains(name);
  return kind_ == Kind::folder ? file_exists(path_ + "/" + name) : member(name) != nullptr;
}

std::string FileSource::where(const std::string& name) const { return path_ + (kind_ == Kind::folder ? "/" : ": ") + name; }

std::string FileSource::read(const std::string& name) {
  std::string bytes;
  if (kind_ == Kind::folder) {
    bytes = read_file(path_ + "/" + name, kMostBytes);
    read_.push_back(path_ + "/" + name);
  } else {
    check<IoError>(has(name), "{}: has no file {}", path_, name);
    bytes = kind_ == Kind::memory ? memory_.at(name) : zip_->read(*member(name), kMostBytes);
    if (kind_ == Kind::zip) read_ = {path_};
  }
  return name.ends_with(".gz") ? gunzip(bytes, kMostBytes, where(name)) : bytes;
}

std::string FileSource::sha256() const { return kind_ == Kind::memory ? "" : sha256_of_files(read_); }

}  // namespace tessera
