#include "tessera/layers/jumping_knowledge.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera {
namespace {

using namespace test;

TEST(JumpingKnowledge, Errors) {
  Generator random(1);
  const JumpingKnowledge jk(2, 3, random);
  const Tensor x = zeros({4, 2}), pair[] = {x, x};
  verify_errors({
      {[&] { jk(pair); }, "InvalidArgument: jumping_knowledge: 2 layers were given but the lstm was made for 3"},
      {[&] { JumpingKnowledge(1, 1, random); },
       "InvalidArgument: jumping_knowledge: 1 layers of 1 channels are too few for an lstm"},
      {[&] { JumpingKnowledge(JumpingKnowledge::Mode::lstm); },
       "InvalidArgument: jumping_knowledge: mode lstm needs its channels and layers"},
      {[&] { jk({}); }, "InvalidArgument: jumping_knowledge: no layers were given"},
  });
}

}  // namespace
}  // namespace tessera
