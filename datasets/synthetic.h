#pragma once

#include <cstdint>

#include "tessera/core/tensor.h"

namespace tessera {

struct SyntheticOptions {
  enum class Kind : uint8_t {
    planted,  ///< power-law degrees in planted communities
    rmat,     ///< R-MAT, no communities
  };
  Kind kind = Kind::planted;
  int64_t nodes = 0;
  int64_t edges = 0;         ///< directed
  double exponent = 2.1;     ///< of the power law of degrees; above 1
  int64_t max_degree = 0;    ///< expected degree of the largest hub; 0: a tenth of the nodes
  int64_t communities = 50;  ///< of equal size
  double inside = 0.8;       ///< share of edges that stay within a community
  bool symmetric = true;     ///< edge 2k + 1 is edge 2k reversed
  bool shuffle = true;       ///< node ids at random; else communities are ranges of ids, hubs first
  uint64_t seed = 1;
};

struct SyntheticGraph {
  Tensor src, dst;        ///< i32 (edges), in random order; loops and duplicates occur
  Tensor community;       ///< i32 (nodes); zeros for rmat
  uint64_t checksum = 0;  ///< of the edges in their order
};

/// The generator behind every bench and large test. The same options give the same graph for every thread count.
/// planted: degree-corrected planted partition. Node i of its community has the weight (i + i0)^(-1 / (exponent - 1)), i0
/// such that the largest hub has `max_degree` expected edges; an edge's ends are drawn by weight, the second from the
/// first's community with probability `inside`, else from everywhere.
/// rmat: quadrant probabilities .57 .19 .19 .05, as in Graph500.
/// Cost: 20M edges in under a second on two cores. Errors: InvalidArgument for options out of range.
/// Sources: Karrer and Newman, arXiv 1008.3926; Chakrabarti et al., SDM 2004.
SyntheticGraph synthetic_graph(const SyntheticOptions& options);

}  // namespace tessera
