#pragma once

#include <string>
#include <vector>

#include "tessera/datasets/graph/catalogue.h"

namespace tessera::apps {

/// Where data may lie: --data when it is given, else this folder and then `data_folder()`. The last is where downloads go.
std::vector<std::string> data_folders(const std::string& data_option);

/// Downloads that show their progress on standard error and stop at Ctrl-C; $TESSERA_MIRROR is the mirror.
Fetch fetch_for_people();

/// "812 B", "3.1 MB".
std::string size_text(uint64_t bytes);

}  // namespace tessera::apps
