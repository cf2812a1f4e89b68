// SPDX-License-Identifier: Apache-2.0
// For the tests of convolutions and pooling: random cases, and their kernels beside the definition.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/infer.h"
#include "ir/ops/conv.h"
#include "ops/cpu.h"

namespace cyb::conv_testing {

using ir::Op;

struct TestCase {
  Op op = Op::Conv2d;
  std::vector<int64_t> x = {}, w = {}, strides = {}, pads = {}, dilations = {};
  std::vector<int64_t> more = {};  // output padding
  int64_t groups = 1;
  bool bias = false, residual = false, residual_last = false, weight = false, ceil = false, count_pad = false;
  ir::ConvActivation act = ir::ConvActivation::none;
  ir::AutoPad auto_pad = ir::AutoPad::none;
  ir::PoolKind pool = ir::PoolKind::max;
  bool x_blocked = false, y_blocked = false;  // channels in blocks; a residual as y
  bool names_only = false;  // x and y may be in blocks, as far as the backend is told, but are plain
  bool special = false;          // NaNs and infinities in x
  const char* kernel = nullptr;  // the beginning of its name, if only that one is meant
};

inline std::string describe(const TestCase& t) {
  std::string s = ir::info(t.op).text_name;
  auto list = [&](const char* name, const std::vector<int64_t>& v) {
    s += std::string(" ") + name + "[";
    for (int64_t i : v) s += std::to_string(i) + " ";
    s += "]";
  };
  list("x", t.x);
  list("w", t.w);
  list("strides", t.strides);
  list("pads", t.pads);
  list("dilations", t.dilations);
  list("more", t.more);
  return s + " groups " + std::to_string(t.groups) + (t.bias ? " bias" : "") +
         (t.residual ? " residual" : "") + (t.residual_last ? " last" : "") + (t.weight ? " weight" : "") +
         (t.ceil ? " ceil" : "") + " auto_pad " + std::to_string(static_cast<int>(t.auto_pad)) + " act " +
         std::to_string(static_cast<int>(t.act)) +
         (t.op != Op::Pool              ? ""
          : t.pool == ir::PoolKind::max ? " max"
                                        : " average") +
         (t.count_pad ? " count_pad" : "") + (t.x_blocked ? " x blocked" : "") +
         (t.y_blocked ? " y blocked" : "");
}

// [n][c][positions] as [n][c / 16][positions][16], or back.
inline Tensor in_blocks(const Tensor& v, bool back) {
  Tensor out(DType::f32, v.shape());
  const Shape& s = v.shape();
  const int64_t positions = s[2] * s[3];
  for (int64_t i = 0; i < s[0]; i++)
    for (int64_t c = 0; c < s[1]; c++)
      for (int64_t p = 0; p < positions; p++) {
        const auto plain = static_cast<size_t>((i * s[1] + c) * positions + p);
        const auto blocked = static_cast<size_t>(((i * s[1] + c / 16 * 16) * positions) + p * 16 + c % 16);
        out.at<float>(back ? plain : blocked) = v.at<float>(back ? blocked : plain);
      }
  return out;
}

struct Built {
  ir::Program program;
  ir::Graph graph;
  ir::Node node;
  Shape y;
  std::vector<Tensor> operands;  // x, w, bias, residual; those absent are empty
  std::vector<int32_t> codes;
  TensorSpec spec;
};

inline std::unique_ptr<Built> build(const TestCase& t, uint32_t seed) {
  auto b = std::make_unique<Built>();
  std::mt19937 random(seed);
  auto tensor = [&](const std::vector<int64_t>& shape) {
    Tensor v(DType::f32, Shape(shape));
    for (size_t i = 0; i < static_cast<size_t>(v.elements()); i++)
      v.at<float>(i) = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
    return v;
  };
  auto fill = [&](ir::ConvAttrs& a) {
    a.strides = t.strides;
    a.pads = t.pads;
    a.dilations = t.dilations;
    a.groups = t.groups;
    a.auto_pad = t.auto_pad;
  };
  ir::Node& n = b->node;
  n.op = t.op;
  int64_t channels = t.w.empty() ? 0 : t.w[0];
  if (t.op == Op::Pool) {
    ir::PoolAttrs a;
    a.kernel = {t.w.begin() + 2, t.w.end()};
    a.strides = t.strides;
    a.pads = t.pads;
    a.dilations = t.dilations;
    a.kind = t.pool;
    a.ceil = t.ceil;
    a.count_pad = t.count_pad;
    n.attrs = std::make_unique<ir::TypedAttrs<ir::PoolAttrs>>(a);
  } else if (t.op == Op::FusedConv) {
    ir::FusedConvAttrs a;
    fill(a);
    a.act = t.act;
    a.alpha = 0.2;
    a.beta = t.act == ir::ConvActivation::clamp ? 5 : 0.5;
    a.residual_last = t.residual_last;
    n.attrs = std::make_unique<ir::TypedAttrs<ir::FusedConvAttrs>>(a);
  } else if (t.op == Op::Conv1d || t.op == Op::Conv2d || t.op == Op::Conv3d) {
    ir::ConvAttrs a;
    fill(a);
    n.attrs = std::make_unique<ir::TypedAttrs<ir::ConvAttrs>>(a);
  } else {
    ir::ConvTransposeAttrs a;
    fill(a);
    a.output_padding = t.more;
    channels = t.w[1] * t.groups;
    n.attrs = std::make_unique<ir::TypedAttrs<ir::ConvTransposeAttrs>>(a);
  }
  auto add = [&](Tensor v, const char* name) {
    n.operands.push_back(b->graph.add_input(name, ir::concrete(DType::f32, v.shape())));
    b->operands.push_back(std::move(v));
  };
  add(tensor(t.x), "x");
  const float specials[] = {NAN, INFINITY, -INFINITY};
  if (t.special)
    for (size_t i = 0; i < static_cast<size_t>(b->operands[0].elements()); i += 1 + random() % 9)
      b->operands[0].at<float>(i) = specials[random() % 3];
  if (t.op != Op::Pool) {
    add(tensor(t.w), "w");
    // As a file holds it: 24 bits and an exponent for all.
    for (size_t i = 0; i < static_cast<size_t>(b->operands[1].elements()); i++) {
      b->codes.push_back(static_cast<int32_t>(b->operands[1].at<float>(i) * 0x1p20f));
      b->operands[1].at<float>(i) = static_cast<float>(b->codes.back()) * 0x1p-20f;
    }
    b->spec.name = "w";
    b->spec.shape = t.w;
    b->spec.frac_bits = 20;
    b->spec.size = b->codes.size() * 4;
  }
  n.results = {b->graph.add_value("y", {})};
  b->y = shape_of(ir::infer_types(b->program, b->graph, n)[0]);
  if (t.bias || t.residual) {
    if (t.bias) {
      add(tensor({channels}), "b");
    } else {
      n.operands.push_back(ir::kNone);
      b->operands.emplace_back();
    }
  }
  if (t.residual) add(tensor({b->y.begin(), b->y.end()}), "r");
  return b;
}

inline Tensor run_fast(const TestCase& t, const Built& b, Isa isa, int threads, bool exact,
                       std::string* kernel = nullptr) {
  auto cpu = make_cpu_backend(threads, isa);
  std::unique_ptr<Weight> weight;
  if (t.weight && t.op != Op::Pool)
    weight = cpu->load_weight(b.spec, {reinterpret_cast<const uint8_t*>(b.codes.data()), b.spec.size},
                              nullptr, cpu->weight_role(b.node, 1));
  std::vector<std::unique_ptr<Buffer>> buffers;
  auto operand = [&](const Tensor& v) {
    // Just as large as it is, so that a tool sees accesses beyond it.
    buffers.push_back(cpu->allocate(v.bytes()));
    cpu->write(*buffers.back(), 0, v.data(), v.bytes());
    return Operand{DType::f32, v.shape(), buffers.back().get(), 0, nullptr};
  };
  // As if no other node saw it.
  auto inner = [](Operand o, int name) {
    o.inner = name;
    return o;
  };
  NodeCall call;
  call.program = &b.program;
  call.node = &b.node;
  for (size_t i = 0; i < b.operands.size(); i++)
    if (i == 1 && weight)
      call.operands.push_back({DType::f32, b.operands[1].shape(), nullptr, 0, weight.get()});
    else if (b.node.operands[i] == ir::kNone)
      call.operands.emplace_back();
    else if (i == 0 ? t.x_blocked : i == 3 && t.y_blocked)
      call.operands.push_back(inner(operand(in_blocks(b.operands[i], false)), static_cast<int>(i)));
    else
      call.operands.push_back(inner(operand(b.operands[i]), t.names_only ? static_cast<int>(i) : -1));
  Tensor y(DType::f32, b.y);
  for (size_t i = 0; i < static_cast<size_t>(y.elements()); i++) y.at<float>(i) = NAN;
  call.results.push_back(inner(operand(y), t.y_blocked || t.names_only ? 100 : -1));
  Precision precision;
  precision.exact = exact;
  auto exe = cpu->compile({&call, 1}, precision);
  if (kernel) *kernel = exe->choices()[0].kernel;
  exe->enqueue();
  exe->enqueue();  // what the first run left behind does not matter
  cpu->finish();
  cpu->read(*buffers.back(), 0, y.data(), y.bytes());
  return t.y_blocked ? in_blocks(y, true) : y;
}

// The definition, and Σ|x·w| for the bound where `sizes` is set.
inline Tensor run_definition(const Built& b) {
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < b.operands.size(); i++)
    operands.push_back(b.node.operands[i] == ir::kNone ? nullptr : &b.operands[i]);
  Tensor y(DType::f32, b.y);
  evaluate_node(b.program, b.node, operands, {&y, 1});
  return y;
}

inline void check(const TestCase& t, uint32_t seed, double tolerance = 3e-6) {
  SCOPED_TRACE(describe(t) + " seed " + std::to_string(seed));
  const auto b = build(t, seed);
  const Tensor want = run_definition(*b);
  for (bool exact : {true, false}) {
    Tensor first;
    for (Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar}) {
      if (!isa_runs_on(isa, detect_isa())) continue;
      std::string kernel;
      const Tensor got = run_fast(t, *b, isa, 1, exact, &kernel);
      double worst = 0, top = 1e-6;
      if (t.kernel && isa != Isa::scalar) {
        ASSERT_EQ(kernel.rfind(t.kernel, 0), 0u) << kernel;
      }
      for (size_t i = 0; i < static_cast<size_t>(want.elements()); i++) {
        if (!std::isfinite(want.real(i))) {
          ASSERT_TRUE(std::isnan(want.real(i)) ? std::isnan(got.real(i)) : want.real(i) == got.real(i)) << i;
          continue;
        }
        top = std::max(top, std::fabs(want.real(i)));
        const double d = std::fabs(want.real(i) - got.real(i));
        worst = d <= worst ? worst : d;  // a NaN becomes the worst
      }
      ASSERT_LE(worst / top, exact ? tolerance : 10 * tolerance) << kernel << " on " << to_string(isa);
      if (first.bytes() == 0) first = got;
      ASSERT_TRUE(first == got) << "other bits: " << kernel << " on " << to_string(isa);
      if (isa == Isa::scalar) continue;
      for (int threads : {2, 3})
        ASSERT_TRUE(first == run_fast(t, *b, isa, threads, exact)) << threads << " threads, " << kernel;
    }
  }
}

inline int64_t pick(std::mt19937& random, int64_t from, int64_t to) {
  return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
}

}  // namespace cyb::conv_testing
