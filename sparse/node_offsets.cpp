#include "tessera/sparse/node_offsets.h"

#include <cmath>
#include <limits>

#include "tessera/core/error.h"

namespace tessera {

std::vector<int64_t> node_offsets_of(const char* op, const Tensor& positions, const Tensor& node_offsets) {
  check(positions.defined() && positions.ndim() == 2, "{}: positions has {} dimensions but needs 2", op,
        positions.defined() ? positions.ndim() : 0);
  const int64_t n = positions.dim(0);
  check(positions.dim(1) >= 1, "{}: positions has shape {} but needs a column for each dimension", op, positions.shape());
  check(n <= std::numeric_limits<int32_t>::max(), "{}: {} points are more than 2147483647", op, n);
  with_float(positions.dtype(), op, [&]<class T>() {
    const T* p = positions.data<T>();
    for (int64_t i = 0; i < positions.numel(); ++i)
      check(std::isfinite(p[i]), "{}: the position of point {} is {} in dimension {} but needs to be finite", op,
            i / positions.dim(1), double(p[i]), i % positions.dim(1));
  });
  if (!node_offsets.defined()) return {0, n};
  check(node_offsets.ndim() == 1 && node_offsets.numel() >= 1 && node_offsets.dtype() == DType::i64,
        "{}: node_offsets has shape {} and dtype {} but needs [graphs + 1] and i64", op, node_offsets.shape(),
        node_offsets.dtype());
  std::vector<int64_t> offsets = node_offsets.to_vector<int64_t>();
  check(offsets[0] == 0, "{}: node_offsets[0] is {} but needs to be 0", op, offsets[0]);
  for (size_t g = 1; g < offsets.size(); ++g)
    check(offsets[g] >= offsets[g - 1], "{}: node_offsets[{}] is {}, below the {} before it", op, g, offsets[g],
          offsets[g - 1]);
  check(offsets.back() == n, "{}: node_offsets ends at {} but there are {} points", op, offsets.back(), n);
  return offsets;
}

}  // namespace tessera
