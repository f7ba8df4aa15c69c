#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// A safe subset of Python's pickle format, protocols 2 to 5. A pickle is a program for a stack machine that may call any
/// function of the reader's process; here nothing is ever called: a call becomes an `object` value that says what would
/// have been called with what, and only globals that the caller allows by name may occur at all. What such objects mean
/// (an array, a tensor) is up to the caller.
namespace tessera {

/// One value of a pickle. Values may be shared and even contain themselves, so whoever walks one bounds its depth.
struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    big_integer,  ///< beyond int64: `text` holds the little-endian two's complement
    real,
    bytes,       ///< bytes, or a Python 2 str
    text,        ///< str, UTF-8 unchecked
    tuple,       ///< `items`
    list,        ///< `items`
    dict,        ///< `items`: key, value, key, value, ... in file order
    global,      ///< `text`: "module name"
    object,      ///< `global` called with `args`; dict entries set later in `items`; `state`
    persistent,  ///< a reference that the program around the pickle resolves: `args` is its id
  };

  Kind kind = Kind::none;
  bool boolean = false;
  union {
    int64_t integer = 0;
    double real;
  };
  std::string_view text;
  std::vector<const PickleValue*> items;
  const PickleValue* global = nullptr;
  const PickleValue* args = nullptr;
  const PickleValue* state = nullptr;  ///< what __setstate__ would get; null when the pickle gives none
};

struct PickleOptions {
  std::vector<std::string_view> globals = {};  ///< allowed, each as "module name"
  int64_t max_values = int64_t{1} << 24;       ///< values in one pickle
  int64_t max_open_marks = 1000;               ///< containers begun inside one another
};

/// A pickle that was read: owns its values, which point into `bytes`; those must outlive it.
class Pickle {
 public:
  /// Reads one pickle from the start of `bytes`; `origin` (a path) starts every error text.
  /// Errors: IoError with the offset for an opcode that is not in the subset, a global that is not allowed, a stack that
  /// does not fit the opcode, a length beyond the end, the limits of `options`.
  Pickle(std::string_view bytes, const std::string& origin, const PickleOptions& options);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  const PickleValue& root() const { return *root_; }
  /// Bytes up to and with the STOP opcode: another pickle may follow.
  size_t end() const { return end_; }

 private:
  friend class PickleMachine;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
  size_t end_ = 0;
};

/// "none", "bool", "int", ... for error texts.
const char* name(PickleValue::Kind kind);

/// The value under a text or bytes key of a dict, or of the entries of an object; null when there is none.
const PickleValue* find(const PickleValue& dict, std::string_view key);

/// Whether the value is an object that calls `global` ("module name").
bool is_call(const PickleValue& value, std::string_view global);

}  // namespace tessera
