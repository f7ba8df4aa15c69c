#include "tessera/datasets/graph/find.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/datasets/graph/karate.h"
#include "tessera/datasets/graph/planetoid.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A set, the family it may be asked for by, and where it lies in a data folder. A name that stands in several families
// means the first here.
struct Known {
  const char* name;
  const char* family;
  const char* place;
};

constexpr Known kKnown[] = {
    {"cora", "planetoid", "planetoid/cora"},
    {"citeseer", "planetoid", "planetoid/citeseer"},
    {"pubmed", "planetoid", "planetoid/pubmed"},
    {"pubmed", "planetoid", "planetoid/pubmed-without-allx"},
};

struct Alias {
  const char* alias;
  const char* name;
};

constexpr Alias kAliases[] = {{"karateclub", "karate"}};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return text;
}

// Levenshtein's distance.
int64_t distance(const std::string& a, const std::string& b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t change = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, change});
    }
  }
  return row.back();
}

// Loads what lies at `place` when that is the set `name` in any form; false when it is not.
bool load_from(const std::string& place, const std::string& name, NodeDataset& into) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) return false;
  for (const char* part : {"graph", "x", "allx", "test.index"})
    if (file_exists(place + "/ind." + name + "." + part)) {
      into = load_planetoid(place, name);
      return true;
    }
  return false;
}

[[noreturn]] void fail_unknown(const std::string& name) {
  const std::vector<std::string> known = known_node_datasets();
  std::string list, nearest;
  int64_t smallest = 4;
  for (const std::string& candidate : known) {
    list += (list.empty() ? "" : ", ") + candidate;
    const int64_t d = distance(lower(name), candidate);
    if (d < smallest) {
      smallest = d;
      nearest = candidate;
    }
  }
  if (!nearest.empty())
    fail("the data set '{}' is not known, did you mean '{}'? Known are {}", printable(name), nearest, list);
  fail("the data set '{}' is not known; known are {}", printable(name), list);
}

}  // namespace

std::vector<std::string> known_node_datasets() {
  std::vector<std::string> names{"karate"};
  for (const Known& known : kKnown) names.push_back(known.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

NodeDataset load_node_dataset(const std::string& asked, const std::string& data) {
  const size_t slash = asked.find('/');
  const std::string family = slash == std::string::npos ? "" : lower(asked.substr(0, slash));
  std::string name = lower(slash == std::string::npos ? asked : asked.substr(slash + 1));
  for (const Alias& alias : kAliases)
    if (name == alias.alias) name = alias.name;
  if (name == "karate" && family.empty()) return karate_club();

  std::vector<std::string> places;
  if (family.empty()) {
    places = {data, data + "/" + asked, data + "/" + asked + "/raw"};
    if (name != asked) {
      places.push_back(data + "/" + name);
      places.push_back(data + "/" + name + "/raw");
    }
  }
  bool is_known = false;
  for (const Known& known : kKnown)
    if (name == known.name && (family.empty() || family == known.family)) {
      is_known = true;
      places.push_back(data + "/" + known.place);
    }
  NodeDataset dataset;
  for (const std::string& place : places)
    if (load_from(place, name, dataset)) {
      dataset.name = name;
      return dataset;
    }
  if (!is_known) fail_unknown(asked);
  std::string list;
  for (const std::string& place : places) list += (list.empty() ? "" : ", ") + place;
  fail<IoError>("{}: the data set '{}' is not there; looked for it as {}", data, asked, list);
}

}  // namespace tessera
