// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu.h"

#include "ops/rows.h"
#include "ops/text/strings.h"

namespace cyb {

const cpu::KernelTable& cpu_kernel_table() {
  static const cpu::KernelTable table = [] {
    cpu::KernelTable t;
    cpu::add_elementwise_rows(t);
    cpu::add_unary_rows(t);
    cpu::add_cast_rows(t);
    cpu::add_binary_rows(t);
    cpu::add_activation_rows(t);
    cpu::add_shape_rows(t);
    cpu::add_parts_rows(t);
    cpu::add_move_rows(t);
    cpu::add_gather_rows(t);
    cpu::add_fast_gather_rows(t);
    cpu::add_reduce_rows(t);
    cpu::add_fast_reduce_rows(t);
    cpu::add_norm_rows(t);
    cpu::add_channel_norm_rows(t);
    cpu::add_interpolate_rows(t);
    cpu::add_recurrent_rows(t);
    cpu::add_quant_rows(t);
    cpu::add_integer_rows(t);
    cpu::add_code_rows(t);
    cpu::add_transform_rows(t);
    cpu::add_fast_recurrent_rows(t);
    cpu::add_quantized_lstm_rows(t);
    cpu::add_fast_channel_norm_rows(t);
    cpu::add_grid_sample_rows(t);
    cpu::add_region_rows(t);
    cpu::add_deform_conv_rows(t);
    cpu::add_det_rows(t);
    cpu::add_spectral_rows(t);
    cpu::add_random_rows(t);
    cpu::add_rope_rows(t);
    cpu::add_sinusoidal_rows(t);
    cpu::add_linear_recurrence_rows(t);
    cpu::add_matmul_rows(t);
    cpu::add_embed_rows(t);
    cpu::add_attention_rows(t);
    cpu::add_conv_rows(t);
    cpu::add_window_pool_rows(t);
    cpu::add_text_rows(t);
    return t;
  }();
  return table;
}

std::unique_ptr<Backend> make_cpu_backend(int threads, Isa isa) {
  return cpu::make_backend({threads, isa}, cpu_kernel_table(),
                           {cpu::make_state, cpu::position_bytes, cpu::load_weight});
}

void evaluate_node(const ir::Program& program, const ir::Node& node, std::span<const Tensor* const> operands,
                   std::span<Tensor> results) {
  bool strings = false;
  for (const Tensor* t : operands) strings = strings || (t && t->type() == DType::string);
  for (const Tensor& t : results) strings = strings || t.type() == DType::string;
  if (!strings) return cpu::run_reference(cpu_kernel_table(), program, node, operands, results);
  if (!takes_strings(node.op))
    throw error(ErrorKind::UnsupportedOp, "'{}' of strings", ir::info(node.op).text_name)
        .advise("strings can be moved, selected and compared; do the rest outside the graph");
  evaluate_strings(program, node, operands, results,
                   [](const ir::Program& p, const ir::Node& n, std::span<const Tensor* const> in,
                      std::span<Tensor> out) { cpu::run_reference(cpu_kernel_table(), p, n, in, out); });
}

}  // namespace cyb
