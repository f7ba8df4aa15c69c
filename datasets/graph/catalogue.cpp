#include "tessera/datasets/graph/catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/sha256.h"
#include "tessera/datasets/graph/checksums.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kRaw = "https://raw.githubusercontent.com/";
const std::string kPlanetoid = kRaw + "kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/";
const std::string kGnnBenchmark = kRaw + "shchur/gnn-benchmark/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz/";
const std::string kPpnp = kRaw + "gasteigerjo/ppnp/master/ppnp/data/";
const std::string kNettack = kRaw + "danielzuegner/nettack/da8ec64b2444233ffa1a29b18e8abdfda2015679/data/";
const std::string kHeterophilous =
    kRaw + "yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data/";
// The first upload had Texas' features in Cornell's place; it was put right later.
const std::string kGeomGcn = kRaw + "graphdml-uiuc-jlu/geom-gcn/master/";

std::string splits_name(const std::string& set, int i) { return set + "_split_0.6_0.2_" + std::to_string(i) + ".npz"; }

std::vector<CatalogueFile> planetoid_files(const std::string& set) {
  std::vector<CatalogueFile> files;
  for (const char* part : {"x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"}) {
    const std::string name = "ind." + set + "." + part;
    files.push_back({"planetoid/" + set + "/" + name, kPlanetoid + name, {}});
  }
  return files;
}

std::vector<CatalogueSet> all_sets() {
  std::vector<CatalogueSet> sets;
  for (const char* name : {"cora", "citeseer", "pubmed"})
    sets.push_back({name, "planetoid", std::string("planetoid/") + name, planetoid_files(name)});
  const auto add_npz = [&](const char* family, const std::string& folder, const std::string& url,
                           std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const std::string file = folder + name + ".npz";
      sets.push_back({name, family, file, {{file, url + name + ".npz", {}}}});
    }
  };
  add_npz("gnn-benchmark", "npz/gnn-benchmark/", kGnnBenchmark, {"cora", "citeseer"});
  add_npz("ppnp", "npz/ppnp/", kPpnp, {"cora_ml"});
  add_npz("nettack", "npz/nettack/", kNettack, {"polblogs"});
  add_npz("shchur", "npz/shchur/", kGnnBenchmark,
          {"amazon_electronics_photo", "amazon_electronics_computers", "ms_academic_cs", "ms_academic_phy"});
  add_npz("heterophilous", "heterophilous/", kHeterophilous,
          {"chameleon", "chameleon_directed", "chameleon_filtered", "squirrel", "squirrel_filtered", "actor", "cornell",
           "texas", "wisconsin", "minesweeper", "tolokers", "roman_empire", "amazon_ratings", "questions"});
  // The splits come first: a folder that has the features has all.
  for (const std::string name : {"cornell", "texas", "wisconsin", "film"}) {
    const std::string place = "geom-gcn/" + name;
    CatalogueSet set{name, "geom-gcn", place, {}};
    for (int i = 0; i < 10; ++i)
      set.files.push_back({place + "/" + splits_name(name, i), kGeomGcn + "splits/" + splits_name(name, i), {}});
    for (const char* file : {"out1_graph_edges.txt", "out1_node_feature_label.txt"})
      set.files.push_back({place + "/" + file, kGeomGcn + "new_data/" + name + "/" + file, {}});
    sets.push_back(std::move(set));
  }
  for (const std::string name : {"cora", "citeseer", "pubmed"}) {
    CatalogueSet set{name, "geom-gcn", "planetoid/" + name, planetoid_files(name)};
    for (int i = 0; i < 10; ++i)
      set.files.push_back({"geom-gcn/splits/" + splits_name(name, i), kGeomGcn + "splits/" + splits_name(name, i), {}});
    sets.push_back(std::move(set));
  }
  for (CatalogueSet& set : sets)
    for (CatalogueFile& file : set.files) file.sha256 = published_sha256(file.name);
  return sets;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

const std::vector<CatalogueSet>& node_catalogue() {
  static const std::vector<CatalogueSet> sets = all_sets();
  return sets;
}

const CatalogueSet* find_in_catalogue(std::string_view name, std::string_view family) {
  for (const CatalogueSet& set : node_catalogue())
    if (set.name == name && (family.empty() || set.family == family)) return &set;
  return nullptr;
}

std::string data_folder() {
  if (const std::string own = variable("TESSERA_DATA"); !own.empty()) return own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/tessera";
  const std::string home = variable("HOME");
  return (home.empty() ? std::string("/tmp") : home) + "/.cache/tessera";
}

namespace {

/// Makes a folder and those above it; those that are still empty at the end go again.
class MadeFolders {
 public:
  explicit MadeFolders(const fs::path& folder) {
    for (fs::path at = folder; !at.empty() && !fs::exists(at); at = at.parent_path()) made_.push_back(at);
    std::error_code error;
    fs::create_directories(folder, error);
    check<IoError>(!error, "{}: the folder cannot be made: {}", folder.string(), error.message());
  }
  ~MadeFolders() {
    std::error_code ignored;
    for (const fs::path& folder : made_)
      if (!fs::remove(folder, ignored)) break;
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

 private:
  std::vector<fs::path> made_;  // the innermost first
};

}  // namespace

void fetch(const CatalogueSet& set, const std::string& folder, const Fetch& how, const std::string& place) {
  struct Missing {
    const CatalogueFile* file;
    std::string path, url;
  };
  std::vector<Missing> missing;
  for (const CatalogueFile& file : set.files) {
    std::string path = folder + "/" + file.name;
    if (!place.empty() && file.name.starts_with(set.place + "/")) path = place + file.name.substr(set.place.size());
    if (!file_exists(path)) missing.push_back({&file, path, how.mirror.empty() ? file.url : how.mirror + "/" + file.name});
  }
  if (missing.empty()) return;
  const std::string first = missing[0].url;
  if (how.say && can_download())
    how.say("downloading " + set.family + "/" + set.name + ", " + std::to_string(missing.size()) +
            (missing.size() == 1 ? " file" : " files") + ", from " + first.substr(0, first.rfind('/')) + " to " +
            missing[0].path.substr(0, missing[0].path.rfind('/')));
  for (size_t i = 0; i < missing.size(); ++i) {
    const auto& [file, path, url] = missing[i];
    const MadeFolders made(fs::path(path).parent_path());
    DownloadOptions options = how.download;
    if (how.progress)
      options.progress = [&, file = file](uint64_t received, uint64_t total) {
        return how.progress({*file, i, missing.size(), received, total});
      };
    const std::string digest = download(url, path, file->sha256, options);
    const std::string name = path.substr(path.rfind('/') + 1);
    write_atomically(path + ".sha256", digest + "  " + name + "\n");
    if (how.say && file->sha256.empty()) how.say(name + ": sha256 " + digest + ", recorded beside it");
  }
}

void check_recorded(const std::string& path, const std::string& prefix) {
  const auto check_file = [](const std::string& file) {
    const std::string record = file + ".sha256";
    if (!file_exists(record) || !file_exists(file)) return;
    const std::string text = read_file(record, 1 << 16), expected = text.substr(0, 64);
    // Another program's file of that name may say it in another way.
    if (text.find_first_not_of("0123456789abcdef") != 64 || text.substr(64, 2) != "  ") return;
    const std::string found = sha256_file(file);
    check<IoError>(found == expected,
                   "{}: has the sha256 {} but {} was recorded when it was downloaded; remove it to download it anew", file,
                   found, expected);
  };
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return check_file(path);
  std::vector<std::string> records;
  for (const auto& entry : fs::directory_iterator(path, ignored))
    if (const std::string name = entry.path().filename().string(); name.starts_with(prefix) && name.ends_with(".sha256"))
      records.push_back(entry.path().string());
  std::sort(records.begin(), records.end());
  for (const std::string& record : records) check_file(record.substr(0, record.size() - 7));
}

}  // namespace tessera
