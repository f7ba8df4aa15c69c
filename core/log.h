#pragma once

#include <atomic>

#include "tessera/core/error.h"

/// What the library says on stderr when asked; it never prints otherwise. `TESSERA_LOG=dispatch` in the environment, or
/// `set_log_dispatch`, gives a line for each call of an op that has a choice or fuses others (spmm, attention, scatter_reduce,
/// ...): op, instruction set, schedule, and why a faster way was not taken. Off, a call costs one relaxed load.
namespace tessera {

inline std::atomic<int> log_dispatch_state{-1};  // -1: the environment was not looked at yet

/// Errors: InvalidArgument when TESSERA_LOG names something else than "dispatch".
bool log_dispatch_from_environment();

/// Whether a line is wanted: for ops whose line costs something to put together.
inline bool logs_dispatch() {
  const int state = log_dispatch_state.load(std::memory_order_relaxed);
  return state < 0 ? log_dispatch_from_environment() : state > 0;
}

void set_log_dispatch(bool on);

void write_log_line(const std::string& line);

/// One line: `log_dispatch("gather: {}, {}, rows in order", device, active_isa())`.
template <class... Args>
inline void log_dispatch(Message<std::type_identity_t<Args>...> message, const Args&... args) {
  if (!logs_dispatch()) [[likely]]
    return;
  const std::string values[sizeof...(Args) + 1] = {to_text(args)...};
  write_log_line(format_message(message.text, values, int(sizeof...(Args))));
}

}  // namespace tessera
