// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cassert>
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
// that the system keeps from running delays nobody: it comes late, and finds nothing left or a later loop.
struct ThreadPool::Impl {
  struct Loop {
    Body body;
    void* context;
    int64_t n, pieces;
    int64_t all_done;  // sum of all threads' `done` behind it
    // Pieces of nearly one length; the longer ones lie apart, so that every thread has its share of them.
    int64_t begin_of(int64_t piece) const { return piece * (n / pieces) + piece * (n % pieces) / pieces; }
  };
  // The current loop, on one line that all workers watch. `number` is odd while the caller writes the others;
  // who copied them under one number has one loop (a sequence lock).
  struct alignas(64) Current {
    std::atomic<uint32_t> number{0};
    std::atomic<bool> stop{false};
    std::atomic<Body> body{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<int64_t> n{0}, pieces{0}, all_done{0};
  };
  static_assert(sizeof(Current) == 64);
  // What is left to one thread: the loop's number · 2^32, the first piece · 2^16, the one behind the last.
  // With an earlier number the whole range is left, so the caller need not write to every thread.
  struct alignas(64) Slot {
    std::atomic<uint64_t> left{0};
    alignas(64) std::atomic<int64_t> done{0};  // pieces that this thread has finished, of all loops
  };
  static constexpr int64_t kPiecesEach = 16;
  static constexpr int kMostThreads = 4095;  // pieces fit 16 bits

  const int count;
  std::vector<Slot> slots;
  std::vector<std::thread> workers;
  Current current;
  std::atomic<int> sleepers{0};  // since a call cleared it
  // The caller's own, apart from what workers read.
  alignas(64) int64_t pieces_so_far = 0;
  uint32_t last_number = 0;

  explicit Impl(int threads) : count(threads), slots(static_cast<size_t>(threads)) {}
  Slot& slot(int thread) { return slots[static_cast<size_t>(thread)]; }

  // One piece of those of `owner`, or −1.
  int64_t take(int owner, const Loop& loop, uint32_t number, bool front) {
    auto& left = slot(owner).left;
    for (uint64_t was = left.load(std::memory_order_relaxed);;) {
      const auto tag = static_cast<uint32_t>(was >> 32);
      auto begin = static_cast<int64_t>(was >> 16 & 0xffff), end = static_cast<int64_t>(was & 0xffff);
      if (tag != number) {
        if (static_cast<int32_t>(tag - number) > 0) return -1;  // this thread is late
        begin = ceil_div<int64_t>(owner * loop.pieces, count);
        end = ceil_div<int64_t>((owner + 1) * loop.pieces, count);
      }
      if (begin >= end) return -1;
      const int64_t piece = front ? begin++ : --end;
      const uint64_t now = uint64_t{number} << 32 | static_cast<uint64_t>(begin << 16 | end);
      if (left.compare_exchange_weak(was, now, std::memory_order_relaxed)) return piece;
    }
  }

  void work(int thread, const Loop& loop, uint32_t number) {
    auto& mine = slot(thread).done;
    const auto take_all = [&](int owner) {
      int64_t done = 0;
      for (int64_t piece; (piece = take(owner, loop, number, owner == thread)) >= 0; done++)
        loop.body(loop.context, loop.begin_of(piece), loop.begin_of(piece + 1), thread);
      if (done) mine.store(mine.load(std::memory_order_relaxed) + done, std::memory_order_release);
    };
    take_all(thread);
    // Looking for what is left takes a line away from its thread, which then waits for it when the next loop
    // begins.
    if (count <= 8 && finished(loop.all_done)) return;
    // The caller looks at all the others; of many workers each looks at some, or they would wait for each
    // other's lines.
    const bool all = thread == 0 || count <= 8;
    for (int i = 1; i < count; i = all ? i + 1 : 2 * i) take_all((thread + i) % count);
  }

  bool finished(int64_t all) {
    int64_t done = 0;
    for (Slot& s : slots) done += s.done.load(std::memory_order_acquire);
    return done == all;
  }

  void worker(int thread) {
    for (uint32_t seen = 0;;) {
      uint32_t number = 0;
      const auto called = [&] {
        number = current.number.load(std::memory_order_acquire);
        return number != seen && number % 2 == 0;
      };
      if (!spin_until(kAwake, called)) {
        sleepers.fetch_add(1);
        current.number.wait(seen);
        continue;
      }
      if (current.stop.load(std::memory_order_relaxed)) return;
      seen = number;
      const Loop loop{
          current.body.load(std::memory_order_relaxed), current.context.load(std::memory_order_relaxed),
          current.n.load(std::memory_order_relaxed), current.pieces.load(std::memory_order_relaxed),
          current.all_done.load(std::memory_order_relaxed)};
      std::atomic_thread_fence(std::memory_order_acquire);
      if (current.number.load(std::memory_order_relaxed) == number) work(thread, loop, number);
    }
  }

  // Returns the loop's number. What workers watch is written only: reading it, too, would wait for the line.
  uint32_t call_workers(const Loop& loop) {
    const uint32_t number = last_number;
    last_number += 2;
    current.number.store(number + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    current.body.store(loop.body, std::memory_order_relaxed);
    current.context.store(loop.context, std::memory_order_relaxed);
    current.n.store(loop.n, std::memory_order_relaxed);
    current.pieces.store(loop.pieces, std::memory_order_relaxed);
    current.all_done.store(loop.all_done, std::memory_order_relaxed);
    // Numbers come again: what is left of them must not look like a later loop.
    if (number % (1u << 28) == 0)
      for (Slot& s : slots) s.left.store(uint64_t{number} << 32);
    // Who is cleared from the count here waits for an older number, and wakes for good. Who falls asleep
    // behind this loop stays in the count.
    const bool asleep = sleepers.load() > 0 && sleepers.exchange(0) > 0;
    current.number.store(number + 2);
    if (asleep || sleepers.load() > 0) current.number.notify_all();
    return last_number;
  }
};

ThreadPool::ThreadPool(int threads)
    : impl_(std::make_unique<Impl>(
          std::min(threads > 0 ? threads : available_processors(), Impl::kMostThreads))) {
  for (int t = 1; t < impl_->count; t++) impl_->workers.emplace_back([this, t] { impl_->worker(t); });
}

ThreadPool::~ThreadPool() {
  impl_->current.stop = true;
  impl_->current.number.fetch_add(2);
  impl_->current.number.notify_all();
  for (auto& worker : impl_->workers) worker.join();
}

int ThreadPool::threads() const { return impl_->count; }

void ThreadPool::run(int64_t n, int64_t grain, Body body, void* context) {
  Impl& p = *impl_;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces =
      std::clamp<int64_t>(n / grain + (n % grain > grain / 2), 1, p.count * Impl::kPiecesEach);
  if (pieces == 1) return body(context, 0, n, 0);
  assert(p.finished(p.pieces_so_far));  // one caller at a time, and none from a piece
  p.pieces_so_far += pieces;
  const Impl::Loop loop{body, context, n, pieces, p.pieces_so_far};
  p.work(0, loop, p.call_workers(loop));
  const auto done = [&] { return p.finished(loop.all_done); };
  if (spin_until(kPatience, done)) return;
  while (!done()) std::this_thread::yield();
}

}  // namespace cyb
