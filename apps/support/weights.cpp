#include "tessera/apps/support/weights.h"

#include "tessera/apps/support/node_run.h"
#include "tessera/apps/support/program.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/printable.h"

namespace tessera::apps {
namespace {

void join(std::string& list, const std::string& item, const char* separator = ", ") {
  list += (list.empty() ? "" : separator) + item;
}

}  // namespace

Weights load_weights(const std::string& path) {
  SafeTensors file = load_safetensors(path);
  Weights out{.path = path, .tensors = std::move(file.tensors)};
  // The first layer's weight has a column for every feature, the last layer's bias a number for every class.
  for (const auto& [name, tensor] : out.tensors) {
    if (name == "convs.0.lin.weight" && tensor.ndim() == 2) out.features = tensor.dim(1);
    if (name.starts_with("convs.") && name.ends_with(".bias") && tensor.ndim() == 1) out.classes = tensor.dim(0);
  }
  const bool ours = file.metadata.contains("tessera.digest");
  check<IoError>(!ours || !file.metadata.contains("epoch"),
                 "{}: the state of a training run; the weights it ended with are beside it in model.safetensors", path);
  check<IoError>(out.classes > 0 && out.features > 0,
                 "{}: no weights of a gcn, which has convs.0.lin.weight and convs.<i>.bias", path);
  if (!ours) return out;
  const Checkpoint checkpoint = load_checkpoint(path);
  for (const auto& [name, value] : checkpoint.values)
    if (name.starts_with("option.")) out.options[name.substr(7)] = value;
  for (int64_t c = 0; checkpoint.has("class." + std::to_string(c)); ++c)
    out.class_names.push_back(checkpoint.text("class." + std::to_string(c)));
  check<IoError>(out.class_names.empty() || int64_t(out.class_names.size()) == out.classes,
                 "{}: names {} classes but has {}", path, out.class_names.size(), out.classes);
  return out;
}

void Weights::fill_options(NodeOptions& o) const {
  if (options.empty()) {
    std::string missing;
    if (o.hidden < 0) join(missing, "--hidden");
    if (o.layers < 0) join(missing, "--layers");
    check<UsageError>(missing.empty(), "{} says nothing of how the model was made; give {}", path, missing);
    if (o.features.empty()) o.features = "raw";
    return;
  }
  std::string problems;
  const auto take_text = [&](const char* flag, std::string& option) {
    const auto found = options.find(flag);
    if (found == options.end())
      join(problems, std::string(flag) + " is missing in the file");
    else if (option.empty())
      option = found->second;
    else if (option != found->second)
      join(problems, std::string(flag) + " " + option + " (the file: " + printable(found->second) + ")");
  };
  const auto take_number = [&](const char* flag, int64_t& option) {
    std::string text = option < 0 ? "" : to_text(option);
    take_text(flag, text);
    char* end = nullptr;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (*end != '\0' || value < 1 || value > 65536)
      join(problems, std::string(flag) + " is '" + printable(text) + "' in the file");
    option = value;
  };
  if (o.dataset.empty() && o.edges.empty() && options.contains("--dataset")) o.dataset = options.at("--dataset");
  if (const auto found = options.find("--metric"); found != options.end() && found->second == "roc-auc" && classes == 2)
    o.metric = found->second;
  take_text("--model", o.model);
  take_text("--features", o.features);
  take_number("--hidden", o.hidden);
  take_number("--layers", o.layers);
  check<UsageError>(problems.empty(), "{}: made with other options: {}", path, problems);
}

void Weights::check_fits(const NodeOptions& o, const NodeTask& task) const {
  std::string problems;
  if (task.data.num_features != features)
    join(problems,
         "the weights are for " + to_text(features) + " features but the data has " + to_text(task.data.num_features), "; ");
  if (task.data.num_classes > 0 && task.data.num_classes != classes)
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

void Weights::load_into(Gcn& model) const {
  try {
    load_state_dict(model, tensors);
  } catch (const InvalidArgument& error) {
    throw IoError(path + ": " + error.what());
  }
  for (const auto& [name, tensor] : state_dict(model))
    check<IoError>(all_finite(tensor), "{}: {} has values that are not finite; the training diverged", path, name);
}

}  // namespace tessera::apps
