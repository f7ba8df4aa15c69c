// Progress as a terminal shows it: one line that is redrawn, no longer than the window, and gone at the end.

#include <gtest/gtest.h>
#include <pty.h>

#include "tessera/tests/apps/process.h"

namespace tessera::test {
namespace {

/// A chroot without /dev/pts has no terminals to give.
bool has_terminals() {
  int ours = -1, theirs = -1;
  if (::openpty(&ours, &theirs, nullptr, nullptr, nullptr) != 0) return false;
  ::close(ours);
  ::close(theirs);
  return true;
}

std::string on_terminal(std::vector<std::string> arguments, unsigned short columns) {
  arguments[0] = programs() + arguments[0];
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  winsize window{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &window);
  if (pid == 0) {
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

TEST(progress, one_line_on_a_terminal) {
  if (!has_terminals()) GTEST_SKIP() << "this machine has no pseudo-terminals (/dev/pts)";
  const std::string text = on_terminal({"tessera-train-node", "--epochs", "30000"}, 60);
  const std::string start = "\r\033[K";
  size_t drawn = 0;
  for (size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const size_t begin = at + start.size(), end = std::min(text.find('\r', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!line.starts_with("karate [")) continue;
    ++drawn;
    EXPECT_LT(line.size(), 60u) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_NE(line.find(" left"), std::string::npos) << line;
  }
  EXPECT_GE(drawn, 1u);
  EXPECT_NE(text.find(start + "train accuracy"), std::string::npos) << "the line is gone before the result";
}

TEST(progress, a_pipe_gets_no_control_bytes) {
  const Ended ended = run_program({"tessera-train-node", "--epochs", "30000"});
  EXPECT_EQ(ended.code, 0);
  for (const char c : ended.output + ended.errors) EXPECT_TRUE(c == '\n' || uint8_t(c) >= 32);
}

}  // namespace
}  // namespace tessera::test
