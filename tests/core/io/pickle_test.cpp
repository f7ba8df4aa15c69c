#include "tessera/core/io/pickle.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/pickle_numpy.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

using namespace std::string_literals;
using Kind = PickleValue::Kind;

const PickleOptions kAllowed{.globals = {"collections OrderedDict", "m f"}};

std::string error(const std::string& bytes, const PickleOptions& options = kAllowed) {
  return error_of<IoError>([&] { Pickle(bytes, "p", options); });
}

// What a pickle of one value says, in Python's spelling.
std::string spell(const PickleValue& value, int depth = 0) {
  if (depth > 20) return "...";
  const auto join = [&](const char* open, const char* close) {
    std::string out = open;
    for (const PickleValue* item : value.items) out += (out.size() > 1 ? "," : "") + spell(*item, depth + 1);
    return out + close;
  };
  switch (value.kind) {
    case Kind::none: return "None";
    case Kind::boolean: return value.boolean ? "True" : "False";
    case Kind::integer: return std::to_string(value.integer);
    case Kind::big_integer: return "big(" + std::to_string(value.text.size()) + ")";
    case Kind::real: return to_text(value.real);
    case Kind::bytes: return "b'" + std::string(value.text) + "'";
    case Kind::text: return "'" + std::string(value.text) + "'";
    case Kind::tuple: return join("(", ")");
    case Kind::list: return join("[", "]");
    case Kind::dict: return join("{", "}");
    case Kind::global: return std::string(value.text);
    case Kind::persistent: return "persistent" + spell(*value.args, depth + 1);
    case Kind::object: {
      std::string out = std::string(value.global->text) + spell(*value.args, depth + 1);
      if (!value.items.empty()) out += join("{", "}");
      if (value.state != nullptr) out += "<" + spell(*value.state, depth + 1) + ">";
      return out;
    }
  }
  return "?";
}

std::string read(const std::string& bytes) {
  const Pickle pickle(bytes, "p", kAllowed);
  EXPECT_EQ(pickle.end(), bytes.size());
  return spell(pickle.root());
}

TEST(Pickle, Values) {
  EXPECT_EQ(read("\x80\x02N."s), "None");
  EXPECT_EQ(read("\x80\x02\x88."s), "True");
  EXPECT_EQ(read("\x80\x02\x89."s), "False");
  EXPECT_EQ(read("\x80\x02K\xff."s), "255");
  EXPECT_EQ(read("\x80\x02M\x34\x12."s), "4660");
  EXPECT_EQ(read("\x80\x02J\xfe\xff\xff\xff."s), "-2");
  EXPECT_EQ(read("\x80\x02\x8a\x00."s), "0");
  EXPECT_EQ(read("\x80\x02\x8a\x05\x00\x00\x00\x00\x01."s), "4294967296");
  EXPECT_EQ(read("\x80\x02\x8a\x05\x00\x00\x00\x00\xff."s), "-4294967296");
  EXPECT_EQ(read("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."s), "9223372036854775807");
  EXPECT_EQ(read("\x80\x02\x8a\x0al\xfc\x9c"
                 "F\xf9 j\xa8P\x19."s),
            "big(10)");
  EXPECT_EQ(read("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."s), "1.5");
  EXPECT_EQ(read("\x80\x02U\x02hi."s), "b'hi'");
  EXPECT_EQ(read("\x80\x02T\x02\x00\x00\x00hi."s), "b'hi'");
  EXPECT_EQ(read("\x80\x03"
                 "C\x02hi."s),
            "b'hi'");
  EXPECT_EQ(read("\x80\x03"
                 "B\x02\x00\x00\x00hi."s),
            "b'hi'");
  EXPECT_EQ(read("\x80\x04\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi."s), "b'hi'");
  EXPECT_EQ(read("\x80\x05\x96\x02\x00\x00\x00\x00\x00\x00\x00hi."s), "b'hi'");
  EXPECT_EQ(read("\x80\x02X\x03\x00\x00\x00\xc3\xa4h."s), "'äh'");
  EXPECT_EQ(read("\x80\x04\x8c\x02hi."s), "'hi'");
  EXPECT_EQ(read("\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."s), "'hi'");
}

TEST(Pickle, Containers) {
  EXPECT_EQ(read("\x80\x02)."s), "()");
  EXPECT_EQ(read("\x80\x02K\x01\x85."s), "(1)");
  EXPECT_EQ(read("\x80\x02K\x01K\x02\x86."s), "(1,2)");
  EXPECT_EQ(read("\x80\x02K\x01K\x02K\x03\x87."s), "(1,2,3)");
  EXPECT_EQ(read("\x80\x02(K\x01K\x02K\x03K\x04t."s), "(1,2,3,4)");
  EXPECT_EQ(read("\x80\x02]."s), "[]");
  EXPECT_EQ(read("\x80\x02]K\x01"
                 "a."s),
            "[1]");
  EXPECT_EQ(read("\x80\x02](K\x01K\x02"
                 "e."s),
            "[1,2]");
  EXPECT_EQ(read("\x80\x02(K\x01K\x02l."s), "[1,2]");
  EXPECT_EQ(read("\x80\x02}K\x01K\x02s."s), "{1,2}");
  EXPECT_EQ(read("\x80\x02}(K\x01K\x02K\x03K\x04u."s), "{1,2,3,4}");
  EXPECT_EQ(read("\x80\x02(K\x01K\x02"
                 "d."s),
            "{1,2}");
  // A list remembered, filled later, used twice; one that contains itself.
  EXPECT_EQ(read("\x80\x02]q\x00K\x07"
                 "ah\x00\x86."s),
            "([7],[7])");
  EXPECT_EQ(read("\x80\x04]\x94(K\x07h\x00"
                 "e."s)
                .substr(0, 12),
            "[7,[7,[7,[7,");
  EXPECT_EQ(read("\x80\x02]r\x00\x00\x01\x00j\x00\x00\x01\x00\x86."s), "([],[])");
  EXPECT_EQ(read("\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N."s), "None");
  EXPECT_EQ(read("\x80\x02K\x01K\x02"
                 "0."s),
            "1");
  EXPECT_EQ(read("\x80\x02K\x01(K\x02K\x03"
                 "1."s),
            "1");
  EXPECT_EQ(read("\x80\x02K\x01("
                 "0."s),
            "1");
  EXPECT_EQ(read("\x80\x02K\x01"
                 "2\x86."s),
            "(1,1)");
}

TEST(Pickle, ObjectsAreDescribedNotMade) {
  EXPECT_EQ(read("\x80\x02"
                 "cm\nf\nK\x01\x85R."s),
            "m f(1)");
  EXPECT_EQ(read("\x80\x02"
                 "cm\nf\n)\x81}U\x01kK\x01sb."s),
            "m f()<{b'k',1}>");
  EXPECT_EQ(read("\x80\x04\x8c\x01m\x8c\x01"
                 "f\x93)R."s),
            "m f()");
  EXPECT_EQ(read("\x80\x02"
                 "ccollections\nOrderedDict\n)R(K\x01K\x02u}b."s),
            "collections OrderedDict(){1,2}<{}>");
  EXPECT_EQ(read("\x80\x02U\x01iK\x05\x86Q."s), "persistent(b'i',5)");
}

TEST(Pickle, SeveralInARow) {
  const std::string bytes = "\x80\x02K\x01.\x80\x02K\x02."s;
  const Pickle first(bytes, "p", {});
  EXPECT_EQ(first.end(), 5u);
  EXPECT_EQ(spell(Pickle(std::string_view(bytes).substr(5), "p", {}).root()), "2");
}

TEST(Pickle, Find) {
  const std::string bytes =
      "\x80\x02}(U\x01"
      "aK\x01X\x01\x00\x00\x00"
      "bK\x02U\x01"
      "aK\x03K\x07K\x04u."s;
  const Pickle pickle(bytes, "p", {});
  EXPECT_EQ(find(pickle.root(), "a")->integer, 3);
  EXPECT_EQ(find(pickle.root(), "b")->integer, 2);
  EXPECT_EQ(find(pickle.root(), "c"), nullptr);
  EXPECT_EQ(find(*pickle.root().items[0], "a"), nullptr);
}

TEST(Pickle, RefusesWhatIsNotAllowed) {
  EXPECT_EQ(error("\x80\x02"
                  "cos\nsystem\nU\x02ls\x85R."s),
            "p: the pickle refers to 'os system' at offset 2, which is not among the names that are read");
  EXPECT_EQ(error("\x80\x04\x8c\x02os\x8c\x06system\x93)R."s),
            "p: the pickle refers to 'os system' at offset 14, which is not among the names that are read");
  EXPECT_EQ(error("\x80\x02"
                  "co\x1bs\nx\n."s),
            "p: the pickle refers to 'o\\x1bs x' at offset 2, which is not among the names that are read");
  EXPECT_EQ(error("\x80\x02"
                  "cm\nf2\n."s),
            "p: the pickle refers to 'm f2' at offset 2, which is not among the names that are read");
  EXPECT_EQ(error("\x80\x02K\x01)R."s),
            "p: the pickle opcode at offset 5 calls something that is no global, or with no tuple");
  EXPECT_EQ(error("\x80\x02"
                  "cm\nf\nNR."s),
            "p: the pickle opcode at offset 8 calls something that is no global, or with no tuple");
  EXPECT_EQ(error("\x80\x01N."s), "p: pickle protocol 1 is not read, expected 2 to 5");
  EXPECT_EQ(error("\x80\x06N."s), "p: pickle protocol 6 is not read, expected 2 to 5");
  EXPECT_EQ(error("\x80\x02I5\n."s), "p: pickle opcode 0x49 at offset 2 is not read");
  EXPECT_EQ(error("\x80\x05\x97."s), "p: pickle opcode 0x97 at offset 2 is not read");
}

TEST(Pickle, RefusesWhatIsBroken) {
  EXPECT_EQ(error(""), "p: the pickle ends at offset 0 but 1 more bytes are needed at offset 0");
  EXPECT_EQ(error("\x80\x02N"s), "p: the pickle ends at offset 3 but 1 more bytes are needed at offset 3");
  EXPECT_EQ(error("\x80\x02T\xff\xff\xff\x7fhi."s),
            "p: the pickle ends at offset 10 but 2147483647 more bytes are needed at offset 7");
  EXPECT_EQ(error("\x80\x02T\xff\xff\xff\xffhi."s), "p: the pickle opcode at offset 2 has a string of negative length");
  EXPECT_EQ(error("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff."s),
            "p: the pickle ends at offset 12 but 18446744073709551615 more bytes are needed at offset 11");
  EXPECT_EQ(error("\x80\x02."s), "p: the pickle opcode at offset 2 needs a value but there is none");
  EXPECT_EQ(error("\x80\x02K\x01K\x02."s), "p: 1 values are left under the result of the pickle that ends at offset 7");
  EXPECT_EQ(error("\x80\x02t."s), "p: the pickle opcode at offset 2 needs a mark but there is none");
  EXPECT_EQ(error("\x80\x02N(\x85."s), "p: the pickle opcode at offset 4 makes a tuple of more values than there are");
  EXPECT_EQ(error("\x80\x02NNa."s), "p: the pickle opcode at offset 4 adds to something that is no list");
  EXPECT_EQ(error("\x80\x02}(Nu."s), "p: the pickle opcode at offset 5 has a key without a value");
  EXPECT_EQ(error("\x80\x02NNNs."s), "p: the pickle opcode at offset 5 sets entries of something that is no dict");
  EXPECT_EQ(error("\x80\x02h\x05."s), "p: the pickle opcode at offset 2 refers to a value that was not remembered");
  EXPECT_EQ(error("\x80\x02NNb."s), "p: the pickle opcode at offset 4 sets the state of something that is no object");
  EXPECT_EQ(error("\x80\x02"
                  "cm\nf\n)RNbNb."s),
            "p: the pickle opcode at offset 12 sets the state of an object that has one");
  EXPECT_EQ(error("\x80\x02"
                  "cabc"s),
            "p: the pickle opcode at offset 2 has a name without an end");
  EXPECT_EQ(error("\x80\x04NN\x93."s), "p: the pickle opcode at offset 4 names a global by something that is no text");
}

TEST(Pickle, Limits) {
  EXPECT_EQ(error("\x80\x02" + std::string(1001, '(')), "p: the pickle nests more than 1000 containers");
  EXPECT_EQ(error("\x80\x02](K\x01K\x02K\x03"
                  "e."s,
                  {.globals = {}, .max_values = 3}),
            "p: the pickle has more than 3 values");
  // A million levels of one-element tuples: built, and freed, without recursion.
  const std::string deep = "\x80\x02N" + std::string(1000000, '\x85') + ".";
  EXPECT_EQ(Pickle(deep, "p", {}).root().kind, Kind::tuple);
}

TEST(Pickle, GarbageIsAnErrorOrAValue) {
  std::mt19937 random(7);
  const std::string opcodes = "(012NJKMTUBCX)]}aelsudcRbQqrhjG.\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x93\x94\x95";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    const size_t length = random() % 60;
    for (size_t i = 0; i < length; ++i) bytes += random() % 3 == 0 ? char(random() % 8) : opcodes[random() % opcodes.size()];
    try {
      const Pickle pickle(bytes, "p", kAllowed);
      spell(pickle.root(), 15);
    } catch (const IoError&) {
    }
  }
}

// numpy.array([[1, 2, 3], [4, 5, 6]]) in the given spelling, as Python 2 pickles it.
std::string array(const std::string& type, const std::string& order, const std::string& fortran, const std::string& data,
                  const std::string& shape = "K\x02K\x03\x86") {
  return "\x80\x02"
         "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK"s +
         '\0' +
         "\x85U\x01"
         "b\x87R(K\x01" +
         shape + "cnumpy\ndtype\nU" + char(type.size()) + type + "K"s + '\0' + "K\x01\x87R(K\x03U\x01" + order +
         "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK" + '\0' + "tb" + fortran + "U" + char(data.size()) + data + "tb.";
}

Tensor read_array(const std::string& bytes) {
  const Pickle pickle(bytes, "p", {.globals = numpy_globals()});
  return numpy_array(pickle.root(), "p", "x");
}

TEST(PickleNumpy, Arrays) {
  const Tensor rows = read_array(array("u1", "|", "\x89", "\1\2\3\4\5\6"));
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(rows.to_vector<uint8_t>(), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read_array(array("u1", "|", "\x88", "\1\2\3\4\5\6")).to_vector<uint8_t>(),
            (std::vector<uint8_t>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(read_array(array("i2", ">", "\x89", "\0\1\0\2\0\3\0\4\0\5\xff\xff"s)).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, 3, 4, 5, -1}));
}

TEST(PickleNumpy, Broken) {
  const auto text = [](const std::string& bytes) { return error_of<IoError>([&] { read_array(bytes); }); };
  EXPECT_EQ(text("\x80\x02]."s), "p: x is a pickled list, expected a numpy array");
  EXPECT_EQ(text(array("u1", "|", "\x89", "\1\2\3\4\5")), "p: x has 5 bytes but its shape and dtype need 6");
  EXPECT_EQ(text(array("O8", "|", "\x89", "")), "p: x is a numpy array of dtype |O8, expected plain numbers");
  EXPECT_EQ(text(array("u1", "|", "N", "\1\2\3\4\5\6")),
            "p: x is a numpy array whose state is not (version, shape, dtype, order, bytes)");
  EXPECT_EQ(text(array("u1", "|", "\x89", "", "J\xff\xff\xff\xff\x85")), "p: x has a shape that is not of sizes, 0 or more");
  EXPECT_EQ(text(array("b1", "|", "\x89", "\1\0\1\0\1\2"s)),
            "p: x: a boolean has the value 2 at position 5, expected 0 or 1");
}

TEST(Pickle, TorchFile) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  // Five pickles in a row: magic number, protocol, system, the object, the keys of its storages.
  const std::string path = data / "models/resnet20-cifar10/resnet20-12fca82f.th";
  const std::string bytes = read_file(path);
  const PickleOptions options{.globals = {"collections OrderedDict", "torch._utils _rebuild_tensor", "torch FloatStorage"}};
  std::string_view rest = bytes;
  int64_t entries = 0;
  for (int i = 0; i < 5; ++i) {
    const Pickle pickle(rest, path, options);
    if (i == 0) {
      EXPECT_EQ(pickle.root().text,
                "l\xfc\x9c"
                "F\xf9 j\xa8P\x19");
    }
    if (i == 1) {
      EXPECT_EQ(pickle.root().integer, 1001);
    }
    if (i == 3) {
      EXPECT_NEAR(find(pickle.root(), "best_prec1")->real, 91.78, 1e-5);
      const PickleValue* state = find(pickle.root(), "state_dict");
      ASSERT_NE(state, nullptr);
      entries = int64_t(state->items.size()) / 2;
      EXPECT_TRUE(is_call(*find(*state, "module.conv1.weight"), "torch._utils _rebuild_tensor"));
    }
    if (i == 4) {
      EXPECT_EQ(int64_t(pickle.root().items.size()), entries);
    }
    rest.remove_prefix(pickle.end());
    if (i == 3) {
      EXPECT_EQ(bytes.size() - rest.size(), 12018u);
    }
  }
}

}  // namespace
}  // namespace tessera
