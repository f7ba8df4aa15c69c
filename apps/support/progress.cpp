#include "tessera/apps/support/progress.h"

#include <sys/ioctl.h>
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

Progress::Progress(std::string title, double already)
    : title_(std::move(title)),
      already_(already),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() { finish(); }

bool Progress::due() const {
  return std::chrono::duration<double>(Clock::now() - last_).count() >= (terminal_ ? 0.1 : 10.0);
}

void Progress::update(double share, const std::string& counts, const std::string& note) {
  if (!due()) return;
  last_ = Clock::now();
  const double spent = std::chrono::duration<double>(last_ - start_).count();
  const std::string left = share > already_ ? ", " + duration_text(spent / (share - already_) * (1 - share)) + " left" : "";
  if (!terminal_) {
    std::fprintf(stderr, "%s %s%s, %s\n", title_.c_str(), counts.c_str(), left.c_str(), note.c_str());
    return;
  }
  winsize window{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col < 2) window.ws_col = 80;
  const int width = window.ws_col < 80 ? 8 : 24, filled = std::clamp(int(share * width), 0, width);
  std::string line = title_ + " [" + std::string(size_t(filled), '#') + std::string(size_t(width - filled), '.') + "] " +
                     counts + left + "  " + note;
  if (line.size() >= window.ws_col) line.resize(size_t(window.ws_col) - 1);  // a line that wraps cannot be redrawn
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace tessera::apps
