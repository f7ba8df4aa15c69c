#include "tessera/core/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

class SafeTensorsFile : public testing::Test {
 protected:
  // A file of this header text and this many bytes of data.
  void make(const std::string& header, size_t data_bytes = 0) {
    std::string content(8, '\0');
    const uint64_t size = header.size();
    std::memcpy(content.data(), &size, 8);
    put(path_, content + header + std::string(data_bytes, '\1'));
  }
  std::string error() {
    const std::string text = error_of<IoError>([&] { load_safetensors(path_); });
    EXPECT_EQ(text.rfind(path_ + ": ", 0), 0u) << text;
    return text.substr(std::min(text.size(), path_.size() + 2));
  }
  std::string error(const std::string& header, size_t data_bytes = 0) {
    make(header, data_bytes);
    return error();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "f.safetensors";
};

TEST_F(SafeTensorsFile, EveryDtypeComesBack) {
  std::map<std::string, Tensor> tensors;
  tensors["a.weight"] = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  tensors["a.bias"] = Tensor::from<double>({0.1, -0.2}, {2});
  tensors["flags"] = Tensor::from<uint8_t>({0, 1, 200}, {3});
  tensors["half"] = Tensor::from<f16>({f16(1.5f), f16(-2.0f)}, {1, 2});
  tensors["brain"] = Tensor::from<bf16>({bf16(1.5f)}, {1, 1, 1});
  tensors["ids"] = Tensor::from<int32_t>({-1, 7}, {2});
  tensors["offsets"] = Tensor::from<int64_t>({int64_t(1) << 40}, {1});
  tensors["nothing"] = Tensor::empty({0, 5});
  tensors["scalar"] = Tensor::from<float>({7}, {});
  tensors["größe \"\\\n"] = Tensor::from<float>({8}, {1});
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"text", "日本\n\"quoted\""}};
  save_safetensors(path_, tensors, metadata);

  const SafeTensors loaded = load_safetensors(path_);
  EXPECT_EQ(loaded.metadata, metadata);
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const Tensor& other = loaded.tensors.at(name);
    ASSERT_EQ(other.dtype(), tensor.dtype()) << name;
    ASSERT_EQ(other.shape(), tensor.shape()) << name;
    EXPECT_EQ(std::memcmp(other.raw(), tensor.raw(), size_t(tensor.numel()) * size_of(tensor.dtype())), 0) << name;
  }
  const std::string first = read_file(path_);
  save_safetensors(path_, loaded.tensors, loaded.metadata);
  EXPECT_EQ(read_file(path_), first);
}

TEST_F(SafeTensorsFile, LayoutIsTheFormats) {
  save_safetensors(path_, {{"b", Tensor::from<float>({1}, {1})},
                           {"a", Tensor::from<float>({2}, {1, 1})},
                           {"c", Tensor::from<int64_t>({3}, {1})}});
  const std::string content = read_file(path_);
  const std::string header =
      R"({"c":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},)"
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})";
  uint64_t size = 0;
  std::memcpy(&size, content.data(), 8);
  EXPECT_EQ(size % 8, 0u);
  EXPECT_EQ(content.substr(8, header.size()), header);
  EXPECT_EQ(content.substr(8 + header.size(), size - header.size()), std::string(size - header.size(), ' '));
  EXPECT_EQ(content.size(), 8 + size + 16);
}

TEST_F(SafeTensorsFile, EmptyFileOfNoTensors) {
  save_safetensors(path_, {});
  EXPECT_TRUE(load_safetensors(path_).tensors.empty());
}

TEST_F(SafeTensorsFile, BooleansAreBytes) {
  make(R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3);
  EXPECT_EQ(load_safetensors(path_).tensors.at("m").to_vector<uint8_t>(), (std::vector<uint8_t>{1, 1, 1}));
  std::string content = read_file(path_);
  content.back() = 2;
  write_atomically(path_, content);
  EXPECT_EQ(error(), "tensor 'm' of dtype BOOL has the value 2 at position 2, expected 0 or 1");
}

TEST_F(SafeTensorsFile, HostileHeaders) {
  write_atomically(path_, "1234567");
  EXPECT_EQ(error(), "has 7 bytes, expected a safetensors file (8 bytes of header length first)");
  write_atomically(path_, std::string(8, '\xff'));
  EXPECT_EQ(error(), "the header has 18446744073709551615 bytes, at most 100000000 are read");
  write_atomically(path_, std::string("\x09\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(error(), "the header has 9 bytes but the file ends 2 bytes after its length");
  EXPECT_EQ(error(""), "the header is not valid JSON at byte 8");
  EXPECT_EQ(error("{\"a"), "the header is not valid JSON at byte 11");
  EXPECT_EQ(error("{} x"), "the header is not valid JSON at byte 11");
  EXPECT_EQ(error("[]"), "the header is an array, expected the header to be an object");
  EXPECT_EQ(error(std::string(1000000, '[')), "the header is an array, expected the header to be an object");
  EXPECT_EQ(error("{\"a\":" + std::string(1000000, '[')),
            "tensor 'a' holds an array, expected an object with dtype, shape and data_offsets");
  EXPECT_EQ(error(R"({"a":7})"), "tensor 'a' holds a number, expected an object with dtype, shape and data_offsets");
  EXPECT_EQ(error(R"({"__metadata__":7})"), "__metadata__ holds a number, expected an object of strings");
  EXPECT_EQ(error(R"({"__metadata__":{"a":null}})"), "__metadata__ holds null, expected a string");
  EXPECT_EQ(error(R"({"__metadata__":{"a":"b","a":"c"}})"), "__metadata__ has the key 'a' twice");
  EXPECT_EQ(error(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ occurs twice in the header");
  EXPECT_EQ(error(R"({"a":{}})"), "tensor 'a' lacks dtype");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32"}})"), "tensor 'a' lacks shape");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[]}})"), "tensor 'a' lacks data_offsets");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","dtype":"F32"}})"), "tensor 'a' has dtype twice");
  EXPECT_EQ(error(R"({"a":{"strides":[1]}})"), "tensor 'a' has the field 'strides', expected dtype, shape and data_offsets");
  EXPECT_EQ(error(R"({"a":{"dtype":1}})"), "tensor 'a' holds a number, expected a dtype name");
  EXPECT_EQ(error(R"({"a":{"shape":"x"}})"), "tensor 'a' holds a string, expected an array of sizes");
  EXPECT_EQ(error(R"({"a":{"shape":[-1]}})"),
            "tensor 'a' holds a negative number, expected sizes that are integers, 0 or more");
  EXPECT_EQ(error(R"({"a":{"shape":[1.5]}})"),
            "tensor 'a' holds a number with a fraction, expected sizes that are integers, 0 or more");
  EXPECT_EQ(error(R"({"a":{"shape":[[1]]}})"), "tensor 'a' holds an array, expected sizes that are integers, 0 or more");
  EXPECT_EQ(error(R"({"a":{"shape":[true]}})"), "tensor 'a' holds a boolean, expected sizes that are integers, 0 or more");
  EXPECT_EQ(error(R"({"a":{"shape":[18446744073709551615]}})"),
            "tensor 'a' has a dimension of size 18446744073709551615, at most 2^63 - 1 is read");
  EXPECT_EQ(error(R"({"a":{"shape":[1,1,1,1,1,1,1]}})"), "tensor 'a' has more than 6 dimensions");
  EXPECT_EQ(error(R"({"a":{"data_offsets":[0,1,2]}})"), "tensor 'a' has more than 2 data_offsets");
  EXPECT_EQ(error(R"({"a":{"data_offsets":7}})"), "tensor 'a' holds a number, expected an array of two offsets");
  EXPECT_EQ(error(R"({"a":{"data_offsets":[-1]}})"),
            "tensor 'a' holds a negative number, expected offsets that are integers, 0 or more");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4),
            "tensor 'a' has 1 data_offsets, expected 2");
  EXPECT_EQ(error(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1),
            "tensor 'a' has dtype F8_E4M3, expected F64, F32, F16, BF16, I64, I32, U8 or BOOL");
  EXPECT_EQ(error("{\"a\\n" + std::string(200, 'b') + R"(":{}})"),
            "tensor 'a\\x0a" + std::string(98, 'b') + "...' lacks dtype");
}

TEST_F(SafeTensorsFile, HostileOffsets) {
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
            "tensor 'a' ends at offset 0, before its start 4");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
            "tensor 'a' has 4 bytes (offsets 0 to 4) but its shape and dtype need 8");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
            "tensor 'a' has a shape of more than 2^63 - 1 bytes");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})"),
            "tensor 'a' has a shape of more than 2^63 - 1 bytes");
  EXPECT_EQ(error(R"({"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})", 4),
            "tensor 'a' ends at offset 9223372036854775807 but the file has 4 bytes after the header");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
            6),
      "tensor 'b' starts at offset 2, inside the one that ends at 4");
  EXPECT_EQ(
      error(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})",
          10),
      "offsets 4 to 6 belong to no tensor, 'b' starts after them");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5),
            "1 bytes follow the last tensor, expected the end of the file");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3),
            "tensor 'a' ends at offset 4 but the file has 3 bytes after the header");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            8),
      "tensor 'a' occurs twice in the header");
}

TEST_F(SafeTensorsFile, EveryTruncationIsAnError) {
  save_safetensors(path_, {{"a", Tensor::from<float>({1, 2}, {2})}}, {{"k", "v"}});
  const std::string whole = read_file(path_);
  for (size_t size = 0; size < whole.size(); ++size) {
    put(path_, whole.substr(0, size));
    EXPECT_THROW(load_safetensors(path_), IoError) << size;
  }
}

TEST_F(SafeTensorsFile, WhatCannotBeSaved) {
  EXPECT_EQ(error_of<InvalidArgument>([&] {
              save_safetensors(path_, {{"a", Tensor()}});
            }),
            "save_safetensors: tensor 'a' is undefined");
  EXPECT_EQ(error_of<InvalidArgument>([&] {
              save_safetensors(path_, {{"__metadata__", Tensor::empty({1})}});
            }),
            "save_safetensors: a tensor cannot be named __metadata__");
  EXPECT_EQ(error_of<InvalidArgument>([&] {
              save_safetensors(path_, {{"a\xff", Tensor::empty({1})}});
            }),
            "save_safetensors: a name or text is not valid UTF-8: 'a\\xff'");
  EXPECT_FALSE(file_exists(path_));
}

TEST(SafeTensors, FilesOfThePublishedModels) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const SafeTensors resnet = load_safetensors(data / "models/resnet20-cifar10/resnet20-cifar10.safetensors");
  // 269,722 parameters and the running statistics of the batch norms.
  int64_t parameters = 0;
  for (const auto& [name, tensor] : resnet.tensors)
    if (name.find("running_") == std::string::npos && name.find("num_batches") == std::string::npos)
      parameters += tensor.numel();
  EXPECT_EQ(parameters, 269722);
  const SafeTensors mnist = load_safetensors(data / "models/mnist-onnx/mnist.safetensors");
  EXPECT_EQ(mnist.tensors.at("fc.weight").shape(), (Shape{10, 256}));
}

}  // namespace
}  // namespace tessera
