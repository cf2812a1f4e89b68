// SPDX-License-Identifier: Apache-2.0
// For tests of kernel rows through graphs: cases written as IR text, run by the kernels that this machine
// chooses and by the reference rows.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "ir/text.h"
#include "ops/cpu.h"
#include "ops/rows.h"
#include "runtime/session.h"

namespace cyb::rows_testing {

struct NoWeights final : WeightSource {
  const TensorSpec* find(const std::string&) const override { return nullptr; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override { return {}; }
};

// Only the last row of each operator: the definitions.
inline std::unique_ptr<Backend> reference_backend() {
  cpu::KernelTable table;
  for (const ir::OpInfo& op : ir::all_ops())
    if (const auto& rows = cpu_kernel_table().rows(op.op); !rows.empty()) table.add(rows.back());
  return cpu::make_backend({1, Isa::scalar}, std::move(table),
                           {cpu::make_state, cpu::position_bytes, cpu::load_weight});
}

struct Case {
  const char* name;
  const char* graph;          // signature and body of `main`
  std::vector<Shape> inputs;  // f32, random
  std::vector<Tensor> more;   // further inputs as they are
  const char* states = "";
  int runs = 1;  // states grow from run to run
  bool fusion = false, exact = true;
};

inline std::vector<Tensor> run(Backend& backend, const Case& c) {
  const ir::Program program = ir::parse(std::string("ir 1\n") + c.states + "graph main" + c.graph, c.name);
  WeightStore weights(std::make_shared<NoWeights>());
  SessionOptions o;
  o.backends = {&backend};
  o.precision.exact = c.exact;
  o.states.slots = 4;
  o.fusion = c.fusion;
  Session session(program, weights, o);
  std::vector<Tensor> all;
  for (int round = 0; round < c.runs; round++) {
    std::vector<Tensor> inputs;
    uint64_t counter = static_cast<uint64_t>(round) << 32;
    for (const Shape& s : c.inputs) {
      Tensor t(DType::f32, s);
      for (int64_t i = 0; i < t.elements(); i++)
        t.at<float>(static_cast<size_t>(i)) = static_cast<float>(4 * philox_uniform(7, counter++) - 2);
      inputs.push_back(std::move(t));
    }
    inputs.insert(inputs.end(), c.more.begin(), c.more.end());
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : inputs) pointers.push_back(&t);
    std::vector<Tensor> out;
    session.run("main", pointers, out);
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

// Every row of each instruction set beside the definitions: the largest difference over the largest value.
inline void expect_rows_match(const std::vector<Case>& cases, double tolerance = 4e-6) {
  auto reference = reference_backend();
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (!isa_runs_on(isa, detect_isa())) continue;
    auto fast = make_cpu_backend(2, isa);
    for (const Case& c : cases) {
      const auto want = run(*reference, c), got = run(*fast, c);
      ASSERT_EQ(want.size(), got.size());
      for (size_t k = 0; k < want.size(); k++) {
        ASSERT_TRUE(want[k].shape() == got[k].shape()) << c.name;
        double top = 1e-6, worst = 0;
        for (size_t i = 0; i < static_cast<size_t>(want[k].elements()); i++) {
          const double a = want[k].real(i), b = got[k].real(i);
          if (std::isfinite(a)) top = std::max(top, std::fabs(a));
          if (a == b || (std::isnan(a) && std::isnan(b))) continue;
          worst = std::isnan(a - b) ? INFINITY : std::max(worst, std::fabs(a - b));
        }
        EXPECT_LE(worst / top, tolerance) << c.name << ", output " << k << ", " << to_string(isa);
      }
    }
  }
}

inline void expect_threads_keep_bits(const std::vector<Case>& cases) {
  auto one = make_cpu_backend(1), three = make_cpu_backend(3);
  for (const Case& c : cases) {
    const auto a = run(*one, c), b = run(*three, c);
    for (size_t k = 0; k < a.size(); k++) EXPECT_EQ(a[k], b[k]) << c.name;
  }
}

}  // namespace cyb::rows_testing
