// SPDX-License-Identifier: Apache-2.0
// A fixed set of threads for data-parallel loops. Workers spin for a short while between loops, because a
// decode step runs hundreds of loops of a few microseconds each, and sleep when no loop comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cyb {

class ThreadPool {
 public:
  // `threads` counts the calling thread; 0 means available_processors().
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls f(begin, end, thread) over [0, n) cut into pieces of `grain` · ¾ or more; each thread takes
  // those of its part in order, then some of the others', so what a piece computes must not depend on how the
  // range is cut. `thread` is in [0, threads()). f must not throw and must not call parallel_for on the same
  // pool. One caller at a time.
  template <class F>
  void parallel_for(int64_t n, int64_t grain, F&& f) {
    if (n <= 0) return;
    if (threads() == 1 || n <= grain) {
      f(int64_t{0}, n, 0);
      return;
    }
    run(
        n, grain, [](void* context, int64_t b, int64_t e, int t) { (*static_cast<F*>(context))(b, e, t); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  using Body = void (*)(void* context, int64_t begin, int64_t end, int thread);
  void run(int64_t n, int64_t grain, Body body, void* context);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cyb
