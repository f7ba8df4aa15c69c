#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/core/tensor.h"

/// numpy's arrays of plain numbers turned into tensors: shared by the npy and pickle readers.
namespace tessera {

/// An element type as numpy spells it: "<f4", "|b1", ">i8".
struct NumpyDType {
  char kind = 0;      ///< b i u f c U S O V ...
  int64_t bytes = 0;  ///< of one element
  bool big_endian = false;
  DType dtype = DType::f32;  ///< of the tensor it becomes
  bool readable = false;     ///< whether there is such a tensor

  /// From "<f4"; `readable` is false for text, objects, complex numbers and anything else without a tensor dtype.
  static NumpyDType parse(std::string_view text);
};

/// The elements at `data` (`shape.numel() * dtype.bytes` bytes) as a row-major tensor in native byte order.
/// b1 and u1 stay u8 (b1 checked to be 0 or 1), i1 i2 u2 become i32, u4 becomes i64, u8 becomes i64 when it fits.
/// `where` starts error texts. Errors: IoError for a boolean beyond 1, an integer beyond int64.
Tensor numpy_tensor(const NumpyDType& dtype, const Shape& shape, bool fortran_order, const char* data,
                    const std::string& where);

}  // namespace tessera
