#include "tessera/tests/repo/tree.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace repo {
namespace {

bool is_text(const std::filesystem::path& path) {
  static const char* const kinds[] = {".h",  ".cpp", ".cu",   ".cuh", ".py", ".md",   ".txt", ".cmake",
                                      ".in", ".sh",  ".json", ".css", ".js", ".html", ".yml", ".supp"};
  const std::string kind = path.extension().string();
  const std::string name = path.filename().string();
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds) || name == "dev" || name == "run";
}

void collect(const std::filesystem::path& folder, std::vector<SourceFile>& out) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_symlink()) continue;
    if (entry.is_directory()) {
      if ((name[0] != '.' || name == ".ci") && !name.starts_with("build") && name != "__pycache__")
        collect(entry.path(), out);
    } else if (is_text(entry.path())) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      out.push_back({entry.path().lexically_relative(source_dir()).generic_string(), text.str()});
    }
  }
}

}  // namespace

std::string SourceFile::folder() const {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
std::string SourceFile::top() const {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
std::string SourceFile::name() const { return path.substr(path.rfind('/') + 1); }
bool SourceFile::is_header() const { return path.ends_with(".h") || path.ends_with(".cuh"); }
bool SourceFile::is_cpp() const { return is_header() || path.ends_with(".cpp") || path.ends_with(".cu"); }
int64_t SourceFile::lines() const { return std::count(text.begin(), text.end(), '\n'); }

const std::vector<SourceFile>& files() {
  static const std::vector<SourceFile> all = [] {
    std::vector<SourceFile> found;
    collect(source_dir(), found);
    std::sort(found.begin(), found.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return found;
  }();
  return all;
}

bool exists(const std::string& path) { return std::filesystem::exists(source_dir() / path); }

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> found;
  std::istringstream in(file.text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("<\"", at + 7);
    if (open == std::string::npos) continue;
    const size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string::npos) continue;
    found.push_back({line.substr(open + 1, close - open - 1), line[open] == '"', number});
  }
  return found;
}

int room_index(std::string_view name) {
  for (int i = 0; i < kRoomCount; ++i)
    if (name == kRooms[i]) return i;
  return -1;
}

std::filesystem::path source_dir() { return REPO_SOURCE_DIR; }
std::filesystem::path build_dir() { return REPO_BUILD_DIR; }

Output run(const std::string& command, const std::filesystem::path& folder) {
  const std::string line = "cd " + quoted(folder.string()) + " && { " + command + "\n} 2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string text;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace repo
