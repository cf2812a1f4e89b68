// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"

#include <gtest/gtest.h>

#include "ir/fold_lines.h"

namespace cyb::ir {
namespace {

void expect_round_trip(const std::string& text) {
  const std::string once = print(parse(text, "test"));
  EXPECT_EQ(once, text);
  EXPECT_EQ(print(parse(once, "again")), once);
}

std::string message_of(const std::string& text) {
  try {
    parse(text, "p");
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(Text, PrintsWhatItParsed) {
  expect_round_trip(R"(ir 1
state kv.0: kv(heads=3, k_dim=64, v_dim=64)
state kv.1: kv(heads=3, k_dim=64, v_dim=64, window=5)
weight @"onnx::Conv_8243": f32[64]
weight @model.w: f32[128, 64]
graph decode(tokens: i32[B, T], %"x y": f32[B, T, 64]) -> (y: f32[B, T, 128], last = n: f32[B, T, 64])
c1 = const i64[3] [1, -1, 9223372036854775807]
c2 = const f32[] -inf
c3 = const bool[2] [true, false]
c4 = const string[1] ["a \"b\" \\ \n"]
n = rms_norm(%"x y", @"onnx::Conv_8243") eps=1e-06 offset=1
y = matmul(n, @model.w)
)");
}

TEST(Text, PrintsRegionsAndDataSymbols) {
  expect_round_trip(R"(ir 1
graph main(x: f32[N], c: bool[], trips: i64[]) -> (n: i64[1, ?k], r: f32[N], s: f32[?])
one = const f32[] 1
n = non_zero(x) : i64[1, ?k]
r = if(c) {
  () -> (a: f32[N])
  a = add(x, one)
} else {
  () -> (b: f32[N])
  b = mul(x, one)
}
total, s = loop(trips, _, one) carried=1 {
  (i: i64[], going: bool[], acc: f32[]) -> (going: bool[], next: f32[], acc: f32[])
  next = add(acc, one)
}
)");
}

TEST(Text, LoopsUnfoldAndFoldAgain) {
  const std::string looped = R"(ir 1
for i in 0..3 {
  state kv.{i}: kv(heads=1, k_dim=4, v_dim=4)
}
weight @w: f32[4, 4]
graph main(x.0: f32[B, 4]) -> (x.6: f32[B, 4])
for i in 0..6 by 2 {
  x.{i+1} = matmul(x.{i}, @w)
  x.{i+2} = relu(x.{i+1})
}
)";
  const Program p = parse(looped, "test");
  EXPECT_EQ(p.states.size(), 3u);
  EXPECT_EQ(p.graphs[0].nodes.size(), 6u);
  const std::string folded = print(p, {.fold_loops = true});
  EXPECT_EQ(print(parse(folded, "folded")), print(p));
  EXPECT_NE(folded.find("for i in"), std::string::npos);
}

TEST(Text, ErrorsNameLineColumnAndWhatWasExpected) {
  EXPECT_EQ(message_of("ir 2\n"),
            "p, line 1, column 1: version 2 of the text form; this program reads version 1");
  EXPECT_EQ(message_of("ir 1\ngraph g(x: f33[2]) -> ()\n"), "p, line 2, column 12: unknown element type");
  EXPECT_EQ(message_of("ir 1\ngraph g(x: f32[2]) -> (y: f32[2])\ny = relu(z)\n"),
            "p, line 3, column 10: 'z' is not defined");
  EXPECT_EQ(message_of("ir 1\ngraph g(x: f32[2]) -> (y: f32[2])\ny = relu(x) fast\n"),
            "p, line 3, column 13: 'relu' has no attribute 'fast'");
  EXPECT_EQ(message_of("ir 1\ngraph g(x: f32[2]) -> (y: f32[2])\ny = nope(x)\n"),
            "p, line 3, column 5: unknown operator 'nope'");
  EXPECT_EQ(message_of("ir 1\ngraph g(x: f32[2]) -> (y: f32[3])\ny = relu(x)\n"),
            "p, line 2, column 24: output 'y' is f32[2], not f32[3]");
  EXPECT_NE(message_of("ir 1\ngraph g(x: f32[2]) -> (y: f32[2])\ny = relu(x, x)\n")
                .find("does not take 2 operands"),
            std::string::npos);
  EXPECT_NE(message_of("ir 1\ngraph g(x: f32[2]) -> (y: f32[2])\ny = noise_schedule(x)\n").find("reserved"),
            std::string::npos);
  EXPECT_NE(
      message_of("ir 1\nfor i in 0..3 {\nstate a: kv(heads=1, k_dim=1, v_dim=1)\n").find("without its '}'"),
      std::string::npos);
}

TEST(Text, LoopsOfHostileTextAreBounded) {
  std::string text = "ir 1\n";
  for (int i = 0; i < 7; i++) text += "for " + std::string(1, static_cast<char>('a' + i)) + " in 0..1000 {\n";
  text += "x\n";
  for (int i = 0; i < 7; i++) text += "}\n";
  EXPECT_NE(message_of(text).find("too large"), std::string::npos);
  std::string deep = "ir 1\n";
  for (int i = 0; i < 40; i++) deep += "for i in 0..1 {\n";
  EXPECT_NE(message_of(deep).find("too deeply"), std::string::npos);
}

TEST(Text, StatesAreWrittenOnceInAGraph) {
  EXPECT_NE(message_of(R"(ir 1
state kv: kv(heads=1, k_dim=4, v_dim=4)
graph g(q: f32[B, T, 1, 4]) -> (b: f32[B, T, 1, 4])
a = sdpa(q, q, q, kv) causal
b = sdpa(a, a, a, kv) causal
)")
                .find("written twice"),
            std::string::npos);
}

}  // namespace
}  // namespace cyb::ir
