#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tessera/core/error.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

/// What the programs share as programs: exit codes, Ctrl-C, error lines.
namespace tessera::apps {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kOutOfBand = 3, kInterrupted = 130 };

/// What the command line asks for makes no sense: exit code kUsage.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Set by the first Ctrl-C or SIGTERM; a training loop ends at the next epoch, writes what it must and returns kInterrupted.
/// A second Ctrl-C ends the program at once.
extern std::atomic<bool> interrupted;

/// Parses the command line into `app`, runs `body`, and turns every exception into one line on standard error.
/// Wrong usage is kUsage, with the nearest known option when one was misspelt; any other failure kFailed.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// For CLI11's `check`: the value is one of these; a near miss is named.
CLI::Validator one_of(std::vector<std::string> values);

/// The value is a number from `low` to `high`.
CLI::Validator in_range(double low, double high);

/// The command line as one string, quoted where a shell needs it.
std::string command_line(int argc, char** argv);

/// The candidate nearest to `text` by edit distance, or "" when none is near.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);

}  // namespace tessera::apps
