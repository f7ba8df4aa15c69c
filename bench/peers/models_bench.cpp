// Our side of models.py: answers one JSON request a line with one JSON line until stdin closes. By hand:
//   echo '{"do": "load", "data": "../shared/data", "set": "PROTEINS", "model": "gcn", "threads": 1}
//   {"do": "check"}
//   {"do": "time", "budget_s": 2}' | models_bench

#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tessera/bench/support/side.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/module.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"
#include "tessera/core/version.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/datasets/graph_set/find.h"
#include "tessera/layers/models/gat.h"
#include "tessera/layers/models/gcn.h"
#include "tessera/layers/models/graph_classifier.h"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// A training that can be followed step by step and timed by the epoch.
struct Training {
  std::function<double()> check_step;  ///< one step on the same graphs each time: the loss
  std::function<void()> epoch;
  std::function<void(bool)> set_dropout;
};

/// Parameters, in the order of their names, become numbers that every side can make.
template <class Model>
void fill_parameters(Model& model) {
  NamedTensors named = named_parameters(model);
  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  uint32_t salt = 10;
  for (auto& [name, tensor] : named) {
    if (!tensor.requires_grad()) continue;
    float* p = tensor.template mutable_data<float>();
    const int64_t width = tensor.dim(-1);
    for (int64_t i = 0; i < tensor.numel(); ++i) p[i] = 0.3f * element(i / width, i % width, salt);
    ++salt;
  }
}

/// Full batch on one graph: an epoch is a step.
template <class Model>
Training node_training(Model model, NodeDataset data, const Graph& graph, Adam optimiser) {
  struct State {
    Model model;
    NodeDataset data;
    Graph graph;
    SparseMatrix sparse;
    Adam optimiser;
    Generator random{1};
  };
  auto s = std::make_shared<State>(State{std::move(model), std::move(data), graph, {}, std::move(optimiser)});
  const NodeDataset& d = s->data;
  if (d.sparse_features()) s->sparse = {Graph::from_csr(d.feature_rowptr, d.feature_col, d.num_features), d.feature_values};
  const auto step = [s] {
    s->optimiser.clear_grad();
    const Tensor logits = s->data.sparse_features() ? s->model(s->sparse, s->graph, s->random)
                                                    : s->model(s->data.features, s->graph, s->random);
    const Tensor loss = cross_entropy(logits, s->data.labels, s->data.splits[0].train);
    backward(loss);
    s->optimiser.step();
    return loss.item();
  };
  return {step, step, [s](bool on) { train(s->model, on); }};
}

/// Batches of graphs in an order that every epoch draws anew.
template <class Model>
Training graph_training(Model model, GraphSet set, int64_t batch) {
  struct State {
    Model model;
    GraphSet set;
    Adam optimiser;
    std::vector<int32_t> order;
    Generator random{1};
  };
  Adam optimiser(parameters(model), {.lr = 0.01});
  auto s = std::make_shared<State>(State{std::move(model), std::move(set), std::move(optimiser), {}});
  s->order.resize(size_t(s->set.num_graphs()));
  std::iota(s->order.begin(), s->order.end(), 0);
  const auto step = [s](std::span<const int32_t> ids) {
    const GraphSample sample = s->set.sample(ids);
    s->optimiser.clear_grad();
    const Tensor loss = cross_entropy(s->model(sample.x, sample.batch.graph, sample.batch.nodes, s->random), sample.y);
    backward(loss);
    s->optimiser.step();
    return loss.item();
  };
  const size_t size = size_t(batch);
  Training out;
  out.check_step = [s, step, size] { return step(std::span(s->order).first(std::min(size, s->order.size()))); };
  out.epoch = [s, step, size] {
    const Philox draw = s->random.next();
    for (size_t i = s->order.size(); i > 1; --i) {
      const Philox::Draw bits = draw(i);
      std::swap(s->order[i - 1], s->order[Philox::below((uint64_t{bits.bits[0]} << 32) | bits.bits[1], i)]);
    }
    for (size_t begin = 0; begin < s->order.size(); begin += size)
      step(std::span(s->order).subspan(begin, std::min(size, s->order.size() - begin)));
  };
  out.set_dropout = [s](bool on) { s->model.training = on; };  // batch norm goes on by the batch
  return out;
}

Training node_training(const std::string& name, const std::string& data, const std::string& which) {
  NodeDataset d = load_node_dataset(name, data);
  normalise_rows(d);
  sparsify_features(d, 0.1);
  const Graph graph = Graph::from_coo(d.src, d.dst, d.num_nodes, d.num_nodes);
  Generator random(1);
  if (which == "gat") {
    Gat model({.in = d.num_features, .out = d.num_classes}, random);
    fill_parameters(model);
    Adam optimiser({Adam::Group{parameters(model), 5e-4}}, {.lr = 0.005});
    return node_training(std::move(model), std::move(d), graph, std::move(optimiser));
  }
  Gcn model({.in = d.num_features, .hidden = 16, .out = d.num_classes, .layers = 2, .dropout = 0.5, .input_dropout = 0.5},
            random);
  fill_parameters(model);
  Adam optimiser({Adam::Group{parameters(model.convs[0]), 5e-4}, Adam::Group{parameters(model.convs[1]), 0}}, {.lr = 0.01});
  return node_training(std::move(model), std::move(d), graph, std::move(optimiser));
}

Training graph_training(const std::string& name, const std::string& data, const std::string& which, int64_t batch) {
  GraphSet set = load_graph_set(name, {data});
  choose_features(set, GraphFeatures::usual);
  Generator random(1);
  const GraphClassifierOptions options{.in = set.num_features, .hidden = 32, .out = set.outputs, .layers = 3};
  if (which == "gin") {
    GinClassifier model(options, random);
    fill_parameters(model);
    return graph_training(std::move(model), std::move(set), batch);
  }
  GcnClassifier model(options, random);
  fill_parameters(model);
  return graph_training(std::move(model), std::move(set), batch);
}

class Side {
 public:
  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "load") return load(request);
    if (what == "check") return check_losses();
    if (what == "time") return time_epochs(request.value("budget_s", 1.0), request.value("clock", "wall") == "cpu");
    fail("nothing is done for \"{}\"", what);
  }

 private:
  Json load(const Json& request) {
    training_ = {};
    release_cached_memory();
    set_threads(request.at("threads"));
    const std::string set = request.at("set"), data = request.at("data"), model = request.at("model");
    training_ =
        set == "cora" ? node_training(set, data, model) : graph_training(set, data, model, request.value("batch", 128));
    return {{"version", version()}, {"isa", name(active_isa())}};
  }

  Json check_losses() {
    training_.set_dropout(false);
    Json losses = Json::array();
    for (int i = 0; i < 5; ++i) losses.push_back(training_.check_step());
    training_.set_dropout(true);
    return {{"losses", losses}};
  }

  Json time_epochs(double budget, bool processor_time) {
    const Timing timing = time_calls(training_.epoch, budget, processor_time);
    return {{"median_s", timing.median()}, {"min_s", timing.min()}, {"peak_bytes", peak_bytes()}};
  }

  Training training_;
};

}  // namespace
}  // namespace tessera::bench

int main() {
  tessera::bench::Side side;
  for (std::string line; std::getline(std::cin, line);) {
    tessera::bench::Json answer;
    try {
      answer = side.answer(tessera::bench::Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
