#pragma once

#include <string>
#include <vector>

/// Whether what a program will write at its end can be written, found out at its start.
namespace tessera::apps {

/// The file `path` (empty: none asked for) of `flag` can be made: its folder is there and takes a new file. Changes nothing.
/// Errors: UsageError naming flag, path and reason.
void check_output_file(const std::string& flag, const std::string& path);

/// The folder `path` (empty: none asked for) of `flag` is there, or is made, and takes a new file. Errors: as above.
void make_output_folder(const std::string& flag, const std::string& path);

/// A path of the command line; an empty one was not given.
struct NamedPath {
  std::string flag, path;
};

/// No output is the same file as another, or as an input: through links and `..` too. Devices and pipes may be. Writing the
/// one would destroy the other. Errors: UsageError naming both flags.
void check_distinct(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

}  // namespace tessera::apps
