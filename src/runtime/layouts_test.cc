// SPDX-License-Identifier: Apache-2.0
// Values whose channels lie in blocks within a run: graphs give the bits that they give when every value is
// an output, and so plain.
#include <gtest/gtest.h>

#include <map>

#include "base/philox.h"
#include "ir/text.h"
#include "ops/cpu.h"
#include "ops/rows.h"
#include "runtime/session.h"

namespace cyb {
namespace {

// f32 weights as the file holds exact values, by the `weight` lines of a program.
struct RandomWeights final : WeightSource {
  explicit RandomWeights(const ir::Program& program) {
    uint64_t counter = 0;
    for (const ir::Graph& graph : program.graphs)
      for (const ir::Value& v : graph.values) {
        if (v.kind != ir::Value::Kind::weight || weights.count(v.name)) continue;
        Weight& w = weights[v.name];
        w.spec.name = v.name;
        w.spec.bits = true;
        w.spec.frac_bits = 0;
        int64_t n = 1;
        for (const ir::Dim& d : v.type.dims) {
          w.spec.shape.push_back(d.number());
          n *= d.number();
        }
        for (int64_t i = 0; i < n; i++)
          w.values.push_back(static_cast<float>(philox_uniform(3, counter++) - 0.5));
        w.spec.size = w.values.size() * 4;
      }
  }
  struct Weight {
    TensorSpec spec;
    std::vector<float> values;
  };
  const TensorSpec* find(const std::string& name) const override {
    const auto found = weights.find(name);
    return found == weights.end() ? nullptr : &found->second.spec;
  }
  std::span<const uint8_t> bytes(const TensorSpec& spec) const override {
    const Weight& w = weights.at(spec.name);
    return {reinterpret_cast<const uint8_t*>(w.values.data()), w.values.size() * 4};
  }
  std::map<std::string, Weight> weights;
};

struct Outcome {
  Tensor y;
  std::string kernels;
};

// The last line makes y. `plain`: the other results are outputs too. `first`: a backend that is asked before
// the CPU.
Outcome run(const std::string& body, const std::vector<std::string>& results, const Shape& shape, bool plain,
            bool fusion, Isa isa, Backend* first = nullptr) {
  std::string text =
      "ir 1\nweight @s: f32[32, 3, 3, 3]\nweight @a: f32[32, 32, 1, 1]\nweight @b: f32[32, 32, 3, 3]\n"
      "weight @c: f32[64, 64, 3, 3]\nweight @d: f32[16, 16, 1, 1]\ngraph main(x: f32[N, 3, H, W]) -> (y: "
      "f32[?, ?, ?, ?]";
  for (const std::string& r : results)
    if (plain) text += ", " + r + ": f32[?, ?, ?, ?]";
  const ir::Program program = ir::parse(text + ")\n" + body, "test");
  WeightStore weights(std::make_shared<RandomWeights>(program));
  auto cpu = make_cpu_backend(2, isa);
  SessionOptions o;
  if (first) o.backends.push_back(first);
  o.backends.push_back(cpu.get());
  o.fusion = fusion;
  Session session(program, weights, o);
  Tensor x(DType::f32, shape);
  for (int64_t i = 0; i < x.elements(); i++)
    x.at<float>(static_cast<size_t>(i)) =
        static_cast<float>(philox_uniform(9, static_cast<uint64_t>(i)) - 0.4);
  const Tensor* inputs[] = {&x};
  std::vector<Tensor> out;
  session.run("main", inputs, out);
  session.run("main", inputs, out);  // memory holds what the first run left
  return {out[0], session.explain("main")};
}

// `blocks`: whether some convolution runs in blocks when only y is wanted.
void check(const std::string& body, const std::vector<std::string>& results, bool blocks,
           const std::vector<Shape>& shapes = {{2, 3, 44, 52}, {1, 3, 23, 9}}, Backend* first = nullptr) {
  for (bool fusion : {false, true})
    for (Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar}) {
      if (!isa_runs_on(isa, detect_isa())) continue;
      for (const Shape& shape : shapes) {
        SCOPED_TRACE(body + to_string(isa) + (fusion ? " fused" : ""));
        const Outcome want = run(body, results, shape, true, fusion, isa, first);
        const Outcome got = run(body, results, shape, false, fusion, isa, first);
        EXPECT_EQ(want.kernels.find("cpu: conv_nchw16c"), std::string::npos);
        EXPECT_EQ(got.kernels.find("cpu: conv_nchw16c") != std::string::npos, blocks) << got.kernels;
        EXPECT_TRUE(want.y == got.y);
      }
    }
}

TEST(Layouts, ANetworkOfEverythingThatTakesBlocks) {
  check(
      "v0 = conv2d(x, @s) strides=[2, 2] pads=[1, 1, 1, 1]\nv1 = relu(v0)\nv2 = conv2d(v1, @a)\n"
      "v3 = add(v1, v2)\nv4 = tanh(v3)\nv5 = mul(v3, v4)\nv6 = conv2d(v5, @b) pads=[1, 1, 1, 1]\n"
      "v7 = concat(v5, v6) axis=1\nv8 = pool(v7) kernel=[3, 3] strides=[2, 2] pads=[1, 1, 1, 1]\n"
      "v9 = conv2d(v8, @c) strides=[2, 2] pads=[1, 1, 1, 1]\nv10, v11 = split(v9) axis=1 sizes=[32, 32]\n"
      "v12 = sub(v10, v11)\ny = conv2d(v12, @a)\n",
      {"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12"}, true);
}

TEST(Layouts, PlanesAreAveragedFromBlocks) {
  const std::string body =
      "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\nv1 = conv2d(v0, @a)\nv2 = pool(v1) kind=average kernel=[";
  for (const Shape& shape : {Shape{3, 3, 6, 5}}) {
    const std::string whole = body + "6, 5]\ny = reshape(v2) shape=[0, 4, 4, -1]\n";
    const Outcome want = run(whole, {"v0", "v1", "v2"}, shape, true, true, detect_isa());
    const Outcome got = run(whole, {}, shape, false, true, detect_isa());
    EXPECT_NE(got.kernels.find("cpu: conv_nchw16c"), std::string::npos) << got.kernels;
    EXPECT_TRUE(want.y == got.y);
  }
}

// Readers that need plain channels, other axes, another shape, and values that are outputs.
TEST(Layouts, WhatOthersReadStaysPlain) {
  const std::string first = "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\n";
  check(first + "v1 = conv2d(v0, @a)\nv2 = softmax(v0) axis=1\ny = add(v1, v2)\n", {"v0", "v1", "v2"}, false);
  check(first + "y = permute(v0) axes=[0, 2, 3, 1]\n", {"v0"}, false);
  check(first + "y = concat(v0, v0) axis=2\n", {"v0"}, false);
  check(first + "v1 = reshape(v0) shape=[0, 4, 8, -1]\ny = softmax(v1)\n", {"v0", "v1"}, false);
  check(first + "v1 = reshape(v0) shape=[0, 4, 8, -1]\nv2 = conv2d(v0, @a)\ny = conv2d(v2, @b)\n",
        {"v0", "v1", "v2"}, true);
  check(first + "v1 = pool(v0) kind=average kernel=[2, 2]\ny = conv2d(v1, @a)\n", {"v0", "v1"}, false);
}

// Rules that only show where the value behind them could be in blocks.
TEST(Layouts, PlainnessGoesOn) {
  const std::string first = "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\n";
  // A view of as many channels as could be in blocks.
  check(first + "v1 = reshape(v0) shape=[0, 16, 2, -1]\nv2 = relu(v1)\ny = conv2d(v2, @d)\n",
        {"v0", "v1", "v2"}, false);
  // Both in blocks, but one broadcasts.
  check(first + "v1 = pool(v0) kernel=[44, 1]\nv2 = mul(v0, v1)\ny = conv2d(v2, @a)\n", {"v0", "v1", "v2"},
        false, {{2, 3, 44, 52}});
  // A residual that is plain makes the result plain.
  check(first + "v1 = softmax(v0) axis=1\nv2 = conv2d(v0, @a)\nv3 = add(v1, v2)\ny = conv2d(v3, @a)\n",
        {"v0", "v1", "v2", "v3"}, false);
  check(first + "v1 = conv2d(v0, @a)\nv2 = concat(v0, v1) axis=2\ny = conv2d(v2, @a)\n", {"v0", "v1", "v2"},
        false);
}

// A region reads what is outside of it; what comes behind it is planned later.
TEST(Layouts, RegionsAndLaterSegmentsReadPlainValues) {
  const std::string first =
      "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\nv1 = conv2d(v0, @a)\nm = reduce_max(x)\nz = const f32[] 0\n"
      "c = greater(m, z)\n";
  check(first +
            "r = if(c) {\n() -> (p: f32[?, ?, ?, ?])\np = neg(v0)\n} else {\n() -> (q: f32[?, ?, ?, ?])\n"
            "q = abs(v0)\n}\ny = add(v1, r)\n",
        {"v0", "v1"}, false);
  check(first +
            "r = if(c) {\n() -> (p: f32[])\np = neg(m)\n} else {\n() -> (q: f32[])\nq = abs(m)\n}\n"
            "v2 = add(v1, r)\ny = add(v2, v0)\n",
        {"v0", "v1"}, false);
}

// Its shape is told without it.
TEST(Layouts, AValueWhoseShapeIsAskedForStaysInBlocks) {
  check(
      "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\nv1 = conv2d(v0, @a)\ns = shape(v0)\no = const f32[] 1\n"
      "e = expand(o, s)\ny = add(v1, e)\n",
      {"v0", "v1"}, true);
}

TEST(Layouts, OtherBackendsGetPlainValues) {
  cpu::KernelTable table;
  table.add(cpu_kernel_table().rows(ir::Op::Softmax).back());
  auto softmax = cpu::make_backend({1, Isa::scalar}, std::move(table),
                                   {cpu::make_state, cpu::position_bytes, cpu::load_weight});
  check(
      "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\nv1 = conv2d(v0, @a)\nv2 = softmax(v1) axis=1\n"
      "v3 = conv2d(v2, @a)\ny = conv2d(v3, @b)\n",
      {"v0", "v1", "v2", "v3"}, true, {{1, 3, 23, 9}}, softmax.get());
}

// Long chains of values that could be in blocks, but for their last reader.
TEST(Layouts, ChainsTakeNoLongerThanTheirLength) {
  std::string body = "v0 = conv2d(x, @s) pads=[1, 1, 1, 1]\n";
  const int n = 20000;
  for (int i = 0; i < n; i++) body += "v" + std::to_string(i + 1) + " = neg(v" + std::to_string(i) + ")\n";
  const Outcome got = run(body + "y = softmax(v" + std::to_string(n) + ") axis=1\n", {}, {1, 3, 2, 2}, false,
                          false, Isa::scalar);
  EXPECT_EQ(got.kernels.find("cpu: conv_nchw16c"), std::string::npos);
}

}  // namespace
}  // namespace cyb
