// SPDX-License-Identifier: Apache-2.0
// The functions that every template has.
#include <algorithm>
#include <chrono>
#include <ctime>

#include "text/template/library.h"
#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // of jinja2's sandbox

Value make_range(Args& args) {
  no_keywords("range", args, 1, 3);
  int64_t start = 0, stop, step = 1;
  if (args.positional.size() == 1) {
    stop = index_of(args.positional[0]);
  } else {
    start = index_of(args.positional[0]);
    stop = index_of(args.positional[1]);
    if (args.positional.size() == 3) step = index_of(args.positional[2]);
  }
  if (step == 0) fail(kValueError, "range() arg 3 must not be zero");
  Int128 span = step > 0 ? Int128(stop) - start : Int128(start) - stop;
  Int128 stride = step > 0 ? Int128(step) : -Int128(step);
  if (span > 0 && (span - 1) / stride + 1 > kMaxRange) {
    fail(kOverflowError, "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
  }
  constexpr int64_t far = int64_t{1} << 62;
  if (std::max({std::abs(start), std::abs(stop), std::abs(step)}) > far || start == INT64_MIN ||
      stop == INT64_MIN || step == INT64_MIN) {
    fail(kUnsupported, "a range with numbers of more than 62 bits");
  }
  return Value(Kind::Range, new Range(start, stop, step));
}

struct DictFunction : Function {
  DictFunction() : Function("dict", [](Args& args) { return Value::dict(make_dict("dict", args)); }) {}
  Value attribute(std::string_view which) const override {
    if (which != "fromkeys") return {};
    Value empty = Value::dict(Ref<Dict>(new Dict));
    return find_attribute(empty, "fromkeys");
  }
};

Value make_namespace(Args& args) {
  Ref<Dict> attributes = make_dict("dict", args);
  for (const auto& [key, value] : attributes->items) {
    if (key.is(Kind::Str) && key.text().starts_with("_")) {
      fail(kSecurityError,
           "Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. Please "
           "rename the attribute.",
           repr(key));
    }
  }
  auto* ns = new Namespace;
  Value v(Kind::Namespace, ns);
  ns->attributes = std::move(attributes);
  return v;
}

Value make_cycler(Args& args) {
  if (!args.named.empty())
    fail(kTypeError, "Cycler.__init__() got an unexpected keyword argument '{}'", args.named[0].first);
  if (args.positional.empty()) fail(kPythonRuntimeError, "at least one item has to be provided");
  return Value(Kind::Cycler, new Cycler(args.positional));
}

Value make_joiner(Args& args) {
  Bound bound("Joiner.__init__", args, {"sep"});
  Value separator = bound.has(0) ? bound[0] : Value::string(", ");
  return function("joiner", [separator, used = false](Args& none) mutable {
    no_keywords("joiner", none, 0, 0);
    if (std::exchange(used, true)) return separator;
    return Value::string("");
  });
}

Value raise_exception(Args& args) {
  Bound bound("raise_exception", args, {"message"}, 1);
  throw Failure{kTemplateError, bound[0].is(Kind::None) ? std::string() : str(bound[0])};
}

std::tm local_now(int& microseconds) {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto since_epoch = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  microseconds = static_cast<int>(since_epoch % 1'000'000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return parts;
}

Value strftime_now(Args& args, const std::optional<std::tm>& fixed) {
  Bound bound("strftime_now", args, {"format"}, 1);
  if (!bound[0].is(Kind::Str))
    fail(kTypeError, "strftime() argument 1 must be str, not {}", type_name(bound[0]));
  int microseconds = 0;
  std::tm now = fixed ? *fixed : local_now(microseconds);
  // A naive datetime has no zone, and microseconds are Python's own.
  std::string format;
  const std::string& given = bound[0].text();
  for (size_t i = 0; i < given.size(); ++i) {
    char next = given[i] == '%' && i + 1 < given.size() ? given[i + 1] : '\0';
    if (next == 'f') {
      format += fmt::format("{:06}", microseconds);
    } else if (next != 'z' && next != 'Z') {
      format += given[i];
      if (next == '%') format += next;
      if (next == '%') ++i;
      continue;
    }
    ++i;
  }
  if (format.empty()) return Value::string("");
  Meter::current().string(format.size() * 16);
  std::string out(format.size() * 16 + 256, '\0');
  size_t written = std::strftime(out.data(), out.size(), format.c_str(), &now);
  out.resize(written);
  return Value::string(std::move(out));
}

}  // namespace

Ref<Dict> make_dict(const char* name, const Args& args) {
  if (args.positional.size() > 1)
    fail(kTypeError, "{} expected at most 1 argument, got {}", name, args.positional.size());
  Ref<Dict> dict(new Dict);
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is(Kind::Undefined)) fail_undefined(source);
    if (source.is(Kind::Dict)) {
      for (const auto& [key, value] : source.as_dict().items) dict->set(key, value);
    } else {
      size_t i = 0;
      for (const Value& pair : to_list(source)) {
        if (!is_iterable(pair))
          fail(kTypeError, "cannot convert dictionary update sequence element #{} to a sequence", i);
        std::vector<Value> parts = to_list(pair);
        if (parts.size() != 2)
          fail(kValueError, "dictionary update sequence element #{} has length {}; 2 is required", i,
               parts.size());
        dict->set(parts[0], parts[1]);
        ++i;
      }
    }
  }
  for (const auto& [key, value] : args.named) dict->set(key, value);
  return dict;
}

std::vector<std::pair<std::string, Value>> global_functions(const std::optional<std::tm>& now) {
  std::vector<std::pair<std::string, Value>> out;
  auto add = [&](const char* name, Function::Call call) {
    out.emplace_back(name, function(name, std::move(call)));
  };
  add("range", make_range);
  out.emplace_back("dict", Value(Kind::Function, new DictFunction));
  add("lipsum", [](Args&) -> Value { fail(kUnsupported, "the function 'lipsum'"); });
  add("cycler", make_cycler);
  add("joiner", make_joiner);
  add("namespace", make_namespace);
  add("raise_exception", raise_exception);
  add("strftime_now", [now](Args& args) { return strftime_now(args, now); });
  return out;
}

}  // namespace cyb::jinja
