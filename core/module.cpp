#include "tessera/core/module.h"

#include <cstring>
#include <set>

namespace tessera {

void check_state(const StateDict& source, const NamedTensors& target, const char* who) {
  std::string problems;
  const auto problem = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  std::set<std::string> known;
  for (const auto& [name, tensor] : target) {
    known.insert(name);
    const auto found = source.find(name);
    if (found == source.end())
      problem("missing " + name + " " + to_text(tensor.shape()));
    else if (found->second.shape() != tensor.shape() || found->second.dtype() != tensor.dtype())
      problem(name + " is " + to_text(found->second.dtype()) + " " + to_text(found->second.shape()) + " but needs to be " +
              to_text(tensor.dtype()) + " " + to_text(tensor.shape()));
  }
  for (const auto& [name, tensor] : source)
    if (!known.contains(name)) problem("unexpected " + name + " " + to_text(tensor.shape()));
  check(problems.empty(), "{}: {}", who, problems);
}

void copy_state(const StateDict& source, NamedTensors target, const char* who) {
  check_state(source, target, who);
  for (auto& [name, tensor] : target) {
    const Tensor& from = source.at(name);
    if (from.numel() > 0 && from.raw() != tensor.raw())
      std::memcpy(tensor.mutable_raw(), from.raw(), size_t(from.numel()) * size_of(from.dtype()));
  }
}

}  // namespace tessera
