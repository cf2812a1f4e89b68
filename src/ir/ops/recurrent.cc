// SPDX-License-Identifier: Apache-2.0
// Shape rules of LSTM, GRU and plain recurrent layers.
#include "ir/ops/recurrent.h"

#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

// `columns`: w [D, I, gates·H] and r [D, H, gates·H] are 8-bit integers.
void recurrent(InferContext& c, int64_t gates, int last_states, int functions, bool columns = false) {
  const auto& a = c.attrs<RecurrentAttrs>();
  const Type& x = c.type(0);
  const Type& w = c.type(1);
  const Type& r = c.type(2);
  c.require(x.rank() == 3 && is_float(x.dtype), "x must be floats [T, B, I]");
  c.require(w.rank() == 3 && r.rank() == 3, "w and r must be [D, gates·H, …]");
  const size_t in = columns ? 1 : 2, out = columns ? 2 : 1;
  if (columns)
    c.require(x.dtype == DType::f32 && is_byte(w.dtype) && is_byte(r.dtype),
              "x must be f32, w and r 8-bit integers");
  else
    c.require(w.dtype == x.dtype && r.dtype == x.dtype, "x, w and r differ in element type");
  const int64_t directions = a.direction == Direction::bidirectional ? 2 : 1;
  const Dim hidden = a.hidden > 0 ? c.same(Dim(a.hidden), r.dims[in], "hidden and r") : r.dims[in];
  const Dim length = x.dims[a.batch_first ? 1 : 0], batch = x.dims[a.batch_first ? 0 : 1];
  c.same(w.dims[0], Dim(directions), "directions of w");
  c.same(r.dims[0], Dim(directions), "directions of r");
  c.same(w.dims[in], x.dims[2], "inputs of w and x");
  c.same(w.dims[out], hidden * Dim(gates), "w and gates·H");
  c.same(r.dims[out], hidden * Dim(gates), "r and gates·H");
  if (c.has(3)) {
    c.require(c.type(3).rank() == 2 && c.type(3).dtype == x.dtype, "b must be [D, 2·gates·H] of x's type");
    c.same(c.type(3).dims[0], Dim(directions), "directions of b");
    c.same(c.type(3).dims[1], hidden * Dim(2 * gates), "b and 2·gates·H");
  }
  if (c.has(4)) {
    const Type& lengths = c.type(4);
    c.require(lengths.rank() == 1 && (lengths.dtype == DType::i32 || lengths.dtype == DType::i64),
              "lengths must be integers [B]");
    c.same(lengths.dims[0], batch, "lengths and batch");
  }
  const Type state{
      x.dtype, a.batch_first ? Dims{batch, Dim(directions), hidden} : Dims{Dim(directions), batch, hidden}};
  for (int i = 5; i < 5 + last_states; i++) {
    if (!c.has(i)) continue;
    c.require(c.type(i).rank() == 3 && c.type(i).dtype == x.dtype,
              "the first state must be [D, B, H] of x's type");
    for (int d = 0; d < 3; d++)
      c.same(c.type(i).dims[static_cast<size_t>(d)], state.dims[static_cast<size_t>(d)],
             "axes of a first state");
  }
  if (gates == 4 && c.has(7)) {
    c.require(c.type(7).rank() == 2 && c.type(7).dtype == x.dtype, "peepholes must be [D, 3·H] of x's type");
    c.same(c.type(7).dims[0], Dim(directions), "directions of the peepholes");
    c.same(c.type(7).dims[1], hidden * Dim(3), "peepholes and 3·H");
  }
  c.require(a.clip >= 0, "clip must not be negative");
  std::string why;
  recurrent_functions(a, functions, &why);
  c.require(why.empty(), why);
  c.result(0, {x.dtype, a.batch_first ? Dims{batch, length, Dim(directions), hidden}
                                      : Dims{length, Dim(directions), batch, hidden}});
  for (int i = 1; i <= last_states && i < static_cast<int>(c.node().results.size()); i++) c.result(i, state);
}

struct FunctionRow {
  const char* name;
  RecurrentFunction::Kind kind;
  bool alpha, beta;  // whether it takes one
  double a, b;
};
constexpr FunctionRow kFunctions[] = {
    {"sigmoid", RecurrentFunction::sigmoid, false, false, 0, 0},
    {"tanh", RecurrentFunction::tanh, false, false, 0, 0},
    {"relu", RecurrentFunction::relu, false, false, 0, 0},
    {"affine", RecurrentFunction::affine, true, true, 1, 0},
    {"leakyrelu", RecurrentFunction::leaky_relu, true, false, 0.01, 0},
    {"thresholdedrelu", RecurrentFunction::thresholded_relu, true, false, 1, 0},
    {"scaledtanh", RecurrentFunction::scaled_tanh, true, true, 1, 1},
    {"hardsigmoid", RecurrentFunction::hard_sigmoid, true, true, 0.2, 0.5},
    {"elu", RecurrentFunction::elu, true, false, 1, 0},
    {"softsign", RecurrentFunction::softsign, false, false, 0, 0},
    {"softplus", RecurrentFunction::softplus, false, false, 0, 0},
};

}  // namespace

std::vector<RecurrentFunction> recurrent_functions(const RecurrentAttrs& a, int functions, std::string* why) {
  const int directions = a.direction == Direction::bidirectional ? 2 : 1;
  std::vector<RecurrentFunction> out;
  if (a.activations.empty()) {
    for (int d = 0; d < directions; d++)
      for (int i = 0; i < functions; i++)
        out.push_back({functions > 1 && i == 0 ? RecurrentFunction::sigmoid : RecurrentFunction::tanh, 0, 0});
    return out;
  }
  size_t alpha = 0, beta = 0;
  for (size_t at = 0; at <= a.activations.size();) {
    const size_t end = std::min(a.activations.find(',', at), a.activations.size());
    std::string name = a.activations.substr(at, end - at);
    for (char& ch : name) ch = static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch + 'a' - 'A' : ch);
    at = end + 1;
    const FunctionRow* found = nullptr;
    for (const FunctionRow& row : kFunctions)
      if (name == row.name) found = &row;
    if (!found) {
      *why = "unknown activation '" + name + "'";
      return out;
    }
    RecurrentFunction f{found->kind, found->a, found->b};
    if (found->alpha && alpha < a.alphas.size()) f.alpha = a.alphas[alpha++];
    if (found->beta && beta < a.betas.size()) f.beta = a.betas[beta++];
    out.push_back(f);
  }
  if (static_cast<int>(out.size()) != directions * functions)
    *why = std::to_string(directions * functions) + " activations are needed, " + std::to_string(out.size()) +
           " are given";
  return out;
}

void rule_linear_recurrence(InferContext& c) {
  const Type& x = c.type(0);
  const Type& f = c.type(1);
  c.require(x.rank() == 3 && x.dtype == DType::f32 && f.rank() == 3 && f.dtype == DType::f32,
            "x and f must be f32[B, T, C]");
  for (int i = 0; i < 3; i++)
    c.same(x.dims[static_cast<size_t>(i)], f.dims[static_cast<size_t>(i)], "x and f");
  if (c.has(2)) c.require(c.type(2).rank() == 1 && c.type(2).dtype == DType::i32, "lengths must be i32[B]");
  if (!c.node().states.empty()) {
    const State& s = c.state(0);
    c.require(s.kind == State::Kind::tensor && s.type.dtype == DType::f32 && s.type.rank() == 2 &&
                  s.type.dims[1].is_number(),
              "the state must be tensor(f32[B, C])");
    c.same(x.dims[2], s.type.dims[1], "channels of x and of the state");
  }
  c.result(0, x);
}

void rule_lstm(InferContext& c) { recurrent(c, 4, 2, 3); }
void rule_gru(InferContext& c) { recurrent(c, 3, 1, 2); }
void rule_rnn(InferContext& c) { recurrent(c, 1, 1, 1); }

void rule_dynamic_quantize_lstm(InferContext& c) {
  recurrent(c, 4, 2, 3, true);
  const int64_t directions = c.attrs<RecurrentAttrs>().direction == Direction::bidirectional ? 2 : 1;
  for (int i = 8; i < 12; i++) {
    if (!c.has(i)) {
      c.require(i != 8 && i != 10, "needs the scales of w and r");
      continue;
    }
    const Type& t = c.type(i);
    c.require(t.rank() == 1 || t.rank() == 2, "scales and zero points must be [D] or [D, 4·H]");
    c.require(t.dtype == (i % 2 == 0 ? DType::f32 : c.type(i < 10 ? 1 : 2).dtype),
              "scales must be f32, zero points of their weight's type");
    c.same(t.dims[0], Dim(directions), "directions of scales and zero points");
    if (t.rank() == 2) c.same(t.dims[1], c.type(2).dims[2], "scales and 4·H");
  }
}

}  // namespace cyb::ir
