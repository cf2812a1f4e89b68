// SPDX-License-Identifier: Apache-2.0
// Templates come from strangers: every rendering has a budget of work, memory, string size and depth.
#pragma once

#include <cstdint>

#include "text/template/failure.h"

namespace cyb::jinja {

class Meter {
 public:
  Meter(uint64_t work, uint64_t memory, uint64_t string, uint32_t depth)
      : work_left_(work), memory_limit_(memory), string_limit_(string), depth_limit_(depth) {}

  // The meter of the rendering that runs on this thread.
  static Meter& current() { return *current_; }

  void work(uint64_t units) {
    if (units > work_left_) fail(kLimitError, "the template does more work than is allowed");
    work_left_ -= units;
  }
  // Work that grows with a text: searching it, copying it.
  void scan(uint64_t bytes) { work(1 + bytes / 512); }
  // Before a string of this size is made.
  void string(uint64_t bytes) {
    if (bytes > string_limit_)
      fail(kLimitError, "the template makes a text of more than {} bytes", string_limit_);
    scan(bytes);
  }
  // Before a list or dict of this many items is made.
  void items(uint64_t count) {
    if (count > memory_limit_ / 32)
      fail(kLimitError, "the template makes a list of more than {} items", memory_limit_ / 32);
    work(1 + count / 4);
  }
  void hold(uint64_t bytes) {
    held_ += bytes;
    if (held_ > memory_limit_)
      fail(kLimitError, "the template needs more than {} bytes of memory", memory_limit_);
  }
  void release(uint64_t bytes) { held_ -= bytes < held_ ? bytes : held_; }

 private:
  friend class Depth;
  friend class MeterScope;
  uint64_t work_left_;
  uint64_t memory_limit_;
  uint64_t string_limit_;
  uint64_t held_ = 0;
  uint32_t depth_limit_;
  uint32_t depth_ = 0;
  static thread_local Meter* current_;
};

// Makes a meter the thread's current one.
class MeterScope {
 public:
  explicit MeterScope(Meter& meter) : before_(Meter::current_) { Meter::current_ = &meter; }
  ~MeterScope() { Meter::current_ = before_; }
  MeterScope(const MeterScope&) = delete;
  MeterScope& operator=(const MeterScope&) = delete;

 private:
  Meter* before_;
};

// One level of recursion, in the template or over nested values.
class Depth {
 public:
  Depth() : meter_(Meter::current()) {
    if (meter_.depth_ >= meter_.depth_limit_)
      fail(kLimitError, "the template recurses deeper than {} levels", meter_.depth_limit_);
    ++meter_.depth_;
  }
  ~Depth() { --meter_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Meter& meter_;
};

}  // namespace cyb::jinja
