#pragma once

#include <span>
#include <vector>

#include "tessera/layers/embedding.h"
#include "tessera/sparse/graph.h"

/// Molecules as the Open Graph Benchmark describes them (Hu et al., arXiv 2005.00687; ogb/utils/features.py): each atom by
/// nine integers, each bond by three. A learned row for each value of each of them; an atom or bond is their sum.
///
/// The sum is one sparse product: row i of the pattern names the values of atom i among those of all tables, one table
/// after another. No table's rows are ever gathered for themselves, and the pattern is shared by all layers of a network.
namespace tessera {

/// Values of atomic number, chirality, degree, charge, hydrogens, radical electrons, hybridisation, aromatic, in a ring.
inline constexpr int64_t kAtomValues[] = {119, 5, 12, 12, 10, 6, 6, 2, 2};
/// Values of bond type, stereo, conjugated.
inline constexpr int64_t kBondValues[] = {5, 6, 2};

/// The pattern of features (N, K) i32 or i64, of which feature k has `counts[k]` values: N rows of K entries each, in the
/// order of the features. Errors: InvalidArgument for shapes and dtypes, for a value outside [0, counts[k]), naming the
/// first and its place, and for N K of 2^31 or more.
Graph category_pattern(const char* who, const Tensor& features, std::span<const int64_t> counts);

/// Tables of `counts[k]` rows by Xavier's uniform bound, `channels` wide. Gradient of the sum: to each row from every place
/// that names it.
struct EmbeddingSum {
  std::vector<Embedding> tables;

  EmbeddingSum() = default;
  EmbeddingSum(std::span<const int64_t> counts, int64_t channels, Generator& generator);

  /// All tables, one after another: what a `category_pattern` is multiplied with.
  Tensor joined() const;
};

/// Atoms x (N, 9), i32 or i64, as rows (N, channels). State and initial values are OGB's AtomEncoder's:
/// `atom_embedding_list.<k>.weight`. Errors: as `category_pattern`.
struct AtomEncoder {
  EmbeddingSum sum;
  std::vector<int64_t> counts;

  AtomEncoder() = default;
  AtomEncoder(int64_t channels, Generator& generator, std::span<const int64_t> counts = kAtomValues);

  Tensor operator()(const Tensor& x) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("atom_embedding_list", self.sum.tables);
  }
};

/// Bonds edge_attr (E, 3), i32 or i64, as rows (E, channels). State and initial values are OGB's BondEncoder's:
/// `bond_embedding_list.<k>.weight`. Errors: as `category_pattern`.
struct BondEncoder {
  EmbeddingSum sum;

  BondEncoder() = default;
  BondEncoder(int64_t channels, Generator& generator);

  Tensor operator()(const Tensor& edge_attr) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("bond_embedding_list", self.sum.tables);
  }
};

}  // namespace tessera
