#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

/// Errors of the library. Every one is an exception whose text is a single line: what is, what was expected, a hint.
/// The library never prints, exits or aborts.
namespace tessera {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An argument has the wrong shape, dtype, range or combination; nothing was changed.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Valid, but not available in this build, on this device or for this dtype.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A file cannot be read or written, or its content breaks its format. The text names the path.
class IoError : public Error {
 public:
  using Error::Error;
};

/// An invariant of the library is broken: a bug here, not in the caller.
class InternalError : public Error {
 public:
  using Error::Error;
};

std::string to_text(std::string_view value);
std::string to_text(const char* value);
std::string to_text(const std::string& value);
std::string to_text(bool value);
std::string to_text(double value);
template <class T>
  requires std::is_integral_v<T> && (!std::is_same_v<T, bool>)
std::string to_text(T value) {
  return std::to_string(value);
}

/// Replaces each `{}` of `text` by the next of `count` values.
std::string format_message(const char* text, const std::string* values, int count);

/// A message text whose `{}` are counted against the values at compile time.
template <class... Args>
struct Message {
  const char* text;
  consteval Message(const char* message) : text(message) {
    int holes = 0;
    for (const char* c = message; *c != '\0'; ++c)
      if (c[0] == '{' && c[1] == '}') ++holes;
    if (holes != int(sizeof...(Args))) throw "the message has as many {} as there are values";
  }
};

template <class E = InvalidArgument, class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void fail(Message<std::type_identity_t<Args>...> message, const Args&... args) {
  const std::string values[sizeof...(Args) + 1] = {to_text(args)...};
  throw E(format_message(message.text, values, int(sizeof...(Args))));
}

/// Throws `E` with the filled-in message unless `ok`:
/// `check(x.ndim() == 2, "spmm: x has {} dimensions but needs 2", x.ndim())`.
template <class E = InvalidArgument, class... Args>
inline void check(bool ok, Message<std::type_identity_t<Args>...> message, const Args&... args) {
  if (!ok) [[unlikely]]
    fail<E>(message, args...);
}

}  // namespace tessera
