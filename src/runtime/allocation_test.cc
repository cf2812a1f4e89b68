// SPDX-License-Identifier: Apache-2.0
// A run whose shapes are known takes no memory. This file counts every allocation of the test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "ir/text.h"
#include "ops/cpu.h"
#include "runtime/session.h"

namespace {
std::atomic<int64_t> g_allocations{0};
}  // namespace

#ifndef __SANITIZE_ADDRESS__  // the sanitizer keeps its own account of memory
// Not inlined: compilers would see free() beside new and warn.
__attribute__((noinline)) void* operator new(std::size_t size) {
  g_allocations++;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace cyb {
namespace {

struct NoWeights final : WeightSource {
  const TensorSpec* find(const std::string&) const override { return nullptr; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override { return {}; }
};

TEST(Allocation, ADecodeStepTakesNoMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "allocations are not counted under the sanitizer";
#endif
  const ir::Program program = ir::parse(R"(ir 1
state kv: kv(heads=2, k_dim=8, v_dim=8)
graph decode(x: f32[B, T, 32], w: f32[64, 32], positions: i32[B, T], lengths: i32[B], rows: i32[R]) -> (y: f32[R, 64])
h = reshape(x) shape=[0, 0, 4, 8]
r = rope(h, positions)
k, v = split(h) axis=2
a = sdpa(r, k, v, lengths, kv) causal
f = reshape(a) shape=[-1, 32]
g = gather(f, rows) axis=0
n = rms_norm(g)
y = matmul(n, w)
)",
                                        "test");
  auto cpu = make_cpu_backend(2);
  WeightStore weights(std::make_shared<NoWeights>());
  SessionOptions o;
  o.backends = {cpu.get()};
  Session session(program, weights, o);
  const Tensor x(DType::f32, {1, 1, 32}), w(DType::f32, {64, 32}), lengths = Tensor::i32({1}, {1}),
                                                                   rows = Tensor::i32({1}, {0});
  Tensor positions = Tensor::i32({1, 1}, {0});
  const Tensor* inputs[] = {&x, &w, &positions, &lengths, &rows};
  std::vector<Tensor> out;
  for (int32_t step = 0; step < 20; step++) {
    positions.at<int32_t>(0) = step;
    const int64_t before = g_allocations;
    session.run("decode", inputs, out);
    const int64_t taken = g_allocations - before;
    if (step >= 2) {
      EXPECT_EQ(taken, 0) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace cyb
