// Communities by local moves, on several levels.
//
// Each node asks its neighbours which community they are in and moves to the one that most of them are in, less what a
// random graph of the same degrees would give: the gain in modularity, which keeps one community from swallowing all. On
// the first passes, when every node is alone, ties go to the neighbour of more edges, so that communities grow around hubs;
// and a lone node joins a lone one only upwards, or both would swap for ever.
// A node asks at most kSample neighbours, evenly spaced along its edges and others in each pass: a majority among 32 is
// as good as one among thousands, and a pass costs O(N) whatever the edges.
// Nodes move in kBatches batches, those of a batch at the same time by the state before it: parallel, and the same result
// for every thread count. When few move, communities become the nodes of a smaller weighted graph (of the sampled edges),
// and so on, as long as that shrinks. The line goes from the coarsest level down: communities of a community together,
// and in each the node with most edges first.
//
// Cost: about ten passes of O(min(E, kSample N)) on the first level, much less on the others. Memory: O(N) and 24 bytes for
// each sampled edge.
// Sources: label propagation, Raghavan et al., arXiv 0709.2938; Louvain, Blondel et al., arXiv 0803.0476; the rule for lone
// nodes and parallel moves, Lu et al., arXiv 1410.1237; ordering by the tree of communities, Rabbit order, Arai et al.,
// 2016.

#include "tessera/sparse/community.h"

#include <algorithm>

#include "tessera/core/parallel.h"
#include "tessera/sparse/edge_list.h"

namespace tessera {
namespace {

constexpr int64_t kSample = 32;  // neighbours asked, per direction
constexpr int64_t kBatches = 8;
constexpr int kMostPasses = 8;
constexpr int kGrowingPasses = 2;   // in which ties go to the larger community
constexpr int64_t kFewMoves = 200;  // passes end when fewer than one node in so many moves
constexpr int64_t kEnough = 64;     // communities whose order among each other is left to their size
constexpr int kMostLevels = 8;
constexpr int64_t kGrain = 1 << 9;  // nodes of a batch

/// A level: nodes with edges, weighted beyond the first.
struct Level {
  Graph in, out;
  Tensor weight;  // f32, by position in `in`; undefined: 1
  std::vector<int64_t> volume;
  int64_t total = 0;
};

/// Every so many of n edges, beginning at `first`.
struct Stride {
  int64_t first, step;
  Stride(int64_t n, int pass) : first(0), step((n + kSample - 1) / kSample) {
    if (step > 1) first = pass % step;
  }
};

/// What a node's neighbours said: a community and its weight in each slot, found by linear probing.
class Votes {
 public:
  void add(int32_t community, float weight) {
    uint32_t slot = hash(community);
    while (community_[slot] != community) {
      if (community_[slot] < 0) {
        community_[slot] = community;
        weight_[slot] = 0;
        used_[count_++] = slot;
        break;
      }
      slot = (slot + 1) % kSlots;
    }
    weight_[slot] += weight;
    total_ += weight;
  }
  int64_t count() const { return count_; }
  int32_t community(int64_t i) const { return community_[used_[i]]; }
  float weight(int64_t i) const { return weight_[used_[i]]; }
  float total() const { return total_; }
  void clear() {
    for (int64_t i = 0; i < count_; ++i) community_[used_[i]] = -1;
    count_ = 0;
    total_ = 0;
  }
  Votes() { std::fill(community_, community_ + kSlots, -1); }

 private:
  static constexpr uint32_t kSlots = 256;
  static_assert(2 * (kSample + 1) < kSlots);
  static uint32_t hash(int32_t community) { return uint32_t(community) * 2654435761u >> 24; }
  int32_t community_[kSlots];
  float weight_[kSlots];
  uint32_t used_[kSlots];
  int64_t count_ = 0;
  float total_ = 0;
};

class Moves {
 public:
  explicit Moves(const Level& level) : level_(level), volume_(level.volume), members_(level.volume.size(), 1) {
    community_.resize(level.volume.size());
    for (size_t i = 0; i < community_.size(); ++i) community_[i] = int32_t(i);
  }

  /// Moves nodes until few want to; the community of each.
  std::vector<int32_t> run() {
    const int64_t nodes = int64_t(community_.size());
    std::vector<int32_t> wanted(size_t(nodes / kBatches + 1));
    for (int pass = 0; pass < kMostPasses; ++pass) {
      int64_t moved = 0;
      for (int64_t batch = 0; batch < kBatches; ++batch) {
        const int64_t count = (nodes - batch + kBatches - 1) / kBatches;
        parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
          Votes votes;
          for (int64_t i = begin; i < end; ++i) wanted[size_t(i)] = best_of(batch + i * kBatches, pass, votes);
        });
        for (int64_t i = 0; i < count; ++i) moved += move(size_t(batch + i * kBatches), wanted[size_t(i)]) ? 1 : 0;
      }
      if (moved * kFewMoves <= nodes) break;
    }
    return std::move(community_);
  }

 private:
  bool move(size_t node, int32_t to) {
    const int32_t from = community_[node];
    if (to == from) return false;
    volume_[size_t(from)] -= level_.volume[node];
    volume_[size_t(to)] += level_.volume[node];
    --members_[size_t(from)];
    ++members_[size_t(to)];
    community_[node] = to;
    return true;
  }

  void ask(const Graph& graph, const float* weight, int64_t node, int pass, Votes& votes) const {
    const int64_t* rowptr = graph.rowptr().data<int64_t>();
    const int32_t* col = graph.col().data<int32_t>();
    const int64_t begin = rowptr[node], end = rowptr[node + 1];
    const Stride stride(end - begin, pass);
    for (int64_t i = begin + stride.first; i < end; i += stride.step)
      if (col[i] != node) votes.add(community_[size_t(col[i])], weight != nullptr ? weight[i] : 1);
  }

  int32_t best_of(int64_t node, int pass, Votes& votes) const {
    const int32_t own = community_[size_t(node)];
    votes.clear();
    ask(level_.in, level_.weight.defined() ? level_.weight.data<float>() : nullptr, node, pass, votes);
    if (level_.out.defined()) ask(level_.out, nullptr, node, pass, votes);
    const double expected = double(votes.total()) / double(std::max<int64_t>(level_.total, 1));
    const int64_t own_volume = level_.volume[size_t(node)];
    const bool alone = members_[size_t(own)] == 1;
    int32_t best = own;
    float best_weight = 0;
    for (int64_t i = 0; i < votes.count(); ++i)
      if (votes.community(i) == own) best_weight = votes.weight(i);
    // To stay is worth what the own community gives without the node.
    double best_gain = double(best_weight) - expected * double(volume_[size_t(own)] - own_volume);
    for (int64_t i = 0; i < votes.count(); ++i) {
      const int32_t other = votes.community(i);
      if (other == own) continue;
      const int64_t volume = volume_[size_t(other)];
      if (alone && members_[size_t(other)] == 1 && (volume != own_volume ? volume < own_volume : other > own)) continue;
      const double gain = double(votes.weight(i)) - expected * double(volume);
      const bool tie = best != own && (pass < kGrowingPasses ? votes.weight(i) == best_weight : gain == best_gain);
      if (tie ? volume != volume_[size_t(best)] ? volume > volume_[size_t(best)] : other < best : gain > best_gain) {
        best = other;
        best_weight = votes.weight(i);
        best_gain = gain;
      }
    }
    return best;
  }

  const Level& level_;
  std::vector<int64_t> volume_;   // of communities
  std::vector<int32_t> members_;  // of communities
  std::vector<int32_t> community_;
};

/// Numbers communities from 0 in the order of their first nodes; how many there are.
int64_t number(std::vector<int32_t>& community) {
  std::vector<int32_t> name(community.size(), -1);
  int32_t count = 0;
  for (int32_t& c : community) {
    int32_t& known = name[size_t(c)];
    if (known < 0) known = count++;
    c = known;
  }
  return count;
}

/// The level of communities, from the edges that a last pass would ask.
Level contracted(const Level& level, const std::vector<int32_t>& community, int64_t count) {
  const int64_t nodes = int64_t(community.size());
  std::vector<int32_t> src, dst;
  std::vector<float> weight;
  const auto sample = [&](const Graph& graph, const float* weights) {
    const int64_t* rowptr = graph.rowptr().data<int64_t>();
    const int32_t* col = graph.col().data<int32_t>();
    for (int64_t d = 0; d < nodes; ++d) {
      const int64_t end = rowptr[d + 1];
      const Stride stride(end - rowptr[d], 0);
      for (int64_t i = rowptr[d] + stride.first; i < end; i += stride.step) {
        const int32_t from = community[size_t(col[i])], to = community[size_t(d)];
        if (from == to) continue;
        const float w = (weights != nullptr ? weights[i] : 1) * float(stride.step);
        src.insert(src.end(), {from, to});
        dst.insert(dst.end(), {to, from});
        weight.insert(weight.end(), {w, w});
      }
    }
  };
  sample(level.in, level.weight.defined() ? level.weight.data<float>() : nullptr);
  if (level.out.defined()) sample(level.out, nullptr);
  const Shape shape{int64_t(src.size())};
  // Both directions of an edge are there, so rows by source serve as rows by destination.
  const EdgeList merged =
      coalesce({Tensor::from(dst, shape), Tensor::from(src, shape), Tensor::from(weight, shape)}, count, Merge::sum);
  Level out;
  out.in = Graph::from_coo(merged.dst, merged.src, count, count);
  out.weight = merged.weight;
  out.volume.assign(size_t(count), 0);
  for (int64_t i = 0; i < nodes; ++i) out.volume[size_t(community[size_t(i)])] += level.volume[size_t(i)];
  out.total = level.total;
  return out;
}

}  // namespace

std::vector<int32_t> community_order(const Neighbours& neighbours) {
  std::vector<Level> levels(1);
  levels[0].in = neighbours.in;
  levels[0].out = neighbours.out;
  levels[0].volume = neighbours.degree;
  for (const int64_t degree : neighbours.degree) levels[0].total += degree;
  std::vector<std::vector<int32_t>> parents;  // of each level's nodes
  while (true) {
    const Level& level = levels.back();
    std::vector<int32_t> community = Moves(level).run();
    const int64_t count = number(community);
    const bool shrinks = count < int64_t(community.size()) - int64_t(community.size()) / 16;
    parents.push_back(std::move(community));
    Level next;
    if (shrinks && count > kEnough && int(levels.size()) < kMostLevels) {
      next = contracted(level, parents.back(), count);
      levels.push_back(std::move(next));
      continue;
    }
    next.volume.assign(size_t(count), 0);
    for (size_t i = 0; i < parents.back().size(); ++i) next.volume[size_t(parents.back()[i])] += level.volume[i];
    levels.push_back(std::move(next));
    break;
  }
  // From the coarsest down: nodes by falling volume, then by the place of what they belong to.
  std::vector<int32_t> order = by_falling(levels.back().volume);
  for (size_t l = parents.size(); l-- > 0;) {
    const std::vector<int32_t>& parent = parents[l];
    std::vector<int64_t> place(order.size() + 1, 0);
    std::vector<int32_t> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[size_t(order[i])] = int32_t(i);
    for (const int32_t p : parent) ++place[size_t(rank[size_t(p)]) + 1];
    for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
    std::vector<int32_t> finer(parent.size());
    for (const int32_t node : by_falling(levels[l].volume))
      finer[size_t(place[size_t(rank[size_t(parent[size_t(node)])])]++)] = node;
    order = std::move(finer);
  }
  return order;
}

}  // namespace tessera
