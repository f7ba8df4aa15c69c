#include "tessera/core/io/pickle_numpy.h"

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/numpy_dtype.h"

namespace tessera {

using Kind = PickleValue::Kind;

// numpy pickles an array as _reconstruct(ndarray, (0,), b"b") with the state (version, shape, dtype, fortran_order, bytes),
// and a dtype as dtype("f4", align, copy) with the state (version, byte order, ...).

std::vector<std::string_view> numpy_globals() {
  return {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"};
}

Tensor numpy_array(const PickleValue& value, const std::string& origin, std::string_view what) {
  check<IoError>(
      is_call(value, "numpy.core.multiarray _reconstruct") || is_call(value, "numpy._core.multiarray _reconstruct"),
      "{}: {} is a pickled {}, expected a numpy array", origin, what, name(value.kind));
  const PickleValue* state = value.state;
  check<IoError>(state != nullptr && state->kind == Kind::tuple && state->items.size() == 5 &&
                     state->items[1]->kind == Kind::tuple && state->items[3]->kind == Kind::boolean,
                 "{}: {} is a numpy array whose state is not (version, shape, dtype, order, bytes)", origin, what);
  const PickleValue &sizes = *state->items[1], &type = *state->items[2], &bytes = *state->items[4];

  const bool typed = is_call(type, "numpy dtype") && !type.args->items.empty() &&
                     (type.args->items[0]->kind == Kind::bytes || type.args->items[0]->kind == Kind::text);
  check<IoError>(typed, "{}: {} is a numpy array without a plain dtype", origin, what);
  std::string spelling(type.args->items[0]->text);
  if (type.state != nullptr && type.state->kind == Kind::tuple && type.state->items.size() > 1 &&
      (type.state->items[1]->kind == Kind::bytes || type.state->items[1]->kind == Kind::text))
    spelling = std::string(type.state->items[1]->text) + spelling;
  const NumpyDType dtype = NumpyDType::parse(spelling);
  check<IoError>(dtype.readable, "{}: {} is a numpy array of dtype {}, expected plain numbers", origin, what,
                 printable(spelling));

  int64_t dims[Shape::kMaxDims];
  const size_t count = sizes.items.size();
  check<IoError>(count <= size_t(Shape::kMaxDims), "{}: {} has {} dimensions, at most {} are read", origin, what, count,
                 Shape::kMaxDims);
  int64_t needed = dtype.bytes;
  bool valid = true;
  for (size_t i = 0; i < count; ++i) {
    valid = valid && sizes.items[i]->kind == Kind::integer && sizes.items[i]->integer >= 0;
    if (!valid) break;
    dims[i] = sizes.items[i]->integer;
    valid = !__builtin_mul_overflow(needed, dims[i], &needed);
  }
  check<IoError>(valid, "{}: {} has a shape that is not of sizes, 0 or more", origin, what);
  check<IoError>(bytes.kind == Kind::bytes, "{}: {} holds its elements as {}, expected bytes", origin, what,
                 name(bytes.kind));
  check<IoError>(int64_t(bytes.text.size()) == needed, "{}: {} has {} bytes but its shape and dtype need {}", origin, what,
                 bytes.text.size(), needed);
  return numpy_tensor(dtype, Shape(dims, int(count)), state->items[3]->boolean, bytes.text.data(),
                      origin + ": " + std::string(what));
}

}  // namespace tessera
