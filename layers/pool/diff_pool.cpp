#include "tessera/layers/pool/diff_pool.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"

namespace tessera {

DiffPooled dense_diff_pool(const Tensor& x, const Tensor& adj, const Tensor& s, const Tensor& mask, bool normalize) {
  check(x.ndim() == 3 && adj.ndim() == 3 && s.ndim() == 3,
        "dense_diff_pool: x, adj and s have shapes {}, {} and {} but need three dimensions", x.shape(), adj.shape(),
        s.shape());
  const int64_t graphs = x.dim(0), nodes = x.dim(1);
  check(adj.shape() == (Shape{graphs, nodes, nodes}), "dense_diff_pool: adj has shape {} but needs {}", adj.shape(),
        Shape{graphs, nodes, nodes});
  check(s.dim(0) == graphs && s.dim(1) == nodes, "dense_diff_pool: s has shape {} but needs [{}, {}, K]", s.shape(), graphs,
        nodes);
  Tensor assigned = softmax(s, 2), features = x;
  if (mask.defined()) {
    check(mask.shape() == (Shape{graphs, nodes}), "dense_diff_pool: mask has shape {} but needs {}", mask.shape(),
          Shape{graphs, nodes});
    const Tensor column = reshape(mask, Shape{graphs, nodes, 1});
    assigned = mul(assigned, column);
    features = mul(features, column);
  }
  DiffPooled out;
  out.x = batched_matmul(assigned, features, {.transpose_a = true});
  out.adj = batched_matmul(assigned, batched_matmul(adj, assigned), {.transpose_a = true});
  out.link_loss = norm(sub(adj, batched_matmul(assigned, assigned, {.transpose_b = true})));
  if (normalize) out.link_loss = scale(out.link_loss, 1 / double(adj.numel()));
  const Tensor entropy = sum(mul(neg(assigned), log(shift(assigned, 1e-15))), 2);
  out.entropy_loss = mean(entropy);
  return out;
}

}  // namespace tessera
