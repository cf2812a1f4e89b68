// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and Fourier transforms.
#include "import/onnx/ops_util.h"

namespace cyb::onnx {

using namespace ir;

namespace {

RecurrentAttrs read_recurrent(NodeContext& c) {
  RecurrentAttrs a;
  a.hidden = c.attr_int("hidden_size", 0);
  const Type& r = c.in_type(2);
  if (a.hidden == 0 && r.known_rank && r.rank() == 3 && r.dims[2].is_number()) a.hidden = r.dims[2].number();
  if (a.hidden < 1) c.invalid(fmt::format("hidden_size = {}", a.hidden));
  const std::string direction = c.attr_string("direction", "forward");
  if (direction == "reverse")
    a.direction = Direction::reverse;
  else if (direction == "bidirectional")
    a.direction = Direction::bidirectional;
  else if (direction != "forward")
    c.invalid(fmt::format("direction '{}'", direction));
  for (const std::string& name : c.attr_strings("activations"))
    a.activations += (a.activations.empty() ? "" : ",") + name;
  a.alphas = c.attr_floats("activation_alpha");
  a.betas = c.attr_floats("activation_beta");
  a.clip = c.attr_float("clip", 0);
  a.batch_first = c.attr_int("layout", 0) != 0;
  return a;
}

void emit(NodeContext& c, Op op, int operands, int results, const RecurrentAttrs& attrs) {
  std::vector<ValueId> in;
  for (int i = 0; i < operands; i++) in.push_back(i < 3 ? c.in(i) : c.in_or_none(i));
  const auto out = c.ops(op, trimmed(std::move(in)), attrs, results);
  for (int i = 0; i < results; i++)
    if (c.has_output(i)) c.out(i, out[static_cast<size_t>(i)]);
}

void convert_lstm(NodeContext& c) {
  RecurrentAttrs a = read_recurrent(c);
  a.input_forget = c.attr_int("input_forget", 0) != 0;
  emit(c, Op::Lstm, 8, 3, a);
}

// com.microsoft: an LSTM whose weights are 8-bit integers and whose operands are rounded as they come.
void convert_dynamic_quantize_lstm(NodeContext& c) {
  if (c.attr_int("hidden_size", 0) < 1) c.invalid("it needs hidden_size");
  RecurrentAttrs a = read_recurrent(c);
  a.input_forget = c.attr_int("input_forget", 0) != 0;
  emit(c, Op::DynamicQuantizeLstm, 12, 3, a);
}

void convert_gru(NodeContext& c) {
  RecurrentAttrs a = read_recurrent(c);
  a.linear_before_reset = c.attr_int("linear_before_reset", 0) != 0;
  emit(c, Op::Gru, 6, 2, a);
}

void convert_rnn(NodeContext& c) { emit(c, Op::Rnn, 6, 2, read_recurrent(c)); }

void convert_dft(NodeContext& c) {
  DftAttrs a{.inverse = c.attr_int("inverse", 0) != 0, .onesided = c.attr_int("onesided", 0) != 0};
  if (c.opset() < 20) {
    a.axis = c.attr_int("axis", 1);
    return c.out(0, c.op(Op::Dft, trimmed({c.in(0), c.in_or_none(1)}), a));
  }
  // A known axis is better as an attribute: shapes then need no operand.
  if (const auto axis = c.ints_in(2); axis && axis->size() == 1) {
    a.axis = (*axis)[0];
    return c.out(0, c.op(Op::Dft, trimmed({c.in(0), c.in_or_none(1)}), a));
  }
  c.out(0, c.op(Op::Dft, trimmed({c.in(0), c.in_or_none(1), c.in_or_none(2)}), a));
}

void convert_stft(NodeContext& c) {
  const StftAttrs a{.onesided = c.attr_int("onesided", 1) != 0, .rounded = true};
  c.out(0, c.op(Op::Stft, trimmed({c.in(0), c.in(1), c.in_or_none(2), c.in_or_none(3)}), a));
}

}  // namespace

void add_recurrent_converters(Registry& r) {
  r.add("LSTM", convert_lstm);
  r.add("DynamicQuantizeLSTM", convert_dynamic_quantize_lstm, "com.microsoft");
  r.add("GRU", convert_gru);
  r.add("RNN", convert_rnn);
  r.add("DFT", convert_dft);
  r.add("STFT", convert_stft);
}

}  // namespace cyb::onnx
