#include "tessera/datasets/graph/find.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/datasets/graph/csv_graph.h"
#include "tessera/datasets/graph/geom_gcn.h"
#include "tessera/datasets/graph/graph_npz.h"
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
    {"cora", "gnn-benchmark", "npz/gnn-benchmark/cora.npz"},
    {"citeseer", "gnn-benchmark", "npz/gnn-benchmark/citeseer.npz"},
    {"cora_ml", "ppnp", "npz/ppnp/cora_ml.npz"},
    {"polblogs", "nettack", "npz/nettack/polblogs.npz"},
    {"amazon_electronics_photo", "shchur", "npz/shchur/amazon_electronics_photo.npz"},
    {"amazon_electronics_computers", "shchur", "npz/shchur/amazon_electronics_computers.npz"},
    {"ms_academic_cs", "shchur", "npz/shchur/ms_academic_cs.npz"},
    {"ms_academic_phy", "shchur", "npz/shchur/ms_academic_phy.npz"},
    {"chameleon", "heterophilous", "heterophilous/chameleon.npz"},
    {"chameleon_directed", "heterophilous", "heterophilous/chameleon_directed.npz"},
    {"chameleon_filtered", "heterophilous", "heterophilous/chameleon_filtered.npz"},
    {"squirrel", "heterophilous", "heterophilous/squirrel.npz"},
    {"squirrel_filtered", "heterophilous", "heterophilous/squirrel_filtered.npz"},
    {"actor", "heterophilous", "heterophilous/actor.npz"},
    {"cornell", "heterophilous", "heterophilous/cornell.npz"},
    {"texas", "heterophilous", "heterophilous/texas.npz"},
    {"wisconsin", "heterophilous", "heterophilous/wisconsin.npz"},
    {"minesweeper", "heterophilous", "heterophilous/minesweeper.npz"},
    {"tolokers", "heterophilous", "heterophilous/tolokers.npz"},
    {"roman_empire", "heterophilous", "heterophilous/roman_empire.npz"},
    {"amazon_ratings", "heterophilous", "heterophilous/amazon_ratings.npz"},
    {"questions", "heterophilous", "heterophilous/questions.npz"},
    {"cornell", "geom-gcn", "geom-gcn/cornell"},
    {"texas", "geom-gcn", "geom-gcn/texas"},
    {"wisconsin", "geom-gcn", "geom-gcn/wisconsin"},
    {"film", "geom-gcn", "geom-gcn/film"},
    {"cora", "geom-gcn", "planetoid/cora"},
    {"citeseer", "geom-gcn", "planetoid/citeseer"},
    {"pubmed", "geom-gcn", "planetoid/pubmed"},
};

struct Alias {
  const char* alias;
  const char* name;
};

constexpr Alias kAliases[] = {{"karateclub", "karate"},
                              {"photo", "amazon_electronics_photo"},
                              {"amazon_photo", "amazon_electronics_photo"},
                              {"computers", "amazon_electronics_computers"},
                              {"amazon_computers", "amazon_electronics_computers"},
                              {"cs", "ms_academic_cs"},
                              {"coauthor_cs", "ms_academic_cs"},
                              {"physics", "ms_academic_phy"},
                              {"coauthor_physics", "ms_academic_phy"}};

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
bool load_from(const std::string& place, const std::string& name, bool known_name, NodeDataset& into) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) {
    if (!place.ends_with(".npz") || !file_exists(place)) return false;
    into = load_graph_npz(place);
    return true;
  }
  for (const char* part : {"graph", "x", "allx", "test.index"})
    if (file_exists(place + "/ind." + name + "." + part)) {
      into = load_planetoid(place, name);
      return true;
    }
  // The files of geom-gcn do not say which set they are: the folder does.
  if (file_exists(place + "/out1_node_feature_label.txt") &&
      (!known_name || lower(fs::path(place).filename().string()) == name)) {
    into = load_geom_gcn(place, name);
    return true;
  }
  for (const char* end : {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"})
    if (!known_name && file_exists(place + "/edges" + end)) {
      const std::string nodes = place + "/nodes" + end;
      into = load_csv_graph(place + "/edges" + end, file_exists(nodes) ? nodes : "").data;
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

  bool is_known = false;
  std::vector<std::string> places;
  for (const Known& known : kKnown)
    if (name == known.name && (family.empty() || family == known.family)) {
      is_known = true;
      places.push_back(data + "/" + known.place);
    }
  if (data.empty()) {
    if (!is_known) fail_unknown(asked);
    fail("the data set '{}' is read from files, but no data folder is given", asked);
  }
  if (family.empty()) {
    std::vector<std::string> nearer;
    // A known name is not taken for whatever lies there.
    const std::string own = lower(fs::path(data).filename().string());
    if (!is_known || fs::is_directory(data) || own == name + ".npz") nearer.push_back(data);
    std::vector<std::string> spellings{asked};
    if (name != asked) spellings.push_back(name);
    for (const std::string& spelling : spellings)
      for (const char* end : {"", "/raw", ".npz"}) nearer.push_back(data + "/" + spelling + end);
    places.insert(places.begin(), nearer.begin(), nearer.end());
  }
  NodeDataset dataset;
  for (const std::string& place : places)
    if (load_from(place, name, is_known, dataset)) {
      dataset.name = name;
      if (family == "geom-gcn" && dataset.splits.size() != 10)
        dataset.splits = load_geom_gcn_splits(data + "/geom-gcn/splits", name, dataset.num_nodes);
      return dataset;
    }
  if (!is_known) fail_unknown(asked);
  std::string list;
  for (const std::string& place : places) list += (list.empty() ? "" : ", ") + place;
  fail<IoError>("{}: the data set '{}' is not there; looked for it as {}", data, asked, list);
}

}  // namespace tessera
