#pragma once

#include <map>
#include <string>

#include "tessera/apps/support/training_options.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/core/optim/schedule.h"

namespace tessera::apps {

/// The learning rate of a run by --schedule and --warmup. Step and cosine count the epochs after the warm-up; cosine ends
/// with --epochs. Plateau watches what --stop-on says and is the only one with a state.
class LearningRate {
 public:
  explicit LearningRate(const TrainingOptions& o);
  /// For the epoch that follows `epoch` finished ones.
  double at(int64_t epoch) const;
  /// Takes what was watched after an epoch.
  void update(double watched);
  void put(Checkpoint& checkpoint) const;
  void restore(const Checkpoint& checkpoint);

 private:
  std::string schedule_;
  int64_t warmup_, every_, epochs_;
  double lr_, factor_, least_;
  Plateau plateau_;
};

/// Sets what --schedule needs and the flags left open. Errors: UsageError for a flag of another schedule.
void fill_schedule(TrainingOptions& o);

/// The options of the chosen schedule as flags and values; none without a schedule.
std::map<std::string, std::string> schedule_options(const TrainingOptions& o);

}  // namespace tessera::apps
