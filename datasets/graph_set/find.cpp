#include "tessera/datasets/graph_set/find.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/datasets/edit_distance.h"
#include "tessera/datasets/graph_set/file_source.h"
#include "tessera/datasets/graph_set/gin_text.h"
#include "tessera/datasets/graph_set/ogb_graphs.h"
#include "tessera/datasets/graph_set/tu.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKnown[] = {
    "AIDS",
    "BZR",
    "COLLAB",
    "COX2",
    "Cuneiform",
    "DD",
    "DHFR",
    "ENZYMES",
    "Fingerprint",
    "FRANKENSTEIN",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "Letter-high",
    "Letter-low",
    "Letter-med",
    "MUTAG",
    "Mutagenicity",
    "NCI1",
    "NCI109",
    "PROTEINS",
    "PROTEINS_full",
    "PTC_FM",
    "PTC_FR",
    "PTC_MM",
    "PTC_MR",
    "REDDIT-BINARY",
    "REDDIT-MULTI-12K",
    "REDDIT-MULTI-5K",
    "ogbg-molbace",
    "ogbg-molbbbp",
    "ogbg-molclintox",
    "ogbg-molesol",
    "ogbg-molfreesolv",
    "ogbg-molhiv",
    "ogbg-mollipo",
    "ogbg-molmuv",
    "ogbg-molpcba",
    "ogbg-molsider",
    "ogbg-moltox21",
    "ogbg-moltoxcast",
    "ogbg-ppa",
};

// Other spellings, as they read without case, '-' and '_'.
struct Alias {
  const char *spelling, *name;
};
constexpr Alias kAliases[] = {
    {"d&d", "DD"}, {"imdbb", "IMDB-BINARY"}, {"imdbm", "IMDB-MULTI"}, {"redditb", "REDDIT-BINARY"}};

constexpr const char* kFamilies[] = {"tu", "tu-gin", "ogb"};

/// Without case, '-' and '_': "IMDB-BINARY", "IMDBBINARY" and "ogbg_molhiv", "ogbg-molhiv" are one.
std::string bare(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != '-' && c != '_') out += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}

[[noreturn]] void fail_unknown(const std::string& name) {
  std::string list, nearest;
  int64_t smallest = 4;
  for (const std::string& candidate : known_graph_sets()) {
    list += (list.empty() ? "" : ", ") + candidate;
    if (const int64_t d = edit_distance(bare(name), bare(candidate)); d < smallest) {
      smallest = d;
      nearest = candidate;
    }
  }
  if (!nearest.empty())
    fail("the set of graphs '{}' is not known, did you mean '{}'? Known are {}", printable(name), nearest, list);
  fail("the set of graphs '{}' is not known; known are {}", printable(name), list);
}

/// What lies in a folder and is called `name`, with or without .zip, whatever the spelling.
std::vector<std::string> places_in(const std::string& folder, const std::string& name) {
  std::vector<std::string> out;
  std::error_code error, ignored;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (it->is_directory(ignored) && bare(file) == name) {
      out.push_back(it->path().string());
      out.push_back(it->path().string() + "/raw");
    } else if (file.ends_with(".zip") && bare(file.substr(0, file.size() - 4)) == name) {
      out.push_back(it->path().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Loads what lies at `place` when it is of a known form.
bool load_from(const std::string& place, const std::string& name, GraphSet& into) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored) && !(place.ends_with(".zip") && file_exists(place))) return false;
  FileSource files(place);
  if (is_ogb_graphs(files))
    into = load_ogb_graphs(files, name);
  else if (is_tu(files))
    into = load_tu(files);
  else if (is_gin_text(files))
    into = load_gin_text(files);
  else
    return false;
  into.name = name;
  return true;
}

bool is_path(const std::string& spelled) {
  std::error_code ignored;
  return (spelled.find('/') != std::string::npos || spelled.ends_with(".zip")) && fs::exists(spelled, ignored);
}

}  // namespace

std::vector<std::string> known_graph_sets() {
  std::vector<std::string> out(std::begin(kKnown), std::end(kKnown));
  std::sort(out.begin(), out.end());
  return out;
}

GraphSet load_graph_set(const std::string& asked, const std::vector<std::string>& folders) {
  const size_t slash = asked.find('/');
  std::string family = slash == std::string::npos ? "" : asked.substr(0, slash);
  if (std::find(std::begin(kFamilies), std::end(kFamilies), family) == std::end(kFamilies)) family.clear();
  std::string name = family.empty() ? asked : asked.substr(slash + 1), plain = bare(name);
  for (const Alias& alias : kAliases)
    if (plain == alias.spelling) plain = bare(alias.name);
  bool known = false;
  for (const char* candidate : kKnown)
    if (bare(candidate) == plain) {
      name = candidate;
      known = true;
    }

  GraphSet set;
  if (!known && is_path(asked)) {
    check<IoError>(load_from(asked, FileSource(asked).name(), set),
                   "{}: is no set of graphs: there is no NAME_A.txt, no NAME.txt beside 10fold_idx/, no "
                   "raw/num-node-list.csv.gz",
                   asked);
    return set;
  }
  std::string list;
  for (const std::string& data : folders) {
    std::vector<std::string> places;
    std::error_code ignored;
    if (family.empty() && fs::exists(data, ignored)) {
      const fs::path whole = fs::absolute(data).lexically_normal();
      const std::string own = (whole.filename().empty() ? whole.parent_path() : whole).filename().string();
      if (bare(own) == plain || bare(own) == plain + ".zip") places.push_back(data);
      for (const std::string& place : places_in(data, plain)) places.push_back(place);
    }
    for (const char* member : kFamilies)
      if (family.empty() || family == member)
        for (const char* zip : {"", "/zip"})
          for (const std::string& place : places_in(data + "/" + member + zip, plain)) places.push_back(place);
    for (const std::string& place : places)
      if (load_from(place, name, set)) return set;
    list += (list.empty() ? "" : ", ") + data;
  }
  if (!known) fail_unknown(asked);
  check(!folders.empty(), "the set of graphs '{}' is read from files, but no data folder is given", asked);
  fail<IoError>(
      "the set of graphs '{}' is not there; looked for a folder or zip of that name in {} and below it in tu, tu/zip, "
      "tu-gin, tu-gin/zip, ogb",
      asked, list);
}

}  // namespace tessera
