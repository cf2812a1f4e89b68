// SPDX-License-Identifier: Apache-2.0
// What a parallel section of the thread pool costs when all threads meet in it (fork and barrier), when its
// pieces have nothing to do and whoever comes takes them, and after the threads went to sleep; and the
// processor time that an idle pool takes.
//   pool_bench [--threads N] [--sections N]
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "base/thread_pool.h"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double processor_seconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct Times {
  double median, best, mean;
};

Times of(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  double sum = 0;
  for (double t : v) sum += t;
  return {v[v.size() / 2], v[0], sum / static_cast<double>(v.size())};
}

// Sections in which every thread waits for all others.
Times meetings(ThreadPool& pool, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; i++) {
    std::atomic<int> here{0};
    const auto start = Clock::now();
    pool.parallel_for(pool.threads(), 1, [&](int64_t, int64_t, int) {
      here.fetch_add(1);
      while (here.load() < pool.threads()) {
      }
    });
    times.push_back(microseconds(Clock::now() - start));
  }
  return of(std::move(times));
}

// Sections of `pieces` empty pieces; with a pause before each, what waking costs.
Times sections(ThreadPool& pool, int64_t pieces, int count, std::chrono::milliseconds pause) {
  std::vector<double> times;
  for (int i = 0; i < count; i++) {
    if (pause.count()) std::this_thread::sleep_for(pause);
    const auto start = Clock::now();
    pool.parallel_for(pieces, 1, [](int64_t, int64_t, int) {});
    times.push_back(microseconds(Clock::now() - start));
  }
  return of(std::move(times));
}

int run(int argc, char** argv) {
  int threads = available_processors(), count = 100000;
  for (int i = 1; i < argc; i++) {
    if (i + 1 < argc && std::strcmp(argv[i], "--threads") == 0) {
      threads = std::atoi(argv[++i]);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--sections") == 0) {
      count = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: pool_bench [--threads N] [--sections N]\n");
      return 2;
    }
  }
  if (threads < 1 || threads > 1024 || count < 1)
    return std::fprintf(stderr, "threads or sections out of range\n"), 2;
  std::printf("microseconds of a section: median, best, mean%51s\n", "idle, ms of processor");
  std::printf("%7s  %-26s  %-26s  %-26s  %s\n", "threads", "all meet", "four pieces a thread",
              "after a sleep", "in a second");
  std::vector<int> counts;
  for (int t = 1; t < threads; t *= 2) counts.push_back(t);
  counts.push_back(threads);
  for (int t : counts) {
    ThreadPool pool(t);
    sections(pool, t, 1000, {});
    const Times kinds[] = {meetings(pool, std::min(count, 20000)), sections(pool, int64_t{t} * 4, count, {}),
                           sections(pool, t, 50, std::chrono::milliseconds(5))};
    pool.parallel_for(int64_t{t} * 4, 1, [](int64_t, int64_t, int) {});
    const double before = processor_seconds();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::printf("%7d", t);
    for (const Times& k : kinds) std::printf("  %8.2f %8.2f %8.2f", k.median, k.best, k.mean);
    std::printf("  %8.2f\n", (processor_seconds() - before) * 1e3);
  }
  return 0;
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) { return cyb::run(argc, argv); }
