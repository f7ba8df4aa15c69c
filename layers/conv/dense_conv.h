#pragma once

#include "tessera/layers/linear.h"

/// Convolutions on dense adjacency matrices, as pooling by assignment makes them. x (B, N, in), adj (B, N, N) with [b, i, j]
/// for node i of graph b pulling from node j, mask (B, N) of 0 and 1, undefined: all nodes count; out (B, N, out), masked
/// rows zero. f32. Gradients: x, adj and every parameter. Errors: InvalidArgument for shapes. State, initial values and
/// formulas are those of torch_geometric.nn's classes of the same names.
namespace tessera {

struct DenseGcnConvOptions {
  bool improved = false;  ///< loops weigh 2
  bool bias = true;
  bool add_loop = true;  ///< every diagonal is set to 1 or 2, masked nodes' too
};

/// D^-1/2 A D^-1/2 X W^T + b, A with its diagonal set, D its row sums, but at least 1. State: `lin.weight`, `bias`.
struct DenseGcnConv {
  Linear lin;
  Tensor bias;
  DenseGcnConvOptions options;

  DenseGcnConv() = default;
  DenseGcnConv(int64_t in, int64_t out, Generator& generator, DenseGcnConvOptions options = {});

  Tensor operator()(const Tensor& x, const Tensor& adj, const Tensor& mask = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("bias", self.bias);
    visitor("lin", self.lin);
  }
};

struct DenseSageConvOptions {
  bool normalize = false;  ///< each row of the result to length 1
  bool bias = true;
};

/// lin_rel(A x / row sums of A, but at least 1) + lin_root(x). State: `lin_rel.weight`, `lin_root.weight`, `lin_root.bias`.
struct DenseSageConv {
  Linear lin_rel, lin_root;
  DenseSageConvOptions options;

  DenseSageConv() = default;
  DenseSageConv(int64_t in, int64_t out, Generator& generator, DenseSageConvOptions options = {});

  Tensor operator()(const Tensor& x, const Tensor& adj, const Tensor& mask = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin_rel", self.lin_rel);
    visitor("lin_root", self.lin_root);
  }
};

}  // namespace tessera
