#pragma once

#include <string>
#include <vector>

/// What is read once per process (environment variables) is tested in a process of its own.
namespace tessera::test {

/// Runs this program again with only the test `filter`, which must be named DISABLED_*, under the given "NAME=value"
/// settings, and returns what it printed between the marks of `report`.
std::string run_child(const std::string& filter, const std::vector<std::string>& environment);

/// Prints `text` for the parent.
void report(const std::string& text);

}  // namespace tessera::test
