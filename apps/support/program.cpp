#include "tessera/apps/support/program.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "tessera/core/printable.h"

namespace tessera::apps {

std::atomic<bool> interrupted{false};

namespace {

/// Whole numbers with all their digits.
std::string bound_text(double bound) {
  const bool whole = std::fabs(bound) < 0x1p53 && bound == std::floor(bound);
  return whole ? to_text(int64_t(bound)) : to_text(bound);
}

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

/// `text` with line breaks before column `width`; lines after the first start at `indent`.
std::string wrapped(const std::string& text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const size_t length = end - at;
    if (column > indent && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(at, length);
    column += length;
    at = end + 1;
  }
  return out;
}

// Paths may hold anything.
std::string one_line(const std::exception& error) { return printable(error.what(), SIZE_MAX); }

/// "VERB", "[NAME ...]".
std::string positional_text(const CLI::Option& option) {
  const std::string text = option.get_name() + (option.get_expected_max() > 1 ? " ..." : "");
  return option.get_required() ? text : "[" + text + "]";
}

std::string help_of(CLI::App& app) {
  constexpr size_t kIndent = 27, kWidth = 100;
  std::string out = app.get_description() + "\n\nUsage: " + app.get_name();
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) out += " " + positional_text(*option);
  out += " [options]\n";
  std::vector<std::string> groups = app.get_groups();
  std::rotate(groups.begin(), groups.begin() + 1, groups.end());  // --help and --version last
  for (const std::string& group : groups) {
    out += "\n" + (group == "Options" ? "Help" : group) + "\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group) continue;
      std::string left = "  " + (option->get_positional() ? positional_text(*option) : "--" + option->get_lnames().at(0));
      if (option->get_type_size() > 0 && !option->get_positional()) left += " " + option->get_type_name();
      std::string text = option->get_description();
      if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
      left += left.size() + 2 <= kIndent ? std::string(kIndent - left.size(), ' ') : "\n" + std::string(kIndent, ' ');
      out += left + wrapped(text, kIndent, kWidth) + "\n";
    }
  }
  return out + "\n" + app.get_footer() + "\n";
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

CLI::Validator one_of(std::vector<std::string> values) {
  return CLI::Validator(
      [values](std::string& given) -> std::string {
        if (std::find(values.begin(), values.end(), given) != values.end()) return {};
        const std::string near = nearest(given, values);
        std::string list;
        for (const std::string& value : values) list += (list.empty() ? "" : ", ") + value;
        return "'" + given + "' is not known" + (near.empty() ? "" : ", did you mean '" + near + "'?") + " (" + list + ")";
      },
      "");
}

CLI::Validator in_range(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& given) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(given, value) && value >= low && value <= high) return {};
        return "'" + given + "' needs to be a number " +
               (high < 1e300 ? "from " + bound_text(low) + " to " + bound_text(high) : "of " + bound_text(low) + " or more");
      },
      "");
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  for (CLI::Option* option : app.get_options())
    if (option->check_lname("help"))
      option->description("this text");
    else if (option->check_lname("version"))
      option->description("the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(help_of(app).c_str(), stdout);
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
  std::signal(SIGTERM, on_interrupt);
  try {
    return body();
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s: %s (see --help)\n", app.get_name().c_str(), one_line(error).c_str());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), one_line(error).c_str());
    return interrupted ? kInterrupted : kFailed;
  }
}

}  // namespace tessera::apps
