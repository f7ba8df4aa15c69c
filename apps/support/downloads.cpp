#include "tessera/apps/support/downloads.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tessera/apps/support/program.h"
#include "tessera/apps/support/progress.h"

namespace tessera::apps {

std::vector<std::string> data_folders(const std::string& data_option) {
  if (!data_option.empty()) return {data_option};
  return {".", data_folder()};
}

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 999.5 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 99.5 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

Fetch fetch_for_people() {
  Fetch how;
  const auto progress = std::make_shared<std::unique_ptr<Progress>>();
  if (const char* mirror = std::getenv("TESSERA_MIRROR")) how.mirror = mirror;
  how.say = [progress](const std::string& line) {
    if (*progress) (*progress)->finish();
    std::fprintf(stderr, "%s\n", line.c_str());
  };
  how.progress = [progress](const FetchStep& step) {
    if (!*progress) *progress = std::make_unique<Progress>("download");
    if ((*progress)->due()) {
      const double part = step.total > 0 ? double(step.received) / double(step.total) : 0;
      const std::string of = step.files == 1 ? "" : ", file " + to_text(step.number + 1) + "/" + to_text(step.files);
      (*progress)->update((double(step.number) + part) / double(step.files),
                          size_text(step.received) + (step.total > 0 ? " of " + size_text(step.total) : "") + of,
                          step.file.name.substr(step.file.name.rfind('/') + 1));
    }
    return !interrupted.load();
  };
  return how;
}

}  // namespace tessera::apps
