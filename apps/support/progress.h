#pragma once

#include <chrono>
#include <string>

namespace tessera::apps {

/// Progress on standard error: one line redrawn with a bar and the time left on a terminal, a plain line at most every ten
/// seconds elsewhere.
class Progress {
 public:
  /// Of what `title` names; `already` is the share that was done before, which tells nothing about the time left.
  explicit Progress(std::string title, double already = 0);
  ~Progress();
  /// Whether `update` would show anything now: asked first where making the texts costs something.
  bool due() const;
  /// The share of everything that is done, in [0, 1]; `counts` and `note` are shown beside it.
  void update(double share, const std::string& counts, const std::string& note = {});
  /// Ends the line that is being redrawn.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  double already_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

/// "8.1 s", "2 min 05 s", "1 h 02 min".
std::string duration_text(double seconds);

}  // namespace tessera::apps
