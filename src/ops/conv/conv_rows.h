// SPDX-License-Identifier: Apache-2.0
// Kernel rows of convolutions, by method.
#pragma once

#include "backend/cpu/kernel.h"
#include "ir/ops/conv.h"
#include "ops/conv/conv.h"

namespace cyb::cpu {

void add_conv_reference(KernelTable& table);
void add_conv_winograd(KernelTable& table);
void add_conv_pointwise(KernelTable& table);
void add_conv_nchw16c(KernelTable& table);

// What the rows share.
// Why no fast kernel takes the node: types, a residual that broadcasts.
const char* reject_conv(const Query& query);
// The same, and convolutions of more taps than a block's copy should have.
const char* reject_product(const Query& query);
const ir::ConvAttrs& conv_attrs(const ir::Node& node);
// Bias, residual and activation of a convolution or fused convolution.
ConvFinish conv_finish(const Call& call);
// KernelRow::layouts: x of either layout, the residual of the result's.
void conv_layouts(Call& call);

// Floats of scratch that a thread has for itself, whole lines; bytes of those of all threads.
inline int64_t own_floats(int64_t floats) { return (floats + 15) / 16 * 16; }
inline uint64_t items_scratch(const Call& c, int64_t floats) {
  return static_cast<uint64_t>(own_floats(floats) * c.pool->threads()) * 4;
}
// The kernel over all of a.items(), from the call's x to its y, with `floats` of scratch for each thread.
template <class Args>
void run_items(Call& c, Args a, int64_t floats,
               void (*kernel)(const Args& args, int64_t begin, int64_t end, float* scratch)) {
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  auto* scratch = reinterpret_cast<float*>(c.scratch);
  c.pool->parallel_for(a.items(), 1, [&](int64_t begin, int64_t end, int thread) {
    kernel(a, begin, end, scratch + thread * own_floats(floats));
  });
}

}  // namespace cyb::cpu
