#pragma once

#include "tessera/bench/support/bench.h"
#include "tessera/datasets/synthetic.h"

namespace tessera::bench {

/// The generator's options as command-line options; the defaults are the 233k nodes and 20M edges of the published rows.
inline SyntheticOptions synthetic_options(Options& options) {
  SyntheticOptions wanted;
  wanted.nodes = options.integer("nodes", 233000, "nodes");
  wanted.edges = options.integer("edges", 20000000, "directed edges");
  wanted.exponent = options.real("exponent", 2.1, "of the power law of degrees");
  wanted.communities = options.integer("communities", 50, "planted communities");
  wanted.inside = options.real("inside", 0.8, "share of edges within a community");
  wanted.shuffle = options.integer("shuffle", 1, "1: node ids at random, 0: in community order") != 0;
  wanted.kind = options.text("kind", "planted", "planted or rmat") == "rmat" ? SyntheticOptions::Kind::rmat
                                                                             : SyntheticOptions::Kind::planted;
  return wanted;
}

}  // namespace tessera::bench
