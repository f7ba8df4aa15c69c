#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/tensor.h"

/// Modules are plain structs: members are parameters (Tensor), sub-modules, or vectors of sub-modules, and one `visit` lists
/// them by name. No base class, no registration:
///
///     struct Mlp {
///       Linear first, second;
///       template <class Self, class Visitor>
///       static void visit(Self& self, Visitor&& visitor) {
///         visitor("first", self.first);
///         visitor("second", self.second);
///       }
///     };
///
/// Everything else is a free function over that. A module that behaves differently in training has a member
/// `bool training`. Names are joined by dots ("convs.0.lin.weight"), as PyTorch's state dicts have them.
namespace tessera {

namespace module_visit {

template <class F>
struct Named {
  F& f;
  const std::string& prefix;

  template <class Member>
  void operator()(const char* name, Member& member) const {
    member_at(prefix + name, member);
  }

 private:
  void member_at(const std::string& name, Tensor& tensor) const {
    if (tensor.defined()) f(name, tensor);
  }
  void member_at(const std::string& name, const Tensor& tensor) const {
    if (tensor.defined()) f(name, tensor);
  }
  template <class Module>
  void member_at(const std::string& name, std::vector<Module>& modules) const {
    for (size_t i = 0; i < modules.size(); ++i) member_at(name + "." + std::to_string(i), modules[i]);
  }
  template <class Module>
  void member_at(const std::string& name, const std::vector<Module>& modules) const {
    for (size_t i = 0; i < modules.size(); ++i) member_at(name + "." + std::to_string(i), modules[i]);
  }
  template <class Module>
  void member_at(const std::string& name, Module& module) const {
    const std::string inner = name + ".";
    std::remove_const_t<Module>::visit(module, Named{f, inner});
  }
};

struct Mode {
  bool training;
  template <class Member>
  void operator()(const char*, Member& member) const {
    set(member);
  }
  void set(Tensor&) const {}
  template <class Module>
  void set(std::vector<Module>& modules) const {
    for (Module& module : modules) set(module);
  }
  template <class Module>
  void set(Module& module) const {
    if constexpr (requires { module.training; }) module.training = training;
    Module::visit(module, *this);
  }
};

}  // namespace module_visit

/// Calls `f(name, tensor)` for every defined parameter, in the order of the `visit`s.
template <class Module, class F>
void for_each_parameter(Module& module, F&& f) {
  const std::string root;
  std::remove_const_t<Module>::visit(module, module_visit::Named<F>{f, root});
}

/// What is trained: the tensors that require a gradient, each once, also one that has two names. The others, such as running
/// moments, belong to the state alone.
template <class Module>
std::vector<Tensor> parameters(Module& module) {
  std::vector<Tensor> out;
  for_each_parameter(module, [&](const std::string&, Tensor& tensor) {
    if (!tensor.requires_grad()) return;
    for (const Tensor& known : out)
      if (known.is(tensor)) return;
    out.push_back(tensor);
  });
  return out;
}

template <class Module>
int64_t count_parameters(const Module& module) {
  int64_t count = 0;
  for_each_parameter(module, [&](const std::string&, const Tensor& tensor) { count += tensor.numel(); });
  return count;
}

/// The text of `describe`.
std::string parameter_table(const std::vector<std::pair<std::string, Tensor>>& named);

/// A table for people: each parameter's name, dtype, shape and count of elements, and their total.
template <class Module>
std::string describe(const Module& module) {
  std::vector<std::pair<std::string, Tensor>> named;
  for_each_parameter(module, [&](const std::string& name, const Tensor& tensor) { named.emplace_back(name, tensor); });
  return parameter_table(named);
}

/// Training mode on or off for the module and everything in it.
template <class Module>
void train(Module& module, bool training = true) {
  module_visit::Mode{training}.set(module);
}
template <class Module>
void eval(Module& module) {
  train(module, false);
}

using StateDict = std::map<std::string, Tensor>;

/// Every parameter by its name; the tensors are the module's own, not copies.
template <class Module>
StateDict state_dict(const Module& module) {
  StateDict out;
  for_each_parameter(module, [&](const std::string& name, const Tensor& tensor) { out.emplace(name, tensor.detach()); });
  return out;
}

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

template <class Module>
NamedTensors named_parameters(Module& module) {
  NamedTensors out;
  for_each_parameter(module, [&](const std::string& name, Tensor& tensor) { out.emplace_back(name, tensor); });
  return out;
}

/// Errors: InvalidArgument, which lists whatever `source` lacks of `target`, has beyond it, or has in another shape or
/// dtype.
void check_state(const StateDict& source, const NamedTensors& target, const char* who = "load_state_dict");

/// Copies `source` into `target`, entry by entry, or changes nothing. Errors: as `check_state`.
void copy_state(const StateDict& source, NamedTensors target, const char* who = "load_state_dict");

template <class Module>
void load_state_dict(Module& module, const StateDict& source) {
  copy_state(source, named_parameters(module));
}

}  // namespace tessera
