// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace cyb {
namespace {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using Clock = std::chrono::steady_clock;
// How long a worker waits awake for the next loop, and the caller for the last pieces before it lets other
// threads run. Waking takes some 30 us.
constexpr std::chrono::microseconds kAwake{150}, kPatience{50};

// Waits awake; false when `most` went by first.
template <class F>
bool spin_until(std::chrono::microseconds most, F&& ready) {
  const auto end = Clock::now() + most;
  do {
    for (int i = 0; i < 64; i++) {
      if (ready()) return true;
      cpu_relax();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

// A loop ends when all its pieces are done; who took them does not matter. So a worker that the system keeps
// from running delays nobody: it comes late, and finds nothing left or a piece of a later loop.
struct ThreadPool::Impl {
  int count = 1;
  std::vector<std::thread> workers;

  // The current loop. Written while no piece is left or unfinished, read by those who have taken a piece.
  Body body = nullptr;
  void* context = nullptr;
  int64_t n = 0, pieces = 0;
  alignas(64) std::atomic<int64_t> left{0};        // pieces that nobody has taken; sinks below 0
  alignas(64) std::atomic<int64_t> unfinished{0};  // pieces that are not done
  // Counts the loops: what workers wait for lies apart from what they change.
  alignas(64) std::atomic<uint32_t> loops{0};
  std::atomic<int> sleepers{0};  // since the last call to wake
  std::atomic<bool> stop{false};

  // Pieces of nearly one length, the longer ones first: so threads end together.
  int64_t begin_of(int64_t i) const { return i * (n / pieces) + std::min(i, n % pieces); }

  void work(int thread) {
    int64_t done = 0;
    for (;; done++) {
      const int64_t before = left.fetch_sub(1, std::memory_order_acquire);
      if (before <= 0) break;
      const int64_t i = pieces - before;
      body(context, begin_of(i), begin_of(i + 1), thread);
    }
    if (done) unfinished.fetch_sub(done, std::memory_order_release);
  }

  void worker(int thread) {
    for (uint32_t seen = 0;; work(thread)) {
      const auto called = [&] { return loops.load(std::memory_order_relaxed) != seen; };
      if (!spin_until(kAwake, called)) {
        sleepers.fetch_add(1);
        loops.wait(seen);
      }
      if (stop.load()) return;
      seen = loops.load();
    }
  }

  void call_workers() {
    loops.fetch_add(1);
    if (sleepers.load() > 0 && sleepers.exchange(0) > 0) loops.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  impl_->count = threads > 0 ? threads : available_processors();
  for (int t = 1; t < impl_->count; t++) impl_->workers.emplace_back([this, t] { impl_->worker(t); });
}

ThreadPool::~ThreadPool() {
  impl_->stop = true;
  impl_->loops.fetch_add(1);
  impl_->loops.notify_all();
  for (auto& worker : impl_->workers) worker.join();
}

int ThreadPool::threads() const { return impl_->count; }

void ThreadPool::run(int64_t n, int64_t grain, Body body, void* context) {
  Impl& p = *impl_;
  p.body = body;
  p.context = context;
  p.n = n;
  // A few pieces a thread even out threads that the system interrupts.
  grain = std::max<int64_t>(grain, 1);
  p.pieces = std::clamp<int64_t>(n / grain + (n % grain > grain / 2), 1, int64_t{p.count} * 4);
  p.unfinished.store(p.pieces, std::memory_order_relaxed);
  p.left.store(p.pieces, std::memory_order_release);
  p.call_workers();
  p.work(0);
  const auto done = [&] { return p.unfinished.load(std::memory_order_acquire) == 0; };
  if (spin_until(kPatience, done)) return;
  while (!done()) std::this_thread::yield();
}

}  // namespace cyb
