#include "tessera/apps/support/graph_model.h"

#include <algorithm>

#include "tessera/apps/support/program.h"
#include "tessera/core/module.h"

namespace tessera::apps {
namespace {

struct Named {
  const char* name;
  bool numbers, categories, layers, ratio;
};

constexpr Named kModels[] = {
    {"gcn", true, true, true, false},
    {"gin", true, true, true, false},
    {"sage", true, false, true, false},
    {"sagpool", true, false, true, true},
    {"topk", true, false, true, true},
    {"sagpool-hierarchical", true, false, false, true},
    {"sagpool-global", true, false, false, true},
    {"gcn-virtual", false, true, true, false},
    {"gin-virtual", false, true, true, false},
};

const Named& find(const std::string& name) {
  return *std::find_if(std::begin(kModels), std::end(kModels), [&](const Named& model) { return name == model.name; });
}

}  // namespace

std::vector<std::string> graph_model_names() {
  std::vector<std::string> out;
  for (const Named& model : kModels) out.emplace_back(model.name);
  return out;
}

void check_graph_model(const std::string& name, bool categories) {
  if (categories ? find(name).categories : find(name).numbers) return;
  std::string list;
  for (const Named& model : kModels)
    if (categories ? model.categories : model.numbers) list += (list.empty() ? "" : ", ") + std::string(model.name);
  fail<UsageError>("--model {} takes {} but the set has {}: {} would do", name,
                   categories ? "numbers as features" : "atoms and bonds as categories",
                   categories ? "categories" : "numbers", list);
}

bool has_layers(const std::string& name) { return find(name).layers; }
bool has_ratio(const std::string& name) { return find(name).ratio; }

Tensor GraphModel::operator()(const GraphSample& sample, Generator& random) const {
  return std::visit(
      [&](const auto& model) {
        if constexpr (requires { model(sample.x, sample.batch.graph, sample.batch.nodes, sample.edge_attr, random); })
          return model(sample.x, sample.batch.graph, sample.batch.nodes, sample.edge_attr, random);
        else
          return model(sample.x, sample.batch.graph, sample.batch.nodes, random);
      },
      net);
}

void GraphModel::set_training(bool on) {
  std::visit([&](auto& model) { tessera::train(model, on); }, net);
}

GraphModel make_graph_model(const std::string& name, const GraphModelSizes& s, Generator& random) {
  if (s.categories) {
    const MoleculeNetOptions options{.out = s.out,
                                     .hidden = s.hidden,
                                     .layers = int(s.layers),
                                     .virtual_node = name.ends_with("-virtual"),
                                     .dropout = s.dropout};
    if (name.starts_with("gin")) return {MoleculeGin(options, random)};
    return {MoleculeGcn(options, random)};
  }
  if (name == "sagpool-hierarchical" || name == "sagpool-global") {
    const SagPaperNetOptions options{.in = s.in, .hidden = s.hidden, .out = s.out, .ratio = s.ratio, .dropout = s.dropout};
    if (name == "sagpool-global") return {SagPoolGlobalNet(options, random)};
    return {SagPoolHierarchicalNet(options, random)};
  }
  if (name == "sagpool" || name == "topk") {
    const PoolingNetOptions options{
        .in = s.in, .hidden = s.hidden, .out = s.out, .layers = int(s.layers), .ratio = s.ratio, .dropout = s.dropout};
    if (name == "sagpool") return {SagPoolNet(options, random)};
    return {TopKNet(options, random)};
  }
  GraphClassifierOptions options{
      .in = s.in, .hidden = s.hidden, .out = s.out, .layers = int(s.layers), .dropout = s.dropout};
  if (name == "gin") return {GinClassifier(options, random)};
  if (name == "gcn") return {GcnClassifier(options, random)};
  options.readout = Reduce::sum;  // as PyG's benchmark/kernel
  return {SageClassifier(options, random)};
}

}  // namespace tessera::apps
