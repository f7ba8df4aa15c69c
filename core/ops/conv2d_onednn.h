#pragma once

#include <cstdint>
#include <memory>

namespace tessera {

/// What one call of oneDNN convolves: some images, some of their channels. Sizes of a pair are rows, then columns.
struct ConvTile {
  int64_t images, groups;
  int64_t in, out;  // channels of all groups
  int64_t in_size[2], out_size[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t x_image, y_image;  // elements from one image to the next
  int64_t w_out;             // elements from one output channel of the weights to the next
  int64_t has_bias;
  bool operator==(const ConvTile&) const = default;
};

enum class ConvPass : uint8_t { forward, data, weights };

/// What oneDNN has prepared for tiles of a shape; any thread may use it.
class ConvPlan;

/// Made at the first call for a shape, kept for the next ones.
std::shared_ptr<const ConvPlan> conv_plan(ConvPass pass, const ConvTile& tile);

/// Weights in the order that the plan wants them, for passes forward and data: bytes, and the conversion.
int64_t packed_bytes(const ConvPlan& plan);
void pack_weights(const ConvPlan& plan, const float* weights, void* packed);

/// One tile on the calling thread. forward: y from x, packed weights, bias. data: x (a gradient) from y (a gradient) and
/// packed weights. weights: the gradient of the weights, as they are stored, from x and y.
void convolve(const ConvPlan& plan, const float* x, const void* packed, const float* bias, float* y);
void convolve_data(const ConvPlan& plan, const float* y, const void* packed, float* x);
void convolve_weights(const ConvPlan& plan, const float* x, const float* y, float* weights);

}  // namespace tessera
