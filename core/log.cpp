#include "tessera/core/log.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tessera {

bool log_dispatch_from_environment() {
  const char* wanted = std::getenv("TESSERA_LOG");
  const bool on = wanted != nullptr && *wanted != '\0';
  check(!on || std::strcmp(wanted, "dispatch") == 0, "TESSERA_LOG is '{}' but only 'dispatch' is known", wanted);
  log_dispatch_state.store(on ? 1 : 0, std::memory_order_relaxed);
  return on;
}

void set_log_dispatch(bool on) { log_dispatch_state.store(on ? 1 : 0, std::memory_order_relaxed); }

void write_log_line(const std::string& line) {
  const std::string whole = "tessera: " + line + "\n";  // in one write, so that lines of several threads stay whole
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace tessera
