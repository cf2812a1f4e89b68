// SPDX-License-Identifier: Apache-2.0
// Every kernel table that this machine runs against the scalar kernels (same bits) and against f64
// (tolerance).
#include "ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/matmul/matmul_testing.h"

namespace cyb {
namespace {

using namespace matmul_testing;

TEST(Acts, VectorsRoundLikeScalarAndStayWithinHalfAStep) {
  Random random(1);
  for (int64_t k : kDepths)
    for (int round = 0; round < 20; round++) {
      std::vector<float> x = activations(1, k, random);
      const float scale = std::ldexp(1.0f, static_cast<int>(random.next() % 240) - 120);
      for (float& v : x) v *= scale;
      x[random.next() % x.size()] *= 30;  // an outlier
      if (round == 3) x[static_cast<size_t>(k - 1)] = std::numeric_limits<float>::infinity();
      if (round == 4) x[static_cast<size_t>(k / 2)] = std::numeric_limits<float>::quiet_NaN();
      if (round == 5) x.assign(x.size(), -0.0f);
      const size_t blocks = static_cast<size_t>((k + 31) / 32);
      std::vector<Q8Block> want(blocks), got(blocks);
      matmul_kernels(Isa::scalar).quantize_row(x.data(), k, want.data());
      for (Level isa : vector_isas()) {
        std::memset(got.data(), 0xee, blocks * sizeof(Q8Block));
        matmul_kernels(isa).quantize_row(x.data(), k, got.data());
        ASSERT_EQ(std::memcmp(got.data(), want.data(), blocks * sizeof(Q8Block)), 0)
            << to_string(isa) << " K " << k;
      }
      if (round == 3 || round == 4) {
        EXPECT_TRUE(std::isnan(want[static_cast<size_t>(round == 3 ? k - 1 : k / 2) / 32].scale));
        continue;
      }
      for (int64_t i = 0; i < 32 * static_cast<int64_t>(blocks); i++) {
        const Q8Block& b = want[static_cast<size_t>(i / 32)];
        ASSERT_EQ(b.neg8, 8 * b.neg1);
        ASSERT_EQ(b.neg128, 128 * b.neg1);
        const double value = i < k ? x[static_cast<size_t>(i)] : 0;
        ASSERT_LE(std::fabs(b.scale * static_cast<double>(b.q[i % 32]) - value),
                  b.scale * 0.50002 + 0x1p-100);
      }
    }
}

// Shapes, encodings, both kinds of activations, bias, residual: the vector kernels give the scalar's bits.
TEST(Matmul, VectorKernelsGiveTheScalarBits) {
  Random random(2);
  ThreadPool pool(2);
  for (Encoding e : kEncodings)
    for (int64_t k : kDepths)
      for (int64_t n : kWidths) {
        const int64_t ms[] = {1, 2, 3, 5, 7, 14, 29};
        const int64_t m = ms[random.next() % 7], ldx = k + 3, ldy = n + 5;
        const Weights w = make_weights(e, n, k, random);
        const std::vector<float> x = activations(m, ldx, random), bias = activations(1, n, random);
        const std::vector<float> before = activations(m, ldy, random);
        const std::vector<Q8Block> xq = quantized(matmul_kernels(Isa::scalar), x, m, ldx, k);
        for (bool q8 : {false, true}) {
          if (q8 && !takes_q8_acts(e)) continue;
          MatmulArgs args;
          args.w = w.rows;
          args.m = m;
          args.x = x.data();
          args.ldx = ldx;
          if (q8) args.xq = xq.data(), args.ldxq = q8_row_stride(k);
          args.ldy = ldy;
          if (random.next() % 2) args.bias = bias.data();
          // A residual apart, or in the place of the result.
          const uint64_t residual = random.next() % 3;
          const auto into = [&](std::vector<float>& y) {
            y = before;
            args.y = y.data();
            args.residual = residual == 0 ? nullptr : residual == 1 ? before.data() : y.data();
          };
          std::vector<float> want, tiled, got;
          into(want);
          matmul_range(matmul_kernels(Isa::scalar), args, {0, m, 0, (n + 7) / 8});

          if (residual) args.residual = before.data();
          std::vector<double> exact(static_cast<size_t>(m * n)), bound(exact.size());
          matmul_reference(args, exact.data(), bound.data());
          // testing.md, tier 1, and the roundings after the sum.
          const double ulps = 4 * std::max(1.0, std::sqrt(static_cast<double>(k)) / 4) * 0x1p-24;
          for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
              ASSERT_LE(
                  std::fabs(want[static_cast<size_t>(i * ldy + j)] - exact[static_cast<size_t>(i * n + j)]),
                  ulps * bound[static_cast<size_t>(i * n + j)] + 1e-37)
                  << name({Isa::scalar}, e, q8, m, n, k) << " at " << i << ", " << j;

          args.w = w.tiled;
          into(tiled);
          matmul_range(matmul_kernels(Isa::scalar), args, {0, m, 0, (n + 7) / 8});
          expect_same_bits(tiled, want, name({Isa::scalar}, e, q8, m, n, k) + " tiled");
          for (Level isa : vector_isas()) {
            into(got);
            matmul_run(pool, matmul_kernels(isa), {&args, 1});
            expect_same_bits(got, want, name(isa, e, q8, m, n, k));
            // The activation is that of the whole result.
            into(got);
            args.activation = Activation::gelu_erf;
            matmul_run(pool, matmul_kernels(isa), {&args, 1});
            args.activation = Activation::identity;
            std::vector<float> activated = want;
            for (int64_t i = 0; i < m; i++)
              activation_kernels(isa.isa).activate(
                  {.activation = Activation::gelu_erf, .x = activated.data(), .y = activated.data()}, i * ldy,
                  i * ldy + n);
            expect_same_bits(got, activated, name(isa, e, q8, m, n, k) + " activated");
          }
        }
      }
}

// A row's result depends on neither the rows beside it nor on who computes which part.
TEST(Matmul, RowsAndSplitsDoNotChangeABit) {
  Random random(3);
  const int64_t m = kPanelRows + 5, k = 600, n = 77, groups = 10;
  const std::vector<Level> isas = vector_isas();
  for (Encoding e : kEncodings) {
    const Weights w = make_weights(e, n, k, random);
    const std::vector<float> x = activations(m, k, random);
    const std::vector<Q8Block> xq = quantized(matmul_kernels(detect_isa()), x, m, k, k);
    for (bool q8 : {false, true})
      for (Level isa : isas) {
        if (q8 && !takes_q8_acts(e)) continue;
        MatmulArgs args;
        args.w = w.tiled;
        args.m = m;
        args.x = x.data();
        args.ldx = k;
        if (q8) args.xq = xq.data(), args.ldxq = q8_row_stride(k);
        args.ldy = n;
        std::vector<float> want(static_cast<size_t>(m * n)), got(want.size());
        args.y = want.data();
        for (int64_t i = 0; i < m; i++) matmul_range(matmul_kernels(isa), args, {i, i + 1, 0, groups});
        args.y = got.data();
        for (int64_t rows : {int64_t{2}, int64_t{7}, int64_t{64}, int64_t{197}, m})
          for (int64_t step : {1, 3, 4, 10}) {
            got.assign(got.size(), -1);
            for (int64_t i = 0; i < m; i += rows)
              for (int64_t g = 0; g < groups; g += step)
                matmul_range(matmul_kernels(isa), args,
                             {i, std::min(i + rows, m), g, std::min(g + step, groups)});
            expect_same_bits(got, want, name(isa, e, q8, rows, n, k));
          }
        for (int threads : {1, 2, 3})
          for (int64_t rows : {int64_t{1}, int64_t{2}, int64_t{50}, int64_t{64}, kPanelRows - 1, m}) {
            ThreadPool pool(threads);
            got.assign(want.begin(), want.end());
            std::fill(got.begin(), got.begin() + rows * n, -1.0f);
            args.m = rows;
            matmul_run(pool, matmul_kernels(isa), {&args, 1});
            expect_same_bits(got, want, name(isa, e, q8, rows, n, k));
          }
      }
  }
}

TEST(Matmul, SeveralProductsShareOneFork) {
  Random random(4);
  ThreadPool pool(2);
  const int64_t k = 96, m = 5;
  const std::vector<float> x = activations(m, k, random);
  const std::vector<Q8Block> xq = quantized(matmul_kernels(detect_isa()), x, m, k, k);
  std::vector<Weights> w;
  std::vector<std::vector<float>> got, want;
  std::vector<MatmulArgs> args;
  for (int i = 0; i < 11; i++) {
    const int64_t n = i == 4 ? 0 : 8 * i + 1;
    w.push_back(make_weights(kEncodings[i % 5], n, k, random));
    got.emplace_back(static_cast<size_t>(m * n));
    want.emplace_back(static_cast<size_t>(m * n));
  }
  for (size_t i = 0; i < w.size(); i++) {
    MatmulArgs a;
    a.w = w[i].tiled;
    a.m = m;
    a.x = x.data();
    a.ldx = k;
    if (takes_q8_acts(a.w.encoding)) a.xq = xq.data(), a.ldxq = q8_row_stride(k);
    a.ldy = a.w.n;
    a.y = want[i].data();
    matmul_range(matmul_kernels(Isa::scalar), a, {0, m, 0, (a.w.n + 7) / 8});
    a.y = got[i].data();
    args.push_back(a);
  }
  matmul_run(pool, matmul_kernels(detect_isa()), args);
  for (size_t i = 0; i < w.size(); i++) expect_same_bits(got[i], want[i], "product " + std::to_string(i));
}

// Many rows are written another way with several threads.
TEST(Acts, ThreadsRoundTheSameBits) {
  Random random(12);
  ThreadPool one(1), three(3);
  const MatmulKernels& kernels = matmul_kernels(detect_isa());
  for (int64_t m : {63, 64, 200})
    for (int64_t k : {33, 512, 16256, 16300}) {
      const std::vector<float> x = activations(m, k, random);
      const int64_t ld = q8_row_stride(k), blocks = (k + 31) / 32;
      std::vector<Q8Block> want(static_cast<size_t>(m * ld)), got(want.size());
      quantize_rows(one, kernels, x.data(), k, m, k, want.data());
      quantize_rows(three, kernels, x.data(), k, m, k, got.data());
      for (int64_t i = 0; i < m; i++)
        ASSERT_EQ(std::memcmp(&want[static_cast<size_t>(i * ld)], &got[static_cast<size_t>(i * ld)],
                              static_cast<size_t>(blocks) * sizeof(Q8Block)),
                  0)
            << m << " x " << k << ", row " << i;
    }
}

// Threads that have copies of the activations read their own: so each copy makes another result, and each
// tile's is that of one of them. With the same copies the result is the usual one.
TEST(Matmul, PlansGiveEachThreadItsCopy) {
  constexpr int kThreads = 3;
  Random random(11);
  const int64_t m = 2, n = 8 * 300, k = 64, each = m * q8_row_stride(k);
  const Weights w = make_weights(Encoding::q8, n, k, random);
  const MatmulKernels& kernels = matmul_kernels(detect_isa());
  ThreadPool pool(kThreads);
  for (bool same : {true, false}) {
    std::vector<Q8Block> copies;
    std::vector<std::vector<float>> want;
    MatmulArgs args;
    args.w = w.tiled;
    args.m = m;
    args.ldxq = q8_row_stride(k);
    args.ldy = n;
    Random values(5);
    for (int t = 0; t < kThreads; t++) {
      if (same) values = Random(5);
      const std::vector<Q8Block> xq = quantized(kernels, activations(m, k, values), m, k, k);
      copies.insert(copies.end(), xq.begin(), xq.end());
      want.emplace_back(static_cast<size_t>(m * n));
      args.xq = xq.data();
      args.y = want.back().data();
      matmul_range(kernels, args, {0, m, 0, n / 8});
    }
    ASSERT_EQ(static_cast<int64_t>(copies.size()), each * kThreads);
    std::vector<float> got(static_cast<size_t>(m * n));
    args.xq = copies.data();
    args.y = got.data();
    const MatmulPlan plan(kernels, {&args, 1}, kThreads, each * int64_t{sizeof(Q8Block)});
    for (int turn = 0; turn < 3; turn++) {
      plan.run(pool);
      for (size_t i = 0; i < got.size(); i++)
        ASSERT_TRUE(got[i] == want[0][i] || got[i] == want[1][i] || got[i] == want[2][i]) << i;
      if (same) expect_same_bits(got, want[0], "the same copies");
    }
  }
}

// q8 codes of −128 (8-bit integer tensors), extreme scales and activations: no sum saturates.
TEST(Matmul, ExtremeCodesAreExact) {
  const int64_t n = 48, k = 64, groups = n / 8, most = 13;
  for (Encoding e : {Encoding::q8, Encoding::q4, Encoding::ternary})
    for (int pattern = 0; pattern < 4; pattern++) {
      const uint8_t code = e == Encoding::q8   ? (pattern % 2 ? 0x80 : 0x7f)
                           : e == Encoding::q4 ? (pattern % 2 ? 0x00 : 0xff)
                                               : (pattern % 2 ? 0xaa : 0x55);
      std::vector<uint8_t> tiles(weight_bytes(e, n, k, true), code);
      if (e != Encoding::ternary) {
        const size_t column = e == Encoding::q8 ? 272 : 144;
        const int16_t scale = pattern < 2 ? 32767 : -32768;
        for (size_t p = 0; p < tiles.size(); p += column)
          for (size_t r = 0; r < 8; r++) std::memcpy(tiles.data() + p + 2 * r, &scale, 2);
      }
      std::vector<float> x(static_cast<size_t>(most * k)), want(static_cast<size_t>(most * n)),
          got(want.size());
      for (size_t i = 0; i < x.size(); i++) x[i] = pattern < 2 || i % 2 ? 127.0f : -127.0f;
      const std::vector<Q8Block> xq = quantized(matmul_kernels(Isa::scalar), x, most, k, k);
      MatmulArgs args;
      args.w = weight_matrix(e, tiles.data(), n, k, 8, true);
      args.m = most;
      args.xq = xq.data();
      args.ldxq = q8_row_stride(k);
      args.ldy = n;
      args.y = want.data();
      matmul_range(matmul_kernels(Isa::scalar), args, {0, most, 0, groups});
      std::vector<double> exact(want.size());
      matmul_reference(args, exact.data(), nullptr);
      for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(want[i], exact[i], 1e-6 * std::fabs(exact[i]));
      args.y = got.data();
      for (Level isa : vector_isas()) {
        std::fill(got.begin(), got.end(), 0.0f);
        for (int64_t row = 0, rows = 1; row < most; row += rows, rows += 3)  // 1, 4 and 8 at a time
          matmul_range(matmul_kernels(isa), args, {row, std::min(row + rows, most), 0, groups});
        expect_same_bits(got, want, name(isa, e, true, most, n, k) + " pattern " + std::to_string(pattern));
      }
    }
}

TEST(Matmul, PaddingOfARaggedRowNeverCounts) {
  Random random(6);
  const int64_t n = 16, k = 33;
  const std::vector<float> x = activations(3, k, random);
  const std::vector<Q8Block> xq = quantized(matmul_kernels(detect_isa()), x, 3, k, k);
  for (Encoding e : {Encoding::q8, Encoding::q4, Encoding::ternary})
    for (bool q8 : {false, true})
      for (Level isa : vector_isas()) {
        Weights w = make_weights(e, n, k, random);
        MatmulArgs args;
        args.w = w.tiled;
        args.m = 3;
        args.x = x.data();
        args.ldx = k;
        if (q8) args.xq = xq.data(), args.ldxq = q8_row_stride(k);
        args.ldy = n;
        std::vector<float> want(static_cast<size_t>(3 * n)), got(want.size());
        args.y = want.data();
        matmul_range(matmul_kernels(isa), args, {0, 3, 0, 2});
        // Column 33 is byte 1 of the first piece of the second block, or code 1 of the third unit.
        for (size_t g = 0; g < 2; g++)
          for (size_t r = 0; r < 8; r++) {
            if (e == Encoding::q8) w.tiles[g * 544 + 272 + 16 + 4 * r + 1] ^= 0x5a;
            if (e == Encoding::q4) w.tiles[g * 288 + 144 + 16 + 4 * r + 1] ^= 0x5a;
            if (e == Encoding::ternary) w.tiles[g * 96 + 64 + 4 * r] ^= 0x04;
          }
        args.y = got.data();
        matmul_range(matmul_kernels(isa), args, {0, 3, 0, 2});
        expect_same_bits(got, want, name(isa, e, q8, 3, n, k));
      }
}

TEST(Matmul, InfinityAndNanReachTheResult) {
  Random random(7);
  const int64_t n = 8, k = 64;
  const Weights w = make_weights(Encoding::q8, n, k, random);
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = activations(1, k, random), y(static_cast<size_t>(n));
    x[40] = bad;
    for (Level isa : vector_isas()) {
      const std::vector<Q8Block> xq = quantized(matmul_kernels(isa), x, 1, k, k);
      MatmulArgs args;
      args.w = w.tiled;
      args.m = 1;
      args.xq = xq.data();
      args.ldxq = q8_row_stride(k);
      args.y = y.data();
      args.ldy = n;
      matmul_range(matmul_kernels(isa), args, {0, 1, 0, 1});
      for (float v : y) EXPECT_FALSE(std::isfinite(v)) << to_string(isa);
    }
  }
}

TEST(Matmul, NoColumnsLeaveTheBiasAndNoRowsTouchNothing) {
  ThreadPool pool(2);
  const uint8_t none = 0;
  const Q8Block x{};
  for (Encoding e : kEncodings)
    for (Level isa : vector_isas()) {
      std::vector<float> y(9, -1), bias(9, 3);
      MatmulArgs args;
      args.w = weight_matrix(e, &none, 9, 0, 8, true);
      args.x = bias.data();
      args.xq = &x;
      args.bias = bias.data();
      args.y = y.data();
      args.ldy = 9;
      matmul_run(pool, matmul_kernels(isa), {&args, 1});
      EXPECT_EQ(y, std::vector<float>(9, -1));
      args.m = 1;
      matmul_run(pool, matmul_kernels(isa), {&args, 1});
      EXPECT_EQ(y, bias) << to_string(isa);
    }
}

TEST(Matmul, FracBitsFromEndToEndOfTheirRange) {
  const int64_t n = 8, k = 4;
  std::vector<int32_t> codes(static_cast<size_t>(n * k), 1 << 20);
  std::vector<float> y(static_cast<size_t>(n));
  for (int frac_bits : {-97, -40, 0, 16, 112, 113, 140}) {
    const std::vector<float> x(static_cast<size_t>(k), frac_bits < 0 ? 0x1p-30f : 0x1p30f);
    MatmulArgs args;
    args.w = weight_matrix(Encoding::u32, codes.data(), n, k, frac_bits, true);
    args.m = 1;
    args.x = x.data();
    args.ldx = k;
    args.y = y.data();
    args.ldy = n;
    for (Level isa : vector_isas()) {
      matmul_range(matmul_kernels(isa), args, {0, 1, 0, 1});
      for (float v : y)
        EXPECT_EQ(v, std::ldexp(4.0f, 20 + (frac_bits < 0 ? -30 : 30) - frac_bits)) << frac_bits;
    }
  }
}

}  // namespace
}  // namespace cyb
