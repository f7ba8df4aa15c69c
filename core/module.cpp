#include "tessera/core/module.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "tessera/core/printable.h"

namespace tessera {

std::string parameter_table(const std::vector<std::pair<std::string, Tensor>>& named) {
  using Row = std::array<std::string, 4>;
  std::vector<Row> rows = {{"parameter", "dtype", "shape", "count"}};
  int64_t total = 0;
  for (const auto& [name, tensor] : named) {
    rows.push_back({name, to_text(tensor.dtype()), to_text(tensor.shape()), std::to_string(tensor.numel())});
    total += tensor.numel();
  }
  rows.push_back({"total", "", "", std::to_string(total)});
  std::array<size_t, 4> widths{};
  for (const Row& row : rows)
    for (size_t c = 0; c < 4; ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const Row& row : rows) {
    for (size_t c = 0; c < 3; ++c) out += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    out += std::string(widths[3] - row[3].size(), ' ') + row[3] + "\n";  // counts stand right
  }
  return out;
}

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
    if (!known.contains(name)) problem("unexpected " + printable(name) + " " + to_text(tensor.shape()));
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
