#include "tessera/layers/norm/batch_norm.h"

#include <gtest/gtest.h>

#include "tessera/core/module.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

/// Case H23: a single row has no variance. In training an error, which leaves the running moments as they were; in evaluation
/// they serve.
TEST(BatchNorm1d, OfASingleRow) {
  BatchNorm1d norm(1);
  norm.running_mean.mutable_data<float>()[0] = 1;
  norm.running_var.mutable_data<float>()[0] = 4;
  const Tensor row = full({1, 1}, 2);
  verify_errors({{[&] { norm(row); },
                  "InvalidArgument: batch_norm: x has shape [1, 1], 1 value(s) a channel have no variance in training; use "
                  "larger batches, or evaluation"}});
  EXPECT_EQ(norm.num_batches_tracked.item(), 0);
  eval(norm);
  EXPECT_NEAR(norm(row).item(), 0.4999994, 1e-7);
  EXPECT_EQ(norm.running_mean.item(), 1);
  EXPECT_EQ(norm.running_var.item(), 4);
}

}  // namespace
}  // namespace tessera::test
