#include "tessera/tests/support/child.h"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace tessera::test {

std::string run_child(const std::string& filter, const std::vector<std::string>& environment) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) throw std::runtime_error("cannot find this program");
  std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_STATUS_FILE";
  for (const std::string& setting : environment) command += " '" + setting + "'";
  command += " '" + std::string(self) + "' --gtest_also_run_disabled_tests --gtest_filter='" + filter + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  pclose(pipe);
  const size_t begin = output.find("<<<"), end = output.find(">>>");
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error("the child reported nothing:\n" + output);
  return output.substr(begin + 3, end - begin - 3);
}

void report(const std::string& text) {
  std::printf("<<<%s>>>\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace tessera::test
