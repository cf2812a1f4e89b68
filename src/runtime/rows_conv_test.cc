// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling through graphs: kernel rows beside the definitions, fused beside unfused, and
// small results computed by hand.
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using rows_testing::Case;

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back(
      {"conv1d",
       "(x: f32[N, 6, L], w: f32[9, 6, 5], v: f32[9, 2, 4], b: f32[9]) -> (p: f32[N, 9, L], q: f32[N, 9, "
       "?])\np = conv1d(x, w, b) pads=[4, 4] dilations=[2]\nq = conv1d(x, v) groups=3 strides=[3] "
       "pads=[1, 0]\n",
       {{2, 6, 50}, {9, 6, 5}, {9, 2, 4}, {9}},
       {}});
  all.push_back(
      {"conv2d",
       "(x: f32[N, 5, H, W], w: f32[20, 5, 3, 3], o: f32[20, 5, 1, 1], b: f32[20]) -> (p: f32[N, 20, H, "
       "W], q: f32[N, 20, ?, ?], r: f32[N, 20, ?, ?])\np = conv2d(x, w, b) pads=[1, 1, 1, 1]\nq = "
       "conv2d(x, w) auto_pad=same_lower strides=[2, 3] \nr = conv2d(x, o, b)\n",
       {{2, 5, 13, 37}, {20, 5, 3, 3}, {20, 5, 1, 1}, {20}},
       {}});
  all.push_back(
      {"depthwise",
       "(x: f32[N, 5, H, W], w: f32[5, 1, 3, 3], v: f32[10, 1, 5, 5], b: f32[5]) -> (p: f32[N, 5, H, W], "
       "q: f32[N, 10, ?, ?])\np = conv2d(x, w, b) groups=5 pads=[1, 1, 1, 1]\nq = conv2d(x, v) groups=5 "
       "strides=[2, 2] pads=[2, 2, 2, 2]\n",
       {{1, 5, 17, 40}, {5, 1, 3, 3}, {10, 1, 5, 5}, {5}},
       {}});
  all.push_back(
      {"conv3d",
       "(x: f32[N, 2, D, H, W], w: f32[3, 2, 2, 3, 3]) -> (p: f32[N, 3, ?, ?, ?])\np = conv3d(x, w) "
       "strides=[1, 2, 1] pads=[0, 1, 1, 1, 1, 2] dilations=[2, 1, 1]\n",
       {{1, 2, 5, 6, 19}, {3, 2, 2, 3, 3}},
       {}});
  all.push_back(
      {"conv_transpose",
       "(x: f32[N, 6, L], w: f32[6, 5, 8], y: f32[N, 6, H, L], v: f32[6, 4, 2, 2], u: f32[6, 3, 3, 3], b: "
       "f32[5]) -> (p: f32[N, 5, ?], q: f32[N, 4, ?, ?], r: f32[N, 6, ?, ?])\np = conv_transpose1d(x, w, b) "
       "strides=[4] pads=[2, 2]\nq = conv_transpose2d(y, v) strides=[2, 2]\nr = conv_transpose2d(y, u) "
       "groups=2 strides=[3, 2] dilations=[1, 2] output_padding=[2, 1] pads=[0, 1, 1, 2]\n",
       {{2, 6, 21}, {6, 5, 8}, {2, 6, 7, 21}, {6, 4, 2, 2}, {6, 3, 3, 3}, {5}},
       {}});
  all.push_back(
      {"conv_transpose3d",
       "(x: f32[N, 2, D, H, W], w: f32[2, 3, 2, 3, 3]) -> (p: f32[N, 3, ?, ?, ?])\np = conv_transpose3d(x, "
       "w) strides=[1, 2, 3] output_shape=[4, 9, 11]\n",
       {{1, 2, 3, 4, 4}, {2, 3, 2, 3, 3}},
       {}});
  all.push_back(
      {"pool",
       "(x: f32[N, 3, H, W]) -> (a: f32[N, 3, ?, ?], b: f32[N, 3, ?, ?], c: f32[N, 3, ?, ?], d: f32[N, 3, "
       "?, ?], e: f32[N, 3, ?, ?])\na = pool(x) kernel=[5, 5] pads=[2, 2, 2, 2]\nb = pool(x) kernel=[3, 2] "
       "strides=[2, 2] ceil\nc = pool(x) kind=average kernel=[3, 3] strides=[2, 2] pads=[1, 1, 1, 1] "
       "count_pad ceil\nd = pool(x) kind=average kernel=[2, 3] pads=[1, 1, 0, 1]\ne = pool(x) kind=lp "
       "kernel=[2, 2] dilations=[2, 1] p=3\n",
       {{2, 3, 9, 40}},
       {}});
  all.push_back({"pool of one axis, wide windows, steps that leave something",
                 "(x: f32[N, 3, L], y: f32[M, 2, H, W]) -> (a: f32[N, 3, ?], b: f32[N, 3, ?], c: f32[M, 2, "
                 "?, ?], d: f32[M, 2, "
                 "?, ?], e: f32[M, 2, ?, ?])\na = pool(x) kernel=[5] strides=[3] pads=[2, 4] ceil\nb = "
                 "pool(x) kind=average "
                 "kernel=[4] pads=[3, 1] dilations=[2] count_pad\nc = pool(y) kernel=[9, 11] pads=[8, 10, 8, "
                 "10] strides=[4, "
                 "5]\nd = pool(y) kind=average kernel=[3, 3] strides=[2, 2] pads=[1, 1, 1, 1] ceil\ne = "
                 "pool(y) kind=average "
                 "kernel=[7, 5] pads=[6, 4, 6, 4] strides=[3, 2] ceil count_pad dilations=[1, 2]\n",
                 {{2, 3, 41}, {1, 2, 8, 12}},
                 {}});
  all.push_back({"no batch",
                 "(x: f32[N, 3, H, W], w: f32[4, 3, 3, 3]) -> (a: f32[N, 4, ?, ?], b: f32[N, 3, ?, ?])\na = "
                 "conv2d(x, w)\nb = pool(x) kernel=[2, 2]\n",
                 {{0, 3, 9, 9}, {4, 3, 3, 3}},
                 {}});
  return all;
}

std::vector<Case> fused_cases() {
  static std::vector<std::string> texts;
  std::vector<Case> all;
  if (texts.empty()) {
    const char* acts[] = {"none",
                          "relu",
                          "leaky_relu alpha=0.2",
                          "clamp alpha=-0.5 beta=1.5",
                          "sigmoid",
                          "tanh",
                          "silu",
                          "gelu",
                          "gelu_tanh",
                          "mish",
                          "hard_swish",
                          "hard_sigmoid alpha=0.2 beta=0.5",
                          "elu alpha=0.7"};
    for (const char* act : acts)
      for (const char* more : {"", " residual_last", " scale=0.5 shift=-1.5 residual_last"})
        texts.push_back(
            std::string("(x: f32[N, 5, H, W], w: f32[9, 5, 3, 3], b: f32[9], r: f32[N, 9, H, W]) -> (y: "
                        "f32[N, 9, H, W], z: f32[N, 9, H, W])\n"
                        "y = fused_conv(x, w, b, r) pads=[1, 1, 1, 1] act=") +
            act + more + "\nz = fused_conv(x, w) pads=[1, 1, 1, 1] act=" + act + "\n");
  }
  for (const std::string& t : texts)
    all.push_back({t.c_str(), t.c_str(), {{2, 5, 7, 19}, {9, 5, 3, 3}, {9}, {2, 9, 7, 19}}, {}});
  all.push_back(
      {"fused 1d and 3d",
       "(x: f32[N, 4, L], w: f32[6, 4, 3], u: f32[N, 2, D, H, L], v: f32[3, 2, 2, 2, 2]) -> (y: f32[N, 6, "
       "?], z: f32[N, 3, ?, ?, ?])\ny = fused_conv(x, w) act=relu\nz = fused_conv(u, v) act=silu\n",
       {{1, 4, 23}, {6, 4, 3}, {1, 2, 3, 4, 23}, {3, 2, 2, 2, 2}},
       {}});
  all.push_back(
      {"residual that turns out to broadcast",
       "(x: f32[N, 4, L], w: f32[6, 4, 3], r: f32[M, 6, K], s: f32[N, 1, P]) -> (y: f32[?, 6, ?], z: "
       "f32[?, 6, ?])\ny = fused_conv(x, w, _, r) act=silu residual_last\nz = fused_conv(x, w, _, s) "
       "act=relu\n",
       {{1, 4, 23}, {6, 4, 3}, {3, 6, 1}, {1, 1, 21}},
       {}});
  return all;
}

TEST(ConvRows, FastKernelsAreTheReference) { rows_testing::expect_rows_match(cases()); }
TEST(ConvRows, FusedKernelsAreTheReference) { rows_testing::expect_rows_match(fused_cases()); }
TEST(ConvRows, ThreadsKeepTheBits) {
  rows_testing::expect_threads_keep_bits(cases());
  rows_testing::expect_threads_keep_bits(fused_cases());
}

// A backend without fused_conv runs its decomposition.
TEST(ConvRows, FusedIsItsDecomposition) {
  cpu::KernelTable table;
  for (const ir::OpInfo& op : ir::all_ops())
    if (const auto& rows = cpu_kernel_table().rows(op.op); !rows.empty() && op.op != ir::Op::FusedConv)
      table.add(rows.back());
  auto without = cpu::make_backend({1, Isa::scalar}, std::move(table),
                                   {cpu::make_state, cpu::position_bytes, cpu::load_weight});
  auto with = rows_testing::reference_backend();
  for (const Case& c : fused_cases()) {
    const auto want = run(*without, c), got = run(*with, c);
    for (size_t k = 0; k < want.size(); k++) {
      ASSERT_TRUE(want[k].shape() == got[k].shape()) << c.name;
      for (size_t i = 0; i < static_cast<size_t>(want[k].elements()); i++)
        ASSERT_NEAR(want[k].real(i), got[k].real(i), 2e-5) << c.name;
    }
  }
}

// The graph's results for inputs that hold 1, 2, 3, …
std::vector<Tensor> run_counting(const std::string& graph, const std::vector<Shape>& inputs) {
  auto cpu = make_cpu_backend(1);
  const ir::Program program = ir::parse("ir 1\ngraph main" + graph, "test");
  WeightStore weights(std::make_shared<rows_testing::NoWeights>());
  SessionOptions o;
  o.backends = {cpu.get()};
  Session session(program, weights, o);
  std::vector<Tensor> tensors;
  for (const Shape& s : inputs) {
    tensors.emplace_back(DType::f32, s);
    for (size_t i = 0; i < static_cast<size_t>(s.elements()); i++)
      tensors.back().at<float>(i) = static_cast<float>(i + 1);
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : tensors) pointers.push_back(&t);
  std::vector<Tensor> out;
  session.run("main", pointers, out);
  return out;
}

TEST(Pooling, CeilDropsWindowsThatStartInTheRightPad) {
  const auto y = run_counting(
      "(x: f32[1, 1, 5]) -> (a: f32[1, 1, ?], b: f32[1, 1, ?])\na = pool(x) kernel=[1] strides=[2] ceil\nb = "
      "pool(x) "
      "kernel=[2] strides=[3] pads=[1, 1] ceil\n",
      {{1, 1, 5}});
  EXPECT_EQ(y[0], Tensor::f32({1, 1, 3}, {1, 3, 5}));
  EXPECT_EQ(y[1], Tensor::f32({1, 1, 2}, {1, 4}));
}

TEST(Pooling, DivisorsNeverCountTheOvershoot) {
  // Windows over [pad 1 2 3 4 5 pad]: {pad 1 2}, {2 3 4}, {4 5 pad}; stride 3, size 6: the last one
  // overshoots.
  const auto y = run_counting(
      "(x: f32[1, 1, 5], z: f32[1, 1, 6]) -> (a: f32[1, 1, ?], b: f32[1, 1, ?], c: f32[1, 1, ?])\na = "
      "pool(x) "
      "kind=average kernel=[3] strides=[2] pads=[1, 1] count_pad\nb = pool(x) kind=average kernel=[3] "
      "strides=[2] "
      "pads=[1, 1]\nc = pool(z) kind=average kernel=[4] strides=[3] pads=[1, 0] count_pad ceil\n",
      {{1, 1, 5}, {1, 1, 6}});
  EXPECT_EQ(y[0], Tensor::f32({1, 1, 3}, {1, 3, 3}));
  EXPECT_EQ(y[1], Tensor::f32({1, 1, 3}, {1.5, 3, 4.5}));
  EXPECT_EQ(y[2], Tensor::f32({1, 1, 2}, {1.5, 4.5}));
}

TEST(Pooling, IndicesAreFlatAndMayBeColumnMajor) {
  const auto y = run_counting(
      "(x: f32[1, 2, 3, 4]) -> (a: f32[1, 2, ?, ?], i: i64[1, 2, ?, ?], b: f32[1, 2, ?, ?], j: i64[1, 2, ?, "
      "?])\n"
      "a, i = pool(x) kernel=[2, 2] strides=[2, 2]\nb, j = pool(x) kernel=[2, 2] strides=[2, 2] "
      "column_major\n",
      {{1, 2, 3, 4}});
  EXPECT_EQ(y[0], Tensor::f32({1, 2, 1, 2}, {6, 8, 18, 20}));
  EXPECT_EQ(y[1], Tensor::i64({1, 2, 1, 2}, {5, 7, 17, 19}));
  EXPECT_EQ(y[3], Tensor::i64({1, 2, 1, 2}, {4, 10, 16, 22}));
}

TEST(ConvTranspose, AutoPadAndOutputShape) {
  // numpy: full result of x = 1 2 3, w = 1 2 3, stride 2 is 1 2 5 4 9 6 9 (in − 1) · 2 + 3 = 7 long.
  const auto y = run_counting(
      "(x: f32[1, 1, 3], w: f32[1, 1, 3]) -> (a: f32[1, 1, ?], b: f32[1, 1, ?], c: f32[1, 1, ?], d: f32[1, "
      "1, ?])\n"
      "a = conv_transpose1d(x, w) strides=[2]\nb = conv_transpose1d(x, w) strides=[2] auto_pad=same_upper\nc "
      "= "
      "conv_transpose1d(x, w) strides=[2] auto_pad=same_lower\nd = conv_transpose1d(x, w) strides=[2] "
      "output_shape=[9]\n",
      {{1, 1, 3}, {1, 1, 3}});
  EXPECT_EQ(y[0], Tensor::f32({1, 1, 7}, {1, 2, 5, 4, 9, 6, 9}));
  EXPECT_EQ(y[1], Tensor::f32({1, 1, 6}, {1, 2, 5, 4, 9, 6}));
  EXPECT_EQ(y[2], Tensor::f32({1, 1, 6}, {2, 5, 4, 9, 6, 9}));
  EXPECT_EQ(y[3], Tensor::f32({1, 1, 9}, {1, 2, 5, 4, 9, 6, 9, 0, 0}));
}

TEST(Conv, AutoPad) {
  const auto y = run_counting(
      "(x: f32[1, 1, 4], w: f32[1, 1, 2]) -> (a: f32[1, 1, ?], b: f32[1, 1, ?], c: f32[1, 1, ?])\na = "
      "conv1d(x, w) "
      "auto_pad=same_upper\nb = conv1d(x, w) auto_pad=same_lower\nc = conv1d(x, w) auto_pad=valid\n",
      {{1, 1, 4}, {1, 1, 2}});
  EXPECT_EQ(y[0], Tensor::f32({1, 1, 4}, {5, 8, 11, 4}));
  EXPECT_EQ(y[1], Tensor::f32({1, 1, 4}, {2, 5, 8, 11}));
  EXPECT_EQ(y[2], Tensor::f32({1, 1, 3}, {5, 8, 11}));
}

TEST(Conv, WrongShapesAreRefused) {
  const char* graphs[] = {
      "(x: f32[1, 4, 9], w: f32[2, 3, 3]) -> (y: f32[1, 2, ?])\ny = conv1d(x, w)\n",
      "(x: f32[1, 4, 9], w: f32[3, 2, 3]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w) groups=2\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 10]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w)\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 3]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w) strides=[0]\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 3]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w) pads=[1]\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 3]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w) pads=[-1, 0]\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 3]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w) "
      "dilations=[9223372036854775807]\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 3], b: f32[2]) -> (y: f32[1, 3, ?])\ny = conv1d(x, w, b)\n",
      "(x: f32[1, 4, 9], w: f32[3, 4, 3]) -> (y: f32[1, 3, ?])\ny = conv2d(x, w)\n",
      "(x: i32[1, 4, 9], w: i32[3, 4, 3]) -> (y: i32[1, 3, ?])\ny = conv1d(x, w)\n",
      "(x: f32[1, 4, 9], w: f32[4, 3, 3]) -> (y: f32[1, 9, ?])\ny = conv_transpose1d(x, w) groups=3\n",
      "(x: f32[1, 4, 9]) -> (y: f32[1, 4, ?])\ny = pool(x) kernel=[12]\n",
      "(x: f32[1, 4, 9]) -> (y: f32[1, 4, ?])\ny = pool(x) kernel=[3, 3]\n",
      "(x: f32[1, 4, 9]) -> (y: f32[1, 4, ?], i: i64[1, 4, ?])\ny, i = pool(x) kernel=[3] kind=average\n"};
  for (const char* g : graphs)
    EXPECT_THROW(ir::parse(std::string("ir 1\ngraph main") + g, "test"), Error) << g;
}

}  // namespace
}  // namespace cyb
