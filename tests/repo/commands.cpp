// The commands that README.md and docs/ show still work.
//
// A command is a line of a fenced `sh` block that starts with ./dev or build/release/bin/. Its verb or program must
// exist and each of its --flags must stand in the program's --help. It is also run, in a scratch folder, unless it is
// long: a bench, several runs (--runs), or data of a user (--data, a path with ../).

#include <gtest/gtest.h>

#include <sstream>

#include "tessera/tests/repo/tree.h"

namespace repo {
namespace {

constexpr const char* kPrograms = "build/release/bin/";

struct Command {
  std::string where;               // "README.md:12: "
  std::vector<std::string> words;  // without variables in front and what follows in the pipe
};

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// The commands of one line: `a && b | c  # note` gives a and b; c is another program's.
void add_commands(const std::string& where, const std::string& line, std::vector<Command>& out) {
  Command command{where, {}};
  bool skip = false;
  const auto finish = [&] {
    if (!command.words.empty() && (command.words[0] == "./dev" || command.words[0].starts_with(kPrograms)))
      out.push_back(command);
    command.words.clear();
  };
  for (const std::string& word : split_words(line)) {
    if (word[0] == '#') break;
    if (word == "&&" || word == ";") {
      finish();
      skip = false;
    } else if (word == "|" || word[0] == '>' || word == "2>") {
      skip = true;
    } else if (!skip && !(command.words.empty() && (word == "$" || word.find('=') != std::string::npos))) {
      command.words.push_back(word);
    }
  }
  finish();
}

std::vector<Command> commands_of(const SourceFile& file) {
  std::vector<Command> found;
  std::istringstream in(file.text);
  bool shell = false, fenced = false;
  int number = 0, first = 0;
  std::string joined;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (const size_t at = line.find_first_not_of(' '); at != std::string::npos && line.compare(at, 3, "```") == 0) {
      shell = !fenced && (line.compare(at + 3, 2, "sh") == 0 || line.compare(at + 3, 4, "bash") == 0);
      fenced = !fenced;
      continue;
    }
    if (!shell) continue;
    if (joined.empty()) first = number;
    if (line.ends_with('\\')) {
      joined += line.substr(0, line.size() - 1) + " ";
      continue;
    }
    add_commands(file.path + ":" + std::to_string(first) + ": ", joined + line, found);
    joined.clear();
  }
  return found;
}

/// The program behind a command and where its arguments start; "" when it is a verb of ./dev without one.
std::string program_of(const Command& command, size_t& first_argument) {
  const std::vector<std::string>& w = command.words;
  first_argument = 1;
  if (w[0] != "./dev") return w[0].substr(std::string(kPrograms).size());
  first_argument = 2;
  if (w.size() > 1 && w[1] == "train") return "tessera-train-node";
  if (w.size() > 2 && w[1] == "bench") {
    first_argument = 3;
    return w[2] + "_bench";
  }
  return "";
}

bool stands_in(const std::string& help, const std::string& flag) {
  for (size_t at = help.find(flag); at != std::string::npos; at = help.find(flag, at + 1)) {
    const char next = at + flag.size() < help.size() ? help[at + flag.size()] : ' ';
    if (next != '-' && next != '_' && std::isalnum(static_cast<unsigned char>(next)) == 0) return true;
  }
  return false;
}

bool is_long(const Command& command, const std::string& program) {
  if (command.words[0] == "./dev" || program.ends_with("_bench")) return true;
  for (const std::string& word : command.words)
    if (word.starts_with("--runs") || word.starts_with("--data") || word.find("../") != std::string::npos || word == "...")
      return true;
  return false;
}

TEST(Commands, OfTheReadmeAndDocsWork) {
  ASSERT_TRUE(exists("README.md"));
  const Output verbs = run("./dev", source_dir());
  ASSERT_EQ(verbs.status, 0) << verbs.text;
  const std::filesystem::path scratch = build_dir() / "readme_commands";
  std::filesystem::remove_all(scratch);
  std::filesystem::create_directories(scratch);
  const std::filesystem::path bin = build_dir() / "bin";
  int seen = 0;
  for (const SourceFile& file : files()) {
    if (file.path != "README.md" && file.path != "CONTRIBUTING.md" && !file.path.starts_with("docs/")) continue;
    for (const Command& command : commands_of(file)) {
      ++seen;
      SCOPED_TRACE(command.where);
      if (command.words[0] == "./dev" && command.words.size() > 1) {
        EXPECT_NE(verbs.text.find("\n  " + command.words[1] + " "), std::string::npos)
            << "./dev has no verb " << command.words[1];
      }
      size_t first = 0;
      const std::string program = program_of(command, first);
      if (program.empty()) continue;
      if (!std::filesystem::exists(bin / program)) {
        ADD_FAILURE() << "there is no program " << program;
        continue;
      }
      const std::string path = quoted((bin / program).string());
      const Output help = run(path + " --help", scratch);
      EXPECT_EQ(help.status, 0) << program << " --help: " << help.text;
      std::string line = path;
      for (size_t i = first; i < command.words.size(); ++i) {
        const std::string& word = command.words[i];
        line += " " + word;
        if (word.starts_with("--")) {
          EXPECT_TRUE(stands_in(help.text, word.substr(0, word.find('='))))
              << program << " has no flag " << word << "; --help says:\n"
              << help.text;
        }
      }
      if (is_long(command, program)) continue;
      const Output output = run("timeout 120 " + line, scratch);
      EXPECT_EQ(output.status, 0) << line << "\n" << output.text;
    }
  }
  EXPECT_GT(seen, 0) << "README.md shows no command in a ```sh block";
}

}  // namespace
}  // namespace repo
