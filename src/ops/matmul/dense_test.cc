// SPDX-License-Identifier: Apache-2.0
// Products of f32 with f32, held to the scalar kernels (same bits) and to f64 (tolerance).
#include <gtest/gtest.h>

#include <cmath>

#include "ops/matmul/matmul_testing.h"

namespace cyb {
namespace {

using namespace matmul_testing;

// nn and nt forms, a transposed left side, batches that repeat an operand.
TEST(Dense, VectorKernelsGiveTheScalarBits) {
  Random random(8);
  ThreadPool pool(2);
  for (int64_t k : kDepths)
    for (int64_t n : {1, 7, 16, 32, 45, 100})
      for (int form = 0; form < 4; form++) {
        DenseArgs args;
        args.m = std::vector<int64_t>{1, 2, 7, 25, 40}[random.next() % 5];
        args.n = n;
        args.k = k;
        args.batch[0] = 2;
        args.batch[1] = 3;
        const std::vector<float> a = activations(6 * args.m, k + 1, random),
                                 b = activations(2 * (n + 2), k + 2, random);
        const std::vector<float> bias = activations(1, n, random),
                                 before = activations(6 * args.m, n, random);
        args.a = a.data();
        args.a_m = form & 2 ? 1 : k + 1;
        args.a_k = form & 2 ? args.m : 1;
        args.a_batch[0] = 3 * args.m * k;
        args.a_batch[1] = args.m * k;
        args.b = b.data();
        args.b_k = form & 1 ? 1 : n + 1;
        args.b_n = form & 1 ? k + 1 : 1;
        args.b_batch[1] = 0;
        args.b_batch[0] = (n + 1) * k;
        args.y_m = n;
        args.y_batch[0] = 3 * args.m * n;
        args.y_batch[1] = args.m * n;
        if (random.next() % 2) args.bias = bias.data();
        args.accumulate = random.next() % 2;
        std::vector<float> want = before;
        args.y = want.data();
        dense_run(pool, matmul_kernels(Isa::scalar), args);
        args.y = const_cast<float*>(before.data());
        std::vector<double> exact(want.size()), bound(want.size());
        dense_reference(args, exact.data(), bound.data());
        const double ulps = 4 * std::max(1.0, std::sqrt(static_cast<double>(k)) / 4) * 0x1p-24;
        for (size_t i = 0; i < want.size(); i++)
          ASSERT_LE(std::fabs(want[i] - exact[i]), ulps * bound[i])
              << "K " << k << " N " << n << " form " << form;
        for (Level isa : vector_isas()) {
          std::vector<float> got = before;
          args.y = got.data();
          dense_run(pool, matmul_kernels(isa), args);
          expect_same_bits(got, want,
                           std::string(to_string(isa)) + " K " + std::to_string(k) + " N " +
                               std::to_string(n) + " form " + std::to_string(form));
        }
      }
}

}  // namespace
}  // namespace cyb
