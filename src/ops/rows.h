// SPDX-License-Identifier: Apache-2.0
// Each group's kernel rows for the CPU, and what reference kernels of several groups share.
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"
#include "ops/activation/activation.h"

namespace cyb::cpu {

void add_elementwise_rows(KernelTable& table);
void add_unary_rows(KernelTable& table);
void add_cast_rows(KernelTable& table);
void add_binary_rows(KernelTable& table);
void add_activation_rows(KernelTable& table);
void add_shape_rows(KernelTable& table);
void add_parts_rows(KernelTable& table);
void add_move_rows(KernelTable& table);
void add_gather_rows(KernelTable& table);
void add_fast_gather_rows(KernelTable& table);
void add_reduce_rows(KernelTable& table);
void add_fast_reduce_rows(KernelTable& table);
void add_norm_rows(KernelTable& table);
void add_channel_norm_rows(KernelTable& table);
void add_interpolate_rows(KernelTable& table);
void add_recurrent_rows(KernelTable& table);
void add_quant_rows(KernelTable& table);
void add_integer_rows(KernelTable& table);
void add_code_rows(KernelTable& table);
void add_transform_rows(KernelTable& table);
void add_fast_recurrent_rows(KernelTable& table);
void add_quantized_lstm_rows(KernelTable& table);
void add_fast_channel_norm_rows(KernelTable& table);
void add_grid_sample_rows(KernelTable& table);
void add_region_rows(KernelTable& table);
void add_deform_conv_rows(KernelTable& table);
void add_det_rows(KernelTable& table);
void add_spectral_rows(KernelTable& table);
void add_random_rows(KernelTable& table);
void add_rope_rows(KernelTable& table);
void add_sinusoidal_rows(KernelTable& table);
void add_linear_recurrence_rows(KernelTable& table);
void add_matmul_rows(KernelTable& table);
void add_text_rows(KernelTable& table);
void add_embed_rows(KernelTable& table);
void add_attention_rows(KernelTable& table);
void add_conv_rows(KernelTable& table);
void add_window_pool_rows(KernelTable& table);
void add_pool_kernel_rows(KernelTable& table);

double gelu(ir::GeluForm form, double x);

// Over rows of n values: x / √(mean x² + eps) · (offset + w); w null: 1.
void rms_norm_rows(ThreadPool& pool, Isa isa, const float* x, const float* w, int64_t offset, float eps,
                   int64_t rows, int64_t n, float* y);
// The kernels' name of a graph's activation.
Activation activation_of(ir::Activation act);
// y = act(a) · b over n values; y may be a or b.
void gated(ThreadPool& pool, Isa isa, ir::Activation act, const float* a, const float* b, int64_t n,
           float* y);

// A state of one value a channel.
std::unique_ptr<StateStore> make_tensor_state(const ir::State& state, const StateOptions& options);

// The hooks that the matmul and attention groups give the machinery.
std::unique_ptr<Weight> load_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                    const Weight* scale, WeightRole role);
std::unique_ptr<StateStore> make_state(const ir::State& state, const StateOptions& options,
                                       const Precision& precision);
uint64_t position_bytes(const ir::State& state, const Precision& precision);

}  // namespace cyb::cpu
