// SPDX-License-Identifier: Apache-2.0
// The filters on sequences and mappings. Those that are generators in jinja2 are lazy here too.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "text/template/library.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

Value lower_case(const Value& v) { return v.is(Kind::Str) ? Value::string(to_lower(v.text())) : v; }

// "a.0.b": attributes and indices one after the other.
std::vector<Value> path_of(const Value& attribute) {
  if (attribute.is(Kind::None) || attribute.is(Kind::Missing)) return {};
  if (!attribute.is(Kind::Str)) return {attribute};
  std::vector<Value> parts;
  std::string_view text = attribute.text();
  for (;;) {
    size_t dot = text.find('.');
    std::string_view part = text.substr(0, dot);
    bool digits = !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == part.npos;
    parts.push_back(digits ? Value::integer(*parse_int(part)) : Value::string(std::string(part)));
    if (dot == text.npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

struct Getter {
  std::vector<Value> path;
  bool fold = false;
  Value otherwise{};  // Missing or None: none

  Value operator()(const Value& item) const {
    Value v = item;
    for (const Value& part : path) {
      v = get_item(v, part);
      if (v.is(Kind::Undefined) && !otherwise.is(Kind::Missing) && !otherwise.is(Kind::None)) v = otherwise;
    }
    return fold ? lower_case(v) : v;
  }
};

// Stable, by keys made once; failures of the comparison come out as they are.
std::vector<Value> sorted(std::vector<Value> items, const std::function<Value(const Value&)>& key,
                          bool reverse) {
  std::vector<std::pair<Value, Value>> rows;
  rows.reserve(items.size());
  for (Value& item : items) {
    Value k = key(item);
    rows.emplace_back(std::move(k), std::move(item));
  }
  // Reversed twice, so that equal items keep their order.
  if (reverse) std::reverse(rows.begin(), rows.end());
  // A merge sort of our own: values that no order fits (nan) must not run std::sort out of its range.
  std::vector<std::pair<Value, Value>> other(rows.size());
  for (size_t width = 1; width < rows.size(); width *= 2) {
    for (size_t from = 0; from < rows.size(); from += 2 * width) {
      size_t middle = std::min(from + width, rows.size()), to = std::min(from + 2 * width, rows.size());
      size_t a = from, b = middle;
      for (size_t out = from; out < to; ++out) {
        bool right = a == middle || (b < to && compare(rows[b].first, Order::Less, rows[a].first));
        other[out] = std::move(rows[right ? b++ : a++]);
      }
    }
    std::swap(rows, other);
  }
  if (reverse) std::reverse(rows.begin(), rows.end());
  std::vector<Value> out;
  out.reserve(rows.size());
  for (auto& row : rows) out.push_back(std::move(row.second));
  return out;
}

Value first(const Value& v, Args& args) {
  Bound("first", args, {});
  Value item;
  if (iterate(v).as<Iterator>().step(item)) return item;
  return undefined_hint("No first item, sequence was empty.");
}

Value reversed(const Value& v, const char* what) {
  if (v.is(Kind::Undefined)) return iterate(v);
  if (!v.is_sequence() && !v.is(Kind::Str) && !v.is(Kind::Dict) && !v.is(Kind::DictView) &&
      !v.is(Kind::Range)) {
    fail(kTypeError, "'{}' object is not reversible", type_name(v));
  }
  std::vector<Value> items = to_list(v);
  std::reverse(items.begin(), items.end());
  return iterator(what, [list = Value::list(std::move(items)), i = size_t{0}](Value& out) mutable {
    if (i >= list.items().size()) return false;
    out = list.items()[i++];
    return true;
  });
}

Value last(const Value& v, Args& args) {
  Bound("last", args, {});
  Value item;
  if (reversed(v, "reversed").as<Iterator>().step(item)) return item;
  return undefined_hint("No last item, sequence was empty.");
}

Value length(const Value& v, Args& args) {
  no_keywords("len", args, 0, 0);
  return Value::integer(static_cast<int64_t>(length_of(v)));
}

Value list(const Value& v, Args& args) {
  Bound("list", args, {});
  return Value::list(to_list(v));
}

Value items(const Value& v, Args& args) {
  Bound("items", args, {});
  return iterator("generator", [v, i = size_t{0}](Value& out) mutable {
    if (v.is(Kind::Undefined)) return false;
    if (!v.is(Kind::Dict)) fail(kTypeError, "Can only get item pairs from a mapping.");
    const auto& rows = v.as_dict().items;
    if (i >= rows.size()) return false;
    out = Value::tuple({rows[i].first, rows[i].second});
    ++i;
    return true;
  });
}

Value join(const Value& v, Args& args) {
  Bound bound("join", args, {"d", "attribute"});
  std::string separator = bound.has(0) ? str(bound[0]) : "";
  Getter get{path_of(bound.has_value(1) ? bound[1] : Value())};
  Value source = iterate(v);
  std::string out;
  Value item;
  for (bool begin = true; source.as<Iterator>().step(item); begin = false) {
    std::string piece = str(get(item));
    if (out.size() + separator.size() + piece.size() > (1u << 16))
      Meter::current().string(out.size() + separator.size() + piece.size());
    if (!begin) out += separator;
    out += piece;
  }
  return Value::string(std::move(out));
}

Value reverse(const Value& v, Args& args) {
  Bound("reverse", args, {});
  if (v.is(Kind::Str)) {
    Value step = Value::integer(-1);
    return get_slice(v, nullptr, nullptr, &step);
  }
  if (v.is(Kind::Iterator) || v.is(Kind::Loop)) {
    std::vector<Value> all = to_list(v);
    std::reverse(all.begin(), all.end());
    return Value::list(std::move(all));
  }
  if (!is_iterable(v)) fail(kArgumentError, "argument must be iterable");
  return reversed(v, v.is(Kind::List) ? "list_reverseiterator" : "reversed");
}

Value sort(const Value& v, Args& args) {
  Bound bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  bool fold = !bound.flag(1, false);
  std::vector<Getter> getters;
  if (bound.has(2) && bound[2].is(Kind::Str)) {
    std::string_view names = bound[2].text();
    for (;;) {
      size_t comma = names.find(',');
      getters.push_back({path_of(Value::string(std::string(names.substr(0, comma)))), fold, {}});
      if (comma == names.npos) break;
      names.remove_prefix(comma + 1);
    }
  } else {
    getters.push_back({path_of(bound.has(2) ? bound[2] : Value()), fold, {}});
  }
  auto key = [&](const Value& item) {
    std::vector<Value> parts;
    for (const Getter& get : getters) parts.push_back(get(item));
    return Value::list(std::move(parts));
  };
  return Value::list(sorted(to_list(v), key, bound.flag(0, false)));
}

Value dict_sort(const Value& v, Args& args) {
  Bound bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  std::string by = "key";
  if (bound.has(1)) by = bound[1].is(Kind::Str) ? bound[1].text() : "";
  if (by != "key" && by != "value") fail(kArgumentError, "You can only sort by either \"key\" or \"value\"");
  if (v.is(Kind::Undefined)) fail_undefined(v);
  if (!v.is(Kind::Dict)) fail(kAttributeError, "'{}' object has no attribute 'items'", type_name(v));
  std::vector<Value> pairs;
  for (const auto& [key, value] : v.as_dict().items) pairs.push_back(Value::tuple({key, value}));
  bool fold = !bound.flag(0, false);
  auto key = [&](const Value& pair) {
    const Value& part = pair.items()[by == "key" ? 0 : 1];
    return fold ? lower_case(part) : part;
  };
  return Value::list(sorted(std::move(pairs), key, bound.flag(2, false)));
}

Value unique(const Value& v, Args& args) {
  Bound bound("unique", args, {"case_sensitive", "attribute"});
  Getter get{path_of(bound.has(1) ? bound[1] : Value()), !bound.flag(0, false), {}};
  // The seen keys are those of a dict.
  return iterator("generator", [v, get, source = Value(), seen = Ref<Dict>(new Dict)](Value& out) mutable {
    if (source.is(Kind::Missing)) source = iterate(v);
    Value item;
    while (source.as<Iterator>().step(item)) {
      Value key = get(item);
      if (seen->find(key)) continue;
      seen->set(std::move(key), Value::none());
      out = std::move(item);
      return true;
    }
    return false;
  });
}

Value extreme(const Value& v, Args& args, const char* name, Order order) {
  Bound bound(name, args, {"case_sensitive", "attribute"});
  Getter get{path_of(bound.has(1) ? bound[1] : Value()), !bound.flag(0, false), {}};
  Value source = iterate(v);
  Value best, item;
  if (!source.as<Iterator>().step(best)) return undefined_hint("No aggregated item, sequence was empty.");
  Value best_key = get(best);
  while (source.as<Iterator>().step(item)) {
    Value key = get(item);
    if (!compare(key, order, best_key)) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Value least(const Value& v, Args& args) { return extreme(v, args, "min", Order::Less); }
Value greatest(const Value& v, Args& args) { return extreme(v, args, "max", Order::Greater); }

Value sum(const Value& v, Args& args) {
  Bound bound("sum", args, {"attribute", "start"});
  Getter get{path_of(bound.has(0) ? bound[0] : Value())};
  Value total = bound.has(1) ? bound[1] : Value::integer(0);
  if (total.is(Kind::Str)) fail(kTypeError, "sum() can't sum strings [use ''.join(seq) instead]");
  Value source = iterate(v);
  Value item;
  while (source.as<Iterator>().step(item)) total = binary(Op::Add, total, get(item));
  return total;
}

Value batch(const Value& v, Args& args) {
  Bound bound("batch", args, {"linecount", "fill_with"}, 1);
  Value count = bound[0], fill = bound.has_value(1) ? bound[1] : Value();
  return iterator("generator", [v, count, fill, source = Value(), kept = Value()](Value& out) mutable {
    if (source.is(Kind::Missing)) source = iterate(v);
    std::vector<Value> row;
    if (!kept.is(Kind::Missing)) row.push_back(std::move(kept));
    kept = Value();
    Value item;
    while (source.as<Iterator>().step(item)) {
      if (equals(Value::integer(static_cast<int64_t>(row.size())), count)) {
        // A count of 0 yields an empty row first, as there.
        kept = std::move(item);
        out = Value::list(std::move(row));
        return true;
      }
      row.push_back(std::move(item));
    }
    if (row.empty()) return false;
    if (!fill.is(Kind::Missing) &&
        compare(Value::integer(static_cast<int64_t>(row.size())), Order::Less, count)) {
      int64_t missing = index_of(count) - static_cast<int64_t>(row.size());
      Meter::current().items(static_cast<uint64_t>(missing));
      row.insert(row.end(), static_cast<size_t>(missing), fill);
    }
    out = Value::list(std::move(row));
    return true;
  });
}

Value slice(const Value& v, Args& args) {
  Bound bound("slice", args, {"slices", "fill_with"}, 1);
  Value count = bound[0], fill = bound.has_value(1) ? bound[1] : Value();
  return iterator("generator", [v, count, fill, all = Value(), number = int64_t{0},
                                offset = int64_t{0}](Value& out) mutable {
    int64_t slices = index_of(count);
    if (all.is(Kind::Missing)) {
      all = Value::list(to_list(v));
      if (slices == 0) fail(kZeroDivision, "integer division or modulo by zero");
    }
    if (number >= slices) return false;
    auto n = static_cast<int64_t>(all.items().size());
    int64_t each = n / slices, extra = n % slices;
    int64_t start = offset + number * each;
    if (number < extra) ++offset;
    int64_t end = offset + (number + 1) * each;
    std::vector<Value> row(all.items().begin() + start, all.items().begin() + end);
    if (!fill.is(Kind::Missing) && number >= extra) row.push_back(fill);
    ++number;
    out = Value::list(std::move(row));
    return true;
  });
}

Value group_by(const Value& v, Args& args) {
  Bound bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  bool fold = !bound.flag(2, false);
  Value otherwise = bound.has(1) ? bound[1] : Value();
  Getter get{path_of(bound[0]), fold, otherwise}, plain{path_of(bound[0]), false, otherwise};
  std::vector<Value> ordered = sorted(to_list(v), get, false);
  std::vector<Value> groups;
  for (size_t i = 0; i < ordered.size();) {
    Value key = get(ordered[i]);
    std::vector<Value> members;
    size_t start = i;
    while (i < ordered.size() && equals(get(ordered[i]), key)) members.push_back(ordered[i++]);
    if (i == start) members.push_back(ordered[i++]);  // a key that is not equal to itself
    Value name = fold ? plain(members[0]) : key;
    groups.push_back(Value(Kind::Tuple, new Group({name, Value::list(std::move(members))})));
  }
  return Value::list(std::move(groups));
}

// ---------------------------------------------------------------------------------------------- map, select,
// reject

Value map(const Value& v, Args& args) {
  return iterator("generator",
                  [v, args, source = Value(), get = Getter(), by_attribute = false](Value& out) mutable {
                    if (source.is(Kind::Missing)) {
                      if (!truth(v)) return false;
                      if (args.positional.empty()) {
                        for (auto& [name, value] : args.named) {
                          if (name == "attribute") {
                            get.path = path_of(value);
                            by_attribute = true;
                          } else if (name == "default") {
                            get.otherwise = value;
                          }
                        }
                        if (!by_attribute) fail(kArgumentError, "map requires a filter argument");
                        for (auto& [name, value] : args.named) {
                          if (name != "attribute" && name != "default")
                            fail(kArgumentError, "Unexpected keyword argument {}", quoted(name));
                        }
                      }
                      source = iterate(v);
                    }
                    Value item;
                    if (!source.as<Iterator>().step(item)) return false;
                    if (by_attribute) {
                      out = get(item);
                    } else {
                      Args inner;
                      inner.positional.assign(args.positional.begin() + 1, args.positional.end());
                      inner.named = args.named;
                      out = apply_filter(args.positional[0], item, inner);
                    }
                    return true;
                  });
}

Value pick(const Value& v, const Args& args, bool wanted, bool by_attribute) {
  return iterator(
      "generator", [v, args, wanted, by_attribute, source = Value(), get = Getter()](Value& out) mutable {
        size_t skip = by_attribute ? 1 : 0;
        if (source.is(Kind::Missing)) {
          if (!truth(v)) return false;
          if (by_attribute) {
            if (args.positional.empty()) fail(kArgumentError, "Missing parameter for attribute name");
            get.path = path_of(args.positional[0]);
          }
          source = iterate(v);
        }
        Value item;
        while (source.as<Iterator>().step(item)) {
          Value tested = get(item);
          bool result;
          if (args.positional.size() <= skip) {
            result = truth(tested);
          } else {
            Args inner;
            inner.positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(skip) + 1,
                                    args.positional.end());
            inner.named = args.named;
            result = apply_test(args.positional[skip], tested, inner);
          }
          if (result != wanted) continue;
          out = std::move(item);
          return true;
        }
        return false;
      });
}

Value select(const Value& v, Args& args) { return pick(v, args, true, false); }
Value reject(const Value& v, Args& args) { return pick(v, args, false, false); }
Value select_attribute(const Value& v, Args& args) { return pick(v, args, true, true); }
Value reject_attribute(const Value& v, Args& args) { return pick(v, args, false, true); }

constexpr Entry<Filter> kFilters[] = {
    {"batch", batch},     {"count", length},     {"dictsort", dict_sort},
    {"first", first},     {"groupby", group_by}, {"items", items},
    {"join", join},       {"last", last},        {"length", length},
    {"list", list},       {"map", map},          {"max", greatest},
    {"min", least},       {"reject", reject},    {"rejectattr", reject_attribute},
    {"reverse", reverse}, {"select", select},    {"selectattr", select_attribute},
    {"slice", slice},     {"sort", sort},        {"sum", sum},
    {"unique", unique},
};

}  // namespace

Filter find_list_filter(std::string_view name) { return find_entry(kFilters, name); }

}  // namespace cyb::jinja
