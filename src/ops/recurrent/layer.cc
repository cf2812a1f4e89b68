// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrent/layer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kUnits = kStateColumns;  // that stay together

static_assert(static_cast<int>(GateKind::softplus) == ir::RecurrentFunction::softplus &&
              static_cast<int>(GateKind::elu) == ir::RecurrentFunction::elu);

// One direction.
class Direction {
 public:
  Direction(Call& c, const LayerPlan& plan, const GateKernels& kernels, const StateProduct& product,
            int64_t d)
      : c_(c), plan_(plan), s_(plan.shape), k_(kernels), product_(product), d_(d), op_(c.node->op) {
    const auto& a = c.attrs<ir::RecurrentAttrs>();
    backward_ = s_.backward(d, a.direction);
    args_.hidden = s_.hidden;
    for (int i = 0; i < plan.per_direction; i++) {
      const ir::RecurrentFunction& f = plan.functions[static_cast<size_t>(d * plan.per_direction + i)];
      args_.f[i] = {static_cast<GateKind>(f.kind), static_cast<float>(f.alpha), static_cast<float>(f.beta)};
    }
    if (op_ == Op::DynamicQuantizeLstm) {
      for (GateFunction& f : args_.f) {
        if (f.kind == GateKind::sigmoid) f.kind = GateKind::rational_sigmoid;
        if (f.kind == GateKind::tanh) f.kind = GateKind::rational_tanh;
      }
      if (c.has(3)) {
        args_.bias_w = c.in[3].f32() + d * 2 * s_.gates * s_.hidden;
        args_.bias_r = args_.bias_w + s_.gates * s_.hidden;
      }
    }
    args_.clip = static_cast<float>(a.clip);
    args_.input_forget = a.input_forget;
    args_.linear_before_reset = a.linear_before_reset;
    const bool lstm = s_.gates == 4;
    if (lstm && c.has(7)) args_.peepholes = c.in[7].f32() + d * 3 * s_.hidden;
    const int64_t state = s_.batch * s_.hidden;
    input_ = plan.input(c, d);
    products_ = input_ + plan.input_floats;
    h_[0] = products_ + s_.batch * s_.gates * s_.hidden;
    h_[1] = h_[0] + state;
    c_state_ = h_[1] + state;
    update_ = c_state_ + state;
    scaled_ = update_ + state;
    std::fill(h_[0], scaled_ + state, 0.0f);
    for (int64_t b = 0; b < s_.batch; b++) {
      const int64_t from = d * s_.state_direction + b * s_.state_row;
      const auto bytes = static_cast<size_t>(s_.hidden) * 4;
      if (bytes && c.has(5)) std::memcpy(h_[0] + b * s_.hidden, c.in[5].f32() + from, bytes);
      if (bytes && lstm && c.has(6)) std::memcpy(c_state_ + b * s_.hidden, c.in[6].f32() + from, bytes);
    }
  }

  // GRU without linear_before_reset needs r·h of all units before its last product.
  int stages() const { return op_ == Op::Gru && !args_.linear_before_reset ? 2 : 1; }

  void stage(int64_t t, int stage, int64_t begin, int64_t end) const {
    const float* before = h_[t % 2];
    float* after = h_[(t + 1) % 2];
    const int64_t n = s_.gates * s_.hidden;
    if (stages() == 1)
      product_.run(d_, before, 0, s_.gates, begin, end, products_);
    else if (stage == 0)
      product_.run(d_, before, 0, 2, begin, end, products_);
    else
      product_.run(d_, scaled_, 2, 3, begin, end, products_);
    for (int64_t b = 0; b < s_.batch; b++) {
      const int64_t steps = steps_of(c_, s_, b), unit = b * s_.hidden;
      if (t >= steps) {
        std::copy(before + unit + begin, before + unit + end, after + unit + begin);
        continue;
      }
      const int64_t at = backward_ ? steps - 1 - t : t;
      GateArgs a = args_;
      a.input = input_ + (s_.batch_first ? b * s_.length + at : at * s_.batch + b) * n;
      a.recurrent = products_ + b * n;
      a.h_before = before + unit;
      a.h = after + unit;
      a.c = c_state_ + unit;
      a.update = update_ + unit;
      a.scaled = scaled_ + unit;
      if (stages() == 2 && stage == 0) {
        k_.gru_reset(a, begin, end);
        continue;
      }
      (op_ == Op::Rnn   ? k_.rnn
       : op_ != Op::Gru ? k_.lstm
       : stages() == 2  ? k_.gru_output
                        : k_.gru)(a, begin, end);
      std::copy(a.h + begin, a.h + end,
                c_.out[0].f32() + at * s_.y_step + b * s_.y_row + d_ * s_.y_direction + begin);
    }
  }

  void finish() const {
    for (int64_t b = 0; b < s_.batch; b++) {
      const int64_t steps = steps_of(c_, s_, b);
      for (int64_t t = steps; t < s_.length; t++)
        std::fill_n(c_.out[0].f32() + t * s_.y_step + b * s_.y_row + d_ * s_.y_direction, s_.hidden, 0.0f);
      const int64_t to = d_ * s_.state_direction + b * s_.state_row;
      for (size_t i = 1; i < c_.out.size(); i++) {
        const float* from = (i == 1 ? h_[s_.length % 2] : c_state_) + b * s_.hidden;
        if (steps == 0)
          std::fill_n(c_.out[i].f32() + to, s_.hidden, 0.0f);
        else
          std::copy(from, from + s_.hidden, c_.out[i].f32() + to);
      }
    }
  }

 private:
  Call& c_;
  const LayerPlan& plan_;
  const RecurrentShape& s_;
  const GateKernels& k_;
  const StateProduct& product_;
  int64_t d_;
  Op op_;
  bool backward_ = false;
  GateArgs args_;
  float *input_, *products_, *h_[2], *c_state_, *update_, *scaled_;
};

}  // namespace

LayerPlan layer_plan(const Call& c) {
  LayerPlan p;
  p.shape = recurrent_shape(c);
  const RecurrentShape& s = p.shape;
  p.per_direction = s.gates == 4 ? 3 : s.gates == 3 ? 2 : 1;
  std::string why;
  p.functions = ir::recurrent_functions(c.attrs<ir::RecurrentAttrs>(), p.per_direction, &why);
  auto whole_lines = [](int64_t floats) { return round_up<int64_t>(floats, 16); };
  p.input_floats = whole_lines(s.length * s.batch * s.gates * s.hidden);
  p.step_floats = whole_lines(s.batch * s.gates * s.hidden + 5 * s.batch * s.hidden);
  p.bytes = static_cast<uint64_t>(s.directions * (p.input_floats + p.step_floats)) * 4;
  return p;
}

void run_layer(Call& c, const LayerPlan& plan, const GateKernels& kernels, const StateProduct& product,
               bool whole) {
  const RecurrentShape& s = plan.shape;
  std::optional<Direction> directions[2];
  for (int64_t d = 0; d < s.directions; d++) directions[d].emplace(c, plan, kernels, product, d);
  const int stages = directions[0]->stages();
  if (s.directions > 1 || whole) {
    c.pool->parallel_for(s.directions, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t d = begin; d < end; d++)
        for (int64_t t = 0; t < s.length; t++)
          for (int i = 0; i < stages; i++) directions[d]->stage(t, i, 0, s.hidden);
    });
  } else {
    const int64_t units = ceil_div(s.hidden, kUnits);
    const int64_t work = kUnits * s.gates * s.hidden * s.batch;
    for (int64_t t = 0; t < s.length; t++)
      for (int i = 0; i < stages; i++)
        c.pool->parallel_for(units, 1 + 32768 / (work + 1), [&](int64_t begin, int64_t end, int) {
          directions[0]->stage(t, i, begin * kUnits, std::min(end * kUnits, s.hidden));
        });
  }
  for (int64_t d = 0; d < s.directions; d++) directions[d]->finish();
}

}  // namespace cyb::cpu
