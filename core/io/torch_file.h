#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tessera/core/tensor.h"

/// Files of torch.save that hold tensors: state dicts, training checkpoints, single tensors. Both generations: a zip with
/// `data.pkl` and a member for each storage (torch 1.6 and later), and the stream of pickles with the raw storages behind
/// it (before; `_use_new_zipfile_serialization=False`).
/// https://github.com/pytorch/pytorch/blob/main/torch/serialization.py
namespace tessera {

struct TorchFileOptions {
  uint64_t max_bytes = uint64_t{64} << 30;  ///< of the file, and of what its tensors take
  int64_t max_entries = 1 << 20;            ///< of all dicts, lists and tuples
};

/// Every tensor of the file, named by the keys that lead to it, joined by dots ("state_dict.conv1.weight"; positions for
/// lists and tuples; "" for a file that is one tensor). Numbers, texts and None beside them are passed over, as is the
/// `_metadata` of a module's state dict.
///
/// Nothing in the file is executed: of the pickle's globals only OrderedDict, the storage types and the functions that
/// rebuild a dense tensor or a parameter mean something, every other is an error with its name. So a whole module, a
/// TorchScript archive, a sparse or quantised tensor is refused: save its `state_dict()`.
///
/// dtypes: f64 f32 f16 bf16 i64 i32 u8 as they are, bool as u8, i16 and i8 as i32. Tensors with a row-major layout share
/// their storage as they did in torch; others (transposed, a column) are packed. Device and requires_grad are not kept.
/// Errors: IoError naming the path, the tensor and what does not fit: a storage that is missing or of another length, a
/// view beyond its storage, more elements than its storage has, a file that ends early.
std::map<std::string, Tensor> load_torch_file(const std::string& path, const TorchFileOptions& options = {});

/// Whether the file begins like one of torch.save: as a zip or as the older stream.
bool is_torch_file(const std::string& path);

/// The model's own tensors of a training checkpoint: those under the one of "state_dict.", "model_state_dict.", "model.",
/// "net." that there is (all of them when none of these starts a name), without a "module." (of DataParallel) that starts
/// every name.
std::map<std::string, Tensor> model_state(const std::map<std::string, Tensor>& tensors);

}  // namespace tessera
