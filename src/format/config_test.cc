// SPDX-License-Identifier: Apache-2.0
#include "format/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error_testing.h"
#include "format/config_from_json.h"

namespace cyb {
namespace {

using Json = nlohmann::ordered_json;

std::string message_of(const std::function<void()>& f, ErrorKind kind = ErrorKind::InvalidConfig) {
  return testing::error_message(f, kind);
}

TEST(Config, reads_what_toml_allows_without_floats) {
  const Config c = Config::parse(R"(# a comment
model_type = "llama"   # another
"dotted.key" = 'C:\raw'
big = 9223372036854775807
small = -9223372036854775808
hex = 0xff
grouped = 1_000_000
list = [ 1,
  2, # inside
  3, ]
mixed = [[1, 2], ["a"], []]
long = """
one
two \
   three"""

[architecture]
rope_parameters = { rope_type = "llama3", rope_theta = 500000, factor = "8" }
a.b.c = true

[architecture.vision]
size = 224

[[layer]]
n = 1
[[layer]]
n = 2
[layer.sub]
m = 3
)",
                                 "here");
  EXPECT_EQ(c.text("model_type"), "llama");
  EXPECT_EQ(c.text("\"dotted.key\""), "C:\\raw");
  EXPECT_EQ(c.root().find("dotted.key")->describe(), "the text \"C:\\raw\"");
  EXPECT_EQ(c.integer("big"), INT64_MAX);
  EXPECT_EQ(c.integer("small"), INT64_MIN);
  EXPECT_EQ(c.integer("hex"), 255);
  EXPECT_EQ(c.integer("grouped"), 1000000);
  EXPECT_EQ(c.integers("list"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(c.find("mixed")->array()->size(), 3u);
  EXPECT_EQ(c.text("long"), "one\ntwo three");
  EXPECT_EQ(c.integer("architecture.rope_parameters.rope_theta"), 500000);
  EXPECT_EQ(c.real("architecture.rope_parameters.factor"), 8.0);
  EXPECT_TRUE(c.boolean("architecture.a.b.c"));
  EXPECT_EQ(c.sub("architecture.vision").integer("size"), 224);
  const ConfigArray& layers = *c.find("layer")->array();
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(*layers[1].table()->find("sub")->table()->find("m")->integer(), 3);
}

TEST(Config, printing_then_parsing_gives_the_same_tree_and_text) {
  Config c;
  c.set("text", "quote \" back \\ line\nbell \x07 tab\t ü 漢");
  c.set("zeta", 1);
  c.set("alpha", INT64_MIN);
  c.set("t.\"a.b\".c", std::vector<int64_t>{1, 2});
  c.set("t.flag", true);
  c.set("t.empty", ConfigTable());
  c.set("t.none", ConfigArray());
  ConfigTable one, two;
  one.set("id", 1);
  one.set("deep", [] {
    ConfigTable t;
    t.set("x", "y");
    return t;
  }());
  two.set("id", 2);
  c.set("parts", ConfigArray{one, two});
  c.set("mixed", ConfigArray{one, 3});
  c.set("", "empty key");
  const std::string text = c.print();
  const Config back = Config::parse(text, "text");
  EXPECT_EQ(back.print(), text);
  EXPECT_EQ(back.keys(), (std::vector<std::string>{"text", "zeta", "alpha", "mixed", "", "t", "parts"}));
  EXPECT_EQ(back.text("text"), c.text("text"));
  EXPECT_EQ(back.integers("t.\"a.b\".c"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*back.find("parts"), *c.find("parts"));
  EXPECT_EQ(*back.find("mixed"), *c.find("mixed"));
}

TEST(Config, large_tables_keep_order_and_find_every_key) {
  Config c;
  for (int i = 0; i < 1000; i++) c.set(fmt::format("id2label.{}", 999 - i), fmt::format("label {}", i));
  EXPECT_EQ(c.keys("id2label").front(), "999");
  EXPECT_EQ(c.text("id2label.0"), "label 999");
  EXPECT_TRUE(c.erase("id2label.500"));
  EXPECT_FALSE(c.erase("id2label.500"));
  EXPECT_FALSE(c.has("id2label.500"));
  EXPECT_EQ(c.text("id2label.499"), "label 500");
  EXPECT_EQ(Config::parse(c.print(), "x"), c);
}

TEST(Config, errors_name_key_found_and_expected) {
  const Config c =
      Config::parse("[architecture]\nsize = \"12\"\nlist = [1, \"x\"]\nnulls = [\"window\"]\n", "m.model");
  EXPECT_EQ(message_of([&] { c.integer("architecture.size"); }),
            "m.model: key 'architecture.size': found the text \"12\", expected an integer");
  EXPECT_EQ(message_of([&] { c.sub("architecture").integers("list"); }),
            "m.model: key 'architecture.list': found a list of 2, expected a list of integers");
  EXPECT_EQ(message_of([&] { c.integer("architecture.heads"); }),
            "m.model: key 'architecture.heads': is missing");
  EXPECT_NE(message_of([&] { c.integer("architecture.window"); }).find("is null in the source"),
            std::string::npos);
  EXPECT_TRUE(c.is_null("architecture.window"));
  EXPECT_EQ(c.integer_or("architecture.window", 7), 7);
  EXPECT_NE(message_of([&] { c.integer_or("architecture.size", 7); }).find("expected an integer"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { throw c.invalid("architecture.size", "must be {}", 3); }),
            "m.model: key 'architecture.size': must be 3");
}

TEST(Config, malformed_text_is_refused_with_the_line) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"a = 1.5", "floats and dates"},
      {"a = 1e5", "floats and dates"},
      {"a = inf", "floats"},
      {"a = 2024-01-01", "floats and dates"},
      {"a = 9223372036854775808", "64 bits"},
      {"a = 01", "begin with 0"},
      {"a = \"x", "closing quote"},
      {"a = \"\\q\"", "unknown escape"},
      {"a = \"\\ud800\"", "no Unicode"},
      {"a = [1, 2", "closing ']'"},
      {"a = {b = 1", "expected ',' or '}'"},
      {"a 1", "expected '='"},
      {"a = 1 b = 2", "end of the line"},
      {"a = 1\na = 2", "stands twice"},
      {"[t]\n[t]", "stands twice"},
      {"a = 1\n[a]", "already"},
      {"a = {b = 1}\n[a]", "complete"},
      {"a = [{b=1}]\n[[a]]", "already"},
      {"a = tru", "true or false"},
      {"a = ", "expected a value"},
      {"= 1", "expected a key"},
      {"[t\n", "expected ']'"},
      {"a = \xff", "UTF-8"},
      {"a = 1__0", "between digits"},
      {"a = \"\x01\"", "control character"},
      {"a = {b=1}\na.c = 2", "extended"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_NE(message_of([&] { Config::parse(text, "x"); }).find(expected), std::string::npos)
        << text << "\n"
        << message_of([&] { Config::parse(text, "x"); });
  EXPECT_EQ(message_of([&] { Config::parse("a = 1\n\nb = ?", "section config", 10); }).substr(0, 23),
            "section config, line 12");
}

TEST(Config, hostile_nesting_is_refused) {
  EXPECT_NE(message_of([] { Config::parse("a = " + std::string(100000, '['), "x"); }).find("too deep"),
            std::string::npos);
  std::string key = "a";
  for (int i = 0; i < 100000; i++) key += ".a";
  EXPECT_NE(message_of([&] { Config::parse(key + " = 1", "x"); }).find("too many parts"), std::string::npos);
  EXPECT_NE(message_of([&] { Config::parse("[" + key + "]", "x"); }).find("too many parts"),
            std::string::npos);
  std::string tables;
  for (int i = 0; i < 1000; i++) tables += "{a=";
  EXPECT_NE(message_of([&] { Config::parse("a = " + tables, "x"); }).find("too deep"), std::string::npos);
}

TEST(Config, reals_have_both_forms) {
  const Config c = Config::parse(
      "theta_i = 10000\ntheta_s = \"10000.5\"\neps = 1000000\neps_s = \"3e-7\"\neps_0 = 0\nt = 700\nt_s = "
      "\"0.71234\"\n"
      "scale = \"0.0883883476\"\nlist = [1, \"0.5\"]\nbad = \"abc\"\nnan = \"nan\"\nlow = \"-inf\"\nneg = "
      "-5\n",
      "x");
  EXPECT_EQ(c.real("theta_i"), 10000);
  EXPECT_EQ(c.real("theta_s"), 10000.5);
  EXPECT_EQ(c.epsilon("eps"), 1e-6f);
  EXPECT_EQ(c.epsilon("eps_s"), 3e-7f);
  EXPECT_EQ(c.epsilon("eps_0"), 0.0f);
  EXPECT_EQ(c.per_mille("t"), 0.7);
  EXPECT_EQ(c.per_mille("t_s"), 0.71234);
  EXPECT_EQ(c.real("scale"), 0.0883883476);
  EXPECT_EQ(c.reals("list"), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(c.real("low"), -INFINITY);
  for (const char* key : {"bad", "nan"})
    EXPECT_NE(message_of([&] { c.real(key); }).find("expected"), std::string::npos);
  EXPECT_NE(message_of([&] { c.epsilon("neg"); }).find("expected"), std::string::npos);
}

TEST(ConfigFromJson, maps_as_the_format_says) {
  const Json json = Json::parse(R"({
    "zzz": 1, "model_type": "llama", "rms_norm_eps": 1e-06, "layer_norm_epsilon": 0.0, "odd_eps": 0.3,
    "rope_theta": 10000.0, "global_rope_theta": 1234.5, "attention_multiplier": 0.0883883476, "use_cache": true,
    "sliding_window": null, "num_steps": 50, "timesteps": 0.25, "factors": [1.0, 1.5, 0.1], "layer_types": ["a", "b"],
    "rope_scaling": {"factor": 8.0, "type": "linear", "extra": null}, "max": 1e30, "huge": 18446744073709551615,
    "forced": [[1, null], [2, 3]], "temperature": 0.5, "initializer_range": 0.02
  })");
  const Config c(table_from_json(json, "architecture", "config.json"));
  EXPECT_EQ(c.print(), R"(zzz = 1
model_type = "llama"
rms_norm_eps = 1000000
layer_norm_epsilon = 0
odd_eps = "0.3"
rope_theta = 10000
global_rope_theta = "1234.5"
attention_multiplier = "0.0883883476"
use_cache = true
num_steps = 50
timesteps = "0.25"
factors = ["1", "1.5", "0.1"]
layer_types = ["a", "b"]
max = "1e+30"
huge = "18446744073709551615"
forced = "[[1,null],[2,3]]"
temperature = "0.5"
initializer_range = "0.02"
nulls = ["sliding_window"]

[rope_scaling]
factor = "8"
type = "linear"
nulls = ["extra"]
)");
  EXPECT_TRUE(c.is_null("sliding_window"));
  EXPECT_TRUE(c.is_null("rope_scaling.extra"));
}

TEST(ConfigFromJson, sampling_is_per_mille_whatever_the_json_type) {
  const Json json = Json::parse(
      R"({"temperature": 1, "top_p": 0.95, "min_p": 0.0, "top_k": 50, "repetition_penalty": 1.05,
          "presence_penalty": 0.12345, "frequency_penalty": 0.3, "other": 0.5})");
  const Config c(table_from_json(json, "sampling", "generation_config.json"));
  EXPECT_EQ(c.print(),
            "temperature = 1000\ntop_p = 950\nmin_p = 0\ntop_k = 50\nrepetition_penalty = 1050\n"
            "presence_penalty = \"0.12345\"\nfrequency_penalty = 300\nother = \"0.5\"\n");
  EXPECT_EQ(c.per_mille("presence_penalty"), 0.12345);
  const Config e(table_from_json(Json::parse(R"({"score": 0.875, "cases": [{"score": 1}]})"), "eval", "e"));
  EXPECT_EQ(e.print(), "score = 875\n\n[[cases]]\nscore = 1000\n");
}

TEST(ConfigFromJson, every_f32_survives) {
  uint32_t state = 1;
  for (int i = 0; i < 20000; i++) {
    state = state * 1664525u + 1013904223u;
    float x;
    std::memcpy(&x, &state, 4);
    if (!std::isfinite(x)) continue;
    Config c;
    c.set("r", ConfigValue::from_real(x));
    c.set("d", ConfigValue::from_real(static_cast<double>(x)));
    c.set("e", ConfigValue::from_epsilon(std::fabs(x)));
    c.set("t", ConfigValue::from_theta(x));
    ASSERT_EQ(static_cast<float>(c.real("r")), x);
    ASSERT_EQ(c.real("d"), static_cast<double>(x));
    ASSERT_EQ(c.epsilon("e"), std::fabs(x));
    ASSERT_EQ(c.real("t"), static_cast<double>(x));
  }
  EXPECT_EQ(ConfigValue::from_epsilon(1e-5f), ConfigValue(100000));
  EXPECT_EQ(ConfigValue::from_per_mille(0.7f), ConfigValue(700));
}

TEST(ConfigFromJson, deep_nesting_is_refused) {
  std::string text;
  for (int i = 0; i < 100; i++) text += "{\"a\":";
  text += "1" + std::string(100, '}');
  EXPECT_NE(message_of([&] { table_from_json(Json::parse(text), "", "x"); }).find("too deep"),
            std::string::npos);
}

}  // namespace
}  // namespace cyb
