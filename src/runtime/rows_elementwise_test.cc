// SPDX-License-Identifier: Apache-2.0
// Elementwise operators, activations and conversions through graphs: kernel rows beside the definitions.
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using rows_testing::Case;

// A graph that gives each of `lines` ("op(x) attrs") a result of type `type`.
Case lines_case(const char* name, const std::string& inputs, const std::vector<std::string>& lines,
                const std::string& type, std::vector<Shape> shapes, std::vector<Tensor> more = {}) {
  static std::vector<std::unique_ptr<std::string>> kept;
  std::string results, body;
  for (size_t i = 0; i < lines.size(); i++) {
    const std::string y = "y" + std::to_string(i);
    results += (i ? ", " : "") + y + ": " + type;
    body += y + " = " + lines[i] + "\n";
  }
  kept.push_back(std::make_unique<std::string>("(" + inputs + ") -> (" + results + ")\n" + body));
  Case c{name, kept.back()->c_str(), std::move(shapes), std::move(more)};
  return c;
}

Tensor special_floats() {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  return Tensor::f32({19}, {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 1.5f, 2.5f, -2.5f, inf, -inf, nan, 1e-42f, 3e38f,
                            -3e38f, 2147483648.0f, -2147483649.0f, 1e19f, 7.0e4f, -300.75f});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::vector<std::string> unary = {
      "neg(x)",   "abs(x)",      "sin(x)",     "cos(x)",        "floor(x)",        "ceil(x)",
      "round(x)", "sign(x)",     "exp(x)",     "reciprocal(x)", "softsign(x)",     "mish(x)",
      "relu(x)",  "softplus(x)", "silu(x)",    "hard_swish(x)", "hard_sigmoid(x)", "elu(x)",
      "erf(x)",   "tanh(x)",     "sigmoid(x)", "leaky_relu(x)", "is_nan(x)",       "is_inf(x)"};
  std::vector<std::string> floats(unary.begin(), unary.end() - 2);
  floats.push_back("clamp(x) min=-0.3 max=0.4");
  floats.push_back("clamp(x) min=-1");
  floats.push_back("elu(x) alpha=1.67 gamma=1.05");
  floats.push_back("hard_sigmoid(x) alpha=0.16666667 beta=0.5");
  for (int64_t n : {1, 15, 16, 1037})
    all.push_back(lines_case("unary", "x: f32[N]", floats, "f32[N]", {{n}}));
  const std::vector<std::string> exact = {"neg(x)",   "abs(x)",  "floor(x)",      "ceil(x)",
                                          "round(x)", "sign(x)", "reciprocal(x)", "clamp(x) min=-2 max=2",
                                          "sqrt(x)",  "relu(x)"};
  all.push_back(lines_case("special values", "x: f32[N]", exact, "f32[N]", {}, {special_floats()}));
  all.push_back(lines_case(
      "logarithm", "x: f32[N]", {"log(x)", "sin(x)", "cos(x)"}, "f32[N]", {},
      {Tensor::f32({9}, {0.0f, 1e-42f, 1e-38f, 0.9999999f, 1.0f, 1.0000001f, 3e38f, 12345.678f, 65535.9f})}));
  all.push_back({"positive",
                 "(x: f32[N]) -> (a: f32[N], b: f32[N], c: f32[N], d: f32[N], e: f32[N])\np = abs(x)\na = "
                 "log(p)\nb = sqrt(p)\nk = const f32[] 100000\nq = mul(x, k)\nc = sin(q)\nd = cos(q)\nl = "
                 "const f32[] 2000\nr = mul(x, l)\ne = cos(r)\n",
                 {{777}},
                 {}});
  all.push_back({"powers",
                 "(x: f32[3, N], y: f32[N]) -> (a: f32[3, N], b: f32[3, N], c: f32[3, N], d: f32[3, N], e: "
                 "f32[3, N])\nt = const f32[] 2\nh = const f32[1] [0.5]\nm = const f32[] -1\nu = const f32[] "
                 "3\np = abs(x)\na = pow(x, t)\nb = pow(p, h)\nc = pow(x, m)\nd = pow(p, y)\ne = pow(x, u)\n",
                 {{3, 35}, {35}},
                 {}});
  const std::pair<Shape, Shape> pairs[] = {{{4, 1, 7}, {5, 1}}, {{2, 6, 5, 7}, {6, 1, 1}},
                                           {{3, 40}, {1}},      {{1}, {3, 40}},
                                           {{0, 4}, {4}},       {{80, 33}, {80, 1}}};
  for (const auto& [a, b] : pairs) {
    const auto rank = [](const Shape& s) {
      std::string t;
      for (int i = 0; i < s.rank(); i++) t += (i ? ", " : "") + std::to_string(s[i]);
      return "[" + t + "]";
    };
    const std::string inputs = "x: f32" + rank(a) + ", y: f32" + rank(b);
    Shape out;
    for (int i = std::max(a.rank(), b.rank()); i-- > 0;) {
      const int64_t p = i < a.rank() ? a[a.rank() - 1 - i] : 1, q = i < b.rank() ? b[b.rank() - 1 - i] : 1;
      out.push_back(p == 1 ? q : p);
    }
    all.push_back(lines_case("broadcast", inputs,
                             {"add(x, y)", "sub(x, y)", "mul(x, y)", "min(x, y)", "max(x, y)"},
                             "f32" + rank(out), {a, b}));
    all.push_back(
        lines_case("comparison", inputs,
                   {"less(x, y)", "greater(x, y)", "less_equal(x, y)", "greater_equal(x, y)", "equal(x, y)"},
                   "bool" + rank(out), {a, b}));
    all.push_back(
        lines_case("logic", inputs, {"and(p, q)", "or(p, q)", "xor(p, q)"}, "bool" + rank(out), {a, b}));
  }
  all.push_back(
      {"comparison",
       "(x: f32[3, 40], y: f32[40]) -> (a: bool[3, 40], b: bool[3, 40], c: bool[3, 40], d: bool[3, 40], e: "
       "bool[3, 40], f: bool[3, 40], g: bool[3, 40])\nr = round(x)\ns = round(y)\na = less_equal(r, s)\nb = "
       "less(r, s)\nc = equal(r, s)\nd = greater_equal(r, s)\ni = cast(r) to=i64\nj = cast(s) to=i64\ne = "
       "less_equal(i, j)\nf = equal(i, j)\nk = cast(r) to=f16\nl = cast(s) to=f16\ng = greater(k, l)\n",
       {{3, 40}, {40}},
       {}});
  for (Case& c : all) {
    if (std::string(c.name) != "logic") continue;
    static std::vector<std::unique_ptr<std::string>> kept;
    std::string text = c.graph;
    text.insert(text.find('\n') + 1, "z = const f32[] 0.5\np = greater(x, z)\nq = less(y, z)\n");
    kept.push_back(std::make_unique<std::string>(text));
    c.graph = kept.back()->c_str();
  }
  all.push_back(
      {"where",
       "(x: f32[3, 5, 7], y: f32[5, 7], z: f32[3, 1, 7]) -> (a: f32[3, 5, 7], b: f32[3, 5, 7], c: "
       "f32[3, 5, 7], d: i64[3, 5, 7], e: f32[3, 5, 7])\nk = const f32[] 0.1\np = less(x, k)\nq = "
       "greater(z, k)\na = where(p, y, z)\nb = where(q, x, k)\nc = where(p, k, y)\ni = cast(x) "
       "to=i64\nj = const i64[] 9\nd = where(q, j, i)\ns = const f32[] 4\nr = const bool[] true\ne = "
       "where(r, x, s)\n",
       {{3, 5, 7}, {5, 7}, {3, 1, 7}},
       {}});
  all.push_back({"prelu",
                 "(x: f32[2, 5, 9], s: f32[5, 1], t: f32[1]) -> (a: f32[2, 5, 9], b: f32[2, 5, 9])\na = "
                 "prelu(x, s)\nb = prelu(x, t)\n",
                 {{2, 5, 9}, {5, 1}, {1}},
                 {}});
  all.push_back(
      {"integers",
       "(x: i64[5, 37], y: i64[37], u: i32[37], v: i32[1]) -> (a: i64[5, 37], b: i64[5, 37], c: "
       "i64[5, 37], d: i64[5, 37], e: bool[5, 37], f: i32[37], g: i32[37], h: bool[37], i: i64[5, 37])\na = "
       "add(x, y)\nb = mul(x, y)\nc = sub(y, x)\nd = max(x, y)\ne = less_equal(x, y)\nf = add(u, "
       "v)\ng = mul(v, u)\nh = greater(u, v)\ni = min(y, x)\n",
       {},
       {[] {
          Tensor t(DType::i64, {5, 37});
          for (size_t i = 0; i < 185; i++) t.at<int64_t>(i) = static_cast<int64_t>(i * 0x9E3779B97F4A7C15ull);
          return t;
        }(),
        [] {
          Tensor t(DType::i64, {37});
          for (size_t i = 0; i < 37; i++) t.at<int64_t>(i) = static_cast<int64_t>(i) * 77 - 999;
          return t;
        }(),
        [] {
          Tensor t(DType::i32, {37});
          for (size_t i = 0; i < 37; i++) t.at<int32_t>(i) = static_cast<int32_t>(i * 0x7654321u);
          return t;
        }(),
        Tensor::i32({1}, {70000})}});
  for (const char* to : {"i64", "i32", "i8", "u8", "bool", "f64", "f16", "bf16"})
    all.push_back(lines_case("cast", "x: f32[N]", {std::string("cast(x) to=") + to}, std::string(to) + "[N]",
                             {}, {special_floats()}));
  all.push_back(
      {"casts back",
       "(x: f32[N]) -> (a: f32[N], b: f32[N], c: f32[N], d: f32[N], e: f32[N], f: i32[N], g: "
       "i64[N], h: f32[N])\nk = const f32[] 100\ny = mul(x, k)\ni = cast(y) to=i64\nj = cast(y) "
       "to=i32\na = cast(i) to=f32\nb = cast(j) to=f32\nl = cast(y) to=bool\nc = cast(l) to=f32\nm = "
       "cast(y) to=u8\nd = cast(m) to=f32\nn = cast(y) to=f16\ne = cast(n) to=f32\nf = cast(i) "
       "to=i32\ng = cast(j) to=i64\no = cast(y) to=f64\nh = cast(o) to=f32\n",
       {{137}},
       {}});
  all.push_back(
      {"softmax of any axis",
       "(x: f32[3, 17, 5, 21]) -> (a: f32[3, 17, 5, 21], b: f32[3, 17, 5, 21], c: f32[3, 17, 5, 21], d: "
       "f32[3, 17, 5, 21], e: f32[3, 17, 5, 21])\na = softmax(x) axis=0\nb = softmax(x) axis=1\nc = "
       "softmax(x)\nd = log_softmax(x) axis=1\ne = log_softmax(x) axis=-1\n",
       {{3, 17, 5, 21}},
       {}});
  all.push_back({"glu",
                 "(x: f32[3, 6, 10]) -> (a: f32[3, 3, 10], b: f32[3, 6, 5])\na = glu(x) axis=1\nb = glu(x)\n",
                 {{3, 6, 10}},
                 {}});
  return all;
}

TEST(ElementwiseRows, FastKernelsAreTheReference) {
  std::vector<Case> exact, rounded;
  for (const Case& c : cases()) {
    const std::string name = c.name;
    const bool same = name == "comparison" || name == "logic" || name == "where" || name == "integers" ||
                      name == "cast" || name == "casts back" || name == "special values";
    (same ? exact : rounded).push_back(c);
  }
  rows_testing::expect_rows_match(rounded, 1e-6);
  rows_testing::expect_rows_match(exact, 0);
}

TEST(ElementwiseRows, ThreadsKeepTheBits) {
  std::vector<Case> large;
  large.push_back(
      {"large",
       "(x: f32[9, 64, 301], y: f32[64, 1]) -> (a: f32[9, 64, 301], b: f32[9, 64, 301], c: bool[9, 64, "
       "301], d: f32[9, 64, 301])\na = add(x, y)\nb = sin(x)\nc = less(x, y)\nd = softmax(x) axis=1\n",
       {{9, 64, 301}, {64, 1}},
       {}});
  rows_testing::expect_threads_keep_bits(large);
}

}  // namespace
}  // namespace cyb
