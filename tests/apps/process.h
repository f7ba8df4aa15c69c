#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tessera/core/io/file.h"

/// Programs as processes: what they print, how they end, what happens when they are killed.
namespace tessera::test {

/// The folder of the built programs, which is also that of this test.
inline std::string programs() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/"; }

class Process {
 public:
  /// Starts `arguments[0]` of `programs()`; a path is taken as it is. `environment`: NAME=VALUE added to it.
  explicit Process(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
    if (arguments[0].find('/') == std::string::npos) arguments[0] = programs() + arguments[0];
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      for (const std::string& variable : environment) {
        const size_t at = variable.find('=');
        ::setenv(variable.substr(0, at).c_str(), variable.substr(at + 1).c_str(), 1);
      }
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }
  ~Process() {
    if (!ended_) {
      kill(SIGKILL);
      wait();
    }
    ::close(out_);
    ::close(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal) const { ::kill(pid_, signal); }
  /// Until the first text on standard output, or `milliseconds`.
  void wait_for_output(int milliseconds = 20000) {
    pollfd event{out_, POLLIN, 0};
    ::poll(&event, 1, milliseconds);
  }
  /// Reads everything, then the exit code; 128 + signal when one ended it.
  int wait() {
    pollfd events[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
    int open = 2;
    while (open > 0) {
      ::poll(events, 2, -1);
      for (pollfd& event : events) {
        if (event.fd < 0 || event.revents == 0) continue;
        char buffer[4096];
        const ssize_t n = ::read(event.fd, buffer, sizeof buffer);
        if (n > 0) {
          (event.fd == out_ ? output : errors).append(buffer, size_t(n));
        } else {
          event.fd = -1;
          --open;
        }
      }
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string output, errors;

 private:
  pid_t pid_ = 0;
  int out_ = -1, err_ = -1;
  bool ended_ = false;
};

struct Ended {
  int code;
  std::string output, errors;
};

inline Ended run_program(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  Process process(std::move(arguments), environment);
  const int code = process.wait();
  return {code, process.output, process.errors};
}

inline nlohmann::json json_of(const std::string& path) { return nlohmann::json::parse(read_file(path)); }

}  // namespace tessera::test
