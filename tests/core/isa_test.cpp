#include "tessera/core/isa.h"

#include <gtest/gtest.h>

#include "tessera/core/kernel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/child.h"
#include "tessera/tests/support/probe_kernels.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

std::string known() {
  std::string list;
  for (const Isa isa : isas()) list += std::string(list.empty() ? "" : ", ") + name(isa);
  return list;
}

TEST(Isa, TheSetThatIsAskedForIsTheOneThatRuns) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    EXPECT_EQ(active_isa(), isa);
    EXPECT_EQ(isa_that_runs().compiled_for, isa);
    EXPECT_EQ(isa_that_runs().vector_bytes, vector_bytes(isa));
    EXPECT_EQ(int(with_isa([]<Isa chosen>() { return chosen; })), int(isa));
  }
}

TEST(Isa, EverySetOfThisBuildRunsHere) {
  EXPECT_TRUE(is_supported(Isa::baseline));
  EXPECT_EQ(isas().front(), Isa::baseline);
  std::string missing;
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (isa <= kBestBuiltIsa && !is_supported(isa)) missing += std::string(" ") + name(isa);
  if (!missing.empty()) GTEST_SKIP() << "built but not tested, since this CPU lacks:" << missing;
}

TEST(Isa, Parse) {
  for (const Isa isa : isas()) EXPECT_EQ(parse_isa(name(isa)), isa);
  for (const char* text : {"AVX2", "avx", "sse", "", "avx2 ", "7"})
    EXPECT_EQ(error_of([&] { parse_isa(text); }),
              std::string("InvalidArgument: TESSERA_ISA is '") + text + "' but this CPU has: " + known());
}

TEST(Isa, SetRefusesWhatTheCpuLacks) {
  const Restore restore;
  const Isa before = active_isa();
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (is_supported(isa)) continue;
    EXPECT_EQ(error_of([&] { set_isa(isa); }), std::string("InvalidArgument: set_isa: this CPU lacks ") + name(isa));
  }
  EXPECT_EQ(active_isa(), before);
}

TEST(IsaChild, DISABLED_Report) {
  report(error_of([] { report(std::string(name(active_isa())) + " " + name(isa_that_runs().compiled_for)); }));
}

std::string child(const std::string& value) { return run_child("IsaChild.DISABLED_Report", {"TESSERA_ISA=" + value}); }

TEST(Isa, EnvironmentForcesASet) {
  for (const Isa isa : isas()) EXPECT_EQ(child(name(isa)), std::string(name(isa)) + " " + name(isa));
}

TEST(Isa, EmptyEnvironmentMeansTheBest) {
  EXPECT_EQ(child(""), std::string(name(isas().back())) + " " + name(isas().back()));
}

TEST(Isa, UnknownEnvironmentIsAnErrorThatListsWhatThereIs) {
  EXPECT_EQ(child("avx1024"), "InvalidArgument: TESSERA_ISA is 'avx1024' but this CPU has: " + known());
}

TEST(Kernel, CudaWithoutThePluginIsUnsupported) {
  Isa isa;
  int bytes;
  EXPECT_EQ(error_of([&] {
              run<ProbeKernel>(Device::cuda, {&isa, &bytes});
            }),
            "Unsupported: probe: device cuda needs the CUDA plugin, which is not loaded");
}

TEST(Kernel, CudaGoesThroughTheSlot) {
  Isa isa;
  int bytes = 0;
  ProbeKernel::cuda = [](const ProbeKernel::Args& args) { *args.vector_bytes = 12345; };
  run<ProbeKernel>(Device::cuda, {&isa, &bytes});
  ProbeKernel::cuda = nullptr;
  EXPECT_EQ(bytes, 12345);
}

}  // namespace
}  // namespace tessera::test
