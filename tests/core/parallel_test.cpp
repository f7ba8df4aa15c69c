#include "tessera/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tessera/core/random.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/child.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

TEST(Parallel, AsManyThreadsRunAsAreAsked) {
  const Restore restore;
  for (const int n : {1, 2, 3, 5, 2, 1, 4}) {
    set_threads(n);
    EXPECT_EQ(threads(), n);
    EXPECT_EQ(threads_that_run(), n);
  }
}

TEST(Parallel, NeverMoreThreadsThanAsked) {
  const Restore restore;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    std::atomic<int> running{0}, most{0};
    for (int pass = 0; pass < 20; ++pass)
      parallel_for(200, 1, [&](int64_t, int64_t) {
        const int now = ++running;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --running;
      });
    EXPECT_LE(most.load(), n);
  }
}

TEST(Parallel, EveryItemOnceInRangesOfFairSize) {
  const Restore restore;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    for (const int64_t count : {0, 1, 2, 7, 100, 1000, 4097})
      for (const int64_t grain : {-1, 0, 1, 2, 16, 100, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        std::atomic<int64_t> smallest{count};
        parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          ASSERT_LT(begin, end);
          int64_t seen = smallest.load();
          while (end - begin < seen && !smallest.compare_exchange_weak(seen, end - begin)) {
          }
          for (int64_t i = begin; i < end; ++i) ++visits[size_t(i)];
        });
        for (const std::atomic<int>& v : visits) ASSERT_EQ(v.load(), 1);
        if (count > grain) {
          EXPECT_GE(smallest.load(), grain / 2) << count << " " << grain;
        }
      }
  }
}

TEST(Parallel, SmallJobsStayOnTheCallingThread) {
  const Restore restore;
  set_threads(3);
  const auto here = std::this_thread::get_id();
  int calls = 0;  // not atomic: one thread
  parallel_for(100, 100, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    EXPECT_EQ(std::this_thread::get_id(), here);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(parallel_sum(10, 10,
                         [&](int64_t, int64_t) {
                           EXPECT_EQ(std::this_thread::get_id(), here);
                           return 2.0;
                         }),
            2.0);
  set_threads(1);
  parallel_for(1000, 1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), here); });
}

TEST(Parallel, NothingToDoCallsNothing) {
  for (const int64_t count : {int64_t(0), int64_t(-5)}) {
    parallel_for(count, 1, [](int64_t, int64_t) { FAIL(); });
    EXPECT_EQ(parallel_sum(count, 4, [](int64_t, int64_t) { return 1.0; }), 0);
  }
}

TEST(Parallel, SumsHaveTheSameBitsForEveryThreadCount) {
  const Restore restore;
  const Philox random(3, 0);
  std::vector<double> values(10'007);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (double(random.word(i)) - 2e9) * (i % 97 == 0 ? 1e12 : 1e-3);  // rounding everywhere
  std::set<double> sums;
  for (const int n : {1, 2, 3, 4})
    for (int pass = 0; pass < 20; ++pass) {
      set_threads(n);
      sums.insert(parallel_sum(int64_t(values.size()), 64, [&](int64_t begin, int64_t end) {
        double sum = 0;
        for (int64_t i = begin; i < end; ++i) sum += values[size_t(i)];
        return sum;
      }));
    }
  EXPECT_EQ(sums.size(), 1u);
}

TEST(Parallel, BlocksOfASumAreFixed) {
  const Restore restore;
  set_threads(3);
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> blocks;
  const double total = parallel_sum(1000, 64, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    blocks.insert({begin, end});
    return double(end - begin);
  });
  EXPECT_EQ(total, 1000);
  EXPECT_EQ(blocks.size(), 16u);
  for (const auto& [begin, end] : blocks) {
    EXPECT_EQ(begin % 64, 0);
    EXPECT_EQ(end, std::min<int64_t>(begin + 64, 1000));
  }
}

TEST(Parallel, TreeSum) {
  double values[7] = {1, 2, 4, 8, 16, 32, 64};
  EXPECT_EQ(tree_sum(values, 7), 127);
  EXPECT_EQ(tree_sum(values, 0), 0);
  double one[1] = {5};
  EXPECT_EQ(tree_sum(one, 1), 5);
  double order[4] = {0x1p53, 1, -0x1p53, 1};  // (2^53 + 1) + (-2^53 + 1), neighbours first
  EXPECT_EQ(tree_sum(order, 4), (0x1p53 + 1) + (-0x1p53 + 1));
}

TEST(Parallel, ExceptionsCrossToTheCaller) {
  const Restore restore;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    for (int pass = 0; pass < 20; ++pass) {
      EXPECT_EQ(error_of([] {
                  parallel_for(1000, 1, [](int64_t begin, int64_t end) {
                    check(!(begin <= 777 && 777 < end), "item {} is bad", 777);
                  });
                }),
                "InvalidArgument: item 777 is bad");
    }
    std::atomic<int64_t> sum{0};  // the pool goes on working
    parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum.load(), 4950);
    EXPECT_EQ(threads_that_run(), n);
  }
}

TEST(Parallel, NestedLoopsFinish) {
  const Restore restore;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    std::atomic<int64_t> items{0};
    parallel_for(8, 1, [&](int64_t b0, int64_t e0) {
      for (int64_t i = b0; i < e0; ++i)
        parallel_for(8, 1, [&](int64_t b1, int64_t e1) {
          for (int64_t j = b1; j < e1; ++j) parallel_for(8, 1, [&](int64_t b2, int64_t e2) { items += e2 - b2; });
        });
    });
    EXPECT_EQ(items.load(), 512);
  }
}

TEST(Parallel, SeveralThreadsMayLoopAtOnce) {
  const Restore restore;
  set_threads(2);
  std::vector<std::thread> callers;
  std::vector<double> sums(4);
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([t, &sums] {
      for (int pass = 0; pass < 50; ++pass)
        sums[size_t(t)] += parallel_sum(500, 10, [](int64_t begin, int64_t end) { return double(end - begin); });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<double>(4, 25'000.0));
}

TEST(Parallel, Errors) {
  const Restore restore;
  const int before = threads();
  verify_errors({
      {[] { set_threads(0); }, "InvalidArgument: set_threads: 0 threads asked but needs 1 to 4096"},
      {[] { set_threads(-3); }, "InvalidArgument: set_threads: -3 threads asked but needs 1 to 4096"},
      {[] { set_threads(5000); }, "InvalidArgument: set_threads: 5000 threads asked but needs 1 to 4096"},
  });
  EXPECT_EQ(threads(), before);
}

TEST(ParallelChild, DISABLED_Report) {
  report(error_of([] { report(std::to_string(threads()) + " " + std::to_string(threads_that_run())); }));
}

std::string child(const std::vector<std::string>& environment) {
  return run_child("ParallelChild.DISABLED_Report", environment);
}

TEST(Parallel, EnvironmentSetsTheThreads) {
  EXPECT_EQ(child({"TESSERA_NUM_THREADS=3", "OMP_NUM_THREADS=2"}), "3 3");
  EXPECT_EQ(child({"TESSERA_NUM_THREADS=", "OMP_NUM_THREADS=2"}), "2 2");
  EXPECT_EQ(child({"TESSERA_NUM_THREADS=", "OMP_NUM_THREADS=4,2"}), "4 4");
}

TEST(Parallel, WrongEnvironmentIsAnError) {
  for (const std::string value : {"0", "-1", "two", "5000", "2x", "99999999999999999999"})
    EXPECT_EQ(child({"TESSERA_NUM_THREADS=" + value}),
              "InvalidArgument: TESSERA_NUM_THREADS is '" + value + "' but needs a number of threads from 1 to 4096");
  EXPECT_EQ(child({"TESSERA_NUM_THREADS=", "OMP_NUM_THREADS=many"}),
            "InvalidArgument: OMP_NUM_THREADS is 'many' but needs a number of threads from 1 to 4096");
}

}  // namespace
}  // namespace tessera::test
