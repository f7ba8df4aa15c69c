#pragma once

#include <filesystem>
#include <string>

/// The folder of real data beside the repository. Not every machine has it; CI must.
namespace tessera::test {

/// TESSERA_SHARED_DATA, else ../shared/data beside the repository; empty when there is no such folder.
std::filesystem::path shared_data();

/// A file of the repository, by its path from the top.
std::filesystem::path repository_file(const std::string& path);

/// Whether `name` (a file or folder below `shared_data()`, or all of it) is there. When it is not, the running test is
/// marked as skipped with the reason, or as failed where the environment says CI=true. Use: `if
/// (!have_shared_data("planetoid")) return;`
bool have_shared_data(const std::string& name = "");

}  // namespace tessera::test
