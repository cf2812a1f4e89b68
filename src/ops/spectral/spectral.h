// SPDX-License-Identifier: Apache-2.0
// The sizes of Fourier transforms.
#pragma once

#include <cstdint>

#include "backend/cpu/kernel.h"
#include "ir/ops/recurrent.h"

namespace cyb::cpu {

struct DftShape {
  int64_t outer = 1, inner = 1;
  int64_t given = 0, length = 0;  // of the operand's axis, and of the transform (cut or filled with zeros)
  int64_t results = 0;
  int64_t parts = 1, result_parts = 2;  // 2: complex
  bool inverse = false;
  bool half = false;  // the operand is a one-sided spectrum
};
// Without `values` what operands say about the length is left out: their memory may not be filled yet.
DftShape dft_shape(const Call& call, bool values = true);

struct StftShape {
  int64_t batch = 0, samples = 0, parts = 1, frames = 0, bins = 0, step = 1, length = 0;
};
StftShape stft_shape(const Call& call);

// Completes n complex values of which the first n/2 + 1 are a one-sided spectrum.
void mirror(double* line, int64_t n);

}  // namespace cyb::cpu
