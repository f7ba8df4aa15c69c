#pragma once

#include "tessera/apps/support/node_task.h"

namespace tessera::apps {

/// A file of weights: ours (with options in `__metadata__`), or any state dict as safetensors or of torch.save.
struct Weights {
  std::string path;
  StateDict tensors;
  std::map<std::string, std::string> options;  ///< "--hidden" -> "16", ...; empty for a plain state dict
  int64_t features = 0, classes = 0;           ///< what it is for; 0 where it does not say
  std::vector<std::string> class_names;

  /// Takes the model's and the features' options from the file, else from the flags, and what the weights are for.
  /// Errors: UsageError listing every flag that says otherwise, or that is missing.
  void fill_options(NodeOptions& o);
  /// Errors: IoError listing all that does not fit the data.
  void check_fits(const NodeOptions& o, const NodeTask& task) const;
  /// Errors: IoError listing every tensor that is missing, unexpected or of another shape.
  void load_into(NodeModel& model) const;
};

/// The content says which kind of file it is; of a training checkpoint of torch.save the model's state is taken.
/// Errors: IoError as `load_safetensors` and `load_torch_file`; a damaged file; the state of a training run in place of
/// weights.
Weights load_weights(const std::string& path);

}  // namespace tessera::apps
