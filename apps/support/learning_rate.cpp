#include "tessera/apps/support/learning_rate.h"

#include <algorithm>

#include "tessera/apps/support/metric.h"
#include "tessera/apps/support/program.h"

namespace tessera::apps {

LearningRate::LearningRate(const TrainingOptions& o)
    : schedule_(o.schedule),
      warmup_(o.warmup),
      every_(o.lr_every),
      epochs_(o.epochs),
      lr_(o.lr),
      factor_(o.lr_factor),
      least_(o.lr_least),
      plateau_{.lr = o.lr,
               .factor = o.lr_factor,
               .patience = o.lr_patience,
               .least = o.lr_least,
               .larger_is_better = o.stop_on == "metric" && larger_is_better(o.metric)} {}

double LearningRate::at(int64_t epoch) const {
  const int64_t after = std::max<int64_t>(0, epoch - warmup_);
  double lr = lr_;
  if (schedule_ == "step") lr = StepSchedule{lr_, every_, factor_}.at(after);
  if (schedule_ == "cosine") lr = CosineSchedule{lr_, std::max<int64_t>(1, epochs_ - warmup_), least_}.at(after);
  if (schedule_ == "plateau") lr = plateau_.lr;
  return warmup_ > 0 ? lr * WarmUp{warmup_}.at(epoch) : lr;
}

void LearningRate::update(double watched) {
  if (schedule_ == "plateau") plateau_.update(watched);
}

void LearningRate::put(Checkpoint& c) const {
  c.put_number("plateau.lr", plateau_.lr);
  c.put_integer("plateau.has_best", plateau_.has_best ? 1 : 0);
  c.put_number("plateau.best", plateau_.best);
  c.put_integer("plateau.bad_epochs", plateau_.bad_epochs);
  c.put_integer("plateau.cooling", plateau_.cooling);
}

void LearningRate::restore(const Checkpoint& c) {
  Plateau before = plateau_;
  before.lr = c.number("plateau.lr");
  before.has_best = c.integer("plateau.has_best") != 0;
  before.best = c.number("plateau.best");
  before.bad_epochs = c.integer("plateau.bad_epochs");
  before.cooling = c.integer("plateau.cooling");
  plateau_ = before;
}

void fill_schedule(TrainingOptions& o) {
  struct Flag {
    const char* name;
    bool given, fits;
    const char* of;
  };
  const bool step = o.schedule == "step", cosine = o.schedule == "cosine", plateau = o.schedule == "plateau";
  for (const Flag& flag : {Flag{"--lr-every", o.lr_every >= 0, step, "step"},
                           Flag{"--lr-factor", o.lr_factor >= 0, step || plateau, "step or plateau"},
                           Flag{"--lr-patience", o.lr_patience >= 0, plateau, "plateau"},
                           Flag{"--lr-least", o.lr_least >= 0, cosine || plateau, "cosine or plateau"}})
    check<UsageError>(!flag.given || flag.fits, "{} goes with --schedule {}", flag.name, flag.of);
  if (o.warmup < 0) o.warmup = o.schedule == "warmup" ? 10 : 0;
  if (o.lr_every < 0) o.lr_every = std::max<int64_t>(1, o.epochs / 3);
  if (o.lr_factor < 0) o.lr_factor = 0.1;
  if (o.lr_patience < 0) o.lr_patience = 10;
  if (o.lr_least < 0) o.lr_least = 0;
  check<UsageError>(o.lr_least <= o.lr || !(cosine || plateau), "--lr-least {} is above --lr {}", o.lr_least, o.lr);
  check<UsageError>(o.warmup < o.epochs || o.warmup == 0, "--warmup {} leaves nothing of --epochs {}", o.warmup, o.epochs);
}

std::map<std::string, std::string> schedule_options(const TrainingOptions& o) {
  std::map<std::string, std::string> out{{"--schedule", o.schedule}};
  const bool step = o.schedule == "step", cosine = o.schedule == "cosine", plateau = o.schedule == "plateau";
  if (o.warmup > 0) out["--warmup"] = to_text(o.warmup);
  if (step) out["--lr-every"] = to_text(o.lr_every);
  if (step || plateau) out["--lr-factor"] = to_text(o.lr_factor);
  if (plateau) out["--lr-patience"] = to_text(o.lr_patience);
  if (cosine || plateau) out["--lr-least"] = to_text(o.lr_least);
  return out;
}

}  // namespace tessera::apps
