#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "tessera/core/autograd.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/module.h"
#include "tessera/core/optim/adam.h"
#include "tessera/sparse/graph.h"
#include "tessera/tests/support/data.h"

/// Layers against PyG's numbers, which bench/peers/gold.py wrote to tests/layers/gold.
namespace tessera::test {

struct Gold {
  std::map<std::string, Tensor> tensors;

  const Tensor& at(const std::string& name) const { return tensors.at(name); }
  bool has(const std::string& name) const { return tensors.contains(name); }
  /// The entries "group.NAME" as NAME.
  StateDict group(const std::string& group) const {
    StateDict out;
    for (const auto& [name, tensor] : tensors)
      if (name.starts_with(group + ".")) out.emplace(name.substr(group.size() + 1), tensor);
    return out;
  }
  Graph graph() const { return Graph::from_edge_index(at("edge_index"), at("x").dim(0)); }
};

inline Gold load_gold(const std::string& name) {
  return {load_safetensors(repository_file("tests/layers/gold/" + name + ".safetensors").string()).tensors};
}

/// `got` within `relative` of `expected`, by the largest of `expected`'s elements; an undefined one counts as zeros.
inline void expect_near(const Tensor& got, const Tensor& expected, double relative, const std::string& what) {
  double largest = 1e-3;  // what is zero but for rounding is compared with this
  for (const float v : expected.span<float>()) largest = std::max(largest, std::fabs(double(v)));
  if (got.defined()) {
    ASSERT_EQ(got.shape(), expected.shape()) << what;
  }
  for (int64_t i = 0; i < expected.numel(); ++i)
    ASSERT_NEAR(got.defined() ? double(got.data<float>()[i]) : 0, double(expected.data<float>()[i]), relative * largest)
        << what << " at element " << i;
}

/// Loads the state dict strictly, calls `layer` on the inputs, and compares the output (1e-5), every gradient (1e-4) and the
/// parameters after a step of Adam. `call(x, graph, edge_attr)` runs the layer; edge_attr is undefined where the case has
/// none.
template <class Layer>
void expect_gold(const std::string& name, Layer layer,
                 const std::function<Tensor(const Layer&, const Tensor&, const Graph&, const Tensor&)>& call) {
  SCOPED_TRACE(name);
  const Gold gold = load_gold(name);
  load_state_dict(layer, gold.group("state"));
  Tensor x = gold.at("x").detach(), edge_attr = gold.has("edge_attr") ? gold.at("edge_attr").detach() : Tensor();
  x.set_requires_grad();
  if (edge_attr.defined()) edge_attr.set_requires_grad();
  const Tensor out = call(layer, x, gold.graph(), edge_attr);
  expect_near(out.detach(), gold.at("out"), 1e-5, "output");
  backward(out, gold.at("seed"));
  expect_near(x.grad(), gold.at("grad.x"), 1e-4, "gradient of x");
  if (edge_attr.defined()) expect_near(edge_attr.grad(), gold.at("grad.edge_attr"), 1e-4, "gradient of edge_attr");
  for (auto& [parameter, tensor] : named_parameters(layer))
    expect_near(tensor.grad(), gold.at("grad." + parameter), 1e-4, "gradient of " + parameter);
  Adam optimiser(parameters(layer), {.lr = 0.01, .eps = 1e-3});
  optimiser.step();
  for (auto& [parameter, tensor] : named_parameters(layer))
    expect_near(tensor.detach(), gold.at("step." + parameter), 1e-5, parameter + " after a step");
}

/// Layers that are called with (x, graph, edge_attr).
template <class Layer>
void expect_gold(const std::string& name, const Layer& layer) {
  expect_gold<Layer>(name, layer, [](const Layer& l, const Tensor& x, const Graph& graph, const Tensor& edge_attr) {
    return l(x, graph, edge_attr);
  });
}

}  // namespace tessera::test
