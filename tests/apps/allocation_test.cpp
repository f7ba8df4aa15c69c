// An epoch after the first asks nothing of the system. Three counts see it, each from another side: the blocks that the
// caching allocator asked for, the size of the process (every mmap and brk, whoever called it), and the pages touched for
// the first time.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "tessera/apps/support/node_run.h"
#include "tessera/core/autograd.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/storage.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

using namespace apps;

int64_t pages_of_process() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void epochs(const NodeTask& task, NodeRun& run, int count) {
  for (int i = 0; i < count; ++i) {
    run.optimiser.clear_grad();
    backward(cross_entropy(logits_of(run.model, task, run.random), task.data.labels, run.split.train));
    run.optimiser.step();
  }
}

void expect_no_allocation(NodeOptions o) {
  CsvGraph graph = load_nodes(o);
  fill_from_recipe(o, graph.data);
  const NodeTask task = make_task(o, std::move(graph));
  NodeRun run(o, task, 0);
  epochs(task, run, 3);
  const int64_t blocks = memory_stats().system_allocations, reserved = memory_stats().reserved_bytes,
                pages = pages_of_process(), faults = page_faults();
  epochs(task, run, 50);
  EXPECT_EQ(memory_stats().system_allocations, blocks);
  EXPECT_EQ(memory_stats().reserved_bytes, reserved);
  EXPECT_EQ(pages_of_process(), pages);
  EXPECT_LE(page_faults() - faults, 16) << "pages that were had but never touched";
}

TEST(allocation, an_epoch_after_the_first_allocates_nothing) { expect_no_allocation({}); }

TEST(allocation, also_on_cora) {
  if (!have_shared_data("planetoid/cora")) return;
  expect_no_allocation({.dataset = "cora", .data = shared_data().string()});
}

}  // namespace
}  // namespace tessera::test
