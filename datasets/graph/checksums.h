#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// SHA-256 of a published file of the catalogue, by its name below a data folder; empty for one that is not listed.
std::string published_sha256(std::string_view name);

}  // namespace tessera
