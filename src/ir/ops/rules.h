// SPDX-License-Identifier: Apache-2.0
// The shape rules that the operator table names.
#pragma once

#include "ir/infer.h"
#include "ir/ops/common.h"

namespace cyb::ir {

// ONNX's rule for one axis of Slice: the first index and how many follow by `step` (not 0).
struct SliceBounds {
  int64_t start, count;
};
SliceBounds slice_bounds(int64_t length, int64_t start, int64_t end, int64_t step);

// Unique: where each distinct element (or slice) stands first, which one each is, how many there are of it.
struct UniqueParts {
  std::vector<int64_t> first, inverse, counts;
};
UniqueParts find_unique(DType type, const void* data, const Shape& shape, const UniqueAttrs& attrs);

// Elementwise.
void rule_unary(InferContext& c);
void rule_binary(InferContext& c);
void rule_same_pair(InferContext& c);
void rule_compare(InferContext& c);
void rule_logic(InferContext& c);
void rule_logic_not(InferContext& c);
void rule_test(InferContext& c);
void rule_bits(InferContext& c);
void rule_pow(InferContext& c);
void rule_prelu(InferContext& c);
void rule_glu(InferContext& c);
void rule_bit_cast(InferContext& c);
void rule_where(InferContext& c);
void rule_cast(InferContext& c);
// Products and look-ups.
void rule_matmul(InferContext& c);
void rule_token_embed(InferContext& c);
void rule_fused_matmul(InferContext& c);
void rule_fused_norm_matmul(InferContext& c);
void rule_fused_swi_glu(InferContext& c);
// Norms, softmax, attention.
void rule_norm(InferContext& c);
void rule_fused_skip_norm(InferContext& c);
void rule_softmax(InferContext& c);
void rule_sdpa(InferContext& c);
void rule_kv_cache(InferContext& c);
void rule_rope(InferContext& c);
void rule_sinusoidal(InferContext& c);
void rule_linear_recurrence(InferContext& c);
// Shapes.
void rule_transpose(InferContext& c);
void rule_reshape(InferContext& c);
void rule_permute(InferContext& c);
void rule_concat(InferContext& c);
void rule_split(InferContext& c);
void rule_slice(InferContext& c);
void rule_expand(InferContext& c);
void rule_tile(InferContext& c);
void rule_pad(InferContext& c);
void rule_trilu(InferContext& c);
void rule_range(InferContext& c);
void rule_shape_of(InferContext& c);
void rule_unsqueeze(InferContext& c);
void rule_squeeze(InferContext& c);
// Gather and reductions.
void rule_gather(InferContext& c);
void rule_gather_elements(InferContext& c);
void rule_gather_nd(InferContext& c);
void rule_scatter_elements(InferContext& c);
void rule_scatter_nd(InferContext& c);
void rule_unique(InferContext& c);
void rule_non_zero(InferContext& c);
void rule_reduce(InferContext& c);
void rule_argmax(InferContext& c);
void rule_top_k(InferContext& c);
void rule_cumulative(InferContext& c);
// Convolutions and pooling.
void rule_conv(InferContext& c);
void rule_fused_conv(InferContext& c);
void rule_conv_transpose(InferContext& c);
void rule_pool(InferContext& c);
// Normalizations over channels, resampling, recurrent layers.
void rule_batch_norm(InferContext& c);
void rule_instance_norm(InferContext& c);
void rule_group_norm(InferContext& c);
void rule_lrn(InferContext& c);
void rule_interpolate(InferContext& c);
void rule_grid_sample(InferContext& c);
void rule_roi_align(InferContext& c);
void rule_col2im(InferContext& c);
void rule_non_max_suppression(InferContext& c);
void rule_lstm(InferContext& c);
void rule_gru(InferContext& c);
void rule_rnn(InferContext& c);
void rule_dynamic_quantize_lstm(InferContext& c);
// Quantization, integer products, spectra, random numbers.
void rule_quantize(InferContext& c);
void rule_dequantize(InferContext& c);
void rule_dynamic_quantize(InferContext& c);
void rule_matmul_integer(InferContext& c);
void rule_conv_integer(InferContext& c);
void rule_deform_conv(InferContext& c);
void rule_det(InferContext& c);
void rule_small_float_encode(InferContext& c);
void rule_small_float_decode(InferContext& c);
void rule_dft(InferContext& c);
void rule_stft(InferContext& c);
void rule_random(InferContext& c);
// Texts.
void rule_string_concat(InferContext& c);
void rule_string_split(InferContext& c);
void rule_string_normalize(InferContext& c);
void rule_regex_full_match(InferContext& c);
// Control.
void rule_if_else(InferContext& c);
void rule_loop(InferContext& c);
void rule_scan(InferContext& c);

}  // namespace cyb::ir
