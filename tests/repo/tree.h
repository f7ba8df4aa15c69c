#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The repository as the self-checks see it: its text files, without build folders and hidden ones.
namespace repo {

/// The library's rooms, in the order of their doors, and the programs behind them.
inline constexpr const char* kRooms[] = {"core", "scatter", "sparse", "layers", "sampling", "datasets", "apps"};
inline constexpr int kRoomCount = 7;

struct SourceFile {
  std::string path;  // from the root, with '/'
  std::string text;

  std::string folder() const;  // "core/ops" of "core/ops/reduce.h", "" of a file at the top
  std::string top() const;     // "core" of "core/ops/reduce.h"
  std::string name() const;    // "reduce.h" of "core/ops/reduce.h"
  bool is_cpp() const;         // C++ and CUDA sources and headers
  bool is_header() const;      // .h and .cuh
  int64_t lines() const;
};

struct Include {
  std::string target;  // between the quotes or brackets
  bool quoted;
  int line;
};

/// Every text file, sorted by path; read once.
const std::vector<SourceFile>& files();

/// Whether a file of that path, from the root, is there.
bool exists(const std::string& path);

std::vector<Include> includes_of(const SourceFile& file);

/// Position in kRooms, -1 for anything else.
int room_index(std::string_view name);

/// Folders of the sources and of the build that is being tested.
std::filesystem::path source_dir();
std::filesystem::path build_dir();

struct Output {
  int status;  // exit status, -1 when it died otherwise
  std::string text;
};

/// Runs a shell command in `folder` and returns stdout and stderr together.
Output run(const std::string& command, const std::filesystem::path& folder);

/// `'` quoted for the shell.
std::string quoted(const std::string& word);

}  // namespace repo
