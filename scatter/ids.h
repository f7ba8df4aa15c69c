#pragma once

#include <cstdint>

#include "tessera/core/tensor.h"

/// Lists of ids from outside: checked and narrowed once, before anything else touches them.
namespace tessera {

/// Errors: InvalidArgument unless `ids` is i32 or i64 of one dimension: "op: what has ...".
void check_id_list(const char* op, const char* what, const Tensor& ids);

/// Errors: InvalidArgument naming the first id outside [0, bound), its position and the range. `ids` i32 or i64, any shape.
void check_id_range(const char* op, const char* what, const Tensor& ids, int64_t bound);

/// A checked copy as i32; bound at most 2^31. Errors as `check_id_range`.
Tensor narrow_ids(const char* op, const char* what, const Tensor& ids, int64_t bound);

/// Whether no value is less than the one before it.
bool is_sorted(const int32_t* values, int64_t count);

/// Where the run of each key in [0, num_keys) begins in a sorted list: num_keys + 1 offsets.
void offsets_of_sorted(const int32_t* keys, int64_t count, int64_t num_keys, int64_t* offsets);

}  // namespace tessera
