// SPDX-License-Identifier: Apache-2.0
// json.dumps as the tojson filter calls it.
#include <algorithm>
#include <cmath>

#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void value(const Value& v) {
    Meter::current().work(1);
    switch (v.kind()) {
      case Kind::None:
        return add("null");
      case Kind::Bool:
        return add(v.truth_of_bool() ? "true" : "false");
      case Kind::Int:
        return add(int_text(v.as_int()));
      case Kind::Float:
        return add(number(v.as_float()));
      case Kind::Str:
        return text(v.text());
      case Kind::List:
      case Kind::Tuple:
        return list(v.items());
      case Kind::Dict:
        return dict(v.as_dict());
      default:
        fail(kTypeError, "Object of type {} is not JSON serializable", type_name(v));
    }
  }

  std::string take() {
    Meter::current().string(out_.size());
    return std::move(out_);
  }

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  void add(std::string_view piece) {
    if ((out_.size() ^ (out_.size() + piece.size())) >> 16)
      Meter::current().string(out_.size() + piece.size());
    out_ += piece;
  }

  void unit(uint32_t code) { add(fmt::format("\\u{:04x}", code)); }

  void text(std::string_view s) {
    Meter::current().string(s.size());
    add("\"");
    for (size_t at = 0; at < s.size();) {
      size_t start = at;
      char32_t c = next_code_point(s, at);
      if (c == '"') {
        add("\\\"");
      } else if (c == '\\') {
        add("\\\\");
      } else if (c == '\n') {
        add("\\n");
      } else if (c == '\r') {
        add("\\r");
      } else if (c == '\t') {
        add("\\t");
      } else if (c == '\b') {
        add("\\b");
      } else if (c == '\f') {
        add("\\f");
      } else if (c < 0x20 || (style_.ascii && c >= 0x7F && c < 0x10000)) {
        unit(static_cast<uint32_t>(c));
      } else if (style_.ascii && c >= 0x10000) {
        unit(0xD800 + static_cast<uint32_t>((c - 0x10000) >> 10));
        unit(0xDC00 + static_cast<uint32_t>((c - 0x10000) & 0x3FF));
      } else {
        add(s.substr(start, at - start));
      }
    }
    add("\"");
  }

  void newline() {
    if (!style_.indent) return;
    add("\n");
    for (size_t i = 0; i < level_; ++i) add(*style_.indent);
  }

  void list(const std::vector<Value>& items) {
    if (items.empty()) return add("[]");
    Depth depth;
    add("[");
    ++level_;
    bool first = true;
    for (const Value& item : items) {
      if (!first) add(style_.item_separator);
      first = false;
      newline();
      value(item);
    }
    --level_;
    newline();
    add("]");
  }

  void key(const Value& k) {
    switch (k.kind()) {
      case Kind::Str:
        return text(k.text());
      case Kind::None:
        return text("null");
      case Kind::Bool:
        return text(k.truth_of_bool() ? "true" : "false");
      case Kind::Int:
        return text(int_text(k.as_int()));
      case Kind::Float:
        return text(number(k.as_float()));
      default:
        fail(kTypeError, "keys must be str, int, float, bool or None, not {}", type_name(k));
    }
  }

  void dict(const Dict& dict) {
    if (dict.items.empty()) return add("{}");
    Depth depth;
    std::vector<const std::pair<Value, Value>*> rows;
    for (const auto& row : dict.items) rows.push_back(&row);
    if (style_.sort_keys) {
      std::stable_sort(rows.begin(), rows.end(),
                       [](auto* a, auto* b) { return compare(a->first, Order::Less, b->first); });
    }
    add("{");
    ++level_;
    bool first = true;
    for (const auto* row : rows) {
      if (!first) add(style_.item_separator);
      first = false;
      newline();
      key(row->first);
      add(style_.key_separator);
      value(row->second);
    }
    --level_;
    newline();
    add("}");
  }

  const JsonStyle& style_;
  std::string out_;
  size_t level_ = 0;
};

}  // namespace

std::string json_dumps(const Value& v, const JsonStyle& style) {
  Writer writer(style);
  writer.value(v);
  return writer.take();
}

}  // namespace cyb::jinja
