#include "tessera/core/io/npy.h"

#include <gtest/gtest.h>

#include "tessera/core/error.h"
#include "tessera/tests/core/io/make_zip.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

using namespace std::string_literals;

std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY"s + char(version) + '\0';
  out += version == 1 ? little_endian(uint16_t(header.size())) : little_endian(uint32_t(header.size()));
  return out + header + data;
}
std::string npy_of(const std::string& descr, const std::string& shape, const std::string& data, bool fortran = false) {
  return npy(
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }   \n",
      data);
}
std::string error(const std::string& bytes) {
  return error_of<IoError>([&] { parse_npy(bytes, "p"); });
}

TEST(Npy, DtypesAndOrders) {
  EXPECT_EQ(parse_npy(npy_of("<i2", "(3,)", "\1\0\2\0\xff\xff"s), "p").to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, -1}));
  EXPECT_EQ(parse_npy(npy_of(">i2", "(3,)", "\0\1\0\2\xff\xff"s), "p").to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, -1}));
  EXPECT_EQ(parse_npy(npy_of("<u2", "(1,)", "\xff\xff"s), "p").to_vector<int32_t>(), (std::vector<int32_t>{65535}));
  EXPECT_EQ(parse_npy(npy_of("|i1", "(2,)", "\1\xff"), "p").to_vector<int32_t>(), (std::vector<int32_t>{1, -1}));
  EXPECT_EQ(parse_npy(npy_of("|u1", "(2,)", "\1\xff"), "p").to_vector<uint8_t>(), (std::vector<uint8_t>{1, 255}));
  EXPECT_EQ(parse_npy(npy_of("|b1", "(2,)", "\1\0"s), "p").to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(parse_npy(npy_of("<u4", "(1,)", "\xff\xff\xff\xff"), "p").to_vector<int64_t>(),
            (std::vector<int64_t>{4294967295}));
  EXPECT_EQ(parse_npy(npy_of("<f4", "()", little_endian(1.5f)), "p").item(), 1.5);
  EXPECT_EQ(parse_npy(npy_of(">f8", "(1,)", "\x3f\xf8\0\0\0\0\0\0"s), "p").item(), 1.5);
  EXPECT_EQ(float(parse_npy(npy_of("<f2", "(1,)", "\0\x3e"s), "p").data<f16>()[0]), 1.5f);
  EXPECT_EQ(parse_npy(npy_of(">i4", "(1,)", "\0\0\1\0"s), "p").to_vector<int32_t>(), (std::vector<int32_t>{256}));
  EXPECT_EQ(parse_npy(npy_of("<i8", "(0, 7)", ""), "p").shape(), (Shape{0, 7}));
  // (2, 3, 2) with element value 100 i + 10 j + k, first index fastest.
  std::string bytes;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) bytes += char(100 * i + 10 * j + k);
  EXPECT_EQ(parse_npy(npy_of("|u1", "(2, 3, 2)", bytes, true), "p").to_vector<uint8_t>(),
            (std::vector<uint8_t>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
}

TEST(Npy, HeaderSpellings) {
  const std::string data = "\1\2\3\4\5\6";
  for (const char* header : {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }",
                             "{\"shape\":(2L,3L),\"descr\":\"|u1\",\"fortran_order\":False}",
                             " {'shape': (2, 3,), 'fortran_order' : False , 'descr': '|u1'} \n\n"})
    for (const int version : {1, 2, 3})
      EXPECT_EQ(parse_npy(npy(header, data, version), "p").shape(), (Shape{2, 3})) << header;
}

TEST(Npy, Refusals) {
  EXPECT_EQ(error(npy_of("|O", "(1,)", "")), "p: dtype |O, object arrays are not read");
  EXPECT_EQ(error(npy_of("<U7", "(1,)", "")), "p: dtype <U7, text arrays are not read");
  EXPECT_EQ(error(npy_of("|S7", "(1,)", "")), "p: dtype |S7, text arrays are not read");
  EXPECT_EQ(error(npy_of("<c16", "(1,)", "")), "p: dtype <c16, expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 or b1");
  EXPECT_EQ(error(npy_of("", "(1,)", "")), "p: dtype , expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 or b1");
  EXPECT_EQ(error(npy_of("<f99999999999", "(1,)", "")),
            "p: dtype <f99999999999, expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 or b1");
  EXPECT_EQ(error(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "")),
            "p: a record dtype, record arrays are not read");
  EXPECT_EQ(error("hello"), "p: is no npy file (it does not start with \\x93NUMPY)");
  EXPECT_EQ(error(npy_of("<f4", "(1,)", "1234").replace(6, 1, "\4")), "p: npy version 4.0 is not read, expected 1 to 3");
  EXPECT_EQ(error("\x93NUMPY\1\0\xff\xff{"s), "p: ends in the npy header");
  EXPECT_EQ(error("\x93NUMPY\2\0\xff\xff"s), "p: ends in the npy header");
  EXPECT_EQ(error("\x93NUMPY\2\0\xff\xff\xff\xff"s), "p: the npy header has 4294967295 bytes, at most 65536 are read");
  EXPECT_EQ(error(npy_of("<f4", "(2, 3)", "1234")), "p: has 4 bytes after the header but the shape [2, 3] needs 24");
  EXPECT_EQ(error(npy_of("<f4", "(1,)", "12345")), "p: has 5 bytes after the header but the shape [1] needs 4");
  EXPECT_EQ(error(npy_of("<f4", "(4294967296, 4294967296)", "")), "p: the shape has more than 2^63 - 1 elements");
  EXPECT_EQ(error(npy_of("<f4", "(9223372036854775807,)", "")),
            "p: the shape [9223372036854775807] has more than 2^63 - 1 bytes");
  EXPECT_EQ(error(npy_of("<f4", "(1,1,1,1,1,1,1)", "")), "p: has more than 6 dimensions");
  EXPECT_EQ(error(npy_of("|b1", "(2,)", "\1\2")), "p: a boolean has the value 2 at position 1, expected 0 or 1");
  EXPECT_EQ(error(npy_of("<u8", "(1,)", std::string(8, '\xff'))),
            "p: the unsigned value 18446744073709551615 at position 0 is beyond int64");
  const char* const kBroken =
      "p: the npy header is broken at byte {} of its text, expected a dict of descr, fortran_order and shape";
  const auto broken = [&](int at) {
    return std::string(kBroken).replace(std::string(kBroken).find("{}"), 2, std::to_string(at));
  };
  EXPECT_EQ(error(npy("", "")), broken(0));
  EXPECT_EQ(error(npy("{'descr", "")), broken(1));
  EXPECT_EQ(error(npy("{'descr': '<f4', 'descr': '<f4'}", "")), broken(25));
  EXPECT_EQ(error(npy("{'descr': '<f4'}", "")), broken(16));
  EXPECT_EQ(error(npy("{'shape': (-1,)}", "")), broken(11));
  EXPECT_EQ(error(npy("{'shape': (99999999999999999999,)}", "")), broken(29));
  EXPECT_EQ(error(npy("{'fortran_order': 1}", "")), broken(18));
}

TEST(Npy, SaveAndLoad) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  save_npy(path, Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
  EXPECT_EQ(load_npy(path).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read_file(path).find('\n') % 64, 63u);
  save_npy(path, Tensor::from<int64_t>({7}, {1}));
  EXPECT_EQ(load_npy(path).shape(), (Shape{1}));
  save_npy(path, Tensor::from<double>({7}, {}));
  EXPECT_EQ(load_npy(path).shape(), (Shape{}));
  EXPECT_EQ(error_of<InvalidArgument>([&] { save_npy(path, Tensor::empty({1}, DType::bf16)); }),
            "save_npy: numpy has no dtype bf16, cast the tensor to f32 first");
  put(path, "x");
  EXPECT_EQ(error_of<IoError>([&] { load_npy(path); }), path + ": is no npy file (it does not start with \\x93NUMPY)");
}

// Cases H32 and H33.
TEST(Npz, MembersThatAreNotAskedForDoNotMatter) {
  const TemporaryFolder folder;
  const std::string path = folder / "f.npz";
  std::string values;
  for (const float v : {0.f, 1.f, 2.f, 3.f, 4.f, 5.f}) values += little_endian(v);
  const std::vector<std::pair<std::string, std::string>> members = {
      {"x.npy", npy_of("<f4", "(2, 3)", values)},
      {"names.npy", npy_of("|O", "(1,)", "\x80\2cos\nsystem\n.")},
      {"readme.txt", "hi"}};
  for (const bool deflate : {false, true})
    for (const ZipStyle style : {ZipStyle::plain, ZipStyle::zip64_extra, ZipStyle::zip64_only, ZipStyle::descriptor}) {
      put(path, make_zip(members, {.deflate = deflate, .style = style}));
      const NpzFile npz(path);
      EXPECT_EQ(npz.names(), (std::vector<std::string>{"x", "names"}));
      EXPECT_EQ(npz.read("x").to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
      EXPECT_EQ(error_of<IoError>([&] { npz.read("names"); }),
                path + ": member 'names': dtype |O, object arrays are not read");
      EXPECT_TRUE(npz.contains("x"));
      EXPECT_FALSE(npz.contains("readme.txt"));
      EXPECT_EQ(error_of<IoError>([&] { npz.read("y"); }), path + ": has no array 'y', only x, names");
    }
  put(path, make_zip({{"x.npy", ""}, {"x.npy", ""}}));
  EXPECT_EQ(error_of<IoError>([&] { NpzFile npz(path); }), path + ": member 'x.npy' occurs twice");
  put(path, make_zip({}));
  EXPECT_EQ(error_of<IoError>([&] { NpzFile(path).read("y"); }), path + ": has no array 'y', only none");
}

TEST(Npy, MalformedAndOddFiles) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const auto text = [&](const char* name) {
    const std::string path = data / name;
    return error_of<IoError>([&] { load_npy(path); }).substr(path.size() + 2);
  };
  EXPECT_EQ(text("malformed/npy/example_bool_bad_value.npy").substr(0, 23), "a boolean has the value");
  EXPECT_EQ(text("malformed/npy/objects/py2-np0-objarr.npy"), "dtype |O8, object arrays are not read");
  EXPECT_EQ(text("malformed/npy/objects/py3-objarr.npy"), "dtype |O, object arrays are not read");
  EXPECT_EQ(text("odd/npy/example_c64_little_endian_standard.npy"),
            "dtype <c16, expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 or b1");
  const std::string npz = data / "malformed/npy/objects/py2-objarr.npz";
  EXPECT_EQ(error_of<IoError>([&] { NpzFile(npz).read("x"); }), npz + ": member 'x': dtype |O8, object arrays are not read");
  const Tensor plain = load_npy(data / "odd/npy/example_f64_little_endian_standard.npy");
  EXPECT_EQ(plain.shape(), (Shape{2, 3, 4}));
  for (const char* name : {"odd/npy/example_f64_big_endian_fortran.npy", "odd/npy/example_f64_little_endian_fortran.npy"}) {
    const Tensor other = load_npy(data / name);
    EXPECT_EQ(other.shape(), plain.shape());
    EXPECT_EQ(other.to_vector<double>(), plain.to_vector<double>()) << name;
  }
  EXPECT_GT(load_npy(data / "odd/npy/example_bool_standard.npy").numel(), 0);
}

TEST(Npz, ReferenceOutputs) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const NpzFile npz(data / "models/resnet20-cifar10/reference.npz");
  EXPECT_EQ(npz.read("pixels_u8").shape(), (Shape{4, 32, 32, 3}));
  EXPECT_EQ(npz.read("features").shape(), (Shape{4, 64}));
  EXPECT_EQ(npz.read("logits").dtype(), DType::f32);
}

}  // namespace
}  // namespace tessera
