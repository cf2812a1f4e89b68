// SPDX-License-Identifier: Apache-2.0
#include "ir/dot.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace cyb::ir {
namespace {

void holds(const std::string& dot, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(dot.find(part), std::string::npos) << part << "\nin\n" << dot;
}

TEST(Dot, nodes_attributes_weights_and_types) {
  const Program p = parse(
      "ir 1\nweight @w: f32[8, 4]\ngraph main(x: f32[B, 4]) -> (y: f32[B, 8])\nt = const f32[] 0.5\n"
      "a = matmul(x, @w)\nb = mul(a, t)\ny = leaky_relu(b) alpha=0.2\n",
      "t");
  const std::string dot = print_dot(p, p.graphs[0]);
  holds(dot, {"digraph \"main\" {", "label=\"x\\nf32[B, 4]\"", "matmul\\nw f32[8, 4]", "mul\\nb 0.5",
              "leaky_relu\\nalpha=0.2", "g_v0 -> g_n0 [label=\"f32[B, 4]\"]",
              "g_n2 -> g_out0 [label=\"f32[B, 8]\"]"});
}

TEST(Dot, regions_are_frames_and_read_the_graph_around) {
  const Program p = parse(
      "ir 1\ngraph main(x: f32[N], c: bool[]) -> (r: f32[N])\none = const f32[] 1\nz = neg(x)\nr = if(c) {\n "
      " () -> (a: f32[N])\n "
      " a = add(z, "
      "x)\n} else {\n  () -> (b: f32[N])\n  b = add(z, one)\n}\n",
      "t");
  const std::string dot = print_dot(p, p.graphs[0]);
  holds(dot,
        {"subgraph cluster_g_n1r0 {", "label=\"then\"", "subgraph cluster_g_n1r1 {", "label=\"else\"",
         "g_n0 -> g_n1r0_n0 [label=\"f32[N]\"]", "\n  g_v0 -> g_n1r0_n0", "g_n0 -> g_n1r1_n0", "add\\nb 1"});
}

TEST(Dot, names_cannot_leave_their_strings) {
  const Program p = parse(
      "ir 1\ngraph main(%\"a\\\"];\\nb\\\\\": f32[]) -> (y: f32[])\ny = neg(%\"a\\\"];\\nb\\\\\")\n", "t");
  holds(print_dot(p, p.graphs[0]), {"label=\"a\\\"];\\nb\\\\\\nf32[]\""});
}

TEST(Dot, large_graphs_have_their_types_in_the_boxes) {
  std::string text =
      "ir 1\ngraph main(x.0: f32[2]) -> (x.900: f32[2])\nfor i in 0..900 {\n  x.{i+1} = neg(x.{i})\n}\n";
  const Program p = parse(text, "t");
  const std::string dot = print_dot(p, p.graphs[0]);
  holds(dot, {"splines=line", "neg\\n→ f32[2]", "[tooltip=\"f32[2]\"]"});
  EXPECT_EQ(dot.find("-> g_n1 [label"), std::string::npos);
}

}  // namespace
}  // namespace cyb::ir
