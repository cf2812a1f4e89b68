// SPDX-License-Identifier: Apache-2.0
// Every operator through graphs: the kernels that this machine chooses beside the reference rows, over odd
// shapes, attributes and optional operands.
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using rows_testing::Case;
using rows_testing::NoWeights;

const Tensor kLengths = Tensor::i32({2}, {7, 4});
const char* const kKv = "state kv: kv(heads=2, k_dim=24, v_dim=20)\n";
const char* const kWindow = "state kv: kv(heads=2, k_dim=24, v_dim=20, window=5)\n";
const Shape kQ{2, 7, 4, 24}, kK{2, 7, 2, 24}, kV{2, 7, 2, 20};
const char* const kAttention =
    "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], n: i32[B]) -> (y: f32[B, T, 4, 20])\n";

std::vector<Case> cases() {
  std::vector<Case> all;
  auto attention = [&](const char* name, const std::string& op, const char* states = "", int runs = 1) {
    static std::vector<std::unique_ptr<std::string>> kept;
    kept.push_back(
        std::make_unique<std::string>(std::string(kAttention) + "y = sdpa(q, k, v, n" + op + "\n"));
    all.push_back({name, kept.back()->c_str(), {kQ, kK, kV}, {kLengths}, states, runs});
  };
  attention("encoder", ")");
  attention("two-sided window", ") window=6");
  attention("causal", ") causal scale=0.3");
  attention("causal window", ") causal window=3");
  attention("soft-cap", ") causal softcap=1.5");
  attention("state", ", kv) causal", kKv, 4);
  all.push_back({"linear recurrence",
                 "(x: f32[B, T, 12], f: f32[B, T, 12], n: i32[B]) -> (y: f32[B, T, 12])\ny = "
                 "linear_recurrence(x, f, n, c)\n",
                 {{2, 7, 12}, {2, 7, 12}},
                 {kLengths},
                 "state c: tensor(f32[B, 12])\n",
                 3});
  attention("window state", ", kv) causal window=5", kWindow, 5);
  const char* operands[][2] = {
      {"bias",
       "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], b: f32[1, 4, T, T], n: i32[B]) -> "
       "(y: f32[B, T, 4, 20])\ny = sdpa(q, k, v, n, b) causal\n"},
      {"bias of a batch",
       "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], b: f32[B, 1, T, T], n: i32[B]) -> "
       "(y: f32[B, T, 4, 20])\ny = sdpa(q, k, v, n, b)\n"}};
  all.push_back({operands[0][0], operands[0][1], {kQ, kK, kV, {1, 4, 7, 7}}, {kLengths}});
  all.push_back({operands[1][0], operands[1][1], {kQ, kK, kV, {2, 1, 7, 7}}, {kLengths}});
  all.push_back({"prefix",
                 "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], p: i32[B]) -> (y: f32[B, "
                 "T, 4, 20])\ny = sdpa(q, k, v, _, _, p) causal\n",
                 {kQ, kK, kV},
                 {Tensor::i32({2}, {3, 0})}});
  all.push_back({"segments",
                 "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], s: i32[B, T]) -> (y: "
                 "f32[B, T, 4, 20])\ny = sdpa(q, k, v, _, _, _, s)\n",
                 {kQ, kK, kV},
                 {Tensor::i32({2, 7}, {0, 0, 1, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 1})}});
  all.push_back({"sinks and slopes",
                 "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], s: f32[4], a: f32[4]) -> "
                 "(y: f32[B, T, 4, 20])\ny = sdpa(q, k, v, _, _, _, _, s, a) causal\n",
                 {kQ, kK, kV, {4}, {4}},
                 {}});
  all.push_back(
      {"T5 buckets",
       "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], w: f32[8, 4]) -> (y: f32[B, T, 4, "
       "20])\ny = sdpa(q, k, v, _, _, _, _, _, _, w) buckets=8 max_distance=6 bidirectional_buckets\n",
       {kQ, kK, kV, {8, 4}},
       {}});
  all.push_back({"probabilities",
                 "(q: f32[B, T, 4, 24], k: f32[B, T, 2, 24], v: f32[B, T, 2, 20], n: i32[B]) -> (y: f32[B, "
                 "T, 4, 20], p: f32[B, 2, T, T])\ny, p = sdpa(q, k, v, n) causal probabilities=[1, 3]\n",
                 {kQ, kK, kV},
                 {kLengths}});
  all.push_back({"cross",
                 "(q: f32[B, T, 4, 24], k: f32[B, S, 2, 24], v: f32[B, S, 2, 20]) -> (y: f32[B, T, 4, "
                 "20])\nkv_cache(k, v, kv)\ny = sdpa(q, kv)\n",
                 {kQ, {2, 5, 2, 24}, {2, 5, 2, 20}},
                 {},
                 kKv,
                 2});
  all.push_back({"rope",
                 "(x: f32[B, T, 3, 26], p: i32[B, T]) -> (a: f32[B, T, 3, 26], b: f32[B, T, 3, 26], c: "
                 "f32[B, T, 3, 26])\na = rope(x, p)\nb = rope(x, p) pairing=interleaved theta=500\nc = "
                 "rope(x, p) dims=12 scaling=linear factor=4\n",
                 {{2, 3, 3, 26}},
                 {Tensor::i32({2, 3}, {0, 1, 100000, 7, 8, 9})}});
  all.push_back({"norms",
                 "(x: f32[A, B, 37], w: f32[37], b: f32[37]) -> (r: f32[A, B, 37], o: f32[A, B, 37], l: "
                 "f32[A, B, 37], s: f32[A, B, 37], n: f32[A, B, 37])\nr = rms_norm(x, w)\no = rms_norm(x, w) "
                 "offset=1 eps=1e-06\nl = layer_norm(x, w, b)\ns, n = fused_skip_norm(x, x, w)\n",
                 {{3, 5, 37}, {37}, {37}},
                 {}});
  all.push_back({"activations",
                 "(x: f32[N], z: f32[N]) -> (a: f32[N], b: f32[N], c: f32[N], d: f32[N], e: f32[N], f: "
                 "f32[N], g: f32[N], h: f32[N], i: f32[N], j: f32[N])\na = silu(x)\nb = gelu(x)\nc = gelu(x) "
                 "form=tanh\nd = gelu(x) form=quick\ne = soft_cap(x) cap=0.5\nf = softmax(x)\ng = swi_glu(x, "
                 "z)\nh = ge_glu(x, z) form=tanh\ni = leaky_relu(x) alpha=0.2\nj = tanh(x)\n",
                 {{101}, {101}},
                 {}});
  all.push_back({"products",
                 "(x: f32[2, 1, 5, 33], w: f32[3, 9, 33], y: f32[3, 33, 9], v: f32[33]) -> (a: f32[2, 3, 5, "
                 "9], b: f32[2, 3, 5, 9], c: f32[2, 1, 5], d: f32[3, 9])\na = matmul(x, w)\nb = matmul(x, y) "
                 "form=nn\nc = matmul(x, v) form=nn\nd = matmul(v, y) form=nn\n",
                 {{2, 1, 5, 33}, {3, 9, 33}, {3, 33, 9}, {33}},
                 {}});
  all.push_back({"arithmetic",
                 "(x: f32[4, 1, 7], y: f32[5, 1]) -> (a: f32[4, 5, 7], b: f32[4, 5, 7], c: f32[4, 5, 7], d: "
                 "f32[4, 5, 7])\na = add(x, y)\nb = sub(x, y)\nc = mul(x, y)\nd = div(x, y)\n",
                 {{4, 1, 7}, {5, 1}},
                 {}});
  return all;
}

TEST(Rows, FastKernelsAreTheReference) { rows_testing::expect_rows_match(cases()); }

TEST(Rows, ThreadsKeepTheBits) { rows_testing::expect_threads_keep_bits(cases()); }

// One f32 weight as the file holds exact values.
struct OneWeight final : WeightSource {
  explicit OneWeight(std::vector<int64_t> shape) {
    spec.name = "w";
    spec.shape = std::move(shape);
    spec.bits = true;
    spec.frac_bits = 0;
    int64_t n = 1;
    for (const int64_t d : spec.shape) n *= d;
    for (int64_t i = 0; i < n; i++)
      values.push_back(static_cast<float>(philox_uniform(5, static_cast<uint64_t>(i)) - 0.5));
    spec.size = values.size() * 4;
  }
  const TensorSpec* find(const std::string&) const override { return &spec; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override {
    return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4};
  }
  TensorSpec spec;
  std::vector<float> values;
};

// A weight of more than two axes is no matrix: each batch has its own.
TEST(Rows, ProductsReadWeightsOfThreeAxes) {
  const ir::Program program = ir::parse(
      "ir 1\nweight @w: f32[3, 5, 7]\n"
      "graph main(x: f32[3, N, 7], y: f32[3, N, 5]) -> (a: f32[3, N, 5], b: f32[3, N, 7])\n"
      "a = matmul(x, @w)\nb = matmul(y, @w) form=nn\n",
      "test");
  const auto source = std::make_shared<OneWeight>(std::vector<int64_t>{3, 5, 7});
  Tensor x(DType::f32, {3, 2, 7}), y(DType::f32, {3, 2, 5});
  for (size_t i = 0; i < 42; i++) x.at<float>(i) = static_cast<float>(i % 11) - 4;
  for (size_t i = 0; i < 30; i++) y.at<float>(i) = static_cast<float>(i % 7) - 2;
  auto reference = rows_testing::reference_backend();
  auto fast = make_cpu_backend(2);
  for (Backend* backend : {reference.get(), fast.get()}) {
    WeightStore weights(source);
    SessionOptions o;
    o.backends = {backend};
    Session session(program, weights, o);
    const Tensor* inputs[] = {&x, &y};
    std::vector<Tensor> out;
    session.run("main", inputs, out);
    for (size_t g = 0; g < 3; g++)
      for (size_t i = 0; i < 2; i++) {
        for (size_t n = 0; n < 5; n++) {
          double sum = 0;
          for (size_t k = 0; k < 7; k++)
            sum += double{x.at<float>((g * 2 + i) * 7 + k)} * source->values[(g * 5 + n) * 7 + k];
          EXPECT_NEAR(out[0].at<float>((g * 2 + i) * 5 + n), sum, 1e-5);
        }
        for (size_t n = 0; n < 7; n++) {
          double sum = 0;
          for (size_t k = 0; k < 5; k++)
            sum += double{y.at<float>((g * 2 + i) * 5 + k)} * source->values[(g * 5 + k) * 7 + n];
          EXPECT_NEAR(out[1].at<float>((g * 2 + i) * 7 + n), sum, 1e-5);
        }
      }
  }
}

// The activation and the residual that a product's last step takes in are those of nodes of their own.
TEST(Rows, FinishedProductsAreTheirParts) {
  const char* parts[] = {"y = gelu(a)\n", "y = relu(a)\n", "y = add(x, a)\n",
                         "y = fused_matmul(x, @w, _, _) act=tanh\n",
                         "b = silu(a)\nz = matmul(b, @w)\ny = add(z, x)\n"};
  for (const char* rest : parts) {
    const std::string text = std::string(
                                 "ir 1\nweight @w: f32[37, 37]\n"
                                 "graph main(x: f32[N, M, 37]) -> (y: f32[N, M, 37])\n"
                                 "a = matmul(x, @w)\n") +
                             rest;
    const ir::Program program = ir::parse(text, "test");
    const auto source = std::make_shared<OneWeight>(std::vector<int64_t>{37, 37});
    Tensor x(DType::f32, {3, 5, 37});
    for (size_t i = 0; i < 3 * 5 * 37; i++) x.at<float>(i) = static_cast<float>(i % 23) / 11 - 1;
    auto reference = rows_testing::reference_backend();
    auto fast = make_cpu_backend(2);
    std::vector<Tensor> found[2];
    for (size_t i = 0; i < 2; i++) {
      WeightStore weights(source);
      SessionOptions o;
      o.backends = {i == 0 ? reference.get() : fast.get()};
      Session session(program, weights, o);
      const Tensor* inputs[] = {&x};
      session.run("main", inputs, found[i]);
    }
    for (size_t i = 0; i < 3 * 5 * 37; i++)
      EXPECT_NEAR(found[1][0].at<float>(i), found[0][0].at<float>(i), 1e-5) << rest;
  }
}

TEST(Rows, EmbeddingsMayStandInPlaceOfTokens) {
  auto cpu = make_cpu_backend(1);
  const ir::Program program = ir::parse(R"(ir 1
state kv: kv(heads=1, k_dim=8, v_dim=8)
graph embed_tokens(tokens: i32[B, T], table: f32[9, 8]) -> (x: f32[B, T, 8])
x = token_embed(tokens, table)
graph decode(tokens: i32[B, T], table: f32[9, 8]) -> (y: f32[B, T, 1, 8])
x = token_embed(tokens, table)
h = reshape(x) shape=[0, 0, 1, 8]
y = sdpa(h, h, h, kv) causal
graph decode_embeds(embeds: f32[B, T, 8]) -> (y: f32[B, T, 1, 8])
h = reshape(embeds) shape=[0, 0, 1, 8]
y = sdpa(h, h, h, kv) causal
)",
                                        "test");
  WeightStore weights(std::make_shared<NoWeights>());
  SessionOptions o;
  o.backends = {cpu.get()};
  Session session(program, weights, o);
  Tensor table(DType::f32, {9, 8});
  for (size_t i = 0; i < 72; i++) table.at<float>(i) = static_cast<float>(philox_uniform(3, i) - 0.5);
  const Tensor tokens = Tensor::i32({1, 4}, {1, 8, 0, 5});
  std::vector<Tensor> by_token, embeds, by_embedding;
  const Tensor* inputs[] = {&tokens, &table};
  session.run("decode", inputs, by_token);
  session.reset(0);
  session.run("embed_tokens", inputs, embeds);
  const Tensor* first[] = {&embeds[0]};
  session.run("decode_embeds", first, by_embedding);
  EXPECT_EQ(by_token[0], by_embedding[0]);
  EXPECT_EQ(session.length(0, "decode_embeds"), 4);
}

}  // namespace
}  // namespace cyb
