// tessera-data: the data sets that are known by name: which there are, what is in one, and getting them.

#include <cstdio>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/downloads.h"
#include "tessera/apps/support/node_task.h"
#include "tessera/apps/support/program.h"
#include "tessera/core/io/file.h"
#include "tessera/core/version.h"
#include "tessera/datasets/graph/find.h"

using namespace tessera;
using namespace tessera::apps;

namespace {

struct Options {
  std::string verb, data;
  std::vector<std::string> names;
  bool offline = false;
};

/// "here", "not here" or "3 of 12 files", below the first folder that has some.
std::string state_of(const CatalogueSet& set, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    size_t here = 0;
    for (const CatalogueFile& file : set.files) here += file_exists(folder + "/" + file.name);
    if (here == set.files.size()) return "here";
    if (here > 0) return to_text(here) + " of " + to_text(set.files.size()) + " files";
  }
  return "not here";
}

int list(const Options& o) {
  std::printf("%-13s %-29s %s\n", "family", "name", "files");
  std::printf("%-13s %-29s %s\n", "built in", "karate", "here");
  for (const CatalogueSet& set : node_catalogue())
    std::printf("%-13s %-29s %s\n", set.family.c_str(), set.name.c_str(), state_of(set, data_folders(o.data)).c_str());
  std::printf("downloads go to %s%s\n", data_folders(o.data).back().c_str(),
              can_download() ? "" : "; this build cannot download (libcurl was missing)");
  return kDone;
}

NodeDataset load(const std::string& name, const Options& o) {
  const Fetch how = fetch_for_people();
  try {
    return load_node_dataset(name, data_folders(o.data), o.offline ? nullptr : &how);
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

void info(const std::string& name, const Options& o) {
  const NodeDataset data = load(name, o);
  int64_t labelled = 0;
  for (const int32_t label : data.labels.defined() ? data.labels.span<int32_t>() : std::span<const int32_t>())
    labelled += label >= 0;
  std::printf("%s\n", describe(data).c_str());
  std::printf("  features  %s\n", data.num_features == 0 ? "none" : data.sparse_features() ? "sparse" : "dense");
  std::printf("  labels    %lld of %lld nodes\n", (long long)labelled, (long long)data.num_nodes);
  std::printf("  splits    %zu\n", data.splits.size());
  if (!data.splits.empty())
    std::printf("  first     %lld/%lld/%lld train/valid/test\n", (long long)data.splits[0].train.numel(),
                (long long)data.splits[0].valid.numel(), (long long)data.splits[0].test.numel());
  std::printf("  sha256    %s\n", data.sha256.c_str());
}

int data_program(const Options& o) {
  check<UsageError>(o.verb == "list" ? o.names.empty() : !o.names.empty(), "{} {}", o.verb,
                    o.verb == "list" ? "takes no name" : "needs the name of a data set");
  if (o.verb == "list") return list(o);
  for (const std::string& name : o.names) {
    if (o.verb == "info") {
      info(name, o);
      continue;
    }
    std::printf("%s\n", describe(load(name, o)).c_str());  // reading it proves that it is whole
    std::fflush(stdout);
  }
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Data sets by name: which there are, what is in one, and getting them.", "tessera-data");
  app.add_option("VERB", o.verb, "list: all that are known; get: download those that are missing; info: what is in one")
      ->check(one_of({"list", "get", "info"}))
      ->required()
      ->type_name("")
      ->group("Data");
  app.add_option("NAME", o.names, "data sets, as cora, geom-gcn/texas or questions")->type_name("...")->group("Data");
  add_data_folder_options(app, o.data, o.offline);
  app.set_version_flag("--version", std::string("tessera ") + version());
  app.footer(
      "Examples:\n"
      "  tessera-data list\n"
      "  tessera-data get cora citeseer --data data\n"
      "      Their authors' files, checked, in data/planetoid; tessera-train-node does the same when it needs them.\n"
      "  tessera-data info karate\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted (the next call goes on).");
  return run_program(app, argc, argv, [&] { return data_program(o); });
}
