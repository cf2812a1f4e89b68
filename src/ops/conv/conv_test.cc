// SPDX-License-Identifier: Apache-2.0
// Fast convolutions and pooling beside their definitions over random shapes, and the same bits on every
// instruction set and number of threads.
#include "ir/ops/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/infer.h"
#include "ops/cpu.h"

namespace cyb {
namespace {

using ir::Op;

struct TestCase {
  Op op = Op::Conv2d;
  std::vector<int64_t> x, w, strides, pads, dilations, more;  // more: output padding
  int64_t groups = 1;
  bool bias = false, residual = false, residual_last = false, weight = false, ceil = false, count_pad = false;
  ir::ConvActivation act = ir::ConvActivation::none;
  ir::AutoPad auto_pad = ir::AutoPad::none;
  ir::PoolKind pool = ir::PoolKind::max;
};

std::string describe(const TestCase& t) {
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
         std::to_string(static_cast<int>(t.act));
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

std::unique_ptr<Built> build(const TestCase& t, uint32_t seed) {
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

Tensor run_fast(const TestCase& t, const Built& b, Isa isa, int threads, bool exact,
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
  NodeCall call;
  call.program = &b.program;
  call.node = &b.node;
  for (size_t i = 0; i < b.operands.size(); i++)
    if (i == 1 && weight)
      call.operands.push_back({DType::f32, b.operands[1].shape(), nullptr, 0, weight.get()});
    else
      call.operands.push_back(b.node.operands[i] == ir::kNone ? Operand{} : operand(b.operands[i]));
  Tensor y(DType::f32, b.y);
  for (size_t i = 0; i < static_cast<size_t>(y.elements()); i++) y.at<float>(i) = NAN;
  call.results.push_back(operand(y));
  Precision precision;
  precision.exact = exact;
  auto exe = cpu->compile({&call, 1}, precision);
  if (kernel) *kernel = exe->choices()[0].kernel;
  exe->enqueue();
  exe->enqueue();  // what the first run left behind does not matter
  cpu->finish();
  cpu->read(*buffers.back(), 0, y.data(), y.bytes());
  return y;
}

// The definition, and Σ|x·w| for the bound where `sizes` is set.
Tensor run_definition(const Built& b) {
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < b.operands.size(); i++)
    operands.push_back(b.node.operands[i] == ir::kNone ? nullptr : &b.operands[i]);
  Tensor y(DType::f32, b.y);
  evaluate_node(b.program, b.node, operands, {&y, 1});
  return y;
}

void check(const TestCase& t, uint32_t seed, double tolerance = 3e-6) {
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
      for (size_t i = 0; i < static_cast<size_t>(want.elements()); i++) {
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

int64_t pick(std::mt19937& random, int64_t from, int64_t to) {
  return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
}

// Spatial sizes such that the window fits.
void random_window(std::mt19937& r, TestCase* t, int axes, int64_t longest) {
  for (int i = 0; i < axes; i++) {
    const int64_t k = pick(r, 1, axes == 1 ? 9 : 5), d = pick(r, 1, 3), p = pick(r, 0, 3), q = pick(r, 0, 3);
    const int64_t least = std::max<int64_t>(1, (k - 1) * d + 1 - p - q);
    t->w.push_back(k);
    t->dilations.push_back(d);
    t->strides.push_back(pick(r, 1, 3));
    t->pads.push_back(p);
    t->more.push_back(q);
    t->x.push_back(pick(r, least, std::max(least, longest)));
  }
  t->pads.insert(t->pads.end(), t->more.begin(), t->more.end());
  t->more.clear();
}

TEST(ConvKernels, RandomConvolutionsAreTheDefinition) {
  std::mt19937 r(3);
  for (uint32_t seed = 0; seed < 60; seed++) {
    TestCase t;
    const int axes = static_cast<int>(pick(r, 1, 3));
    t.op = seed % 3 == 0 ? Op::FusedConv : axes == 1 ? Op::Conv1d : axes == 2 ? Op::Conv2d : Op::Conv3d;
    t.groups = pick(r, 0, 2) == 0 ? pick(r, 2, 3) : 1;
    const int64_t in = pick(r, 1, 11), out = pick(r, 1, 21);
    t.x = {pick(r, 0, 9) == 0 ? 0 : pick(r, 1, 2), in * t.groups};
    t.w = {out * t.groups, in};
    random_window(r, &t, axes, axes == 1 ? 150 : axes == 2 ? 30 : 9);
    t.bias = pick(r, 0, 1);
    t.weight = pick(r, 0, 1);
    if (t.op == Op::FusedConv) {
      t.residual = pick(r, 0, 1);
      t.residual_last = pick(r, 0, 1);
      t.act = static_cast<ir::ConvActivation>(seed / 3 % 13);
    }
    check(t, seed);
  }
}

TEST(ConvKernels, RandomTransposedConvolutionsAreTheDefinition) {
  std::mt19937 r(8);
  for (uint32_t seed = 0; seed < 40; seed++) {
    TestCase t;
    const int axes = static_cast<int>(pick(r, 1, 3));
    t.op = axes == 1 ? Op::ConvTranspose1d : axes == 2 ? Op::ConvTranspose2d : Op::ConvTranspose3d;
    t.groups = pick(r, 0, 2) == 0 ? 2 : 1;
    const int64_t in = pick(r, 1, 9), out = pick(r, 1, 13);
    t.x = {pick(r, 1, 2), in * t.groups};
    t.w = {in * t.groups, out};
    for (int i = 0; i < axes; i++) {
      const int64_t k = pick(r, 1, axes == 1 ? 16 : 4);
      t.w.push_back(k);
      t.strides.push_back(pick(r, 1, axes == 1 ? 8 : 3));
      t.dilations.push_back(pick(r, 1, 2));
      t.more.push_back(pick(r, 0, 1));
      t.x.push_back(pick(r, 3, axes == 1 ? 120 : axes == 2 ? 20 : 5));
    }
    for (int i = 0; i < 2 * axes; i++) t.pads.push_back(pick(r, 0, 1));
    t.bias = pick(r, 0, 1);
    t.weight = pick(r, 0, 1);
    check(t, seed);
  }
}

TEST(ConvKernels, PoolingIsTheDefinition) {
  std::mt19937 r(10);
  for (uint32_t seed = 0; seed < 50; seed++) {
    TestCase t;
    t.op = Op::Pool;
    const int axes = static_cast<int>(pick(r, 1, 3));
    t.pool = pick(r, 0, 1) ? ir::PoolKind::average : ir::PoolKind::max;
    t.ceil = pick(r, 0, 1);
    t.count_pad = pick(r, 0, 1);
    t.x = {pick(r, 1, 2), pick(r, 1, 3)};
    t.w = {1, 1};
    for (int i = 0; i < axes; i++) {
      const int64_t k = pick(r, 1, 5), d = pick(r, 1, 2);
      t.w.push_back(k);
      t.dilations.push_back(d);
      t.strides.push_back(pick(r, 1, 3));
      t.x.push_back(pick(r, (k - 1) * d + 1, axes == 1 ? 200 : axes == 2 ? 70 : 12));
    }
    for (int i = 0; i < 2 * axes; i++)
      t.pads.push_back(pick(r, 0, t.w[static_cast<size_t>(2 + i % axes)] / 2));
    check(t, seed);
  }
}

TEST(ConvKernels, DepthwiseIsTheDefinition) {
  std::mt19937 r(9);
  for (uint32_t seed = 0; seed < 40; seed++) {
    TestCase t;
    const bool one = pick(r, 0, 3) == 0;
    t.op = seed % 2 ? Op::FusedConv : one ? Op::Conv1d : Op::Conv2d;
    t.groups = pick(r, 2, 5);
    t.x = {pick(r, 1, 2), t.groups};
    t.w = {t.groups * pick(r, 1, 2), 1};
    const int64_t k = pick(r, 0, 2) == 0 ? pick(r, 1, 7) : 2 * pick(r, 1, 2) + 1, s = pick(r, 1, 3);
    const int64_t d = pick(r, 0, 2) == 0 ? 2 : 1;
    for (int i = 0; i < (one ? 1 : 2); i++) {
      t.w.push_back(k);
      t.strides.push_back(s);
      t.dilations.push_back(d);
      t.x.push_back(pick(r, (k - 1) * d + 1, 90));
    }
    for (int i = 0; i < (one ? 2 : 4); i++) t.pads.push_back(pick(r, 0, k / 2));
    t.bias = pick(r, 0, 1);
    t.weight = pick(r, 0, 1);
    t.residual = t.op == Op::FusedConv && pick(r, 0, 1);
    if (t.op == Op::FusedConv) t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    check(t, seed);
  }
}

TEST(ConvKernels, WinogradIsTheDefinition) {
  std::mt19937 r(5);
  for (uint32_t seed = 0; seed < 26; seed++) {
    TestCase t;
    t.op = seed % 2 ? Op::FusedConv : Op::Conv2d;
    const int64_t in = pick(r, 9, 40), out = pick(r, 9, 70);
    t.x = {pick(r, 1, 2), in, pick(r, 4, 30), pick(r, 4, 70)};
    t.w = {out, in, 3, 3};
    t.pads = {pick(r, 0, 2), pick(r, 0, 2), pick(r, 0, 2), pick(r, 0, 2)};
    t.weight = true;
    t.bias = pick(r, 0, 1);
    if (t.op == Op::FusedConv) {
      t.residual = pick(r, 0, 1);
      t.residual_last = pick(r, 0, 1);
      t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    }
    check(t, seed);
  }
  TestCase t;  // chains longer than one, segments of a row
  t.op = Op::Conv2d;
  t.weight = t.bias = true;
  t.x = {1, 300, 5, 90};
  t.w = {40, 300, 3, 3};
  t.pads = {1, 1, 1, 1};
  check(t, 100);
}

TEST(ConvKernels, PointwiseIsTheDefinition) {
  std::mt19937 r(6);
  for (uint32_t seed = 0; seed < 20; seed++) {
    TestCase t;
    t.op = seed % 2 ? Op::FusedConv : Op::Conv2d;
    const int64_t in = pick(r, 32, 50) + (seed == 3 ? 300 : 0), out = 16 * pick(r, 4, 7), s = pick(r, 1, 3);
    t.x = {pick(r, 1, 2), in, pick(r, 1, 13), pick(r, 1, 40)};
    t.w = {out, in, 1, 1};
    t.strides = {s, pick(r, 1, 3)};
    t.weight = true;
    t.bias = pick(r, 0, 1);
    if (t.op == Op::FusedConv) {
      t.residual = pick(r, 0, 1);
      t.residual_last = pick(r, 0, 1);
      t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    }
    check(t, seed);
  }
}

// Windows as large as the strides, of one to three axes; what remains at the ends is not read.
TEST(ConvKernels, PatchesAreTheDefinition) {
  std::mt19937 r(9);
  for (uint32_t seed = 0; seed < 18; seed++) {
    TestCase t;
    const int64_t axes = 1 + seed % 3, in = pick(r, 4, 9);
    t.op = seed % 2 ? Op::FusedConv : axes == 1 ? Op::Conv1d : axes == 2 ? Op::Conv2d : Op::Conv3d;
    t.x = {pick(r, 1, 2), in};
    t.w = {16 * pick(r, 4, 6), in};
    for (int64_t i = 0; i < axes; i++) {
      const int64_t kernel = i + 1 == axes ? pick(r, 8, 17) : pick(r, 1, 4);
      t.w.push_back(kernel);
      t.strides.push_back(kernel);
      t.x.push_back(kernel * pick(r, 1, i + 1 == axes ? 15 : 4) + pick(r, 0, static_cast<int>(kernel) - 1));
    }
    t.weight = true;
    t.bias = pick(r, 0, 1);
    if (t.op == Op::FusedConv) t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    t.auto_pad = static_cast<ir::AutoPad>(seed % 4);
    check(t, seed, 6e-6);  // hundreds of taps
  }
}

// Rows and columns cut into several blocks, chains longer than one, many channels.
TEST(ConvKernels, LargeConvolutionsAreTheDefinition) {
  TestCase t;
  t.weight = t.bias = true;
  t.op = Op::Conv2d;
  t.x = {1, 70, 9, 61};
  t.w = {19, 70, 3, 3};
  t.strides = {1, 2};
  t.pads = {1, 1, 1, 1};
  check(t, 1);
  t.op = Op::Conv1d;
  t.x = {1, 300, 400};
  t.w = {9, 300, 1};
  t.strides = {};
  t.pads = {};
  check(t, 2);
  t.x = {2, 40, 2500};
  t.w = {3, 40, 5};
  t.dilations = {7};
  t.pads = {14, 14};
  check(t, 3);
}

}  // namespace
}  // namespace cyb
