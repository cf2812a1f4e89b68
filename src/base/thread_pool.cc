// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace cyb {
namespace {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// About 100 us of pauses before a worker goes to sleep.
constexpr int kSpins = 4000;

}  // namespace

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

struct ThreadPool::Impl {
  int count = 1;
  std::vector<std::thread> workers;

  // The current loop; published by `epoch`, finished when `busy` is 0.
  Body body = nullptr;
  void* context = nullptr;
  int64_t n = 0, piece = 1;
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<uint32_t> epoch{0};
  alignas(64) std::atomic<int> busy{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;

  void work(int thread) {
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= n) return;
      body(context, begin, std::min(n, begin + piece), thread);
    }
  }

  void worker(int thread) {
    uint32_t seen = 0;
    for (;;) {
      uint32_t now = epoch.load(std::memory_order_acquire);
      for (int i = 0; now == seen && i < kSpins; i++) {
        cpu_relax();
        now = epoch.load(std::memory_order_acquire);
      }
      if (now == seen) {
        std::unique_lock lock(mutex);
        sleepers.fetch_add(1);
        wake.wait(lock, [&] { return epoch.load() != seen || stop.load(); });
        sleepers.fetch_sub(1);
        now = epoch.load();
      }
      if (stop.load(std::memory_order_relaxed)) return;
      seen = now;
      work(thread);
      busy.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  impl_->count = threads > 0 ? threads : available_processors();
  for (int t = 1; t < impl_->count; t++) impl_->workers.emplace_back([this, t] { impl_->worker(t); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
    impl_->epoch.fetch_add(1);
  }
  impl_->wake.notify_all();
  for (auto& worker : impl_->workers) worker.join();
}

int ThreadPool::threads() const { return impl_->count; }

void ThreadPool::run(int64_t n, int64_t grain, Body body, void* context) {
  Impl& p = *impl_;
  p.body = body;
  p.context = context;
  p.n = n;
  // A few pieces a thread even out threads that the system interrupts.
  const int64_t pieces = std::min<int64_t>(n / std::max<int64_t>(grain, 1) + 1, int64_t{p.count} * 4);
  p.piece = std::max<int64_t>(std::max<int64_t>(grain, 1), (n + pieces - 1) / pieces);
  p.next.store(0, std::memory_order_relaxed);
  p.busy.store(p.count - 1, std::memory_order_relaxed);
  p.epoch.fetch_add(1, std::memory_order_seq_cst);
  if (p.sleepers.load(std::memory_order_seq_cst) > 0) {
    std::lock_guard lock(p.mutex);
    p.wake.notify_all();
  }
  p.work(0);
  for (int i = 0; p.busy.load(std::memory_order_acquire) != 0; i++) {
    if (i < 100000)
      cpu_relax();
    else
      std::this_thread::yield();
  }
}

}  // namespace cyb
