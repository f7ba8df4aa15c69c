#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/io/pickle.h"
#include "tessera/core/tensor.h"

namespace tessera {

/// Names that a pickled numpy array refers to, for `PickleOptions::globals`: arrays pickled by Python 2, or by Python 3 at
/// protocol 3 or 4 (protocol 2 goes through a text codec, protocol 5 through a buffer; both are refused by name).
std::vector<std::string_view> numpy_globals();

/// A pickled numpy array as a tensor of its own: f4 f8 i4 i8 u1 b1, and i1 i2 u2 (to i32), u4 (to i64); either byte
/// order, C or Fortran order. `what` names the array in error texts, which `origin` starts.
/// Errors: IoError when the value is no array of these, or its bytes do not fit its shape.
Tensor numpy_array(const PickleValue& value, const std::string& origin, std::string_view what);

}  // namespace tessera
