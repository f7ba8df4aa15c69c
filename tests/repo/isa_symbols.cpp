// Kernel objects are compiled with instructions that not every CPU has. The linker keeps one copy of a weak function of
// that name wherever it comes from, so an inline function that such an object emits could end up in code for older CPUs.
// Hence: whatever a kernel object shows to the linker carries its instruction set in its name.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tessera/tests/repo/tree.h"

namespace repo {
namespace {

/// `isa_objects.txt` in the build folder: one line "NAME NUMBER OBJECT" for each kernel object, NUMBER as in enum Isa.
struct KernelObject {
  std::string isa, number, path;
};

std::vector<KernelObject> kernel_objects() {
  std::vector<KernelObject> found;
  std::ifstream in(build_dir() / "isa_objects.txt");
  for (KernelObject object; in >> object.isa >> object.number && std::getline(in >> std::ws, object.path);)
    found.push_back(object);
  return found;
}

TEST(IsaSymbols, CarryTheirInstructionSet) {
  const std::vector<KernelObject> objects = kernel_objects();
  ASSERT_FALSE(objects.empty()) << "isa_objects.txt is empty or missing in the build folder";
  int64_t symbols = 0;
  for (const KernelObject& object : objects) {
    const Output nm = run("nm --demangle --defined-only --extern-only " + quoted(object.path), build_dir());
    ASSERT_EQ(nm.status, 0) << nm.text;
    std::istringstream in(nm.text);
    int64_t of_this_object = 0;
    for (std::string line; std::getline(in, line);) {
      // "0000000000000000 W void tessera::SumKernel::cpu<(tessera::Isa)1>(tessera::SumKernel::Args const&)"
      if (line.size() < 20 || line[16] != ' ') continue;
      const std::string symbol = line.substr(19);
      if (symbol.starts_with("DW.ref.")) continue;  // a pointer to the exception handler, the same everywhere
      ++of_this_object;
      const bool carries = symbol.find("(tessera::Isa)" + object.number) != std::string::npos ||
                           symbol.find("::" + object.isa + "::") != std::string::npos;
      if (!carries)
        ADD_FAILURE() << object.path << " defines `" << symbol << "` (" << line[17] << ") for " << object.isa
                      << ", but the name does not say so: put it into an unnamed namespace, make it always_inline, or drop "
                         "the header that it comes from";
    }
    EXPECT_GT(of_this_object, 0) << object.path << " defines no kernel for " << object.isa;
    symbols += of_this_object;
  }
  RecordProperty("symbols", std::to_string(symbols));
}

}  // namespace
}  // namespace repo
