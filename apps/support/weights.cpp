#include "tessera/apps/support/weights.h"

#include "tessera/apps/support/node_run.h"
#include "tessera/apps/support/program.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/io/torch_file.h"
#include "tessera/core/printable.h"

namespace tessera::apps {
namespace {

void join(std::string& list, const std::string& item, const char* separator = ", ") {
  list += (list.empty() ? "" : separator) + item;
}

}  // namespace

Weights load_weights(const std::string& path) {
  if (is_torch_file(path)) return {.path = path, .tensors = model_state(load_torch_file(path))};
  SafeTensors file = load_safetensors(path);
  Weights out{.path = path, .tensors = std::move(file.tensors)};
  if (!file.metadata.contains("tessera.digest")) return out;
  check<IoError>(!file.metadata.contains("epoch"),
                 "{}: the state of a training run; the weights it ended with are beside it in model.safetensors", path);
  const Checkpoint checkpoint = load_checkpoint(path);
  for (const auto& [name, value] : checkpoint.values)
    if (name.starts_with("option.")) out.options[name.substr(7)] = value;
  for (int64_t c = 0; checkpoint.has("class." + std::to_string(c)); ++c)
    out.class_names.push_back(checkpoint.text("class." + std::to_string(c)));
  return out;
}

void Weights::fill_options(NodeOptions& o) {
  std::string problems, missing;
  const auto saved = [&](const char* flag) {
    const auto found = options.find(flag);
    return found == options.end() ? std::string() : found->second;
  };
  const bool ours = !options.empty();
  if (o.model.empty()) o.model = ours ? saved("--model") : "gcn";
  check<UsageError>(!ours || o.model == saved("--model"), "{}: made with other options: --model {} (the file: {})", path,
                    o.model, printable(saved("--model")));
  check<IoError>(is_node_model(o.model), "{}: holds the model '{}', which is not known", path, printable(o.model));
  check_model_options(o);
  for (const std::string& flag : deciding_model_flags(o)) {
    const NodeFlag& option = node_flag(flag);
    const std::string value = saved(flag.c_str());
    if (!option.open(o)) {
      if (ours && option.text(o) != value)
        join(problems, flag + " " + option.text(o) + " (the file: " + printable(value) + ")");
    } else if (!ours && flag == "--norm") {
      o.norm = "none";
    } else if (!ours) {
      join(missing, flag);
    } else if (!option.set(o, value)) {
      join(problems, flag + " is '" + printable(value) + "' in the file");
    }
  }
  check<UsageError>(missing.empty(), "{} says nothing of how the model was made; give {}", path, missing);
  if (!ours && o.features.empty()) o.features = "raw";
  if (o.features.empty()) o.features = saved("--features");
  if (ours && o.features != saved("--features"))
    join(problems, "--features " + o.features + " (the file: " + printable(saved("--features")) + ")");
  check<UsageError>(problems.empty(), "{}: made with other options: {}", path, problems);
  for (const char* flag : {"--hidden", "--layers", "--heads", "--out-heads", "--hops"}) {
    if (missing_in_model(o, flag)) continue;
    const std::string text = node_flag(flag).text(o);
    check<IoError>(text.size() <= 5 && (text != "0" || std::string_view(flag) == "--hops"), "{}: {} is {} in the file", path,
                   flag, text);
  }

  const ModelEnds ends = ends_of(o, tensors);
  features = ends.features;
  classes = ends.classes;
  o.dropout = o.input_dropout = 0;
  if (o.dataset.empty() && o.edges.empty()) o.dataset = saved("--dataset");
  if (saved("--metric") == "roc-auc" && classes == 2) o.metric = "roc-auc";
  check<IoError>(class_names.empty() || classes == 0 || int64_t(class_names.size()) == classes,
                 "{}: names {} classes but has {}", path, class_names.size(), classes);
}

void Weights::check_fits(const NodeOptions& o, const NodeTask& task) const {
  std::string problems;
  if (features > 0 && task.data.num_features != features)
    join(problems,
         "the weights are for " + to_text(features) + " features but the data has " + to_text(task.data.num_features), "; ");
  if (classes > 0 && task.data.num_classes > 0 && task.data.num_classes != classes)
    join(problems, "the weights are for " + to_text(classes) + " classes but the data has " + to_text(task.data.num_classes),
         "; ");
  for (size_t c = 0; c < std::min(class_names.size(), task.class_names.size()); ++c)
    if (class_names[c] != task.class_names[c]) {
      join(problems,
           "class " + to_text(c) + " is '" + printable(class_names[c]) + "' but '" + printable(task.class_names[c]) +
               "' in the data",
           "; ");
      break;
    }
  check<IoError>(problems.empty(), "{} does not fit {}: {}", path, o.dataset, problems);
}

void Weights::load_into(NodeModel& model) const {
  try {
    load_state_dict(model, tensors);
  } catch (const InvalidArgument& error) {
    throw IoError(path + ": " + error.what());
  }
  for (const auto& [name, tensor] : state_dict(model))
    check<IoError>(all_finite(tensor), "{}: {} has values that are not finite; the training diverged", path, name);
}

}  // namespace tessera::apps
