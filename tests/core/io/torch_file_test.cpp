#include "tessera/core/io/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tessera/core/io/file.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/io/zip.h"
#include "tessera/tests/core/io/make_torch.h"
#include "tessera/tests/core/io/make_zip.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

// The files of tests/core/io/torch are torch's own (bench/peers/torch_files.py); what is wrong is put together here.
namespace tessera {
namespace {

using namespace std::string_literals;
using Tensors = std::map<std::string, Tensor>;

std::string torch_path(const std::string& name) { return test::repository_file("tests/core/io/torch/" + name).string(); }

using namespace pickled;

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
class TorchFile : public testing::Test {
 protected:
  void make_zip_of(const std::string& value, const std::vector<std::pair<std::string, std::string>>& storages,
                   const std::vector<std::pair<std::string, std::string>>& others = {}) {
    std::vector<std::pair<std::string, std::string>> members = {{"a/data.pkl", pickle(value)}};
    for (const auto& [key, content] : storages) members.emplace_back("a/data/" + key, content);
    members.insert(members.end(), others.begin(), others.end());
    put(path_, make_zip(members));
  }
  std::string error(const TorchFileOptions& options = {}) {
    const std::string message = error_of<IoError>([&] { load_torch_file(path_, options); });
    EXPECT_EQ(message.rfind(path_ + ": ", 0), 0u) << message;
    return message.substr(std::min(message.size(), path_.size() + 2));
  }
  // Of a zip with one tensor "x" over a storage of `count` floats.
  std::string error_of_tensor(int64_t count, int64_t offset, const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& strides) {
    make_zip_of(dict({{"x", tensor(storage(count), offset, sizes, strides)}}),
                {{"0", std::string(size_t(count) * 4, '\0')}});
    return error();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "f.pt";
};

template <class T>
void expect_equal(const Tensors& tensors, const std::string& name, const Shape& shape, const std::vector<T>& values) {
  ASSERT_TRUE(tensors.contains(name)) << name;
  const Tensor& x = tensors.at(name);
  ASSERT_EQ(x.dtype(), dtype_of<T>) << name;
  ASSERT_EQ(x.shape(), shape) << name;
  ASSERT_EQ(size_t(x.numel()), values.size()) << name;
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::memcmp(x.data<T>() + i, values.data() + i, sizeof(T)), 0) << name << " at " << i;
}

TEST(TorchFiles, BothGenerationsGiveEveryDtypeAndLayout) {
  for (const char* name : {"everything.pt", "everything_legacy.pt"}) {
    SCOPED_TRACE(name);
    const Tensors t = load_torch_file(torch_path(name));
    EXPECT_EQ(t.size(), 16u);
    expect_equal<float>(t, "f32", {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    expect_equal<float>(t, "transposed", {4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    expect_equal<float>(t, "column", {3}, {1, 5, 9});
    expect_equal<float>(t, "rows", {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11});
    expect_equal<double>(t, "f64", {2}, {0.1, -0.2});
    expect_equal<f16>(t, "f16", {2}, {f16(1.5F), f16(-2.0F)});
    expect_equal<bf16>(t, "bf16", {2}, {bf16(1.5F), bf16(-3.0F)});
    expect_equal<int64_t>(t, "i64", {2}, {int64_t{1} << 40, -1});
    expect_equal<int32_t>(t, "i32", {2, 1}, {7, -8});
    expect_equal<int32_t>(t, "i16", {2}, {-300, 300});
    expect_equal<int32_t>(t, "i8", {2}, {-1, 127});
    expect_equal<uint8_t>(t, "u8", {2}, {0, 255});
    expect_equal<uint8_t>(t, "bool", {3}, {1, 0, 1});
    expect_equal<int64_t>(t, "scalar", {}, {7});
    expect_equal<float>(t, "nothing", {0, 5}, {});
    expect_equal<float>(t, "parameter", {1}, {2.5F});
    // Sharing is kept: "rows" is a view of "f32".
    EXPECT_EQ(t.at("rows").data<float>(), t.at("f32").data<float>() + 4);
  }
}

TEST(TorchFiles, ACheckpointIsFlattenedAndItsModelFound) {
  for (const char* name : {"checkpoint.pt", "checkpoint_legacy.pt"}) {
    SCOPED_TRACE(name);
    const Tensors t = load_torch_file(torch_path(name));
    EXPECT_TRUE(t.contains("state_dict.module.weight"));
    EXPECT_TRUE(t.contains("optimizer.state.0.momentum_buffer"));
    const Tensors model = model_state(t);
    EXPECT_EQ(model.size(), 2u);
    expect_equal<float>(model, "weight", {1, 2}, {1, 2});
    expect_equal<float>(model, "bias", {1}, {3});
  }
}

TEST(TorchFiles, ModelStateTakesNothingAwayFromAPlainOne) {
  const Tensor x = Tensor::from<float>({1}, {1});
  EXPECT_EQ(model_state({{"lin.weight", x}, {"module.bias", x}}).size(), 2u);
  EXPECT_TRUE(model_state({{"lin.weight", x}, {"module.bias", x}}).contains("module.bias"));
  EXPECT_TRUE(model_state({{"model_state_dict.a", x}, {"epoch", x}}).contains("a"));
  EXPECT_EQ(model_state({{"model_state_dict.a", x}, {"epoch", x}}).size(), 1u);
}

TEST(TorchFiles, ATensorAlone) {
  const Tensors t = load_torch_file(torch_path("tensor.pt"));
  EXPECT_EQ(t.size(), 1u);
  expect_equal<float>(t, "", {2}, {1, 2});
}

TEST(TorchFiles, AModuleIsRefusedByTheNameOfItsClass) {
  EXPECT_EQ(error_of<IoError>([] { load_torch_file(torch_path("module.pt")); }),
            torch_path("module.pt") +
                ": module/data.pkl: the pickle refers to 'torch.nn.modules.linear Linear' at offset 2, which is not among "
                "the names that are read");
}

TEST(TorchFiles, PublishedCheckpoints) {
  if (!test::have_shared_data("models")) return;
  const std::string folder = (test::shared_data() / "models").string();
  const Tensors ours = model_state(load_torch_file(folder + "/resnet20-cifar10/resnet20-12fca82f.th"));
  const SafeTensors expected = load_safetensors(folder + "/resnet20-cifar10/resnet20-cifar10.safetensors");
  ASSERT_EQ(ours.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    ASSERT_TRUE(ours.contains(name)) << name;
    ASSERT_EQ(ours.at(name).shape(), tensor.shape()) << name;
    EXPECT_EQ(ours.at(name).to_vector<float>(), tensor.to_vector<float>()) << name;
  }
  const Tensors dsmil = load_torch_file(folder + "/dsmil/c16_aggregator.pth");
  EXPECT_EQ(dsmil.at("i_classifier.fc.0.weight").shape(), Shape({1, 512}));
  EXPECT_EQ(dsmil.at("b_classifier.fcc.weight").shape(), Shape({1, 1, 512}));
  EXPECT_EQ(load_torch_file(folder + "/dsmil/init.pth").begin()->second.dtype(), DType::f32);
}

TEST_F(TorchFile, ByteOrderIsTheArchives) {
  make_zip_of(dict({{"x", tensor(storage(1), 0, {1}, {1})}, {"b", tensor(storage(1, "BFloat16Storage", "1"), 0, {1}, {1})}}),
              {{"0", "\x40\x49\x0f\xdb"s}, {"1", "\x3f\xc0"s}}, {{"a/byteorder", "big"}});
  const Tensors t = load_torch_file(path_);
  expect_equal<float>(t, "x", {1}, {3.14159274F});
  expect_equal<bf16>(t, "b", {1}, {bf16(1.5F)});
  make_zip_of(dict({{"x", tensor(storage(1), 0, {1}, {1})}}), {{"0", bytes_of({1})}}, {{"a/byteorder", "middle"}});
  EXPECT_EQ(error(), "byteorder is 'middle', expected little or big");
}

TEST_F(TorchFile, PartsOfStoragesAndPairsOfPython2) {
  const std::string part = tuple({text("7"), number(2), number(3)});
  const std::string ordered =
      global("collections", "OrderedDict") +
      tuple({"](](" + text("x") + tensor(storage(5, "FloatStorage", "0", part), 1, {2}, {1}) + "ee"}) + "R";
  put(path_, torch_stream(ordered, {"0"}, little_endian(uint64_t(5)) + bytes_of({0, 1, 2, 3, 4})));
  expect_equal<float>(load_torch_file(path_), "x", {2}, {3, 4});
  const std::string beyond = tuple({text("7"), number(6), number(1)});
  put(path_, torch_stream(dict({{"x", tensor(storage(5, "FloatStorage", "0", beyond), 1, {2}, {1})}}), {"0"}, ""));
  EXPECT_EQ(error(), "tensor 'x' has a storage that is a part of '0' beyond its 5 elements");
  put(path_, torch_stream(global("collections", "OrderedDict") + tuple({"](" + text("x") + "e"}) + "R", {}, ""));
  EXPECT_EQ(error(), "has an OrderedDict that is not made of pairs");
}

TEST_F(TorchFile, ViewsStayInTheirStorage) {
  EXPECT_EQ(error_of_tensor(4, 1, {4}, {1}), "tensor 'x' reaches beyond the 4 elements of its storage");
  EXPECT_EQ(error_of_tensor(4, 0, {2, 2}, {3, 1}), "tensor 'x' reaches beyond the 4 elements of its storage");
  EXPECT_EQ(error_of_tensor(4, 4, {1}, {1}), "tensor 'x' reaches beyond the 4 elements of its storage");
  EXPECT_EQ(error_of_tensor(4, -1, {1}, {1}), "tensor 'x' reaches beyond the 4 elements of its storage");
  EXPECT_EQ(error_of_tensor(4, 0, {2, 2}, {int64_t{1} << 62, int64_t{1} << 62}),
            "tensor 'x' reaches beyond the 4 elements of its storage");
  EXPECT_EQ(error_of_tensor(4, 0, {int64_t{1} << 40}, {0}),
            "tensor 'x' has 1099511627776 elements but its storage only 4: an expanded tensor, save its contiguous()");
  EXPECT_EQ(error_of_tensor(4, 0, {int64_t{1} << 40, int64_t{1} << 40}, {0, 0}),
            "tensor 'x' reaches beyond the 4 elements of its storage");
  EXPECT_EQ(error_of_tensor(4, 0, {0, int64_t{1} << 40, int64_t{1} << 40}, {1, 1, 1}),
            "tensor 'x' has sizes beyond 2^63 - 1");
  EXPECT_EQ(error_of_tensor(4, 0, {2}, {-1}), "tensor 'x' has strides that are not integers, 0 or more");
  EXPECT_EQ(error_of_tensor(4, 0, {-2}, {1}), "tensor 'x' has sizes that are not integers, 0 or more");
  EXPECT_EQ(error_of_tensor(4, 0, {2}, {1, 1}), "tensor 'x' has 1 sizes but 2 strides");
  EXPECT_EQ(error_of_tensor(4, 0, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}),
            "tensor 'x' has 7 dimensions, at most 6 are read");
}

TEST_F(TorchFile, StoragesThatDoNotFit) {
  const std::string x = tensor(storage(2), 0, {2}, {1});
  make_zip_of(dict({{"x", x}}), {});
  EXPECT_EQ(error(), "lacks the storage a/data/0");
  make_zip_of(dict({{"x", x}}), {{"0", bytes_of({1, 2, 3})}});
  EXPECT_EQ(error(), "storage a/data/0 has 12 bytes but 2 elements of torch FloatStorage need 8");
  make_zip_of(dict({{"x", tensor(storage(INT64_MAX / 2), 0, {2}, {1})}}), {{"0", ""}});
  EXPECT_EQ(error(), "storage '0' has 4611686018427387903 elements, more than 2^63 - 1 bytes");
  make_zip_of(dict({{"x", x}, {"y", tensor(storage(2, "IntStorage"), 0, {2}, {1})}}), {{"0", bytes_of({1, 2})}});
  EXPECT_EQ(error(), "storage '0' is 2 elements of torch FloatStorage for one tensor but 2 of torch IntStorage for 'y'");
  make_zip_of(dict({{"x", tensor(storage(1, "BoolStorage"), 0, {1}, {1})}}), {{"0", "\x02"}});
  EXPECT_EQ(error(), "a/data/0: a boolean has the value 2 at position 0, expected 0 or 1");
  make_zip_of(dict({{"x", tensor(storage(2, "ComplexFloatStorage"), 0, {2}, {1})}}), {});
  EXPECT_EQ(error(),
            "a/data.pkl: the pickle refers to 'torch ComplexFloatStorage' at offset 57, which is not among the names that "
            "are read");
  make_zip_of(
      dict({{"x",
             tensor(tuple({text("storage"), global("collections", "OrderedDict"), text("0"), text("cpu"), number(2)}) + "Q",
                    0, {2}, {1})}}),
      {});
  EXPECT_EQ(error(), "tensor 'x' has a storage of type 'collections OrderedDict'");
  make_zip_of(dict({{"x", tensor(tuple({text("module")}) + "Q", 0, {2}, {1})}}), {});
  EXPECT_EQ(error(), "tensor 'x' has a storage that is not ('storage', type, key, device, count)");
  make_zip_of(dict({{"x", global("torch._utils", "_rebuild_tensor_v2") + ")R"}}), {});
  EXPECT_EQ(error(), "tensor 'x' is not described by (storage, offset, sizes, strides, ...)");
  make_zip_of(dict({{"x", x}}), {{"0", bytes_of({1, 2})}});
  EXPECT_EQ(error({.max_bytes = 10}), "has " + std::to_string(File(path_).size()) + " bytes, at most 10 are read");
}

TEST_F(TorchFile, TheObjectIsDictsOfTensors) {
  const std::string x = tensor(storage(1), 0, {1}, {1});
  make_zip_of(dict({{"epoch", number(3)}}), {});
  EXPECT_EQ(error(), "holds no tensor");
  make_zip_of("}(" + tuple({number(1)}) + x + "u", {{"0", bytes_of({1})}});
  EXPECT_EQ(error(), "a dict has a key of type tuple, expected str or int");
  make_zip_of(dict({{"x", x}, {"x", x}}), {{"0", bytes_of({1})}});
  EXPECT_EQ(error(), "tensor 'x' occurs twice");
  make_zip_of(dict({{std::string(1001, 'x'), x}}), {{"0", bytes_of({1})}});
  EXPECT_EQ(error(), "the name '" + std::string(100, 'x') + "...' has 1001 bytes, at most 1000 are read");
  make_zip_of("]q\x01h\x01"s + "a", {});  // a list that holds itself
  EXPECT_EQ(error(), "nests more than 32 dicts or lists");
  std::string twice = "](NNe";  // each level holds the one below twice: 2^20 leaves
  for (int i = 1; i <= 20; ++i) twice = "](" + twice + "q" + char(i) + "h" + char(i) + "e";
  make_zip_of(twice, {});
  EXPECT_EQ(error({.max_entries = 1000}), "has more than 1000 entries");
  make_zip_of("](" + x + "q\x01h\x01" + tuple({x}) + "e", {{"0", bytes_of({4})}});
  const Tensors t = load_torch_file(path_);
  EXPECT_EQ(t.size(), 3u);
  EXPECT_TRUE(t.at("0").is(t.at("1")));
  expect_equal<float>(t, "2.0", {1}, {4});
}

TEST_F(TorchFile, PackedTensorsAreFewTimesTheFile) {
  constexpr int64_t side = 64;
  std::vector<std::pair<std::string, std::string>> entries;
  const std::string shared = storage(side * side) + "q\x01";
  for (int i = 0; i < 200; ++i)
    entries.emplace_back(std::to_string(i), tensor(i == 0 ? shared : "h\x01", 0, {side, side}, {1, side}));
  make_zip_of(dict(entries), {{"0", std::string(side * side * 4, '\0')}});
  const std::string most = std::to_string(8 * File(path_).size());
  EXPECT_EQ(error(), "tensors that are not row-major take more than " + most + " bytes, 8 times the file");
}

TEST_F(TorchFile, OtherFiles) {
  put(path_, "");
  const std::string neither = "is neither a zip with data.pkl nor torch's older stream, expected a file of torch.save";
  EXPECT_EQ(error(), neither);
  put(path_, std::string(600, 'x'));
  EXPECT_EQ(error(), neither);
  put(path_, make_zip({{"a/b", "c"}}));
  EXPECT_EQ(error(), "a zip without data.pkl, expected a file of torch.save");
  make_zip_of(dict({}), {}, {{"a/constants.pkl", pickle(")")}});
  EXPECT_EQ(error(), "a TorchScript archive, expected a state dict: save the module's state_dict() with torch.save");
}

TEST_F(TorchFile, StreamsThatDoNotFit) {
  const std::string object = dict({{"x", tensor(storage(2), 0, {2}, {1})}});
  const std::string two = little_endian(uint64_t(2)) + bytes_of({1, 2});
  put(path_, torch_stream(object, {"0"}, two));
  expect_equal<float>(load_torch_file(path_), "x", {2}, {1, 2});
  const std::string bytes = read_file(path_);
  const std::string at = std::to_string(bytes.size() - 16), end = std::to_string(bytes.size());
  put(path_, torch_stream(object, {"0"}, little_endian(uint64_t(3)) + bytes_of({1, 2})));
  EXPECT_EQ(error(), "storage '0' at byte " + at + " has 3 elements but its tensors need 2");
  put(path_, torch_stream(object, {"0"}, two + "?"));
  EXPECT_EQ(error(), "1 bytes follow the last storage, expected the end of the file");
  put(path_, bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(error(),
            "ends at byte " + std::to_string(bytes.size() - 1) + ", but storage '0' at byte " + at + " needs 16 bytes");
  put(path_, torch_stream(object, {}, ""));
  EXPECT_EQ(error(), "lacks the storage '0'");
  put(path_, torch_stream(object, {"0", "0"}, two + two));
  EXPECT_EQ(error(), "storage '0' occurs twice");
  put(path_, torch_stream(object, {"9"}, two));
  EXPECT_EQ(error(), "no tensor lies in storage '9', so its length is not known");
  std::string protocol = bytes;
  protocol[18] = '\x0a';
  put(path_, protocol);
  EXPECT_EQ(error(), "its protocol is not 1001, the only one of torch's older stream");
}

// Whatever one byte becomes, the answer is a value or an IoError.
TEST_F(TorchFile, EveryTruncationAndFlippedByte) {
  const ZipFile zip(torch_path("everything.pt"));
  std::vector<std::pair<std::string, std::string>> members;
  for (const ZipMember& member : zip.members()) members.emplace_back(member.name, zip.read(member));
  const std::string whole = read_file(torch_path("everything_legacy.pt"));
  int refused = 0, read = 0;
  const auto attempt = [&](const std::string& bytes) {
    put(path_, bytes);
    try {
      load_torch_file(path_, {.max_bytes = 1 << 20, .max_entries = 1000});
      ++read;
    } catch (const IoError&) {
      ++refused;
    }
  };
  for (size_t i = 0; i < whole.size(); ++i) attempt(whole.substr(0, i));
  EXPECT_EQ(read, 0);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = char(flipped[i] ^ (1 << (i % 8)));
    attempt(flipped);
  }
  std::string& description = members[0].second;
  for (size_t i = 0; i < description.size(); ++i) {
    description[i] = char(description[i] ^ (1 << (i % 8)));
    attempt(make_zip(members));
    description[i] = char(description[i] ^ (1 << (i % 8)));
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, int(whole.size()));
}

}  // namespace
}  // namespace tessera
