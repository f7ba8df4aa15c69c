#include "tessera/tests/support/gold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/core/autograd.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/optim/adam.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

/// 0 for integers, which have to be equal.
double largest(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return 0;
  double out = 0;
  for (const float value : tensor.span<float>()) out = std::max(out, std::fabs(double(value)));
  return out;
}

/// Gradients whose true value is zero are what remains of sums of terms about as large as the other gradients of the graph:
/// they are compared with this share of the largest one.
constexpr double kTermsOfGradients = 0.02;
constexpr double kSmallest = 2e-3;           // and results that are zero but for rounding with this
constexpr double kRate = 0.01, kEps = 1e-3;  // of the step of Adam, as in gold.py

void expect_close(const std::string& what, const Tensor& got, const Tensor& expected, double bound) {
  ASSERT_TRUE(got.defined()) << what << " is undefined";
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  if (expected.dtype() == DType::i64) {
    for (int64_t i = 0; i < expected.numel(); ++i)
      ASSERT_EQ(got.data<int64_t>()[i], expected.data<int64_t>()[i]) << what << ", element " << i;
    return;
  }
  for (int64_t i = 0; i < expected.numel(); ++i)
    ASSERT_NEAR(got.data<float>()[i], expected.data<float>()[i], bound) << what << ", element " << i;
}

struct File {
  std::map<std::string, Tensor> tensors;

  Tensor find(const std::string& name) const {
    const auto at = tensors.find(name);
    return at != tensors.end() ? at->second : Tensor();
  }
  /// Those that start with `prefix`, without it.
  StateDict below(const std::string& prefix) const {
    StateDict out;
    for (const auto& [name, tensor] : tensors)
      if (name.starts_with(prefix)) out.emplace(name.substr(prefix.size()), tensor);
    return out;
  }
};

GoldGraph graph_of(const File& file, const std::string& name) {
  GoldGraph out;
  out.name = name;
  out.x = file.find(name + "/x");
  out.edge_weight = file.find(name + "/edge_weight");
  out.edge_attr = file.find(name + "/edge_attr");
  out.edge_type = file.find(name + "/edge_type");
  out.edge_index = file.find(name + "/edge_index");
  out.atoms = file.find(name + "/atoms");
  out.bonds = file.find(name + "/bonds");
  out.graph = Graph::from_edge_index(out.edge_index, out.x.dim(0));
  std::vector<int64_t> offsets = {0};
  if (const Tensor sizes = file.find(name + "/sizes"); sizes.defined())
    for (const int64_t size : sizes.span<int64_t>()) offsets.push_back(offsets.back() + size);
  else
    offsets.push_back(out.x.dim(0));
  out.nodes = SegmentPlan::from_offsets(Tensor::from(offsets, {int64_t(offsets.size())}));
  for (Tensor* input : {&out.x, &out.edge_weight, &out.edge_attr})
    if (input->defined()) *input = clone(*input).set_requires_grad();
  return out;
}

void run_graph(const File& file, const std::string& name, NamedTensors& state,
               const std::function<GoldParts(const GoldGraph&)>& call) {
  copy_state(file.below("state/"), state);
  std::vector<Tensor> trained;
  for (auto& [parameter, tensor] : state) {
    if (!tensor.requires_grad()) continue;
    tensor.clear_grad();
    if (std::none_of(trained.begin(), trained.end(), [&](const Tensor& known) { return known.is(tensor); }))
      trained.push_back(tensor);
  }
  const GoldGraph graph = graph_of(file, name);
  const GoldParts got = call(graph);
  const StateDict expected = file.below(name + "/out");
  ASSERT_EQ(got.size(), expected.size());
  Tensor loss;
  for (const auto& [suffix, tensor] : expected) {
    const std::string part = suffix.empty() ? "" : suffix.substr(1);
    ASSERT_TRUE(got.contains(part)) << "no result is named " << part;
    expect_close("result " + part, got.at(part), tensor, 1e-5 * std::max(largest(tensor), kSmallest));
    if (const Tensor seed = file.find(name + "/seed" + suffix); seed.defined()) {
      const Tensor term = sum(mul(got.at(part), seed));
      loss = loss.defined() ? add(loss, term) : term;
    }
  }
  if (testing::Test::HasFatalFailure()) return;
  if (loss.defined() && loss.requires_grad()) backward(loss);
  const auto grad_of = [](const Tensor& tensor) {
    return tensor.grad().defined() ? tensor.grad() : zeros(tensor.shape(), tensor.dtype());
  };
  double smallest = kSmallest;
  for (const auto& [entry, tensor] : file.below(name + "/grad"))
    smallest = std::max(smallest, kTermsOfGradients * largest(tensor));
  const auto expect_grad = [&](const std::string& of, const Tensor& tensor, const Tensor& gradient) {
    expect_close("gradient of " + of, grad_of(tensor), gradient, 1e-4 * std::max(largest(gradient), smallest));
  };
  for (const auto& [input, tensor] :
       {std::pair{"x", graph.x}, {"edge_weight", graph.edge_weight}, {"edge_attr", graph.edge_attr}})
    if (tensor.defined()) expect_grad(input, tensor, file.find(name + "/grad/" + input));
  for (const auto& [parameter, tensor] : state)
    if (tensor.requires_grad()) expect_grad(parameter, tensor, file.find(name + "/grad.state/" + parameter));
  if (testing::Test::HasFatalFailure() || state.empty()) return;
  if (!trained.empty()) Adam(trained, {.lr = kRate, .eps = kEps}).step();
  for (const auto& [parameter, tensor] : state) {
    const Tensor stepped = file.find(name + "/adam/" + parameter);
    // What a gradient may be off by moves the step by kRate / kEps of that at most.
    const double moved = tensor.requires_grad() ? kRate / kEps * 1e-4 * smallest : 0;
    expect_close(parameter + " after a step", tensor.detach(), stepped,
                 2e-5 * std::max(largest(stepped), kSmallest) + moved);
  }
}

}  // namespace

Tensor edge_index_of(const Graph& graph) {
  const int64_t edges = graph.num_edges();
  Tensor out = Tensor::empty(Shape{2, edges}, DType::i64);
  int64_t* to = out.mutable_data<int64_t>();
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  for (int64_t d = 0; d < graph.num_dst(); ++d)
    for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) {
      const int64_t e = graph.edge_id().defined() ? graph.edge_id().data<int64_t>()[k] : k;
      to[e] = graph.col().data<int32_t>()[k];
      to[edges + e] = d;
    }
  return out;
}

void run_gold(const std::string& name, NamedTensors state, const std::function<GoldParts(const GoldGraph&)>& call) {
  const File file{load_safetensors(repository_file("tests/layers/gold/" + name + ".safetensors").string()).tensors};
  std::set<std::string> graphs;
  for (const auto& [entry, tensor] : file.tensors)
    if (entry.ends_with("/x") && !entry.ends_with("grad/x")) graphs.insert(entry.substr(0, entry.size() - 2));
  ASSERT_FALSE(graphs.empty());
  for (const std::string& graph : graphs) {
    SCOPED_TRACE(name + ", graph " + graph);
    run_graph(file, graph, state, call);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace tessera::test
