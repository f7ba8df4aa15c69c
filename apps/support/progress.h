#pragma once

#include <chrono>
#include <string>

namespace tessera::apps {

/// Progress of a loop on standard error: one line redrawn with a bar and the time left on a terminal, a plain line at most
/// every ten seconds elsewhere.
class Progress {
 public:
  /// `total` steps of what `title` names.
  Progress(std::string title, int64_t total);
  ~Progress();
  /// `done` steps are done; `note` is shown beside them.
  void update(int64_t done, const std::string& note = {});
  /// Ends the line that is being redrawn.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  int64_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

/// "8.1 s", "2 min 05 s", "1 h 02 min".
std::string duration_text(double seconds);

}  // namespace tessera::apps
