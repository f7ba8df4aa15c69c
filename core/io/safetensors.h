#pragma once

#include <map>
#include <string>

#include "tessera/core/tensor.h"

/// The safetensors format: 8 bytes with the length of a JSON header, the header (name -> dtype, shape, byte range), the
/// arrays. https://github.com/huggingface/safetensors
namespace tessera {

struct SafeTensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  ///< the header's `__metadata__`
};

/// Reads a whole file. dtypes F64 F32 F16 BF16 I64 I32 U8; BOOL is read as u8 of 0 and 1.
/// The header is checked whole (length, names that occur twice, dtypes, shapes against byte ranges, overlaps, gaps, end of
/// file) before anything is allocated. Errors: IoError naming the path, the tensor, what is and what was expected.
SafeTensors load_safetensors(const std::string& path);

/// Writes a file atomically; the same tensors give the same bytes. Arrays stand by element size, then name, so each is
/// aligned to its element; the header is padded to 8 bytes.
/// Errors: InvalidArgument for an undefined tensor, one that is not on the cpu, the name `__metadata__`, text that is not
/// UTF-8; IoError as `write_atomically`.
void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace tessera
