#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// What the benches share: interleaved timing, a table, the JSON list of RULINGS, options, a stream read to compare with.
namespace tessera::bench {

struct Timing {
  std::vector<double> seconds;
  double median() const;
  double min() const;
};

/// Runs every contender once for warmth, then `rounds` rounds of all in turn, so that a neighbour's load hits them alike.
std::vector<Timing> interleave(int rounds, const std::vector<std::function<void()>>& contenders);

/// Median over the rounds of theirs / ours: how many times faster ours is, each round judged under its own load.
double speedup(const Timing& ours, const Timing& theirs);

/// Columns of right-aligned text, printed row by row as results arrive.
class Table {
 public:
  explicit Table(std::vector<std::string> heads);
  void row(const std::vector<std::string>& cells);

 private:
  std::vector<size_t> widths_;
};

/// "12.3": `digits` behind the point.
std::string number(double value, int digits);

/// One comparison, as bench scripts record it.
struct Result {
  std::string row, protocol, peer;
  Timing ours, theirs;
  double ratio = 0;
  std::vector<std::pair<std::string, double>> extra;
};

/// Writes the results as a JSON list; does nothing for an empty path. Errors: IoError.
void write_json(const std::string& path, const std::vector<Result>& results);

/// `--name value` options; unknown ones and `--help` end the program with the list of those asked for.
class Options {
 public:
  Options(int argc, char** argv, const char* purpose);
  int64_t integer(const char* name, int64_t fallback, const char* meaning);
  double real(const char* name, double fallback, const char* meaning);
  std::string text(const char* name, const char* fallback, const char* meaning);
  std::vector<int64_t> integers(const char* name, const char* fallback, const char* meaning);
  /// After the last question: refuses what nobody asked for.
  void finish();

 private:
  std::string purpose_, help_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<bool> used_;
  bool wants_help_ = false;
};

/// Bytes per second of reading a block much larger than the caches, once per call, by all threads.
class StreamRead {
 public:
  explicit StreamRead(int64_t bytes = int64_t{512} << 20);
  ~StreamRead();
  void operator()();
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_;
  double* data_;
};

/// Keeps the compiler from dropping the computation of `value`.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace tessera::bench
