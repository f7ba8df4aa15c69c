#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tessera/datasets/graph_set/graph_set.h"
#include "tessera/layers/models/graph_classifier.h"
#include "tessera/layers/models/molecule_net.h"
#include "tessera/layers/models/pooling_net.h"

namespace tessera::apps {

/// What decides a model of whole graphs, beside its name.
struct GraphModelSizes {
  int64_t in = 0, hidden = 32, out = 0, layers = 3;
  double dropout = 0.5, ratio = 0.8;
  bool categories = false;  ///< the features are: molecules
};

/// Any model of whole graphs, by name: the one place that knows them all. A module like any other, but for
/// `set_training`.
struct GraphModel {
  std::variant<GcnClassifier, GinClassifier, SageClassifier, SagPoolNet, TopKNet, SagPoolHierarchicalNet, SagPoolGlobalNet,
               MoleculeGin, MoleculeGcn>
      net;

  /// A row of logits for each graph.
  Tensor operator()(const GraphSample& sample, Generator& random) const;
  void set_training(bool on);

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    std::visit([&](auto& net) { std::remove_cvref_t<decltype(net)>::visit(net, visitor); }, self.net);
  }
};

/// "gcn", "gin", ..., in the order of the help.
std::vector<std::string> graph_model_names();

/// Errors: UsageError when the model does not take such features (categories: molecules; else numbers), with those that do.
void check_graph_model(const std::string& name, bool categories);

/// Whether a number of layers means something to it.
bool has_layers(const std::string& name);
/// Whether --ratio means something to it.
bool has_ratio(const std::string& name);

GraphModel make_graph_model(const std::string& name, const GraphModelSizes& sizes, Generator& random);

}  // namespace tessera::apps
