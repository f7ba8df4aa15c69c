#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/datasets/download.h"

/// Node data sets that can be had from their authors' public repositories.
namespace tessera {

struct CatalogueFile {
  std::string name;  ///< below a data folder: "planetoid/cora/ind.cora.x"
  std::string url;
  std::string sha256;  ///< of the published file; empty where nobody has written it down
};

struct CatalogueSet {
  std::string name;    ///< "cora"
  std::string family;  ///< "planetoid"; the same name may stand in several
  std::string place;   ///< its file or folder below a data folder: "planetoid/cora"
  std::vector<CatalogueFile> files;
};

/// All of them, by family.
const std::vector<CatalogueSet>& node_catalogue();

/// The set `name` of `family` (empty: of the first family that has it); null when there is none.
const CatalogueSet* find_in_catalogue(std::string_view name, std::string_view family);

/// Where data is kept when nobody says otherwise: $TESSERA_DATA, else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera.
std::string data_folder();

struct FetchStep {
  const CatalogueFile& file;
  size_t number, files;  ///< the file's number among those that are missing, from 0, and their count
  uint64_t received, total;
};

/// How a set is fetched.
struct Fetch {
  DownloadOptions download = {};
  std::function<bool(const FetchStep&)> progress = {};    ///< false stops; what has come stays
  std::function<void(const std::string& line)> say = {};  ///< a line at the start, and one per checksum that is new
  std::string mirror = {};                                ///< when not empty, URLs are MIRROR/name in place of the authors'
};

/// Downloads those files of `set` that are not below `folder` yet, each whole and checked or not at all. Beside each stands
/// its SHA-256 as `name`.sha256 (the form of sha256sum), which `check_recorded` compares from then on. A folder other than
/// `set.place` for the files of that place may be given. Errors: as `download`, with a hint where the file would go.
void fetch(const CatalogueSet& set, const std::string& folder, const Fetch& how, const std::string& place = "");

/// Where NAME.sha256 of `fetch` stands beside a file, the file is still what was downloaded: `path` itself, or the files in
/// the folder `path` whose names start with `prefix`. Errors: IoError naming the file and both digests.
void check_recorded(const std::string& path, const std::string& prefix = "");

}  // namespace tessera
