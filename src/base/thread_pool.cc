// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/checked.h"
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

// Each thread has a range of the loop's pieces, takes them from its front, and then those that are left to
// others, from the back. So memory is read in one stream a thread, threads meet in no counter, and a worker
// that the system keeps from running delays nobody: it comes late, and finds nothing left or a piece of a
// later loop.
struct ThreadPool::Impl {
  // What one thread waits for and works on. A loop is described to each thread on a line of its own; the
  // description is written while no piece is left or unfinished, and read by those who have taken a piece.
  struct alignas(64) Slot {
    std::atomic<uint64_t> range{0};  // the first piece, times 2^32, and the one behind the last
    Body body = nullptr;
    void* context = nullptr;
    int64_t n = 0, pieces = 0;
    alignas(64) std::atomic<int64_t> done{0};  // pieces that this thread has finished, of all loops
  };
  static_assert(sizeof(Slot) == 128);

  int count = 1;
  std::vector<Slot> slots;
  std::vector<std::thread> workers;
  int64_t pieces_so_far = 0;
  alignas(64) std::atomic<uint32_t> loops{0};  // counts them, for those who sleep
  std::atomic<int> sleepers{0};                // since the last call to wake
  std::atomic<bool> stop{false};

  explicit Impl(int threads) : count(threads), slots(static_cast<size_t>(threads)) {}
  Slot& slot(int thread) { return slots[static_cast<size_t>(thread)]; }

  static bool any_left(uint64_t range) { return range >> 32 < (range & 0xffffffff); }

  // One piece of the slot's range, or −1.
  static int64_t take(Slot& s, bool front) {
    uint64_t range = s.range.load(std::memory_order_relaxed);
    while (any_left(range)) {
      if (s.range.compare_exchange_weak(range, front ? range + (uint64_t{1} << 32) : range - 1,
                                        std::memory_order_acquire, std::memory_order_relaxed))
        return static_cast<int64_t>(front ? range >> 32 : (range & 0xffffffff) - 1);
    }
    return -1;
  }

  void work(int thread) {
    int64_t done = 0;
    for (int i = 0; i < count; i++) {
      Slot& s = slot((thread + i) % count);
      for (int64_t piece; (piece = take(s, i == 0)) >= 0; done++) {
        // Of nearly one length, the longer ones first: so threads end together.
        const int64_t length = s.n / s.pieces, longer = s.n % s.pieces;
        const int64_t begin = piece * length + std::min(piece, longer);
        s.body(s.context, begin, begin + length + (piece < longer), thread);
      }
    }
    auto& mine = slot(thread).done;
    if (done) mine.store(mine.load(std::memory_order_relaxed) + done, std::memory_order_release);
  }

  bool finished() {
    int64_t done = 0;
    for (Slot& s : slots) done += s.done.load(std::memory_order_acquire);
    return done == pieces_so_far;
  }

  void worker(int thread) {
    const auto& range = slot(thread).range;
    for (;; work(thread)) {
      const uint32_t seen = loops.load();
      if (stop.load()) return;
      if (!spin_until(kAwake, [&] { return any_left(range.load(std::memory_order_relaxed)); })) {
        sleepers.fetch_add(1);
        loops.wait(seen);
      }
    }
  }

  void call_workers() {
    loops.fetch_add(1);
    if (sleepers.load() > 0 && sleepers.exchange(0) > 0) loops.notify_all();
  }
};

ThreadPool::ThreadPool(int threads)
    : impl_(std::make_unique<Impl>(threads > 0 ? threads : available_processors())) {
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
  // Some pieces a thread even out threads that the system interrupts.
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces = std::clamp<int64_t>(n / grain + (n % grain > grain / 2), 1, int64_t{p.count} * 16);
  if (pieces == 1) return body(context, 0, n, 0);
  p.pieces_so_far += pieces;
  for (int t = p.count - 1; t >= 0; t--) {
    Impl::Slot& s = p.slot(t);
    s.body = body;
    s.context = context;
    s.n = n;
    s.pieces = pieces;
    const int64_t begin = ceil_div<int64_t>(t * pieces, p.count),
                  end = ceil_div<int64_t>((t + 1) * pieces, p.count);
    s.range.store(static_cast<uint64_t>(begin << 32 | end), std::memory_order_release);
  }
  p.call_workers();
  p.work(0);
  const auto done = [&] { return p.finished(); };
  if (spin_until(kPatience, done)) return;
  while (!done()) std::this_thread::yield();
}

}  // namespace cyb
