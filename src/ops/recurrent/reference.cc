// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and plain recurrent layers by their definition, in f64.
#include <algorithm>
#include <cmath>

#include "ops/common/reals.h"
#include "ops/conv/weight.h"
#include "ops/recurrent/cells.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;
using ir::RecurrentFunction;

RecurrentShape recurrent_shape(const Call& c) {
  const auto& a = c.attrs<ir::RecurrentAttrs>();
  RecurrentShape s;
  s.batch_first = a.batch_first;
  s.gates = c.node->op == Op::Rnn ? 1 : c.node->op == Op::Gru ? 3 : 4;
  s.length = c.in[0].shape[a.batch_first ? 1 : 0];
  s.batch = c.in[0].shape[a.batch_first ? 0 : 1];
  s.inputs = c.in[0].shape[2];
  s.hidden = c.out[0].shape[3];
  s.directions = c.out[0].shape[a.batch_first ? 2 : 1];
  const int64_t d = s.directions, h = s.hidden;
  s.x_step = a.batch_first ? s.inputs : s.batch * s.inputs;
  s.x_row = a.batch_first ? s.length * s.inputs : s.inputs;
  s.y_step = a.batch_first ? d * h : d * s.batch * h;
  s.y_row = a.batch_first ? s.length * d * h : h;
  s.y_direction = a.batch_first ? h : s.batch * h;
  s.state_row = a.batch_first ? d * h : h;
  s.state_direction = a.batch_first ? h : s.batch * h;
  return s;
}

int64_t steps_of(const Call& c, const RecurrentShape& s, int64_t row) {
  return c.has(4) ? std::clamp<int64_t>(integer_at(c.in[4], row), 0, s.length) : s.length;
}

double apply(const RecurrentFunction& f, double x) {
  switch (f.kind) {
    case RecurrentFunction::sigmoid:
      return 1 / (1 + std::exp(-x));
    case RecurrentFunction::tanh:
      return std::tanh(x);
    case RecurrentFunction::relu:
      return x > 0 ? x : 0;
    case RecurrentFunction::affine:
      return f.alpha * x + f.beta;
    case RecurrentFunction::leaky_relu:
      return x >= 0 ? x : f.alpha * x;
    case RecurrentFunction::thresholded_relu:
      return x > f.alpha ? x : 0;
    case RecurrentFunction::scaled_tanh:
      return f.alpha * std::tanh(f.beta * x);
    case RecurrentFunction::hard_sigmoid:
      return std::min(1.0, std::max(0.0, f.alpha * x + f.beta));
    case RecurrentFunction::elu:
      return x >= 0 ? x : f.alpha * (std::exp(x) - 1);
    case RecurrentFunction::softsign:
      return x / (1 + std::fabs(x));
    case RecurrentFunction::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  }
  return x;
}

namespace {

using Reals = std::vector<double>;

// One direction of one row of the batch.
struct Cell {
  const ir::RecurrentAttrs& attrs;
  const RecurrentShape& s;
  const RecurrentFunction* f;           // of this direction
  const double *w, *r, *b, *peepholes;  // of this direction; b and peepholes may be null
  Reals h, c;

  double clipped(double v) const { return attrs.clip > 0 ? std::clamp(v, -attrs.clip, attrs.clip) : v; }
  double bias(int64_t gate, int64_t i, bool recurrent) const {
    return b ? b[(recurrent ? s.gates : 0) * s.hidden + gate * s.hidden + i] : 0;
  }
  static double dot(const double* a, const double* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * x[i];
    return sum;
  }
  double input(const double* x, int64_t gate, int64_t i) const {
    return dot(w + (gate * s.hidden + i) * s.inputs, x, s.inputs) + bias(gate, i, false);
  }
  double recurrent(const Reals& state, int64_t gate, int64_t i) const {
    return dot(r + (gate * s.hidden + i) * s.hidden, state.data(), s.hidden) + bias(gate, i, true);
  }
  double peephole(int64_t which, int64_t i, double cell) const {
    return peepholes ? peepholes[which * s.hidden + i] * cell : 0;
  }

  void lstm(const double* x) {  // gates i o f c, peepholes i o f
    Reals next(h.size());
    for (int64_t k = 0; k < s.hidden; k++) {
      const auto i = static_cast<size_t>(k);
      c[i] = lstm_unit(
          attrs, f, [&](int64_t g) { return input(x, g, k) + recurrent(h, g, k); },
          [&](int64_t which, double cell) { return peephole(which, k, cell); }, c[i], &next[i]);
    }
    h = std::move(next);
  }
  void gru(const double* x) {  // gates z r h
    Reals z(h.size()), reset(h.size()), scaled(h.size());
    for (int64_t k = 0; k < s.hidden; k++) {
      const auto i = static_cast<size_t>(k);
      z[i] = apply(f[0], clipped(input(x, 0, k) + recurrent(h, 0, k)));
      reset[i] = apply(f[0], clipped(input(x, 1, k) + recurrent(h, 1, k)));
      scaled[i] = reset[i] * h[i];
    }
    for (int64_t k = 0; k < s.hidden; k++) {
      const auto i = static_cast<size_t>(k);
      // scaled holds r·h of the step before; h itself changes only after the products have read it.
      const double past = attrs.linear_before_reset ? reset[i] * recurrent(h, 2, k) : recurrent(scaled, 2, k);
      reset[i] = apply(f[1], clipped(input(x, 2, k) + past));
    }
    for (size_t i = 0; i < h.size(); i++) h[i] = (1 - z[i]) * reset[i] + z[i] * h[i];
  }
  void rnn(const double* x) {
    Reals next(h.size());
    for (int64_t k = 0; k < s.hidden; k++)
      next[static_cast<size_t>(k)] = apply(f[0], clipped(input(x, 0, k) + recurrent(h, 0, k)));
    h = std::move(next);
  }
};

void prepare_recurrent(Call& c) {
  for (size_t i : {size_t{1}, size_t{2}})
    if (c.in[i].weight) {
      c.in[i].data = const_cast<void*>(plain_values(c.in[i]));
      c.in[i].weight = nullptr;
    }
}

void run_recurrent(Call& call) {
  const auto& a = call.attrs<ir::RecurrentAttrs>();
  const RecurrentShape s = recurrent_shape(call);
  const Op op = call.node->op;
  const int functions = op == Op::Lstm ? 3 : op == Op::Gru ? 2 : 1;
  std::string why;
  const auto f = ir::recurrent_functions(a, functions, &why);
  const Reals x = reals(call.in[0]), w = reals(call.in[1]), r = reals(call.in[2]), b = reals_of(call, 3),
              h0 = reals_of(call, 5), c0 = op == Op::Lstm ? reals_of(call, 6) : Reals(),
              p = op == Op::Lstm ? reals_of(call, 7) : Reals();
  Reals y(static_cast<size_t>(call.out[0].elements()), 0.0);
  Reals last(static_cast<size_t>(s.directions * s.batch * s.hidden), 0.0), last_c = last;
  for (int64_t d = 0; d < s.directions; d++)
    for (int64_t row = 0; row < s.batch; row++) {
      const int64_t rows = s.gates * s.hidden, state = d * s.state_direction + row * s.state_row;
      Cell cell{a,
                s,
                f.data() + d * functions,
                w.data() + d * rows * s.inputs,
                r.data() + d * rows * s.hidden,
                b.empty() ? nullptr : b.data() + d * 2 * rows,
                p.empty() ? nullptr : p.data() + d * 3 * s.hidden,
                Reals(static_cast<size_t>(s.hidden), 0.0),
                Reals(static_cast<size_t>(s.hidden), 0.0)};
      if (!h0.empty()) std::copy_n(h0.begin() + state, s.hidden, cell.h.begin());
      if (!c0.empty()) std::copy_n(c0.begin() + state, s.hidden, cell.c.begin());
      const int64_t steps = steps_of(call, s, row);
      for (int64_t t = 0; t < steps; t++) {
        const int64_t at = s.backward(d, a.direction) ? steps - 1 - t : t;
        const double* in = x.data() + at * s.x_step + row * s.x_row;
        if (op == Op::Lstm)
          cell.lstm(in);
        else if (op == Op::Gru)
          cell.gru(in);
        else
          cell.rnn(in);
        std::copy(cell.h.begin(), cell.h.end(),
                  y.begin() + at * s.y_step + row * s.y_row + d * s.y_direction);
      }
      if (steps == 0) continue;  // nothing ran: zeros
      std::copy(cell.h.begin(), cell.h.end(), last.begin() + state);
      std::copy(cell.c.begin(), cell.c.end(), last_c.begin() + state);
    }
  store(call.out[0], y);
  if (call.out.size() > 1) store(call.out[1], last);
  if (call.out.size() > 2) store(call.out[2], last_c);
}

}  // namespace

void add_recurrent_rows(KernelTable& t) {
  for (Op op : {Op::Lstm, Op::Gru, Op::Rnn})
    t.add({.op = op,
           .name = "recurrent_reference",
           .cost = 1000,
           .prepare = prepare_recurrent,
           .run = run_recurrent});
}

}  // namespace cyb::cpu
