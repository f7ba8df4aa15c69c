#pragma once

#include <string>

/// Whether what a program will write at its end can be written, found out at its start.
namespace tessera::apps {

/// The file `path` (empty: none asked for) of `flag` can be made: its folder is there and takes a new file. Changes nothing.
/// Errors: UsageError naming flag, path and reason.
void check_output_file(const std::string& flag, const std::string& path);

/// The folder `path` (empty: none asked for) of `flag` is there, or is made, and takes a new file. Errors: as above.
void make_output_folder(const std::string& flag, const std::string& path);

}  // namespace tessera::apps
