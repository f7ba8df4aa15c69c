#include "tessera/core/io/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/storage.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

struct One {
  Tensor w;
  explicit One(double value, const Shape& shape = Shape{}) : w(full(shape, value)) { w.set_requires_grad(); }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("w", self.w);
  }
};

void step(One& model, Adam& adam) {
  adam.clear_grad();
  backward(scale(sum(mul(model.w, model.w)), 0.5));
  adam.step();
}

Checkpoint of(const One& model, const Adam& adam, const Generator& generator) {
  Checkpoint c;
  c.put("model", state_dict(model));
  c.put("optimiser", adam.state());
  c.put_generator("generator", generator);
  return c;
}

TEST(checkpoint, numbers_keep_every_bit) {
  const TemporaryFolder folder;
  Checkpoint c;
  c.put_number("third", 1.0 / 3);
  c.put_number("nan", std::nan(""));
  c.put_number("infinity", -INFINITY);
  c.put_integer("least", INT64_MIN);
  c.put_unsigned("most", UINT64_MAX);
  c.put_text("text", "Präparat 切片 #1");
  save_checkpoint(folder / "c", c);
  const Checkpoint back = load_checkpoint(folder / "c");
  EXPECT_EQ(back.number("third"), 1.0 / 3);
  EXPECT_TRUE(std::isnan(back.number("nan")));
  EXPECT_EQ(back.number("infinity"), -INFINITY);
  EXPECT_EQ(back.integer("least"), INT64_MIN);
  EXPECT_EQ(back.unsigned_integer("most"), UINT64_MAX);
  EXPECT_EQ(back.text("text"), "Präparat 切片 #1");
  EXPECT_EQ(back.values, c.values);
  EXPECT_EQ(error_of<InvalidArgument>([&] { (void)back.integer("fourth"); }), "checkpoint: fourth is missing");
  EXPECT_EQ(error_of<InvalidArgument>([&] { (void)back.integer("nan"); }).substr(0, 22), "checkpoint: nan is 'na");
}

TEST(checkpoint, parts_do_not_mix) {
  Checkpoint c;
  c.put("a", {{"x", zeros(Shape{1})}});
  c.put("ab", {{"x", zeros(Shape{2})}});
  EXPECT_EQ(c.part("a").size(), 1u);
  EXPECT_EQ(c.part("a").at("x").numel(), 1);
  EXPECT_TRUE(c.part("b").empty());
}

// H53: four steps, and two steps, a file, two steps in fresh objects.
TEST(checkpoint, adam_resumes_where_it_stood) {
  const TemporaryFolder folder;
  One whole(1);
  Adam adam(parameters(whole), {.lr = 0.1});
  const double expected[] = {0.9, 0.8004122, 0.7015863, 0.6039391};
  for (int i = 0; i < 4; ++i) {
    step(whole, adam);
    EXPECT_NEAR(whole.w.item(), expected[i], 1e-6);
    if (i == 1) save_checkpoint(folder / "c", of(whole, adam, Generator(7)));
  }
  One resumed(5);
  Adam fresh(parameters(resumed), {.lr = 0.1});
  Generator generator(0);
  restore(load_checkpoint(folder / "c"), resumed, fresh, generator);
  EXPECT_EQ(generator.seed(), 7u);
  EXPECT_EQ(fresh.steps(), 2);
  step(resumed, fresh);
  step(resumed, fresh);
  EXPECT_EQ(resumed.w.item(), whole.w.item());
}

// H65
TEST(checkpoint, another_shape_leaves_the_old_state_whole) {
  One small(1, Shape{2}), large(3, Shape{3});
  Adam of_small(parameters(small), {.lr = 0.1}), of_large(parameters(large), {.lr = 0.1});
  step(small, of_small);
  step(large, of_large);
  step(large, of_large);
  Generator generator(9);
  const Checkpoint wrong = of(small, of_small, Generator(1));
  const std::vector<float> weights = large.w.to_vector<float>(), m = of_large.state().at("m.0").to_vector<float>();
  EXPECT_EQ(error_of<InvalidArgument>([&] { restore(wrong, large, of_large, generator); }),
            "load_state_dict: w is f32 [2] but needs to be f32 [3]");
  // The model fits, the optimiser's moments do not.
  Checkpoint half = of(large, of_large, Generator(1));
  half.tensors["optimiser.v.0"] = zeros(Shape{4});
  half.tensors["model.w"] = full(Shape{3}, 77);
  EXPECT_EQ(error_of<InvalidArgument>([&] { restore(half, large, of_large, generator); }),
            "adam: v.0 is f32 [4] but needs to be f32 [3]");
  EXPECT_EQ(large.w.to_vector<float>(), weights);
  EXPECT_EQ(of_large.state().at("m.0").to_vector<float>(), m);
  EXPECT_EQ(of_large.steps(), 2);
  EXPECT_EQ(generator.seed(), 9u);
}

// H65: loading replaces, it does not append.
TEST(checkpoint, loading_again_and_again_keeps_memory_flat) {
  const TemporaryFolder folder;
  One model(1, Shape{256, 256});
  Adam adam(parameters(model), {.lr = 0.1});
  Generator generator(1);
  step(model, adam);
  save_checkpoint(folder / "c", of(model, adam, generator));
  std::vector<float> first;
  int64_t used = 0, reserved = 0;
  for (int i = 0; i < 50; ++i) {
    restore(load_checkpoint(folder / "c"), model, adam, generator);
    if (i == 1) {
      used = memory_stats().used_bytes;
      reserved = memory_stats().reserved_bytes;
    }
    if (i == 0) {
      step(model, adam);
      first = model.w.to_vector<float>();
    }
  }
  EXPECT_EQ(memory_stats().used_bytes, used);
  EXPECT_EQ(memory_stats().reserved_bytes, reserved);
  step(model, adam);
  EXPECT_EQ(model.w.to_vector<float>(), first);
}

TEST(checkpoint, every_damaged_byte_is_noticed) {
  const TemporaryFolder folder;
  One model(1, Shape{3});
  Adam adam(parameters(model), {.lr = 0.1});
  save_checkpoint(folder / "c", of(model, adam, Generator(3)));
  const std::string good = read_file(folder / "c");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = char(bad[i] ^ 1);
    put(folder / "bad", bad);
    EXPECT_THROW((void)load_checkpoint(folder / "bad"), Error) << "byte " << i;
  }
  for (size_t size = 0; size < good.size(); size += 7) {
    put(folder / "bad", good.substr(0, size));
    EXPECT_THROW((void)load_checkpoint(folder / "bad"), IoError) << size << " bytes";
  }
}

TEST(checkpoint, says_what_a_file_is_not) {
  const TemporaryFolder folder;
  const std::string path = folder / "c";
  save_safetensors(path, {{"w", zeros(Shape{1})}});
  EXPECT_EQ(error_of<IoError>([&] { (void)load_checkpoint(path); }),
            path + ": not a checkpoint of tessera, its __metadata__ has no tessera.semantics and tessera.digest");
  save_safetensors(path, {{"w", zeros(Shape{1})}}, {{"tessera.semantics", "2"}, {"tessera.digest", ""}});
  EXPECT_EQ(error_of<IoError>([&] { (void)load_checkpoint(path); }),
            path + ": written with checkpoint semantics 2, this program reads 1");
}

}  // namespace
}  // namespace tessera
