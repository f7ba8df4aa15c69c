#include "tessera/bench/support/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"

namespace tessera::bench {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

double Timing::median() const { return median_of(seconds); }
double Timing::min() const { return seconds.empty() ? 0 : *std::min_element(seconds.begin(), seconds.end()); }

std::vector<Timing> interleave(int rounds, const std::vector<std::function<void()>>& contenders) {
  std::vector<Timing> timings(contenders.size());
  for (const auto& run : contenders) run();
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < contenders.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      contenders[i]();
      timings[i].seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  return timings;
}

double speedup(const Timing& ours, const Timing& theirs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.seconds.size() && i < theirs.seconds.size(); ++i)
    ratios.push_back(theirs.seconds[i] / ours.seconds[i]);
  return median_of(ratios);
}

Table::Table(std::vector<std::string> heads) {
  for (const std::string& head : heads) widths_.push_back(std::max<size_t>(head.size(), 8));
  row(heads);
}

void Table::row(const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) std::printf("%s%*s", i == 0 ? "" : "  ", int(widths_[i]), cells[i].c_str());
  std::printf("\n");
  std::fflush(stdout);
}

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void write_json(const std::string& path, const std::vector<Result>& results) {
  if (path.empty()) return;
  double load = 0;
  getloadavg(&load, 1);
  std::ofstream file(path);
  file.precision(9);
  const auto timing = [&](const Timing& t) { file << "{\"median_s\": " << t.median() << ", \"min_s\": " << t.min() << "}"; };
  file << "[";
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    file << (i == 0 ? "\n" : ",\n") << "  {\"row\": \"" << r.row << "\", \"protocol\": \"" << r.protocol
         << "\", \"peer\": \"" << r.peer << "\", \"ours\": ";
    timing(r.ours);
    file << ", \"theirs\": ";
    timing(r.theirs);
    file << ", \"ratio\": " << r.ratio << ", \"threads\": " << threads() << ", \"isa\": \"" << name(active_isa())
         << "\", \"load_average\": " << load;
    for (const auto& [key, value] : r.extra) file << ", \"" << key << "\": " << value;
    file << "}";
  }
  file << "\n]\n";
  file.close();
  check<IoError>(file.good(), "bench: cannot write {}", path);
}

Options::Options(int argc, char** argv, const char* purpose) : purpose_(purpose) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      wants_help_ = true;
    } else if (i + 1 < argc) {
      given_.emplace_back(word, argv[++i]);
    } else {
      given_.emplace_back(word, "");
    }
  }
  used_.resize(given_.size());
}

std::string Options::text(const char* name, const char* fallback, const char* meaning) {
  help_ += std::string("  --") + name + "  " + meaning + " (default " + (*fallback != '\0' ? fallback : "none") + ")\n";
  std::string value = fallback;
  for (size_t i = 0; i < given_.size(); ++i)
    if (given_[i].first == std::string("--") + name) {
      value = given_[i].second;
      used_[i] = true;
    }
  return value;
}

int64_t Options::integer(const char* name, int64_t fallback, const char* meaning) {
  return std::strtoll(text(name, std::to_string(fallback).c_str(), meaning).c_str(), nullptr, 10);
}

double Options::real(const char* name, double fallback, const char* meaning) {
  return std::strtod(text(name, number(fallback, 3).c_str(), meaning).c_str(), nullptr);
}

std::vector<int64_t> Options::integers(const char* name, const char* fallback, const char* meaning) {
  const std::string list = text(name, fallback, meaning);
  std::vector<int64_t> values;
  for (const char* at = list.c_str(); *at != '\0';) {
    char* end = nullptr;
    values.push_back(std::strtoll(at, &end, 10));
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
  }
  return values;
}

void Options::finish() {
  for (size_t i = 0; i < given_.size(); ++i)
    if (!used_[i]) {
      std::fprintf(stderr, "unknown option %s; --help lists the options\n", given_[i].first.c_str());
      std::exit(2);
    }
  if (wants_help_) {
    std::printf("%s\n\n%s", purpose_.c_str(), help_.c_str());
    std::exit(0);
  }
}

StreamRead::StreamRead(int64_t bytes) : bytes_(bytes), data_(static_cast<double*>(allocate(size_t(bytes)))) {
  std::fill_n(data_, bytes_ / 8, 1.0);
}
StreamRead::~StreamRead() { deallocate(data_, size_t(bytes_)); }

void StreamRead::operator()() {
  parallel_for(bytes_ / (1 << 20), 1, [&](int64_t begin, int64_t end) {
    const double* data = data_ + begin * (1 << 17);
    double sum[32] = {};
    for (int64_t i = 0; i < (end - begin) * (1 << 17); i += 32)
      for (int l = 0; l < 32; ++l) sum[l] += data[i + l];
    keep(sum);
  });
}

}  // namespace tessera::bench
