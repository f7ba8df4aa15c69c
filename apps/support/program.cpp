#include "tessera/apps/support/program.h"

#include <csignal>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

namespace tessera::apps {

std::atomic<bool> interrupted{false};

namespace {

void on_interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

int distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = int(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = int(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// The misspelt options on the command line, each with the nearest known one.
std::string suggestions(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  std::string out;
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (word.rfind("--", 0) != 0 || std::find(known.begin(), known.end(), word) != known.end()) continue;
    out += "unknown option " + word;
    if (const std::string near = nearest(word, known); !near.empty()) out += ", did you mean " + near + "?";
    out += out.back() == '?' ? " " : "; ";
  }
  return out;
}

}  // namespace

std::string nearest(const std::string& text, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = int(text.size()) / 3 + 2;
  for (const std::string& candidate : candidates)
    if (const int d = distance(text, candidate); d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  return best;
}

std::string command_line(int argc, char** argv) {
  std::string out;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$&|;()<>*?`") == std::string::npos;
    if (i > 0) out += ' ';
    if (plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) c == '\'' ? out += "'\\''" : out += c;
    out += '\'';
  }
  return out;
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return kDone;
  } catch (const CLI::ParseError& error) {
    const std::string hints = suggestions(app, argc, argv);
    std::fprintf(stderr, "%s: %s(see --help)\n", app.get_name().c_str(),
                 hints.empty() ? (std::string(error.what()) + " ").c_str() : hints.c_str());
    return kUsage;
  }
  std::signal(SIGINT, on_interrupt);
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    return kFailed;
  }
}

}  // namespace tessera::apps
