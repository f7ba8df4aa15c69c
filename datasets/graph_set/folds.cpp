// scikit-learn's folds. Classes are numbered by their first graph. The sorted labels are dealt to the folds in turn, which
// says how many graphs of a class each fold gets; a class's list of folds, 0 0 .. 1 1 .., is then shuffled by NumPy's legacy
// generator: MT19937, from the last place down, each time drawing bits below the next power of two until they are in range.

#include "tessera/datasets/graph_set/folds.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/random.h"
#include "tessera/datasets/graph_set/number_lines.h"

namespace tessera {
namespace {

constexpr uint64_t kSplitStream = 0x67726170682d7370;  // apart from the streams of a run, which count from 0

Tensor ids(std::vector<int32_t> values) {
  std::sort(values.begin(), values.end());
  return Tensor::from(values, {int64_t(values.size())});
}

void shuffle(std::vector<int32_t>& values, std::mt19937& random) {
  for (uint32_t i = uint32_t(values.size()); i-- > 1;) {
    uint32_t mask = i, j = 0;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do j = uint32_t(random()) & mask;
    while (j > i);
    std::swap(values[i], values[j]);
  }
}

/// Graphs by their draws.
void sort_at_random(std::vector<int32_t>& graphs, uint64_t seed) {
  const Philox random(seed, kSplitStream);
  std::vector<std::pair<uint64_t, int32_t>> keyed;
  for (const int32_t g : graphs) {
    const Philox::Draw draw = random(uint64_t(g));
    keyed.emplace_back((uint64_t{draw.bits[0]} << 32) | draw.bits[1], g);
  }
  std::sort(keyed.begin(), keyed.end());
  for (size_t i = 0; i < graphs.size(); ++i) graphs[i] = keyed[i].second;
}

}  // namespace

std::vector<int32_t> stratified_folds(const Tensor& labels, int64_t folds, uint32_t seed) {
  const auto y = labels.span<int32_t>();
  check(folds >= 2 && folds <= int64_t(y.size()),
        "stratified_folds: {} folds of {} graphs, but needs 2 or more of at least as many", folds, y.size());
  std::vector<int32_t> seen;  // the label of each class, classes by their first graph
  std::vector<size_t> encoded(y.size());
  std::vector<int64_t> counts;
  for (size_t i = 0; i < y.size(); ++i) {
    encoded[i] = size_t(std::find(seen.begin(), seen.end(), y[i]) - seen.begin());
    if (encoded[i] == seen.size()) {
      seen.push_back(y[i]);
      counts.push_back(0);
    }
    ++counts[encoded[i]];
  }
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  check(most >= folds, "stratified_folds: {} folds, but no class has more than {} graphs", folds, most);

  std::vector<int32_t> out(y.size());
  std::mt19937 random(seed);
  int64_t first = 0;  // of the class among the sorted labels
  for (size_t c = 0; c < counts.size(); ++c) {
    std::vector<int32_t> fold_of;
    for (int64_t fold = 0; fold < folds; ++fold) {
      // Places fold, fold + folds, .. below first + counts[c], less those below first.
      const auto below = [&](int64_t end) { return end > fold ? (end - fold + folds - 1) / folds : 0; };
      fold_of.insert(fold_of.end(), size_t(below(first + counts[c]) - below(first)), int32_t(fold));
    }
    first += counts[c];
    shuffle(fold_of, random);
    size_t next = 0;
    for (size_t i = 0; i < y.size(); ++i)
      if (encoded[i] == c) out[i] = fold_of[next++];
  }
  return out;
}

std::vector<int32_t> load_folds(const std::string& path, int64_t graphs, int64_t folds) {
  const NumberLines<int64_t> lines = read_integers(read_file(path), path, 1);
  check<IoError>(lines.lines == graphs, "{}: has {} lines, but there are {} graphs", path, lines.lines, graphs);
  std::vector<int32_t> out;
  for (int64_t i = 0; i < graphs; ++i) {
    check<IoError>(lines.at(i) >= 0 && lines.at(i) < folds, "{}: line {} has the fold {}, expected 0 to {}", path, i + 1,
                   lines.at(i), folds - 1);
    out.push_back(int32_t(lines.at(i)));
  }
  return out;
}

GraphSplit split_of_fold(const std::vector<int32_t>& fold_of_graph, int64_t folds, int64_t fold) {
  std::vector<int32_t> train, valid, test;
  const int64_t before = (fold + folds - 1) % folds;
  for (size_t i = 0; i < fold_of_graph.size(); ++i)
    (fold_of_graph[i] == fold ? test : fold_of_graph[i] == before ? valid : train).push_back(int32_t(i));
  return {ids(train), ids(valid), ids(test)};
}

GraphSplit split_at_random(int64_t graphs, double train, double valid, uint64_t seed) {
  check(train >= 0 && valid >= 0 && train + valid <= 1,
        "split_at_random: shares {} and {} need to be 0 or more, and 1 or less together", train, valid);
  std::vector<int32_t> all(static_cast<size_t>(graphs));
  std::iota(all.begin(), all.end(), 0);
  sort_at_random(all, seed);
  // A share such as 0.8 of 10 may come out just below its whole number.
  const auto count = [&](double share) { return int64_t(share * double(graphs) * (1 + 1e-12)); };
  const auto first = all.begin() + count(train), second = std::min(first + count(valid), all.end());
  return {ids({all.begin(), first}), ids({first, second}), ids({second, all.end()})};
}

void hold_out(GraphSplit& split, const Tensor& labels, double valid, uint64_t seed) {
  check(valid >= 0 && valid <= 1, "hold_out: share {} needs to be in [0, 1]", valid);
  check(split.valid.numel() == 0, "hold_out: the split has {} validation graphs already", split.valid.numel());
  const auto y = labels.span<int32_t>();
  std::vector<int32_t> shuffled = split.train.to_vector<int32_t>(), train, held;
  sort_at_random(shuffled, seed);
  std::stable_sort(shuffled.begin(), shuffled.end(), [&](int32_t a, int32_t b) { return y[size_t(a)] < y[size_t(b)]; });
  for (size_t begin = 0, end = 0; begin < shuffled.size(); begin = end) {
    while (end < shuffled.size() && y[size_t(shuffled[end])] == y[size_t(shuffled[begin])]) ++end;
    const size_t take = size_t(valid * double(end - begin) + 0.5);
    for (size_t k = begin; k < end; ++k) (k - begin < take ? held : train).push_back(shuffled[k]);
  }
  split.train = ids(train);
  split.valid = ids(held);
}

}  // namespace tessera
