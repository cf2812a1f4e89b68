// SPDX-License-Identifier: Apache-2.0
// The template engine against Python's jinja2 (tests/data/jinja/cases.json), and its bounds.
#include "text/template/template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace cyb {
namespace {

using nlohmann::ordered_json;

std::tm time_of(const std::string& text) {
  std::tm t{};
  EXPECT_EQ(std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
                        &t.tm_min, &t.tm_sec),
            6);
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  timegm(&t);
  return t;
}

std::string rendered(std::string_view source, const ordered_json& context = ordered_json::object(),
                     const RenderOptions& options = {}) {
  return ChatTemplate::parse(source, "t").render(context, options);
}

Error failure(std::string_view source, const ordered_json& context = ordered_json::object(),
              const RenderOptions& options = {}) {
  try {
    std::string text = rendered(source, context, options);
    ADD_FAILURE() << source << " renders " << text.substr(0, 200);
  } catch (const Error& e) {
    return e;
  }
  return {ErrorKind::Io, "no error"};
}

class Cases : public ::testing::Test {
 protected:
  static const ordered_json& data() {
    static const ordered_json json =
        ordered_json::parse(read_file(std::string(CYB_SOURCE_DIR) + "/tests/data/jinja/cases.json"));
    return json;
  }

  static ordered_json context_of(const ordered_json& c) {
    ordered_json context = data()["context"];
    if (c.contains("context")) {
      for (const auto& [key, value] : c["context"].items()) context[key] = value;
    }
    return context;
  }

  RenderOptions options() const {
    RenderOptions o;
    o.now = time_of(data()["now"]);
    return o;
  }
};

TEST_F(Cases, RenderWhatJinja2Renders) {
  size_t count = 0;
  for (const auto& c : data()["cases"]) {
    if (!c.contains("output")) continue;
    ++count;
    const auto& source = c["template"].get_ref<const std::string&>();
    SCOPED_TRACE(source);
    try {
      EXPECT_EQ(rendered(source, context_of(c), options()), c["output"].get<std::string>());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_GE(count, 250u);
}

TEST_F(Cases, FailWhereJinja2FailsAndForTheSameReason) {
  // jinja2's own errors: type, message and line are the same. Python's: the type.
  const std::set<std::string> same_message = {
      "UndefinedError",         "SecurityError",       "TemplateRuntimeError", "TemplateSyntaxError",
      "TemplateAssertionError", "FilterArgumentError", "ZeroDivisionError"};
  // Found while Python compiles what jinja2 wrote.
  const std::set<std::string> pythons_compiler = {"SyntaxError", "NameError"};
  size_t count = 0;
  for (const auto& c : data()["cases"]) {
    if (!c.contains("error")) continue;
    ++count;
    const auto& source = c["template"].get_ref<const std::string&>();
    SCOPED_TRACE(source);
    std::string type = c["error"]["type"], message = c["error"]["message"];
    Error e = failure(source, context_of(c), options());
    if (type == "TemplateError") {
      EXPECT_EQ(e.message(), message);
      EXPECT_EQ(e.kind(), ErrorKind::Usage);
      continue;
    }
    EXPECT_EQ(e.kind(), ErrorKind::InvalidConfig) << e.what();
    int line = 0, column = 0;
    EXPECT_EQ(std::sscanf(e.message().c_str(), "t:%d:%d: ", &line, &column), 2) << e.message();
    EXPECT_GE(column, 1);
    if (pythons_compiler.contains(type)) continue;
    EXPECT_TRUE(e.message().ends_with("(" + type + ")")) << e.message() << "\nexpected " << type;
    if (!same_message.contains(type)) continue;
    EXPECT_NE(e.message().find(message), std::string::npos) << e.message() << "\nexpected " << message;
    if (c["error"].contains("line")) {
      EXPECT_EQ(line, c["error"]["line"].get<int>()) << e.message();
    }
  }
  EXPECT_GE(count, 150u);
}

TEST(ChatTemplate, ErrorsNameTemplateLineAndColumn) {
  EXPECT_EQ(failure("a\n  {{ b.c }}").message(), "t:2:8: 'b' is undefined (UndefinedError)");
  EXPECT_EQ(failure("é{{ 1 + 'a' }}").message(),
            "t:1:7: unsupported operand type(s) for +: 'int' and 'str' (TypeError)");
  EXPECT_EQ(failure("{% for x in [1] %}\n\n{{ 1 1 }}{% endfor %}").message(),
            "t:3:6: expected token 'end of print statement', got 'integer' (TemplateSyntaxError)");
  EXPECT_EQ(failure("{% macro m(x) %}\n{{ x / 0 }}{% endmacro %}\n\n{{ m(1) }}").message(),
            "t:2:6: division by zero (ZeroDivisionError)");
}

TEST(ChatTemplate, RaiseExceptionGivesTheTemplatesOwnMessage) {
  Error e = failure("{{ raise_exception('Conversation roles must alternate') }}");
  EXPECT_EQ(e.kind(), ErrorKind::Usage);
  EXPECT_EQ(e.message(), "Conversation roles must alternate");
  EXPECT_FALSE(e.advice().empty());
}

TEST(ChatTemplate, KeepsTheOrderOfKeys) {
  ordered_json context = ordered_json::parse(R"({"d": {"z": 1, "a": {"y": 2, "b": 3}, "m": null}})");
  EXPECT_EQ(rendered("{{ d|tojson }}{{ d }}", context),
            R"({"z": 1, "a": {"y": 2, "b": 3}, "m": null}{'z': 1, 'a': {'y': 2, 'b': 3}, 'm': None})");
}

TEST(ChatTemplate, RendersAgainAndAgainFromOneParse) {
  auto t = ChatTemplate::parse(
      "{% set ns = namespace(n=x) %}{% macro m() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}{{ m() "
      "}}{{ m() }}");
  EXPECT_EQ(t.render({{"x", 1}}), "23");
  EXPECT_EQ(t.render({{"x", 5}}), "67");
  EXPECT_EQ(t.render({{"x", 1}}), "23");
}

TEST(ChatTemplate, StrftimeNowReadsTheClock) {
  std::string year = rendered("{{ strftime_now('%Y') }}");
  EXPECT_EQ(year.size(), 4u);
  EXPECT_GE(std::stoi(year), 2024);
  EXPECT_EQ(rendered("{{ strftime_now('%f')|length }}"), "6");
}

TEST(ChatTemplate, SaysWhatItDoesNotSupport) {
  for (const char* source :
       {"{% autoescape true %}{% endautoescape %}", "{{ lipsum() }}", "{{ 'a b'|wordwrap }}",
        "{{ self.x() }}", "{{ 2 ** 200 }}", "{{ 'a'.encode() }}", "{{ '\\N{DASH}' }}",
        "{% block a scoped %}{% endblock %}", "{{ (-1) ** 0.5 }}", "{{ '\\ud800' }}",
        "{{ 10 ** 38 * 10 ** 10 }}", "{{ 99999999999999999999999999999999999999999 }}"}) {
    Error e = failure(source);
    EXPECT_EQ(e.kind(), ErrorKind::UnsupportedModel) << source << ": " << e.what();
    EXPECT_FALSE(e.advice().empty());
  }
}

TEST(ChatTemplate, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(failure("a\xff").kind(), ErrorKind::InvalidConfig);
  EXPECT_EQ(failure("{{ x }}", {{"x", "a\xc3"}}).kind(), ErrorKind::Usage);
  EXPECT_EQ(failure("{{ x }}", {{"\xff", 1}}).kind(), ErrorKind::Usage);
  EXPECT_EQ(failure("{{ x }}", ordered_json::array()).kind(), ErrorKind::Usage);
}

// ---------------------------------------------------------------------------------------------- bounds

RenderOptions small() {
  RenderOptions o;
  o.limits.work = 2'000'000;
  o.limits.memory = 16u << 20;
  o.limits.text = 1u << 20;
  return o;
}

void expect_refused(std::string_view source, const ordered_json& context = ordered_json::object()) {
  SCOPED_TRACE(source.substr(0, 100));
  Error e = failure(source, context, small());
  EXPECT_EQ(e.kind(), ErrorKind::InvalidConfig) << e.what();
  EXPECT_TRUE(e.message().find("the template ") != std::string::npos ||
              e.message().find("levels") != std::string::npos)
      << e.message();
}

TEST(TemplateBounds, ExplosionsAreRefused) {
  expect_refused(
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}");
  expect_refused(
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expect_refused(
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expect_refused(
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x }}");
  expect_refused(
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x|tojson }}");
  expect_refused(
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x == ns.x + [] }}{% set a = ns.x %}{% set ns.y = [1, 2] %}{% for i in range(60) %}{% set ns.y = "
      "[ns.y, ns.y] %}{% endfor %}{{ ns.y == a }}");
  expect_refused("{{ 'a' * 10000000000 }}");
  expect_refused("{{ [1] * 10000000000 }}");
  expect_refused("{{ 'ab' * 9223372036854775807 }}");
  expect_refused("{{ '%10000000d' % 1 }}");
  expect_refused("{{ '%.10000000f' % 1 }}");
  expect_refused("{{ '{:10000000}'.format(1) }}");
  expect_refused("{{ '{:.10000000f}'.format(1.5) }}");
  expect_refused("{{ 'a'.center(10000000) }}{{ 'a'.zfill(10000000) }}");
  expect_refused("{{ 'a'.zfill(10000000) }}");
  expect_refused("{{ '\\t'.expandtabs(10000000) }}");
  expect_refused("{{ 'a\nb'|indent(10000000) }}");
  expect_refused("{{ [1]|batch(100000000, 0)|list }}");
  expect_refused("{{ [[[1]]]|tojson(indent=10000000) }}");
  expect_refused("{{ ('a' * 10000).replace('a', 'b' * 10000) }}");
  expect_refused("{{ (['a'] * 10000)|join('b' * 10000) }}");
  expect_refused("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}");
  expect_refused("{% for i in range(100000) %}{{ 'abcdefghijklmnopqrstuvwxyz' }}{% endfor %}");
  expect_refused(
      "{% set s = 'a' * 500000 %}{% for i in range(100000) %}{% if s ~ 'b' in s %}{% endif %}{% endfor %}");
  expect_refused(
      "{{ range(100000)|map('string')|map('length')|sort|unique|list|map('string')|join|length }}"
      "{% for i in range(99999) %}{{ range(100000)|sum }}{% endfor %}");
}

TEST(TemplateBounds, RecursionIsRefused) {
  expect_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expect_refused("{% macro m(x) %}{% if x %}{{ m(x) }}{% endif %}{% endmacro %}{{ m(1) }}");
  expect_refused("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}");
  expect_refused("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}");
  expect_refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
  expect_refused(
      "{% set ns = namespace(x=[1]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x "
      "}}");
  expect_refused(
      "{% set ns = namespace(x=[1]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ "
      "ns.x|tojson }}");
  expect_refused(
      "{% set ns = namespace(x=(1,)) %}{% for i in range(5000) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ "
      "{ns.x: 1} }}");
  expect_refused(
      "{% set ns = namespace(x=[1]) %}{% for i in range(5000) %}{% set ns.x = ns.x|map('string') %}{% endfor "
      "%}{{ ns.x|list }}");
  expect_refused("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}");
  expect_refused("{{ " + std::string(200, '(') + "1" + std::string(200, ')') + " }}");
  expect_refused("{{ " + std::string(200, '[') + std::string(200, ']') + " }}");
  std::string nots, minus, sum = "1", filters = "1", ifs, dots = "a";
  for (int i = 0; i < 5000; ++i) {
    nots += "not ";
    minus += "-";
    sum += "+1";
    filters += "|string";
    ifs += "{% if 1 %}";
    dots += ".a";
  }
  expect_refused("{{ " + nots + "1 }}");
  expect_refused("{{ " + minus + "1 }}");
  expect_refused("{{ " + sum + " }}");
  expect_refused("{{ " + filters + " }}");
  expect_refused("{{ " + dots + " }}");
  expect_refused(ifs);
  ordered_json deep = 1;
  for (int i = 0; i < 3000; ++i) deep = ordered_json::array({std::move(deep)});
  expect_refused("{{ 1 }}", {{"x", deep}});
}

TEST(TemplateBounds, ParsingIsBounded) {
  // Scopes are copied at every branch: many names times many branches.
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "{% set v" + std::to_string(i) + "=1%}";
  for (int i = 0; i < 20000; ++i) many += "{%if 1%}{%endif%}";
  expect_refused(many);
  std::string nested;
  for (int i = 0; i < 90; ++i) nested += "{%for x in y%}";
  nested += std::string(100000, ' ');
  for (int i = 0; i < 20000; ++i) nested += "{{loop}}";
  for (int i = 0; i < 90; ++i) nested += "{%endfor%}";
  EXPECT_EQ(rendered(nested), "");
  expect_refused("{{ [" + std::string(1'200'000, ',') + "] }}");
}

TEST(TemplateBounds, LongChainsOfValuesAreFreedWithoutRecursion) {
  EXPECT_EQ(rendered("{% set box = namespace(v=none) %}{% for i in range(100000) %}{% set box.v = "
                     "namespace(before=box.v) %}{% endfor %}x"),
            "x");
  EXPECT_EQ(rendered("{% set box = namespace(v=none) %}{% for i in range(100000) %}{% set box.v = [box.v] "
                     "%}{% endfor %}x"),
            "x");
  EXPECT_EQ(rendered("{% set box = namespace(v=none) %}{% for i in range(100000) %}{% set box.v = "
                     "box.v|map('x') %}{% endfor %}x"),
            "x");
}

TEST(TemplateBounds, CyclesAreFreed) {
  // The leak checker of the sanitizer build looks at this.
  EXPECT_EQ(
      rendered("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% macro m() %}{{ m is "
               "defined }}{% endmacro %}{% set a.m = m %}"
               "{% for x in [1, 2] %}{% set a.loop = loop %}{{ loop.changed(loop) }}{% set a.gen = "
               "[a]|map('string') %}{% endfor %}"
               "{% set c = cycler(a) %}{% set a.c = c %}{% set j = joiner(a) %}{% set a.j = j %}{{ m() }}"),
      "TrueFalseTrue");
}

TEST(TemplateBounds, OrdinaryLongConversationsPass) {
  ordered_json messages = ordered_json::array();
  for (int i = 0; i < 600; ++i)
    messages.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", std::string(2000, 'x')}});
  std::string text = rendered(
      "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = ns.all + m.role + "
      "m.content|trim %}{% endfor %}{{ ns.all }}",
      {{"messages", messages}});
  EXPECT_EQ(text.size(), 600u * 2000 + 300 * 4 + 300 * 9);
}

// ---------------------------------------------------------------------------------------------- mutations

// Small and replayable.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }

 private:
  uint64_t state_;
};

std::string mutated(std::string text, Random& random, const std::vector<std::string>& sources) {
  static const std::vector<std::string> pieces = {"{{",
                                                  "}}",
                                                  "{%",
                                                  "%}",
                                                  "{#",
                                                  "#}",
                                                  "-",
                                                  "+",
                                                  "'",
                                                  "\"",
                                                  "\\",
                                                  "(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  "|",
                                                  ".",
                                                  ",",
                                                  ":",
                                                  "~",
                                                  " is ",
                                                  " in ",
                                                  " not ",
                                                  " if ",
                                                  " else ",
                                                  "loop",
                                                  "{% for x in xs recursive %}",
                                                  "{% endfor %}",
                                                  "{% endif %}",
                                                  "{% set ns = namespace() %}",
                                                  "{% macro m() %}",
                                                  "{% endmacro %}",
                                                  "{{ loop(x) }}",
                                                  "{{ m() }}",
                                                  "* 99999",
                                                  "** 9",
                                                  "[::-1]",
                                                  "|map('upper')",
                                                  "|list",
                                                  "|tojson(indent=9)",
                                                  "%c",
                                                  "{:>999}",
                                                  ".format(",
                                                  "9223372036854775807",
                                                  "-1",
                                                  "0",
                                                  "1e308",
                                                  "\xc3\xa9",
                                                  "\xff",
                                                  "{% raw %}",
                                                  "{% endraw %}",
                                                  "{% call m() %}",
                                                  "{% endcall %}"};
  for (size_t n = 1 + random.below(6); n > 0; --n) {
    size_t at = random.below(text.size() + 1);
    switch (random.below(6)) {
      case 0:
        text.erase(at, 1 + random.below(12));
        break;
      case 1:
        text.insert(at, pieces[random.below(pieces.size())]);
        break;
      case 2:
        if (!text.empty()) text[random.below(text.size())] = static_cast<char>(random.next());
        break;
      case 3: {
        size_t from = random.below(text.size() + 1);
        text.insert(at, text.substr(from, random.below(40)));
        break;
      }
      case 4: {
        const std::string& other = sources[random.below(sources.size())];
        text.insert(at, other.substr(random.below(other.size() + 1), random.below(60)));
        break;
      }
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST_F(Cases, MutatedTemplatesNeitherCrashNorHang) {
  std::vector<std::string> sources;
  for (const auto& c : data()["cases"]) sources.push_back(c["template"]);
  RenderOptions limits = options();
  limits.limits.work = 100'000;
  limits.limits.memory = 4u << 20;
  limits.limits.text = 1u << 18;
  Random random(20240706);
  auto start = std::chrono::steady_clock::now();
  size_t rendered_count = 0, failed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string source = mutated(sources[random.below(sources.size())], random, sources);
    try {
      ChatTemplate::parse(source).render(data()["context"], limits);
      ++rendered_count;
    } catch (const Error&) {
      ++failed;
    }
    // Enough on slow builds; the seed makes the part that was run the same each time.
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(60)) break;
  }
  EXPECT_GT(rendered_count, 0u);
  EXPECT_GT(failed, 0u);
}

}  // namespace
}  // namespace cyb
