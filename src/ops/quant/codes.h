// SPDX-License-Identifier: Apache-2.0
// f32 to integer codes and back, element by element: every instruction set gives the bits of the definition.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

// n elements; `step` 0: one scale and zero point for all, 1: one for each. Zero points are floats, which hold
// codes of up to 16 bits exactly.
struct CodeRun {
  int64_t n = 0;
  const float* scale = nullptr;
  const float* zero = nullptr;
  int step = 0;
  float low = 0, high = 255;  // of codes
};

struct CodeKernels {
  // Smallest and largest of x and what they were before.
  void (*range)(const float* x, int64_t n, float* least, float* most);
  // By type: u8, i8, u16, i16.
  void (*quantize[4])(const CodeRun& run, const float* x, void* y);
  void (*dequantize[4])(const CodeRun& run, const void* x, float* y);
};

const CodeKernels& code_kernels(Isa isa);

}  // namespace cyb
