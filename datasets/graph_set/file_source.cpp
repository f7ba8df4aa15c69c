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

std::vector<std::string> FileSource::names(const std::string& folder) const {
  std::vector<std::string> out;
  if (zip_ == nullptr) {
    std::error_code error;
    for (fs::directory_iterator it(folder.empty() ? path_ : path_ + "/" + folder, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      std::error_code ignored;
      if (!is_litter(name)) out.push_back(it->is_directory(ignored) ? name + "/" : name);
    }
  } else {
    const std::string prefix = folder.empty() ? "" : folder + "/";
    for (const auto& [name, member] : members_)
      if (name.starts_with(prefix))
        out.push_back(name.substr(prefix.size(), name.find('/', prefix.size()) - prefix.size() +
                                                     (name.find('/', prefix.size()) != std::string::npos ? 1 : 0)));
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
  return zip_ == nullptr ? file_exists(path_ + "/" + name) : member(name) != nullptr;
}

std::string FileSource::where(const std::string& name) const { return path_ + (zip_ == nullptr ? "/" : ": ") + name; }

std::string FileSource::read(const std::string& name) {
  std::string bytes;
  if (zip_ == nullptr) {
    bytes = read_file(path_ + "/" + name, kMostBytes);
    read_.push_back(path_ + "/" + name);
  } else {
    const ZipMember* found = member(name);
    check<IoError>(found != nullptr, "{}: has no member {}", path_, name);
    bytes = zip_->read(*found, kMostBytes);
    read_ = {path_};
  }
  return name.ends_with(".gz") ? gunzip(bytes, kMostBytes, where(name)) : bytes;
}

std::string FileSource::sha256() const { return sha256_of_files(read_); }

}  // namespace tessera
