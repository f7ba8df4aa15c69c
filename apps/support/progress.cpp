#include "tessera/apps/support/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tessera::apps {

std::string duration_text(double seconds) {
  char text[48];
  const long whole = long(seconds + 0.5);
  if (seconds < 60)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (whole < 3600)
    std::snprintf(text, sizeof text, "%ld min %02ld s", whole / 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld h %02ld min", whole / 3600, whole % 3600 / 60);
  return text;
}

Progress::Progress(std::string title, int64_t total)
    : title_(std::move(title)), total_(total), terminal_(isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

Progress::~Progress() { finish(); }

void Progress::update(int64_t done, const std::string& note) {
  const Clock::time_point now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_).count();
  if (since < (terminal_ ? 0.1 : 10.0)) return;
  last_ = now;
  const double spent = std::chrono::duration<double>(now - start_).count();
  const std::string left = done > 0 ? duration_text(spent / double(done) * double(total_ - done)) : "?";
  if (!terminal_) {
    std::fprintf(stderr, "%s %lld/%lld, %s left  %s\n", title_.c_str(), (long long)done, (long long)total_, left.c_str(),
                 note.c_str());
    return;
  }
  constexpr int kWidth = 24;
  const int filled = total_ > 0 ? int(double(done) / double(total_) * kWidth) : 0;
  std::fprintf(stderr, "\r\033[K%s [%s%s] %lld/%lld  %s left  %s", title_.c_str(),
               std::string(size_t(std::clamp(filled, 0, kWidth)), '#').c_str(),
               std::string(size_t(kWidth - std::clamp(filled, 0, kWidth)), '.').c_str(), (long long)done, (long long)total_,
               left.c_str(), note.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace tessera::apps
