// SPDX-License-Identifier: Apache-2.0
// The kernel rows of products: which activations they take under each precision.
#include <gtest/gtest.h>

#include <cstring>

#include "ir/infer.h"
#include "ir/ops/matmul.h"
#include "ops/cpu.h"
#include "ops/matmul/matmul_testing.h"

namespace cyb {
namespace {

std::vector<float> product(Isa isa, Encoding encoding, const Precision& precision) {
  const int64_t m = 6, n = 24, k = 96;
  matmul_testing::Random random(7);
  const auto w = matmul_testing::make_weights(encoding, n, k, random);
  auto cpu = make_cpu_backend(2, isa);
  ir::Program program;
  ir::Graph graph;
  ir::Node node;
  node.op = ir::Op::Matmul;
  node.attrs = std::make_unique<ir::TypedAttrs<ir::MatmulAttrs>>();
  node.operands = {graph.add_input("x", ir::concrete(DType::f32, Shape{m, k})),
                   graph.add_weight("w", ir::concrete(DType::f32, Shape{n, k}))};
  node.results = {graph.add_value("y", {})};
  TensorSpec spec;
  spec.name = "w";
  spec.shape = {n, k};
  spec.encoding = encoding;
  spec.tile = 8;
  spec.frac_bits = 15;
  spec.size = w.tiles.size();
  const auto weight = cpu->load_weight(spec, w.tiles, nullptr, cpu->weight_role(node, 1));
  const auto x = cpu->allocate(m * k * 4), y = cpu->allocate(m * n * 4);
  auto* values = static_cast<float*>(cpu->host_pointer(*x));
  for (int64_t i = 0; i < m * k; i++) values[i] = random.activation();
  NodeCall call;
  call.program = &program;
  call.node = &node;
  call.operands = {{DType::f32, Shape{m, k}, x.get(), 0, nullptr},
                   {DType::f32, Shape{n, k}, nullptr, 0, weight.get()}};
  call.results = {{DType::f32, Shape{m, n}, y.get(), 0, nullptr}};
  cpu->compile({&call, 1}, precision)->enqueue();
  std::vector<float> out(m * n);
  std::memcpy(out.data(), cpu->host_pointer(*y), out.size() * 4);
  return out;
}

TEST(Matmul, eight_bit_activations_can_be_left_to_where_they_are_faster) {
  for (Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512}) {
    if (!isa_runs_on(isa, detect_isa())) continue;
    for (Encoding e : {Encoding::q8, Encoding::q4}) {
      SCOPED_TRACE(std::string(isa_name(isa, detect_dots())) + (e == Encoding::q8 ? " q8" : " q4"));
      const auto eight = product(isa, e, {}), f32 = product(isa, e, {.acts8 = false});
      EXPECT_NE(eight, f32);
      EXPECT_EQ(product(isa, e, {.acts8_if_faster = true}), q8_acts_pay(isa, detect_dots(), e) ? eight : f32);
      EXPECT_EQ(product(isa, e, {.acts8 = false, .acts8_if_faster = true}), f32);
    }
  }
  EXPECT_FALSE(q8_acts_pay(Isa::avx512, Dots::none, Encoding::q8));
  EXPECT_TRUE(q8_acts_pay(Isa::avx512, Dots::none, Encoding::q4));
  EXPECT_TRUE(q8_acts_pay(Isa::avx512, Dots::avx512vnni, Encoding::q8));
  EXPECT_TRUE(q8_acts_pay(Isa::avx2, Dots::none, Encoding::q8));
}

}  // namespace
}  // namespace cyb
