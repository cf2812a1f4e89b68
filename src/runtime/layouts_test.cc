// SPDX-License-Identifier: Apache-2.0
// Values whose channels lie in blocks within a run: graphs give the bits that they give when every value is
// an output, and so plain.
#include <gtest/gtest.h>

#include <map>

#include "base/philox.h"
#include "ir/text.h"
#include "ops/cpu.h"
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

// The last line makes y. `plain`: the other results are outputs too.
Outcome run(const std::string& body, const std::vector<std::string>& results, const Shape& shape, bool plain,
            bool fusion, Isa isa) {
  std::string text =
      "ir 1\nweight @s: f32[32, 3, 3, 3]\nweight @a: f32[32, 32, 1, 1]\nweight @b: f32[32, 32, 3, 3]\n"
      "weight @c: f32[64, 64, 3, 3]\ngraph main(x: f32[N, 3, H, W]) -> (y: f32[?, ?, ?, ?]";
  for (const std::string& r : results)
    if (plain) text += ", " + r + ": f32[?, ?, ?, ?]";
  const ir::Program program = ir::parse(text + ")\n" + body, "test");
  WeightStore weights(std::make_shared<RandomWeights>(program));
  auto cpu = make_cpu_backend(2, isa);
  SessionOptions o;
  o.backends = {cpu.get()};
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
void check(const std::string& body, const std::vector<std::string>& results, bool blocks) {
  for (bool fusion : {false, true})
    for (Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar}) {
      if (!isa_runs_on(isa, detect_isa())) continue;
      for (const Shape& shape : {Shape{2, 3, 44, 52}, Shape{1, 3, 23, 9}}) {
        SCOPED_TRACE(body + to_string(isa) + (fusion ? " fused" : ""));
        const Outcome want = run(body, results, shape, true, fusion, isa);
        const Outcome got = run(body, results, shape, false, fusion, isa);
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

}  // namespace
}  // namespace cyb
