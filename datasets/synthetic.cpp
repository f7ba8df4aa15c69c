// Every edge is a function of (seed, its number): eight words of a Philox stream choose its ends, so threads may draw any
// edges in any order. Ends are drawn by alias tables (Walker, Vose), one over the communities and one over the nodes of
// each, in constant time and two reads; the tables of 233k nodes take 2 MB.

#include "tessera/datasets/synthetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "tessera/core/parallel.h"
#include "tessera/core/random.h"

namespace tessera {
namespace {

enum Stream : uint64_t { kEnds, kMore, kOrder };

struct Alias {
  uint32_t stay;  // of 2^32: how often the slot itself is drawn
  int32_t other;  // else this one
};

/// Vose's construction for weights[0, count).
void build_alias(const double* weights, int64_t count, Alias* table) {
  const double sum = std::accumulate(weights, weights + count, 0.0);
  std::vector<double> share(static_cast<size_t>(count));
  std::vector<int32_t> small, large;
  for (int64_t i = 0; i < count; ++i) {
    share[size_t(i)] = weights[i] / sum * double(count);
    (share[size_t(i)] < 1 ? small : large).push_back(int32_t(i));
    table[i] = {~uint32_t{0}, int32_t(i)};
  }
  while (!small.empty() && !large.empty()) {
    const int32_t s = small.back(), l = large.back();
    small.pop_back();
    table[s] = {uint32_t(share[size_t(s)] * 0x1p32), l};
    share[size_t(l)] -= 1 - share[size_t(s)];
    if (share[size_t(l)] < 1) {
      large.pop_back();
      small.push_back(l);
    }
  }
}

/// A slot of a table of `count` by 64 random bits: the upper part chooses the slot, the rest the coin.
int64_t draw(const Alias* table, int64_t count, uint64_t bits) {
  const auto product = static_cast<unsigned __int128>(bits) * uint64_t(count);
  const int64_t slot = int64_t(product >> 64);
  return uint32_t(uint64_t(product) >> 32) <= table[slot].stay ? slot : table[slot].other;
}

uint64_t pair64(const Philox::Draw& draw, int i) { return uint64_t{draw.bits[i]} << 32 | draw.bits[i + 1]; }

/// Communities are ranges of raw ids, cut evenly.
struct Communities {
  int64_t nodes, count;
  int64_t begin(int64_t c) const { return c * nodes / count; }
  int64_t size(int64_t c) const { return begin(c + 1) - begin(c); }
};

/// i0 of the power law (i + i0)^-a over `size` nodes, so that the first node's share is `share`.
double offset_for(double a, int64_t size, double share) {
  const auto first_share = [&](double i0) {
    // The sum by its integral, exact enough for a hub's expected degree.
    const double last = double(size) + i0,
                 integral = a == 1 ? std::log(last / i0) : (std::pow(last, 1 - a) - std::pow(i0, 1 - a)) / (1 - a);
    return std::pow(i0, -a) / (std::pow(i0, -a) / 2 + integral);
  };
  double low = 1, high = 1;
  while (first_share(high) > share && high < 1e18) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (first_share(middle) > share ? low : high) = middle;
  }
  return high;
}

/// A permutation of [0, count) by Fisher and Yates.
std::vector<int32_t> permutation(int64_t count, uint64_t seed) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const Philox random(seed, kOrder);
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[size_t(Philox::below(pair64(random(uint64_t(i)), 0), uint64_t(i) + 1))]);
  return order;
}

uint64_t mix(uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Ends {
  int64_t src, dst;
};

/// Fills the edge lists: `ends(k)` gives the ends of draw k.
template <class F>
void fill(const SyntheticOptions& options, const std::vector<int32_t>& name_of, SyntheticGraph& graph, const F& ends) {
  int32_t* src = graph.src.mutable_data<int32_t>();
  int32_t* dst = graph.dst.mutable_data<int32_t>();
  const int64_t per_draw = options.symmetric ? 2 : 1, draws = (options.edges + per_draw - 1) / per_draw;
  const auto id = [&](int64_t raw) { return name_of.empty() ? int32_t(raw) : name_of[size_t(raw)]; };
  parallel_for(draws, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Ends e = ends(uint64_t(k));
      const int32_t s = id(e.src), d = id(e.dst);
      src[k * per_draw] = s;
      dst[k * per_draw] = d;
      if (options.symmetric && 2 * k + 1 < options.edges) {
        src[2 * k + 1] = d;
        dst[2 * k + 1] = s;
      }
    }
  });
}

void planted(const SyntheticOptions& options, const std::vector<int32_t>& name_of, SyntheticGraph& graph) {
  const Communities communities{options.nodes, options.communities};
  const double a = 1 / (options.exponent - 1);
  const int64_t max_degree = options.max_degree > 0 ? options.max_degree : std::max<int64_t>(1, options.nodes / 10);
  // A node is drawn as source or destination of `edges` edges; its in-degree is its share of `edges`.
  const double share = double(max_degree) * double(options.communities) / std::max<double>(1, double(options.edges));
  const double i0 = offset_for(a, std::max<int64_t>(1, options.nodes / options.communities), share);
  std::vector<Alias> of_node(static_cast<size_t>(options.nodes)), of_community(static_cast<size_t>(options.communities));
  std::vector<double> totals(static_cast<size_t>(options.communities));
  parallel_for(options.communities, 1, [&](int64_t first, int64_t last) {
    std::vector<double> weights;
    for (int64_t c = first; c < last; ++c) {
      weights.resize(size_t(communities.size(c)));
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::pow(double(i) + i0, -a);
      totals[size_t(c)] = std::accumulate(weights.begin(), weights.end(), 0.0);
      build_alias(weights.data(), communities.size(c), of_node.data() + communities.begin(c));
    }
  });
  build_alias(totals.data(), options.communities, of_community.data());
  const Philox ends(options.seed, kEnds), more(options.seed, kMore);
  const uint32_t inside = uint32_t(std::min(options.inside * 0x1p32, 0x1p32 - 1));
  const auto node = [&](int64_t c, uint64_t bits) {
    return communities.begin(c) + draw(of_node.data() + communities.begin(c), communities.size(c), bits);
  };
  fill(options, name_of, graph, [&](uint64_t k) {
    const Philox::Draw nodes = ends(k), places = more(k);
    const int64_t from = draw(of_community.data(), options.communities, uint64_t{places.bits[0]} << 32 | places.bits[3]);
    const int64_t to = places.bits[1] < inside ? from
                                               : draw(of_community.data(), options.communities,
                                                      uint64_t{places.bits[2]} << 32 | ~places.bits[3]);
    return Ends{node(from, pair64(nodes, 0)), node(to, pair64(nodes, 2))};
  });
  int32_t* label = graph.community.mutable_data<int32_t>();
  for (int64_t c = 0; c < options.communities; ++c)
    for (int64_t i = communities.begin(c); i < communities.begin(c + 1); ++i)
      label[name_of.empty() ? i : name_of[size_t(i)]] = int32_t(c);
}

void rmat(const SyntheticOptions& options, const std::vector<int32_t>& name_of, SyntheticGraph& graph) {
  const int levels = options.nodes > 1 ? std::bit_width(uint64_t(options.nodes - 1)) : 0;
  const Philox ends(options.seed, kEnds);
  fill(options, name_of, graph, [&](uint64_t k) {
    // Four draws of eight 16-bit coins: a level each, 32 at most.
    uint64_t src = 0, dst = 0;
    Philox::Draw words{};
    for (int level = 0; level < levels; ++level) {
      if (level % 8 == 0) words = ends(4 * k + uint64_t(level / 8));
      const uint32_t coin = words.bits[level / 2 % 4] >> (16 * (level % 2)) & 0xffff;
      const uint32_t quadrant = coin < 37356 ? 0 : coin < 49807 ? 1 : coin < 62259 ? 2 : 3;  // .57, .76, .95 of 2^16
      src = 2 * src + quadrant / 2;
      dst = 2 * dst + quadrant % 2;
    }
    const auto fold = [&](uint64_t id) { return int64_t(id * uint64_t(options.nodes) >> levels); };
    return Ends{fold(src), fold(dst)};
  });
  int32_t* label = graph.community.mutable_data<int32_t>();
  std::fill_n(label, options.nodes, 0);
}

}  // namespace

SyntheticGraph synthetic_graph(const SyntheticOptions& options) {
  check(1 <= options.nodes && options.nodes <= 0x7fffffff, "synthetic_graph: nodes is {} but needs to be in [1, 2147483647]",
        options.nodes);
  check(options.edges >= 0, "synthetic_graph: edges is {} but needs to be at least 0", options.edges);
  check(options.exponent > 1, "synthetic_graph: exponent is {} but needs to be above 1", options.exponent);
  check(1 <= options.communities && options.communities <= options.nodes,
        "synthetic_graph: communities is {} but needs to be in [1, {}]", options.communities, options.nodes);
  check(0 <= options.inside && options.inside <= 1, "synthetic_graph: inside is {} but needs to be in [0, 1]",
        options.inside);
  check(options.max_degree >= 0, "synthetic_graph: max_degree is {} but needs to be at least 0", options.max_degree);
  SyntheticGraph graph;
  graph.src = Tensor::empty(Shape{options.edges}, DType::i32);
  graph.dst = Tensor::empty(Shape{options.edges}, DType::i32);
  graph.community = Tensor::empty(Shape{options.nodes}, DType::i32);
  const std::vector<int32_t> name_of = options.shuffle ? permutation(options.nodes, options.seed) : std::vector<int32_t>();
  options.kind == SyntheticOptions::Kind::planted ? planted(options, name_of, graph) : rmat(options, name_of, graph);

  const int32_t* src = graph.src.data<int32_t>();
  const int32_t* dst = graph.dst.data<int32_t>();
  constexpr int64_t kBlock = 1 << 16;
  std::vector<uint64_t> sums(size_t((options.edges + kBlock - 1) / kBlock));
  parallel_for(int64_t(sums.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      for (int64_t e = b * kBlock; e < std::min(options.edges, (b + 1) * kBlock); ++e)
        sums[size_t(b)] += mix(mix(uint64_t(e) + 1) ^ (uint64_t(uint32_t(src[e])) << 32 | uint32_t(dst[e])));
  });
  graph.checksum = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  return graph;
}

}  // namespace tessera
