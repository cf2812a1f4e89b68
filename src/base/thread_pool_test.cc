// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace cyb {
namespace {

double processor_seconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Every index once, in pieces of three quarters of `grain` or more, by threads that there are.
void expect_whole(ThreadPool& pool, int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
  std::atomic<int> wrong{0};
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int thread) {
    if (begin < 0 || begin >= end || end > n || thread < 0 || thread >= pool.threads()) return void(wrong++);
    if (end - begin < grain * 3 / 4 && end - begin < n) wrong++;
    for (int64_t i = begin; i < end; i++) seen[static_cast<size_t>(i)]++;
  });
  EXPECT_EQ(wrong, 0) << n << " by " << grain;
  for (const auto& s : seen) ASSERT_EQ(s, 1) << n << " by " << grain;
}

TEST(ThreadPool, CoversARangeOnce) {
  for (int threads : {1, 2, 3, 7, 20}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t n : {0, 1, 2, 3, 8, 27, 1000})
      for (int64_t grain : {0, 1, 2, 5, 999, 5000}) expect_whole(pool, n, grain);
  }
}

TEST(ThreadPool, TakesTheProcessorsThatThereAre) {
  EXPECT_EQ(ThreadPool().threads(), available_processors());
}

// Threads that come late from one loop meet the next one, which lies at the same place with another length.
TEST(ThreadPool, ShortLoopsFollowEachOther) {
  for (int threads : {2, 4, 12}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 10000; round++) {
      const int64_t n = 2 + round % 41;
      std::atomic<int64_t> sum{0};
      pool.parallel_for(n, 1, [&sum, round](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; i++) sum.fetch_add(i + round, std::memory_order_relaxed);
      });
      ASSERT_EQ(sum.load(), n * (n - 1) / 2 + n * round);
    }
  }
}

TEST(ThreadPool, ThreadsThatSleepAreWoken) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; round++) {
    if (round % 2) sleep_ms(2);
    // Both are needed: each waits for the other.
    std::atomic<int> here{0};
    pool.parallel_for(2, 1, [&](int64_t, int64_t, int) {
      here++;
      while (here < 2) std::this_thread::yield();
    });
    EXPECT_EQ(here, 2);
  }
}

TEST(ThreadPool, EndsAwakeAndAsleep) {
  for (int round = 0; round < 200; round++) {
    ThreadPool pool(3);
    if (round % 3) expect_whole(pool, 10, 1);
    if (round % 10 == 1) sleep_ms(2);
  }
}

// Behaviour, not speed: threads that wait for work for long take no processor.
TEST(ThreadPool, IdleThreadsSleep) {
  ThreadPool pool(4);
  expect_whole(pool, 100, 1);
  sleep_ms(50);  // after this they have gone to sleep on any machine
  const double before = processor_seconds();
  sleep_ms(300);
  EXPECT_LT(processor_seconds() - before, 0.1);
}

}  // namespace
}  // namespace cyb
