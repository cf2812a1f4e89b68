// SPDX-License-Identifier: Apache-2.0
// The ceilings of this machine for the instruction set that the kernels use, measured when asked.
#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_array.h"
#include "base/cpu_features.h"

namespace cyb {

class ThreadPool;

struct Ceilings {
  double read_bytes_per_s = 0;  // all threads reading memory that no cache holds
  double f32_flops_per_s = 0;   // multiply-adds of registers, two operations each
  double int8_ops_per_s = 0;    // likewise, u8 times i8 into i32
};

// Takes about a second and 64 MB a thread, or 256 MB in all where that is more.
Ceilings measure_ceilings(ThreadPool& pool, Isa isa);
// The same without reading, which stays 0.
Ceilings measure_arithmetic(ThreadPool& pool, Isa isa);

// Reading alone, for comparisons round by round: what a shared machine reads changes within seconds.
class ReadingPeak {
 public:
  explicit ReadingPeak(ThreadPool& pool);  // memory of its own
  ReadingPeak(ThreadPool& pool, std::span<const uint8_t> memory);
  double best(double seconds);     // bytes/s of the best of some passes
  double average(double seconds);  // of all, to be set beside the average of other work

 private:
  double pass();  // bytes read
  void choose();  // once, how this processor reads faster
  ThreadPool& pool_;
  AlignedArray<uint64_t> own_;
  bool chosen_ = false, ahead_ = false;  // ahead: memory is asked for before it is read
  std::span<const uint8_t> memory_;
};

// `rounds` rounds of independent multiply-adds in registers. Each returns how many operations a round has
// (two for a multiply-add) and leaves a value that depends on all of them in *sink, so that none can be left
// out.
struct PeakKernels {
  int64_t (*f32)(int64_t rounds, float* sink);
  int64_t (*int8)(int64_t rounds, int32_t* sink);
};
const PeakKernels& peak_kernels(Isa isa);

}  // namespace cyb
