// An epoch after the first asks nothing of the system. Three counts see it, each from another side: the blocks that the
// caching allocator asked for, the size of the process (every mmap and brk, whoever called it), and the pages touched for
// the first time.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "tessera/apps/support/node_run.h"
#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
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

/// What was asked of the system since the start of the process.
struct Asked {
  int64_t blocks = memory_stats().system_allocations, reserved = memory_stats().reserved_bytes;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  int64_t pages = 0, faults = 0;  // sanitizers keep what is freed
#else
  int64_t pages = pages_of_process(), faults = page_faults();
#endif
  /// A few faults may be the kernel's own doing (pages it moved or gathered).
  bool operator==(const Asked& other) const {
    return blocks == other.blocks && reserved == other.reserved && pages == other.pages && faults <= other.faults + 16;
  }
  std::string since(const Asked& before) const {
    return to_text(blocks - before.blocks) + " blocks, " + to_text(reserved - before.reserved) + " bytes, " +
           to_text(pages - before.pages) + " pages, " + to_text(faults - before.faults) + " first touches";
  }
};

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
  // A worker thread that joins late brings its own first needs with it, so fifty epochs may be tried again; what is asked
  // for in every epoch shows in all of them.
  std::string seen;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const Asked before;
    epochs(task, run, 50);
    const Asked after;
    if (after == before) return;
    seen = after.since(before);
  }
  ADD_FAILURE() << "fifty epochs asked the system for " << seen;
}

TEST(allocation, an_epoch_after_the_first_allocates_nothing) { expect_no_allocation({}); }

TEST(allocation, also_on_cora) {
  if (!have_shared_data("planetoid/cora")) return;
  NodeOptions cora;
  cora.dataset = "cora";
  cora.data = shared_data().string();
  expect_no_allocation(cora);
}

}  // namespace
}  // namespace tessera::test
