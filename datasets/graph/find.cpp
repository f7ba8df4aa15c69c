#include "tessera/datasets/graph/find.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/datasets/edit_distance.h"
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

// Loads what lies at `place` when that is the set `name` in any form; false when it is not.
bool load_from(const std::string& place, const std::string& name, bool known_name, NodeDataset& into) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) {
    if (!place.ends_with(".npz") || !file_exists(place)) return false;
    check_recorded(place);
    into = load_graph_npz(place);
    return true;
  }
  for (const char* part : {"graph", "x", "allx", "test.index"})
    if (file_exists(place + "/ind." + name + "." + part)) {
      check_recorded(place, "ind." + name + ".");
      into = load_planetoid(place, name);
      return true;
    }
  // The files of geom-gcn do not say which set they are: the folder does.
  if (file_exists(place + "/out1_node_feature_label.txt") &&
      (!known_name || lower(fs::path(place).filename().string()) == name)) {
    check_recorded(place, "out1_");
    check_recorded(place, name + "_split_");
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
    const int64_t d = edit_distance(lower(name), candidate);
    if (d < smallest) {
      smallest = d;
      nearest = candidate;
    }
  }
  if (!nearest.empty())
    fail("the data set '{}' is not known, did you mean '{}'? Known are {}", printable(name), nearest, list);
  fail("the data set '{}' is not known; known are {}", printable(name), list);
}

/// A name as a user gives it.
struct Asked {
  std::string spelled, family, name;  // "Geom-GCN/Texas", "geom-gcn", "texas"
  bool is(const Known& known) const { return name == known.name && (family.empty() || family == known.family); }
};

Asked parse(const std::string& spelled) {
  const size_t slash = spelled.find('/');
  Asked asked{spelled, slash == std::string::npos ? "" : lower(spelled.substr(0, slash)),
              lower(slash == std::string::npos ? spelled : spelled.substr(slash + 1))};
  for (const Alias& alias : kAliases)
    if (asked.name == alias.alias) asked.name = alias.name;
  return asked;
}

// What a folder or an .npz file is called: "texas" of "../texas/" and "Texas.npz".
std::string own_name(const std::string& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  if (whole.filename().empty()) whole = whole.parent_path();
  const std::string name = lower(whole.filename().string());
  return name.ends_with(".npz") ? name.substr(0, name.size() - 4) : name;
}

bool is_path(const std::string& spelled) {
  std::error_code ignored;
  return (spelled.find('/') != std::string::npos || spelled.ends_with(".npz")) && fs::exists(spelled, ignored);
}

NodeDataset load_own(const std::string& path) {
  NodeDataset dataset;
  check<IoError>(load_from(path, own_name(path), false, dataset),
                 "{}: is neither an .npz file nor a folder with edges.csv and nodes.csv or the files of a known set", path);
  dataset.name = own_name(path);
  return dataset;
}

std::vector<std::string> places_of(const Asked& asked, bool is_known, const std::string& data) {
  std::vector<std::string> places;
  if (asked.family.empty()) {
    // No name is taken for whatever lies there: a known set says in its files which it is, the user's own is called so.
    std::error_code ignored;
    const std::string own = own_name(data), file = lower(fs::path(data).extension().string());
    if ((is_known && fs::is_directory(data, ignored)) || (own == asked.name && (!is_known || file == ".npz")))
      places.push_back(data);
    std::vector<std::string> spellings{asked.spelled};
    if (asked.name != asked.spelled) spellings.push_back(asked.name);
    for (const std::string& spelling : spellings)
      for (const char* end : {"", "/raw", ".npz"}) places.push_back(data + "/" + spelling + end);
  }
  for (const Known& known : kKnown)
    if (asked.is(known)) places.push_back(data + "/" + known.place);
  return places;
}

void fetch_or_say_where(const CatalogueSet& set, const std::string& folder, const Fetch& how, const std::string& place) {
  try {
    fetch(set, folder, how, place);
  } catch (const Error& error) {
    fail<IoError>("the data set '{}' is not here and was not downloaded: {}; its files go to {}", set.name, error.what(),
                  place.empty() ? folder + "/" + set.place : place);
  }
}

// A download that was stopped, or a folder that was copied in part.
void complete_planetoid(const Asked& asked, const std::string& data, const std::string& place, const Fetch& how) {
  const CatalogueSet* set = find_in_catalogue(asked.name, "planetoid");
  std::error_code ignored;
  if (set == nullptr || !fs::is_directory(place, ignored)) return;
  for (const CatalogueFile& file : set->files)
    if (file_exists(place + file.name.substr(set->place.size()))) return fetch_or_say_where(*set, data, how, place);
}

NodeDataset finished(NodeDataset dataset, const Asked& asked, const std::string& data, const Fetch* download) {
  dataset.name = asked.name;
  if (asked.family != "geom-gcn" || dataset.splits.size() == 10) return dataset;
  const std::string folder = data + "/geom-gcn/splits";
  check_recorded(folder, asked.name + "_split_");
  dataset.splits = load_geom_gcn_splits(folder, asked.name, dataset.num_nodes);
  if (const CatalogueSet* set = find_in_catalogue(asked.name, asked.family);
      set != nullptr && download != nullptr && dataset.splits.empty()) {
    fetch_or_say_where(*set, data, *download, "");
    dataset.splits = load_geom_gcn_splits(folder, asked.name, dataset.num_nodes);
  }
  drop_unlabelled(dataset);  // CiteSeer's splits have all nodes, fifteen of which nobody labelled
  check<IoError>(!dataset.splits.empty() || find_in_catalogue(asked.name, "planetoid") == nullptr,
                 "{}: the splits of '{}' are not there; looked for {}_split_0.6_0.2_0.npz", folder, asked.spelled,
                 asked.name);
  return dataset;
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
  return load_node_dataset(asked, data.empty() ? std::vector<std::string>{} : std::vector<std::string>{data}, nullptr);
}

NodeDataset load_node_dataset(const std::string& asked, const std::vector<std::string>& folders, const Fetch* download) {
  const Asked set = parse(asked);
  if (set.name == "karate" && set.family.empty()) return karate_club();
  const bool is_known = std::any_of(std::begin(kKnown), std::end(kKnown), [&](const Known& known) { return set.is(known); });
  if (!is_known && is_path(asked)) return load_own(asked);
  if (folders.empty()) {
    if (!is_known) fail_unknown(asked);
    fail("the data set '{}' is read from files, but no data folder is given", asked);
  }

  std::string list;
  for (const std::string& data : folders) {
    for (const std::string& place : places_of(set, is_known, data)) {
      if (download != nullptr) complete_planetoid(set, data, place, *download);
      NodeDataset dataset;
      if (load_from(place, set.name, is_known, dataset)) return finished(std::move(dataset), set, data, download);
      list += (list.empty() ? "" : ", ") + place;
    }
  }
  if (!is_known) fail_unknown(asked);
  const CatalogueSet* known = download == nullptr ? nullptr : find_in_catalogue(set.name, set.family);
  if (known == nullptr)
    fail<IoError>("{}: the data set '{}' is not there; looked for it as {}", folders.back(), asked, list);
  NodeDataset dataset;
  fetch_or_say_where(*known, folders.back(), *download, "");
  check<InternalError>(load_from(folders.back() + "/" + known->place, set.name, true, dataset),
                       "the data set '{}' was downloaded but is not found", asked);
  return finished(std::move(dataset), set, folders.back(), download);
}

}  // namespace tessera
