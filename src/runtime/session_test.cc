// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/cpu.h"

namespace cyb {
namespace {

struct NoWeights final : WeightSource {
  const TensorSpec* find(const std::string&) const override { return nullptr; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override { return {}; }
};

struct Fixture {
  explicit Fixture(const std::string& text, int slots = 1)
      : program(ir::parse(text, "test")),
        weights(std::make_shared<NoWeights>()),
        backend(make_cpu_backend(2)) {
    SessionOptions o;
    o.backends = {backend.get()};
    o.precision.exact = true;
    o.states.slots = slots;
    session = std::make_unique<Session>(program, weights, o);
  }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const std::string& graph = "main") {
    std::vector<const Tensor*> in;
    for (const Tensor& t : inputs) in.push_back(&t);
    std::vector<Tensor> out;
    session->run(graph, in, out);
    return out;
  }
  ir::Program program;
  WeightStore weights;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Session> session;
};

Tensor boolean(bool v) {
  Tensor t(DType::boolean, {});
  t.at<uint8_t>(0) = v;
  return t;
}

const char* const kControl = R"(ir 1
graph main(x: f32[N], c: bool[], trips: i64[]) -> (n: i64[1, ?k], r: f32[N], total: f32[], steps: f32[?], picked: f32[?])
one = const f32[] 1
zero = const i64[] 0
n = non_zero(x) : i64[1, ?k]
flat = reshape(n) shape=[-1]
picked = gather(x, flat) axis=0
r = if(c) {
  () -> (a: f32[N])
  a = add(x, one)
} else {
  () -> (b: f32[N])
  two = add(one, one)
  b = mul(x, two)
}
sum = reduce_sum(r)
total, steps = loop(trips, _, sum) carried=1 {
  (i: i64[], going: bool[], acc: f32[]) -> (going: bool[], next: f32[], acc: f32[])
  next = add(acc, one)
}
)";

TEST(Session, PlansOfSeveralShapesShareMemory) {
  Fixture f(R"(ir 1
graph main(x: f32[N, 3]) -> (y: f32[N, 3], z: f32[1, 3])
k = const f32[1, 3] [1, 2, 3]
y = mul(x, k)
z = exp(k)
)");
  for (int64_t n : {2, 5, 2, 700, 5, 1, 700, 2}) {
    Tensor x(DType::f32, {n, 3});
    for (int64_t i = 0; i < x.elements(); i++) x.at<float>(static_cast<size_t>(i)) = static_cast<float>(i);
    const auto out = f.run({x});
    for (int64_t i = 0; i < x.elements(); i++)
      ASSERT_EQ(out[0].at<float>(static_cast<size_t>(i)), static_cast<float>(i * (i % 3 + 1))) << n;
  }
  // The largest shape's memory serves all of them.
  EXPECT_LE(f.session->memory("main").arena_bytes, 700u * 3 * 4 * 4);
}

TEST(Session, MovesAndComparesStrings) {
  Fixture f(R"(ir 1
graph main(x: string[N], y: string[2], i: i64[M]) -> (e: bool[N], p: string[M], z: f32[N])
e = equal(x, y)
both = concat(y, x) axis=0
p = gather(both, i) axis=0
f = cast(e) to=f32
z = add(f, f)
)");
  Tensor x(DType::string, {2}), y(DType::string, {2}), want(DType::string, {3});
  x.strings() = {"a", "ü"};
  y.strings() = {"b", "ü"};
  want.strings() = {"ü", "a", "ü"};
  for (int round = 0; round < 2; round++) {
    const auto out = f.run({x, y, Tensor::i64({3}, {3, 2, 1})});
    EXPECT_EQ(out[0].integer(0), 0);
    EXPECT_EQ(out[0].integer(1), 1);
    EXPECT_EQ(out[1], want);
    EXPECT_EQ(out[2], Tensor::f32({2}, {0, 2}));
  }
}

TEST(Session, JoinsSplitsNormalizesAndMatchesStrings) {
  Fixture f(R"(ir 1
graph main(x: string[N], y: string[1]) -> (j: string[N], p: string[N, ?], n: i64[N], w: string[?], m: bool[N])
j = string_concat(x, y)
p, n = string_split(j) delimiter="-" most=1
s = const string[1] ["B-a"]
w = string_normalize(x, s) change=upper
m = regex_full_match(x) pattern="[a-c]-.*"
)");
  Tensor x(DType::string, {2}), y(DType::string, {1});
  x.strings() = {"b-a", "\u00fc"};
  y.strings() = {"-z"};
  for (int round = 0; round < 2; round++) {
    const auto out = f.run({x, y});
    EXPECT_EQ(out[0].strings(), (std::vector<std::string>{"b-a-z", "\u00fc-z"}));
    EXPECT_EQ(out[1].strings(), (std::vector<std::string>{"b", "a-z", "\u00fc", "z"}));
    EXPECT_EQ(out[2], Tensor::i64({2}, {2, 2}));
    EXPECT_EQ(out[3].strings(), (std::vector<std::string>{"\u00dc"}));
    EXPECT_EQ(out[4].integer(0), 1);
    EXPECT_EQ(out[4].integer(1), 0);
  }
}

TEST(Session, StringsAreNotCombined) {
  Fixture f(R"(ir 1
graph main(x: string[2], i: i64[1], u: string[1]) -> (y: string[2])
y = scatter_elements(x, i, u) reduction=add
)");
  Tensor x(DType::string, {2}), u(DType::string, {1});
  x.strings() = {"a", "b"};
  u.strings() = {"c"};
  EXPECT_THROW(f.run({x, Tensor::i64({1}, {1}), u}), Error);
}

TEST(Session, OtherOperatorsRefuseStrings) {
  try {
    Fixture f("ir 1\ngraph main(x: string[N]) -> (y: string[N])\ny = add(x, x)\n");
    Tensor x(DType::string, {1});
    x.strings() = {"a"};
    f.run({x});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::UnsupportedOp);
    EXPECT_NE(e.message().find("strings"), std::string::npos);
  }
}

TEST(Session, RunsIfLoopAndNonZero) {
  Fixture f(kControl);
  for (int round = 0; round < 3; round++) {  // later rounds use kept plans
    auto out = f.run({Tensor::f32({4}, {0, 3, 0, 5}), boolean(true), Tensor::i64({}, {3})});
    EXPECT_EQ(out[0], Tensor::i64({1, 2}, {1, 3}));
    EXPECT_EQ(out[1], Tensor::f32({4}, {1, 4, 1, 6}));
    EXPECT_EQ(out[2].at<float>(0), 15);
    EXPECT_EQ(out[3], Tensor::f32({3}, {12, 13, 14}));
    EXPECT_EQ(out[4], Tensor::f32({2}, {3, 5}));
    out = f.run({Tensor::f32({2}, {7, 0}), boolean(false), Tensor::i64({}, {0})});
    EXPECT_EQ(out[0], Tensor::i64({1, 1}, {0}));
    EXPECT_EQ(out[1], Tensor::f32({2}, {14, 0}));
    EXPECT_EQ(out[2].at<float>(0), 14);
    EXPECT_EQ(out[3].elements(), 0);
  }
}

// A region's nodes are looked at with the region's values, of which there may be more than in the graph
// around.
TEST(Session, RegionsAreLargerThanTheirGraph) {
  std::string steps = "a0 = exp(x)\n";
  for (int i = 1; i < 200; i++) steps += fmt::format("a{} = add(a{}, x)\n", i, i - 1);
  Fixture f(fmt::format(R"(ir 1
graph main(x: f32[N], c: bool[]) -> (r: f32[N])
r = if(c) {{
  () -> (a199: f32[N])
{}}} else {{
  () -> (b: f32[N])
  b = neg(x)
}}
)",
                        steps));
  const auto out = f.run({Tensor::f32({2}, {0, 0}), boolean(true)});
  EXPECT_EQ(out[0], Tensor::f32({2}, {1, 1}));
}

TEST(Session, ShapeArithmeticStaysOnTheHost) {
  Fixture f(R"(ir 1
graph main(x: f32[A, B]) -> (y: f32[?, ?])
s = shape(x)
zero = const i64[1] [0]
one = const i64[1] [1]
two = const i64[1] [2]
rows = slice(s, zero, one)
columns = slice(s, one, two)
doubled = mul(columns, two)
half = div(rows, two)
wanted = concat(half, doubled) axis=0
y = reshape(x, wanted)
)");
  const auto out = f.run({Tensor::f32({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})});
  EXPECT_EQ(to_string(out[0].shape()), "[2, 6]");
  // Nothing of it reaches a kernel.
  const std::string plan = f.session->explain("main");
  EXPECT_EQ(plan.find("cpu: binary", plan.find("segment of nodes")), std::string::npos);
}

TEST(Session, GraphsShareStates) {
  Fixture f(R"(ir 1
state past: kv(heads=1, k_dim=4, v_dim=4)
state cross: kv(heads=1, k_dim=4, v_dim=4)
graph encode(x: f32[B, T, 1, 4]) -> ()
kv_cache(x, x, cross)
graph decode(x: f32[B, T, 1, 4]) -> (y: f32[B, T, 1, 4])
a = sdpa(x, x, x, past) causal
y = sdpa(a, cross)
)");
  std::vector<float> v(12);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i % 5) - 2;
  f.run({Tensor::f32({1, 3, 1, 4}, v)}, "encode");
  const auto whole = f.run({Tensor::f32({1, 3, 1, 4}, v)}, "decode");
  EXPECT_EQ(f.session->length(0), 3);
  EXPECT_EQ(f.session->truncate(0, 1), 1);
  EXPECT_EQ(f.session->length(0, "encode"), 3);
  const auto rest = f.run({Tensor::f32({1, 2, 1, 4}, {v.begin() + 4, v.end()})}, "decode");
  for (size_t i = 0; i < 8; i++) EXPECT_EQ(rest[0].at<float>(i), whole[0].at<float>(4 + i));
}

TEST(Session, ALayerMayReadAnothersCache) {
  Fixture f(R"(ir 1
state past: kv(heads=1, k_dim=4, v_dim=4)
graph decode(x: f32[B, T, 1, 4]) -> (a: f32[B, T, 1, 4], b: f32[B, T, 1, 4])
a = sdpa(x, x, x, past) causal
b = sdpa(x, past) causal
)");
  std::vector<float> v(16);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i % 7) - 3;
  for (size_t at : {size_t{0}, size_t{12}}) {
    const int64_t n = at == 0 ? 3 : 1;
    const auto out = f.run({Tensor::f32({1, n, 1, 4}, {v.begin() + static_cast<long>(at),
                                                       v.begin() + static_cast<long>(at) + n * 4})},
                           "decode");
    EXPECT_EQ(out[0], out[1]);
  }
}

TEST(Session, TheArenaIsCloseToTheLargestLiveSet) {
  // A chain with branches of several sizes: what a plan must not waste.
  std::string text = "ir 1\ngraph main(x0: f32[64, N]) -> (y: f32[64, N])\n";
  for (int i = 0; i < 24; i++) {
    const std::string x = "x" + std::to_string(i), n = std::to_string(i);
    text += "a" + n + " = concat(" + x + ", " + x + (i % 3 ? ", " + x : "") + ") axis=0\n";
    text += "b" + n + " = exp(a" + n + ")\n";
    text += "c" + n + ", d" + n + (i % 3 ? ", e" + n : "") + " = split(b" + n + ") axis=0\n";
    text += "x" + std::to_string(i + 1) + " = add(c" + n + ", d" + n + ")\n";
  }
  text += "y = neg(x24)\n";
  Fixture f(text);
  // So large that values of one size get no places of their own.
  f.run({Tensor(DType::f32, {64, 20000})});
  const auto memory = f.session->memory("main");
  EXPECT_GE(memory.live_bytes, 64u * 20000 * 4 * 6);
  EXPECT_LE(static_cast<double>(memory.arena_bytes), 1.2 * static_cast<double>(memory.live_bytes));
}

TEST(Session, ExplainsWhatWasSkippedAndWhy) {
  const ir::Program program = ir::parse("ir 1\ngraph main(x: f32[N]) -> (y: f32[N])\ny = silu(x)\n", "test");
  WeightStore weights(std::make_shared<NoWeights>());
  auto plain = make_cpu_backend(1, Isa::scalar);
  SessionOptions o;
  o.backends = {plain.get()};
  Session session(program, weights, o);
  const Tensor x = Tensor::f32({2}, {0, 1});
  const Tensor* inputs[] = {&x};
  std::vector<Tensor> out;
  session.run("main", inputs, out);
  EXPECT_NE(session.explain("main").find("activation_plain; skipped"), std::string::npos)
      << session.explain("main");
  EXPECT_NE(session.explain("main").find("the processor lacks its instructions"), std::string::npos);
}

TEST(Session, ThePositionsOfAStateAreCountedWithTheirScales) {
  const ir::Program program = ir::parse(
      "ir 1\nstate a: kv(heads=2, k_dim=40, v_dim=64)\nstate b: kv(heads=2, k_dim=40, v_dim=64, window=512)\n"
      "state c: tensor(f32[B, 7])\n",
      "test");
  auto cpu = make_cpu_backend(1);
  const auto bytes = [&](size_t state, Precision precision) {
    return cpu->position_bytes(program.states[state], precision);
  };
  EXPECT_EQ(bytes(0, {}), 2u * (40 + 64) * 2);
  EXPECT_EQ(bytes(0, {.exact = true}), 2u * (40 + 64) * 4);
  EXPECT_EQ(bytes(0, {.kv = DType::i8}), 2u * (40 + 5 * 2 + 64 + 2 * 2));
  EXPECT_EQ(bytes(1, {}), 0u);
  EXPECT_EQ(bytes(2, {}), 0u);
}

TEST(Session, RefusesWhatDoesNotFit) {
  Fixture f(kControl);
  try {
    f.run({Tensor::f32({1, 1}, {0}), boolean(true), Tensor::i64({}, {3})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::ShapeMismatch);
    EXPECT_EQ(e.message(), "graph 'main': input 'x' is f32[N], f32[1, 1] was given");
  }
  EXPECT_THROW(f.run({}, "nothing"), Error);
}

}  // namespace
}  // namespace cyb
