#pragma once

#include <variant>

#include "tessera/apps/support/node_options.h"
#include "tessera/core/module.h"
#include "tessera/layers/models/appnp.h"
#include "tessera/layers/models/deeper_gcn.h"
#include "tessera/layers/models/gat.h"
#include "tessera/layers/models/gcn.h"
#include "tessera/layers/models/gcn2.h"
#include "tessera/layers/models/gin.h"
#include "tessera/layers/models/graph_sage.h"
#include "tessera/layers/models/residual_gnn.h"
#include "tessera/layers/models/sgc.h"

namespace tessera::apps {

/// A model that --model names. `train` and `eval` take effect with the next call.
struct NodeModel {
  std::variant<Gcn, Gat, GraphSage, Gin, Sgc, Appnp, Gcn2, DeeperGcn, ResidualGnn> model;
  bool training = true;

  /// Of options that `fill_from_recipe` (or a file of weights) has completed.
  NodeModel(const NodeOptions& o, int64_t features, int64_t classes, Generator& random);

  /// Scores of every node: (N, classes).
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& random);
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& random);

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    std::visit([&](auto& inner) { std::remove_cvref_t<decltype(inner)>::visit(inner, visitor); }, self.model);
  }
};

bool is_node_model(std::string_view name);

/// --model and the options that models have.
void add_model_options(CLI::App& app, NodeOptions& o);

/// The options of the model that decide what it gives, dropout apart.
std::vector<std::string> deciding_model_flags(const NodeOptions& o);

/// Whether the flag is an option of some models, but not of this one.
bool missing_in_model(const NodeOptions& o, std::string_view flag);

/// Whether the parameter is one of the model's first layer: where --decay-on first-layer puts the penalty.
bool in_first_layer(const NodeOptions& o, const std::string& parameter);

/// Features and classes that a state dict of the model is for, by the shapes of its first and last layer; 0 when they are
/// not in it.
struct ModelEnds {
  int64_t features = 0, classes = 0;
};
ModelEnds ends_of(const NodeOptions& o, const StateDict& state);

}  // namespace tessera::apps
