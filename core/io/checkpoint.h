#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tessera/core/module.h"
#include "tessera/core/random.h"

/// The whole state of a training run in one safetensors file: tensors by part ("model.convs.0.bias", "optimiser.m.0"),
/// numbers and texts in `__metadata__`, and there also the version of this layout and a SHA-256 over everything.
namespace tessera {

/// Raised when the meaning of saved state changes; a file of another version is refused.
inline constexpr int64_t kCheckpointSemantics = 1;

struct Checkpoint {
  StateDict tensors;
  std::map<std::string, std::string> values;

  /// Adds every tensor of `state` as "`part`.name"; handles, not copies.
  void put(const std::string& part, const StateDict& state);
  /// The tensors of a part under their own names; empty when there are none.
  StateDict part(const std::string& name) const;

  void put_text(const std::string& name, const std::string& value) { values[name] = value; }
  void put_integer(const std::string& name, int64_t value);
  void put_unsigned(const std::string& name, uint64_t value);
  /// Every bit of the number is kept, also of NaN and infinities.
  void put_number(const std::string& name, double value);

  /// Errors: InvalidArgument when `name` is missing or its value is not such a number.
  const std::string& text(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  uint64_t unsigned_integer(const std::string& name) const;
  double number(const std::string& name) const;
  bool has(const std::string& name) const { return values.contains(name); }

  void put_generator(const std::string& name, const Generator& generator);
  Generator generator(const std::string& name) const;
};

/// Writes `checkpoint` under `path` whole or not at all (`write_atomically`): the file before it stays until the new one is
/// synced. Errors: as `save_safetensors`.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Reads a file of `save_checkpoint`. Errors: IoError for a file that is no checkpoint, of another semantics version, or
/// whose content does not give its digest; as `load_safetensors`.
Checkpoint load_checkpoint(const std::string& path);

/// Puts the parts "model", "optimiser" and the generator "generator" of a checkpoint into what is trained, all of them or,
/// when anything is missing, unexpected or of another shape, none. The optimiser has `StateDict state() const` and
/// `load_state(const StateDict&)`, which checks before it changes anything.
/// Errors: InvalidArgument, listing everything that does not fit.
template <class Module, class Optimiser>
void restore(const Checkpoint& checkpoint, Module& model, Optimiser& optimiser, Generator& generator) {
  const Generator saved = checkpoint.generator("generator");
  const StateDict weights = checkpoint.part("model");
  check_state(weights, named_parameters(model));
  optimiser.load_state(checkpoint.part("optimiser"));
  load_state_dict(model, weights);
  generator = saved;
}

}  // namespace tessera
