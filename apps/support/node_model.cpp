#include "tessera/apps/support/node_model.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/program.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/create.h"

namespace tessera::apps {
namespace {

NodeNorm::Kind norm_of(const std::string& name) {
  if (name == "batch") return NodeNorm::Kind::batch;
  if (name == "layer") return NodeNorm::Kind::layer_node;
  return NodeNorm::Kind::none;
}

/// What is built for a name, the options it has, and where its state keeps the first and the last layer ("<last>" is the
/// last layer's number).
struct Kind {
  const char *name, *about, *flags;
  const char *first_layer, *first_weight, *last_bias;
  decltype(NodeModel::model) (*make)(const NodeOptions& o, int64_t features, int64_t classes, Generator& random);
};

GnnOptions gnn_options(const NodeOptions& o, int64_t features, int64_t classes) {
  return {.in = features,
          .hidden = o.hidden,
          .out = classes,
          .layers = int(o.layers),
          .dropout = o.dropout,
          .input_dropout = o.input_dropout,
          .norm = norm_of(o.norm)};
}

decltype(NodeModel::model) residual(const NodeOptions& o, int64_t features, int64_t classes, Generator& random,
                                    ResidualGnnOptions::Aggregate aggregate) {
  return ResidualGnn({.in = features,
                      .hidden = o.hidden,
                      .out = classes,
                      .layers = int(o.layers),
                      .aggregate = aggregate,
                      .dropout = o.dropout},
                     random);
}

using Model = decltype(NodeModel::model);

constexpr const char* kLayered = "--hidden --layers --dropout --input-dropout --norm";
constexpr const char* kResidual = "--hidden --layers --dropout";

const Kind kKinds[] = {
    {"gcn", "graph convolutions", kLayered, "convs.0.", "convs.0.lin.weight", "convs.<last>.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return Gcn(gnn_options(o, in, out), random);
     }},
    {"gat", "graph attention", "--hidden --layers --dropout --heads --out-heads", "convs.0.", "convs.0.lin.weight",
     "convs.<last>.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return Gat({.in = in,
                   .hidden = o.hidden,
                   .out = out,
                   .layers = int(o.layers),
                   .heads = o.heads,
                   .out_heads = o.out_heads,
                   .dropout = o.dropout},
                  random);
     }},
    {"sage", "GraphSAGE with means", kLayered, "convs.0.", "convs.0.lin_l.weight", "convs.<last>.lin_l.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return GraphSage(gnn_options(o, in, out), random);
     }},
    {"gin", "graph isomorphism network", kLayered, "convs.0.", "convs.0.nn.lins.0.weight", "convs.<last>.nn.lins.1.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return Gin(gnn_options(o, in, out), random);
     }},
    {"sgc", "simplified graph convolution", "--hops", "conv1.", "conv1.lin.weight", "conv1.lin.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return Sgc({.in = in, .out = out, .hops = int(o.hops)}, random);
     }},
    {"appnp", "predict, then propagate", "--hidden --dropout --hops --alpha", "lin1.", "lin1.weight", "lin2.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return Appnp({.in = in,
                     .hidden = o.hidden,
                     .out = out,
                     .dropout = o.dropout,
                     .propagation = {.hops = int(o.hops), .alpha = o.alpha}},
                    random);
     }},
    {"gcn2", "GCNII", "--hidden --layers --dropout --alpha --theta", "lins.0.", "lins.0.weight", "lins.1.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return Gcn2({.in = in,
                    .hidden = o.hidden,
                    .out = out,
                    .layers = int(o.layers),
                    .alpha = o.alpha,
                    .theta = o.theta,
                    .dropout = o.dropout},
                   random);
     }},
    {"deeper-gcn", "DeeperGCN of softmax aggregation", "--hidden --layers --dropout", "node_encoder.", "node_encoder.weight",
     "lin.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) -> Model {
       return DeeperGcn({.in = in, .hidden = o.hidden, .out = out, .layers = int(o.layers), .dropout = o.dropout}, random);
     }},
    {"residual-gcn", "deep, with skip connections and layer norms", kResidual, "input_linear.", "input_linear.weight",
     "output_linear.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) {
       return residual(o, in, out, random, ResidualGnnOptions::Aggregate::gcn);
     }},
    {"residual-sage", "the same with means", kResidual, "input_linear.", "input_linear.weight", "output_linear.bias",
     [](const NodeOptions& o, int64_t in, int64_t out, Generator& random) {
       return residual(o, in, out, random, ResidualGnnOptions::Aggregate::sage);
     }},
};

constexpr const char* kModelFlags[] = {"--hidden",    "--layers", "--dropout", "--input-dropout", "--heads",
                                       "--out-heads", "--hops",   "--alpha",   "--theta",         "--norm"};

bool has(const Kind& kind, std::string_view flag) {
  const std::string words = std::string(" ") + kind.flags + " ";
  return words.find(" " + std::string(flag) + " ") != std::string::npos;
}

const Kind& kind_of(const NodeOptions& o) {
  for (const Kind& kind : kKinds)
    if (o.model == kind.name) return kind;
  fail<InternalError>("the model {} is not known", o.model);
}

Tensor dense(const SparseMatrix& x) {
  Tensor out = zeros({x.rows(), x.columns()});
  const int64_t* rowptr = x.pattern.rowptr().data<int64_t>();
  const int32_t* col = x.pattern.col().data<int32_t>();
  const int64_t* id = x.pattern.edge_id().defined() ? x.pattern.edge_id().data<int64_t>() : nullptr;
  float* to = out.mutable_data<float>();
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t k = rowptr[i]; k < rowptr[i + 1]; ++k)
      to[i * x.columns() + col[k]] += x.values.data<float>()[id != nullptr ? id[k] : k];
  return out;
}

template <class Features>
Tensor logits(NodeModel& self, const Features& x, const Graph& graph, Generator& random) {
  return std::visit(
      [&](auto& inner) {
        if constexpr (requires { inner.training; }) inner.training = self.training;
        if constexpr (requires { inner(x, graph, random); })
          return inner(x, graph, random);
        else
          return inner(dense(x), graph, random);
      },
      self.model);
}

}  // namespace

NodeModel::NodeModel(const NodeOptions& o, int64_t features, int64_t classes, Generator& random)
    : model(kind_of(o).make(o, features, classes, random)) {}

Tensor NodeModel::operator()(const Tensor& x, const Graph& graph, Generator& random) {
  return logits(*this, x, graph, random);
}

Tensor NodeModel::operator()(const SparseMatrix& x, const Graph& graph, Generator& random) {
  return logits(*this, x, graph, random);
}

bool is_node_model(std::string_view name) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return name == kind.name; });
}

void add_model_options(CLI::App& app, NodeOptions& o) {
  std::vector<std::string> names;
  std::string about = "architecture:";
  for (const Kind& kind : kKinds) {
    names.push_back(kind.name);
    about += std::string(names.size() > 1 ? ", " : " ") + kind.name + " (" + kind.about + ")";
  }
  const auto who = [&](const char* flag) {  // "gcn, sage: "
    std::string out;
    for (const Kind& kind : kKinds)
      if (has(kind, flag)) out += (out.empty() ? "" : ", ") + std::string(kind.name);
    return out + ": ";
  };
  app.add_option("--model", o.model, about)->check(one_of(names))->capture_default_str()->type_name("NAME")->group("Model");
  app.add_option("--hidden", o.hidden, "width of the hidden layers; of gat, of each head")
      ->check(in_range(1, 65536))
      ->type_name("N")
      ->group("Model");
  app.add_option("--layers", o.layers, "layers")->check(in_range(1, 64))->type_name("N")->group("Model");
  app.add_option("--heads", o.heads, who("--heads") + "attention heads of every layer but the last")
      ->check(in_range(1, 1024))
      ->type_name("N")
      ->group("Model");
  app.add_option("--out-heads", o.out_heads, who("--out-heads") + "attention heads of the last layer, averaged")
      ->check(in_range(1, 1024))
      ->type_name("N")
      ->group("Model");
  app.add_option("--hops", o.hops, who("--hops") + "how often features are propagated")
      ->check(in_range(0, 1024))
      ->type_name("N")
      ->group("Model");
  app.add_option("--alpha", o.alpha, who("--alpha") + "share of a node's own prediction in each propagation")
      ->check(in_range(0.0, 1.0))
      ->type_name("A")
      ->group("Model");
  app.add_option("--theta", o.theta, who("--theta") + "how fast the layers' matrices become the identity")
      ->check(in_range(0.0, 100.0))
      ->type_name("T")
      ->group("Model");
  app.add_option("--norm", o.norm, who("--norm") + "none, batch or layer between the layers")
      ->check(one_of({"none", "batch", "layer"}))
      ->type_name("NAME")
      ->group("Model");
}

std::vector<std::string> deciding_model_flags(const NodeOptions& o) {
  std::vector<std::string> out;
  for (const std::string flag : kModelFlags)
    if (has(kind_of(o), flag) && flag != "--dropout" && flag != "--input-dropout") out.push_back(flag);
  return out;
}

bool missing_in_model(const NodeOptions& o, std::string_view flag) {
  const bool known = std::find(std::begin(kModelFlags), std::end(kModelFlags), flag) != std::end(kModelFlags);
  return known && !has(kind_of(o), flag);
}

bool in_first_layer(const NodeOptions& o, const std::string& parameter) {
  return parameter.starts_with(kind_of(o).first_layer);
}

ModelEnds ends_of(const NodeOptions& o, const StateDict& state) {
  const Kind& kind = kind_of(o);
  std::string last = kind.last_bias;
  if (const size_t at = last.find("<last>"); at != std::string::npos) last.replace(at, 6, to_text(o.layers - 1));
  ModelEnds ends;
  const auto first = state.find(kind.first_weight), bias = state.find(last);
  if (first != state.end() && first->second.ndim() == 2) ends.features = first->second.dim(1);
  if (bias != state.end() && bias->second.ndim() == 1) ends.classes = bias->second.dim(0);
  return ends;
}

}  // namespace tessera::apps
