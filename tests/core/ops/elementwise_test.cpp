#include "tessera/core/ops/elementwise.h"

#include <gtest/gtest.h>

#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

TEST(Elementwise, Mul) {
  for (const int64_t width : kWidths)
    verify({.name = "mul " + std::to_string(width),
            .inputs = {real({5, width}).saved(), real({5, width}).saved()},
            .call = [](const Tensors& in) { return mul(in[0], in[1]); },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][i] * in[1][i];
                  return out;
                }});
}

TEST(Elementwise, Add) {
  for (const int64_t width : kWidths)
    verify({.name = "add " + std::to_string(width),
            .inputs = {real({5, width}), real({5, width})},
            .call = [](const Tensors& in) { return add(in[0], in[1]); },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][i] + in[1][i];
                  return out;
                }});
}

}  // namespace
}  // namespace tessera::test
