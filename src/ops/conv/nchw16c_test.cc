// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling of channels in blocks: the bits of plain channels, whatever x and y are.
#include "ops/conv/conv_testing.h"
#include "ops/conv/nchw16c_plan.h"

namespace cyb {
namespace {

using namespace conv_testing;

// Beside the plain kernels, on every instruction set, with 1 to 3 threads.
void check_layouts(TestCase t, uint32_t seed, const char* kernel) {
  const bool x_blocks = t.x_blocked, y_blocks = t.y_blocked;
  SCOPED_TRACE(describe(t) + " seed " + std::to_string(seed));
  t.weight = true;
  const auto b = build(t, seed);
  for (bool exact : {true, false})
    for (Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar}) {
      if (!isa_runs_on(isa, detect_isa())) continue;
      t.x_blocked = t.y_blocked = false;
      const Tensor want = run_fast(t, *b, isa, 1, exact);
      t.x_blocked = x_blocks;
      t.y_blocked = y_blocks;
      for (int threads : {1, 2, 3}) {
        if (isa == Isa::scalar && threads != 2) continue;
        std::string name;
        const Tensor got = run_fast(t, *b, isa, threads, exact, &name);
        const bool winograd = exact && !std::strcmp(kernel, "conv_winograd");  // not of this order of sums
        ASSERT_EQ(name.rfind(winograd ? "conv_nchw16c" : kernel, 0), 0u) << name;
        // A NaN's bits are not promised.
        for (size_t i = 0; i < static_cast<size_t>(want.elements()); i++)
          ASSERT_TRUE(std::memcmp(&want.at<float>(i), &got.at<float>(i), 4) == 0 ||
                      (std::isnan(want.real(i)) && std::isnan(got.real(i))))
              << i << ": " << want.real(i) << " " << got.real(i) << ", " << name << " on " << to_string(isa)
              << ", " << threads << " threads";
      }
    }
}

// x and y plain and in blocks, but not both plain.
template <class F>
void each_layout(TestCase t, F&& f) {
  for (int layouts = 1; layouts < 4; layouts++) {
    t.x_blocked = layouts & 1;
    t.y_blocked = layouts & 2;
    if (t.x_blocked && t.x[1] % 16 != 0) continue;
    if (t.y_blocked && t.w[0] % 16 != 0) continue;
    f(t);
  }
}

void check_conv(const TestCase& t, uint32_t seed, const char* kernel = "conv_") {
  each_layout(t, [&](const TestCase& c) { check_layouts(c, seed, kernel); });
}

TEST(Nchw16c, Points) {
  // Chains of several blocks of 256; channels that leave groups of 4, 2 and 1 vectors; long and short rows.
  check_conv({.x = {1, 16, 5, 7}, .w = {16, 16, 1, 1}}, 1, "conv_nchw16c");
  check_conv({.x = {2, 64, 9, 9}, .w = {112, 64, 1, 1}, .bias = true}, 2, "conv_nchw16c");
  check_conv({.x = {1, 528, 4, 5}, .w = {48, 528, 1, 1}, .bias = true}, 3, "conv_nchw16c");
  check_conv({.x = {1, 32, 30, 41}, .w = {64, 32, 1, 1}}, 4, "conv_nchw16c");
  check_conv({.x = {3, 272, 1, 2}, .w = {256, 272, 1, 1}}, 5, "conv_nchw16c");
}

TEST(Nchw16c, OneSideWithOtherChannels) {
  check_conv({.x = {1, 3, 20, 19}, .w = {32, 3, 7, 7}, .strides = {2, 2}, .pads = {3, 3, 3, 3}}, 1,
             "conv_nchw16c");
  check_conv({.x = {2, 5, 11, 8}, .w = {16, 5, 1, 1}, .bias = true}, 2, "conv_nchw16c");
  check_conv({.x = {1, 32, 9, 9}, .w = {37, 32, 1, 1}, .bias = true}, 3, "conv_nchw16c");
  check_conv({.x = {1, 48, 13, 9}, .w = {5, 48, 3, 3}, .strides = {2, 1}, .pads = {1, 1, 1, 1}}, 4,
             "conv_nchw16c");
  // A wide image, whose rows are cut.
  check_conv({.x = {1, 3, 9, 2100}, .w = {16, 3, 3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}, 5,
             "conv_nchw16c");
}

TEST(Nchw16c, StridesPadsAndDilations) {
  check_conv({.x = {1, 64, 15, 14}, .w = {64, 64, 1, 1}, .strides = {2, 2}}, 1, "conv_nchw16c");
  check_conv({.x = {2, 16, 15, 14}, .w = {32, 16, 1, 1}, .strides = {3, 1}, .pads = {1, 0, 2, 1}}, 2,
             "conv_nchw16c");
  check_conv({.x = {1, 32, 17, 20}, .w = {32, 32, 3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}, 3,
             "conv_nchw16c");
  check_conv({.x = {1, 32, 17, 20}, .w = {32, 32, 3, 3}, .strides = {2, 2}}, 4, "conv_nchw16c");
  check_conv({.x = {1, 16, 16, 16}, .w = {48, 16, 4, 4}, .strides = {4, 4}}, 5, "conv_nchw16c");
  check_conv({.x = {1, 16, 9, 21}, .w = {16, 16, 5, 3}, .pads = {4, 2, 4, 2}, .dilations = {2, 2}}, 6,
             "conv_nchw16c");
  // Pads wider than the image, and more on one side.
  check_conv({.x = {1, 16, 2, 3}, .w = {16, 16, 5, 5}, .pads = {4, 0, 2, 9}}, 7, "conv_nchw16c");
}

TEST(Nchw16c, ActivationsAndResiduals) {
  using A = ir::ConvActivation;
  for (A act : {A::none, A::relu, A::leaky_relu, A::silu})
    for (int residual = 0; residual < 3; residual++)
      for (int64_t kernel : {1, 3})
        check_conv({.op = Op::FusedConv,
                    .x = {1, 32, 9, 7},
                    .w = {48, 32, kernel, kernel},
                    .pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2},
                    .bias = true,
                    .residual = residual > 0,
                    .residual_last = residual == 2,
                    .act = act},
                   10, kernel == 1 ? "conv_nchw16c" : "conv_");
}

TEST(Nchw16c, NanAndInfinity) {
  check_conv({.op = Op::FusedConv,
              .x = {1, 16, 12, 12},
              .w = {16, 16, 1, 1},
              .act = ir::ConvActivation::relu,
              .special = true},
             1);
}

TEST(Nchw16c, Random) {
  std::mt19937 random(77);
  for (uint32_t i = 0; i < 24; i++) {
    TestCase t;
    t.op = Op::FusedConv;
    t.x = {pick(random, 1, 2), 16 * pick(random, 1, 5), pick(random, 1, 20), pick(random, 1, 40)};
    t.w = {16 * pick(random, 1, 9), t.x[1], pick(random, 1, 3), pick(random, 1, 3)};
    t.strides = {pick(random, 1, 3), pick(random, 1, 3)};
    t.pads = {pick(random, 0, 2), pick(random, 0, 2), pick(random, 0, 2), pick(random, 0, 2)};
    if (t.x[2] + t.pads[0] + t.pads[2] < t.w[2] || t.x[3] + t.pads[1] + t.pads[3] < t.w[3]) continue;
    t.bias = random() % 2;
    t.residual = random() % 2;
    t.act = random() % 2 ? ir::ConvActivation::relu : ir::ConvActivation::silu;
    check_conv(t, i);
  }
}

TEST(Nchw16c, NoChannels) {
  check_conv({.x = {1, 0, 4, 4}, .w = {32, 0, 1, 1}, .bias = true}, 1);
  check_conv({.x = {1, 0, 4, 4}, .w = {32, 0, 3, 3}, .pads = {1, 1, 1, 1}, .bias = true}, 2);
}

// Cuts for many threads: the same bits, work for most of them, copies of bounded size.
TEST(Nchw16c, PlansForManyThreads) {
  struct Layer {
    int64_t in, out, height, width, kernel_y, kernel_x, stride;
  };
  // Finest cuts are blocks of 16 positions of a vector of channels.
  for (const Layer& l :
       {Layer{64, 64, 28, 28, 1, 1, 1}, Layer{64, 96, 1, 3000, 1, 7, 1}, Layer{32, 32, 4, 320, 3, 3, 1},
        Layer{64, 48, 30, 17, 3, 3, 2}, Layer{256, 512, 7, 7, 1, 1, 1}, Layer{48, 64, 29, 29, 1, 1, 2}})
    for (bool x_blocked : {true, false}) {
      std::vector<float> want;
      for (int threads : {1, 2, 5, 16, 64}) {
        Nchw16cPlan plan;
        Nchw16cArgs& a = plan.args;
        a.x_blocked = x_blocked;
        a.y_blocked = true;
        a.in = l.in;
        a.out = l.out;
        const auto axis = [&](int64_t in, int64_t kernel) {
          return ConvAxis{in, (in + kernel / 2 * 2 - kernel) / l.stride + 1, kernel, l.stride, 1, kernel / 2};
        };
        a.axes[1] = axis(l.height, l.kernel_y);
        a.axes[2] = axis(l.width, l.kernel_x);
        const ConvKernels& kernels = conv_kernels(detect_isa());
        nchw16c_plan(&plan, kernels.nchw16c_vectors, threads);
        const int64_t positions = a.axes[1].out * a.axes[2].out;
        EXPECT_LE(a.floats, 128 << 10) << l.width << ", " << threads;
        EXPECT_GE(a.items(), std::min<int64_t>(threads, positions / 16 * a.channel_blocks()) / 2)
            << l.width << ", " << threads;
        std::mt19937 random(5);
        auto floats = [&](int64_t n) {
          std::vector<float> v(static_cast<size_t>(n) + 64);
          for (float& f : v) f = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
          return v;
        };
        std::vector<float> x = floats(l.in * l.height * l.width), w = floats(l.out * a.k);
        if (x_blocked) {
          Tensor t(DType::f32, {1, l.in, l.height, l.width});
          std::copy_n(x.begin(), t.elements(), &t.at<float>(0));
          const Tensor blocks = in_blocks(t, false);
          std::copy_n(&blocks.at<float>(0), t.elements(), x.begin());
        }
        std::vector<float> packed(static_cast<size_t>(a.groups() * 16 * a.k)),
            y(static_cast<size_t>(l.out * positions));
        pack_lanes(a.out, a.k, a.vectors, w.data(), packed.data());
        std::vector<float> copy(static_cast<size_t>(a.floats));
        a.x = x.data();
        a.w = packed.data();
        a.y = y.data();
        // Last ones first: nothing depends on the order.
        for (int64_t i = a.items(); i-- > 0;) kernels.nchw16c(a, i, i + 1, copy.data());
        if (want.empty()) want = y;
        EXPECT_TRUE(want == y) << l.width << ", " << threads << " threads";
      }
    }
}

TEST(Nchw16c, Winograd) {
  for (int64_t side : {7, 14, 21})
    check_conv({.op = Op::FusedConv,
                .x = {side == 7 ? 2 : 1, 48, side, side + 1},
                .w = {48, 48, 3, 3},
                .pads = {1, 1, 1, 1},
                .bias = true,
                .act = ir::ConvActivation::relu},
               static_cast<uint32_t>(side), "conv_winograd");
  check_conv({.x = {1, 32, 25, 18}, .w = {32, 32, 3, 3}, .pads = {2, 0, 1, 2}}, 3, "conv_winograd");
  check_conv({.x = {1, 24, 25, 18}, .w = {32, 24, 3, 3}, .pads = {1, 1, 1, 1}}, 4, "conv_winograd");
  check_conv({.x = {1, 32, 12, 12}, .w = {40, 32, 3, 3}, .pads = {1, 1, 1, 1}}, 5, "conv_winograd");
}

TestCase pool(std::vector<int64_t> x, std::vector<int64_t> kernel, std::vector<int64_t> strides,
              std::vector<int64_t> pads) {
  TestCase t;
  t.op = Op::Pool;
  t.x = std::move(x);
  t.w = {0, 0, kernel[0], kernel[1]};
  t.strides = std::move(strides);
  t.pads = std::move(pads);
  t.special = true;
  return t;
}

TEST(Nchw16c, Maxima) {
  uint32_t seed = 0;
  for (TestCase t :
       {pool({1, 32, 15, 20}, {3, 3}, {2, 2}, {1, 1, 1, 1}),
        pool({2, 16, 9, 40}, {5, 5}, {1, 1}, {2, 2, 2, 2}), pool({1, 48, 8, 9}, {2, 2}, {2, 2}, {0, 0, 0, 0}),
        pool({1, 16, 11, 13}, {3, 2}, {3, 1}, {2, 1, 0, 0})}) {
    t.x_blocked = t.y_blocked = true;
    check_layouts(t, seed++, "pool_");
    t.ceil = true;
    check_layouts(t, seed++, "pool_");
  }
  TestCase wide = pool({1, 16, 21, 23}, {3, 3}, {1, 1}, {2, 2, 2, 2});
  wide.dilations = {2, 2};
  wide.x_blocked = wide.y_blocked = true;
  check_layouts(wide, seed, "pool_");
}

TEST(Nchw16c, AveragesOfPlanes) {
  TestCase t = pool({3, 80, 7, 7}, {7, 7}, {1, 1}, {0, 0, 0, 0});
  t.pool = ir::PoolKind::average;
  t.special = false;
  t.x_blocked = true;
  check_layouts(t, 1, "pool_");
}

// What a kernel cannot take in blocks stays plain: here the test's own data would be read wrongly.
TEST(Nchw16c, OthersStayPlain) {
  TestCase average = pool({1, 16, 9, 9}, {3, 3}, {2, 2}, {1, 1, 1, 1});
  average.pool = ir::PoolKind::average;
  TestCase grouped{.x = {1, 32, 9, 9}, .w = {32, 2, 3, 3}, .groups = 16};
  TestCase depthwise{.x = {1, 32, 9, 9}, .w = {32, 1, 3, 3}, .groups = 32};
  for (TestCase t : {average, grouped, depthwise}) {
    t.weight = true;
    const auto b = build(t, 5);
    const Tensor want = run_fast(t, *b, detect_isa(), 2, true);
    // The names are given, the data is plain.
    t.names_only = true;
    EXPECT_TRUE(want == run_fast(t, *b, detect_isa(), 2, true)) << describe(t);
  }
}

}  // namespace
}  // namespace cyb
