#include "tessera/core/module.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

struct Leaf {
  Tensor weight, bias;
  bool training = true;

  explicit Leaf(float value, bool with_bias = true) : weight(full({2}, value)) {
    weight.set_requires_grad();
    if (with_bias) bias = full({1}, value + 0.5);
  }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("bias", self.bias);
  }
};

struct Tree {
  Leaf first{1};
  std::vector<Leaf> layers;
  Tensor scale = full({}, 9);

  Tree() {
    layers.emplace_back(2.0f);
    layers.emplace_back(3.0f, false);
  }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("first", self.first);
    visitor("layers", self.layers);
    visitor("scale", self.scale);
  }
};

struct Bag {
  std::vector<Tree> trees = std::vector<Tree>(2);
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("trees", self.trees);
  }
};

TEST(Module, NamesInTheOrderOfVisits) {
  Tree tree;
  std::string names;
  for_each_parameter(tree, [&](const std::string& name, const Tensor&) { names += name + " "; });
  EXPECT_EQ(names, "first.weight first.bias layers.0.weight layers.0.bias layers.1.weight scale ");
  EXPECT_EQ(parameters(tree).size(), 3u) << "the biases and the scale require no gradient";
  EXPECT_TRUE(parameters(tree)[0].is(tree.first.weight));
  EXPECT_EQ(count_parameters(tree), 2 + 1 + 2 + 1 + 2 + 1);
  const Bag bag;
  EXPECT_TRUE(state_dict(bag).contains("trees.1.layers.0.bias"));
  EXPECT_EQ(count_parameters(bag), 18);
}

TEST(Module, TrainAndEvalReachEveryModule) {
  Bag bag;
  eval(bag);
  EXPECT_FALSE(bag.trees[0].first.training);
  EXPECT_FALSE(bag.trees[1].layers[1].training);
  train(bag);
  EXPECT_TRUE(bag.trees[0].first.training);
  EXPECT_TRUE(bag.trees[1].layers[1].training);
}

TEST(Module, StateDictIsTheModulesOwnMemory) {
  Tree tree;
  const StateDict state = state_dict(tree);
  EXPECT_EQ(state.size(), 6u);
  EXPECT_EQ(state.at("first.weight").raw(), tree.first.weight.raw());
  EXPECT_FALSE(state.at("first.weight").requires_grad());
}

TEST(Module, LoadCopiesTheValues) {
  Tree from, to;
  from.first.weight.detach().mutable_raw();
  Tensor changed = from.layers[1].weight.detach();
  changed.mutable_data<float>()[1] = 77;
  const uint64_t version = to.layers[1].weight.version();
  load_state_dict(to, state_dict(from));
  EXPECT_EQ(to.layers[1].weight.data<float>()[1], 77);
  EXPECT_NE(to.layers[1].weight.raw(), from.layers[1].weight.raw());
  EXPECT_TRUE(to.layers[1].weight.requires_grad());
  EXPECT_GT(to.layers[1].weight.version(), version);
  load_state_dict(to, state_dict(to));  // from itself
  EXPECT_EQ(to.layers[1].weight.data<float>()[1], 77);
}

TEST(Module, LoadListsEverythingThatDoesNotFitAndChangesNothing) {
  Tree tree;
  StateDict state = state_dict(Tree());
  state.erase("first.bias");
  state["layers.1.bias"] = full({1}, 0);
  state["scale"] = full({2}, 0);
  state["first.weight"] = full({2}, 5, DType::f64);
  state["layers.0.weight"] = full({2}, 5);
  EXPECT_EQ(
      error_of([&] { load_state_dict(tree, state); }),
      "InvalidArgument: load_state_dict: first.weight is f64 [2] but needs to be f32 [2]; missing first.bias [1]; scale "
      "is f32 [2] but needs to be f32 []; unexpected layers.1.bias [1]");
  EXPECT_EQ(tree.layers[0].weight.data<float>()[0], 2);
}

TEST(Module, Describe) {
  EXPECT_EQ(parameter_table({{"lin.weight", Tensor::empty({16, 1433})}, {"lin.bias", Tensor::empty({16}, DType::f64)}}),
            "parameter   dtype  shape       count\n"
            "lin.weight  f32    [16, 1433]  22928\n"
            "lin.bias    f64    [16]           16\n"
            "total                          22944\n");
  const std::string text = describe(Tree());
  EXPECT_NE(text.find("layers.1.weight"), std::string::npos);
  EXPECT_NE(text.find(std::to_string(count_parameters(Tree())) + "\n"), std::string::npos);
}

}  // namespace
}  // namespace tessera::test
