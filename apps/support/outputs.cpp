#include "tessera/apps/support/outputs.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tessera/apps/support/program.h"

namespace tessera::apps {
namespace {

namespace fs = std::filesystem;

// Permission bits do not tell (a read-only or full file system, another user's quota); a file that is made does.
void check_folder(const std::string& flag, const std::string& path, const std::string& folder) {
  std::string probe = folder + "/.tessera-XXXXXX";
  const int descriptor = ::mkstemp(probe.data());
  check<UsageError>(descriptor >= 0, "{} {}: cannot write in {}: {}", flag, path, folder, std::strerror(errno));
  ::close(descriptor);
  ::unlink(probe.c_str());
}

}  // namespace

void check_output_file(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  check<UsageError>(!fs::is_directory(path, error), "{} {}: is a folder but needs to be a file", flag, path);
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return;  // a device or a pipe
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  check<UsageError>(fs::is_directory(folder, error), "{} {}: there is no folder {}", flag, path, folder);
  check_folder(flag, path, folder);
}

void check_distinct(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs) {
  // What is not there yet has no inode to compare, so the path with its links followed.
  const auto place_of = [](const std::string& path) {
    std::error_code error;
    if (path.empty() || (fs::exists(path, error) && !fs::is_regular_file(path, error) && !fs::is_directory(path, error)))
      return fs::path();
    fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
    return place.filename().empty() ? place.parent_path() : place;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const fs::path place = place_of(outputs[i].path);
    if (place.empty()) continue;
    const auto& [flag, path] = outputs[i];
    for (const NamedPath& input : inputs)
      check<UsageError>(place != place_of(input.path), "{} {}: would overwrite what {} reads", flag, path, input.flag);
    for (size_t j = 0; j < i; ++j)
      check<UsageError>(place != place_of(outputs[j].path), "{} {}: is where {} writes too", flag, path, outputs[j].flag);
  }
}

void make_output_folder(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  check<UsageError>(!fs::exists(path, error) || fs::is_directory(path, error), "{} {}: is a file but needs to be a folder",
                    flag, path);
  fs::create_directories(path, error);
  check<UsageError>(fs::is_directory(path), "{} {}: cannot make the folder: {}", flag, path, error.message());
  check_folder(flag, path, path);
}

}  // namespace tessera::apps
