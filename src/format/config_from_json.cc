// SPDX-License-Identifier: Apache-2.0
#include "format/config_from_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace cyb {
namespace {

constexpr int kMaxDepth = 32;

bool ends_with(std::string_view text, std::string_view end) { return text.ends_with(end); }

// "…eps" and "…epsilon", but not the many "…steps".
bool is_epsilon(std::string_view key) {
  return (ends_with(key, "eps") && !ends_with(key, "steps")) || ends_with(key, "epsilon");
}

bool is_theta(std::string_view key) { return ends_with(key, "theta") || ends_with(key, "base_freq"); }

bool is_per_mille(std::string_view key, std::string_view section) {
  if (section == "sampling") {
    for (const std::string_view name : {"temperature", "top_p", "min_p", "typical_p", "repetition_penalty",
                                        "presence_penalty", "frequency_penalty"})
      if (key == name) return true;
  }
  return section == "eval" && (key == "score" || ends_with(key, "_score"));
}

template <class Json>
bool holds_null(const Json& value, int depth) {
  if (value.is_null()) return true;
  if (depth > kMaxDepth || !value.is_array()) return false;
  for (const auto& element : value)
    if (holds_null(element, depth + 1)) return true;
  return false;
}

template <class Json>
struct Mapping {
  std::string_view where;

  Error fail(std::string_view key, std::string_view text) const {
    return error(ErrorKind::InvalidConfig, "{}: key '{}': {}", where, key, text);
  }

  ConfigTable table(const Json& object, std::string_view section, int depth) const {
    if (!object.is_object()) throw fail(section, "expected a JSON object");
    ConfigTable out;
    ConfigArray nulls;
    for (const auto& item : object.items()) {
      if (item.value().is_null())
        nulls.push_back(item.key());
      else
        out.set(item.key(), value(item.value(), item.key(), section, depth));
    }
    if (!nulls.empty()) {
      if (out.find("nulls"))
        throw fail("nulls", "the source has a key of this name, which lists its nulls here");
      out.set("nulls", std::move(nulls));
    }
    return out;
  }

  ConfigValue value(const Json& v, std::string_view key, std::string_view section, int depth) const {
    if (depth > kMaxDepth) throw fail(key, "values are nested too deep");
    if (v.is_boolean()) return v.template get<bool>();
    if (v.is_string()) return v.template get<std::string>();
    if (v.is_number_integer()) return integer(v, key, section);
    if (v.is_number_float()) return real(v.template get<double>(), key, section);
    if (v.is_object()) return table(v, section == "sampling" || section == "eval" ? section : key, depth + 1);
    if (v.is_array()) {
      if (holds_null(v, depth)) return v.dump();
      ConfigArray out;
      for (const auto& element : v)
        out.push_back(value(element, "", section == "eval" ? section : "", depth + 1));
      return out;
    }
    throw fail(key, "null cannot be kept here");
  }

  static ConfigValue integer(const Json& v, std::string_view key, std::string_view section) {
    if (v.is_number_unsigned() && v.template get<uint64_t>() > INT64_MAX)
      return std::to_string(v.template get<uint64_t>());
    const int64_t i = v.template get<int64_t>();
    if (is_per_mille(key, section)) {
      int64_t scaled;
      if (!__builtin_mul_overflow(i, int64_t{1000}, &scaled)) return scaled;
      return std::to_string(i);
    }
    // An integer under an eps key would be read as its reciprocal.
    if (is_epsilon(key) && i != 0 && i != 1) return std::to_string(i);
    return i;
  }

  static ConfigValue real(double v, std::string_view key, std::string_view section) {
    if (is_per_mille(key, section)) return ConfigValue::from_per_mille(v);
    if (is_epsilon(key)) return ConfigValue::from_epsilon(v);
    if (is_theta(key)) return ConfigValue::from_theta(v);
    return ConfigValue::from_real(v);
  }
};

}  // namespace

ConfigTable table_from_json(const nlohmann::ordered_json& object, std::string_view section,
                            std::string_view where) {
  return Mapping<nlohmann::ordered_json>{where}.table(object, section, 0);
}
ConfigTable table_from_json(const nlohmann::json& object, std::string_view section, std::string_view where) {
  return Mapping<nlohmann::json>{where}.table(object, section, 0);
}
ConfigValue value_from_json(const nlohmann::ordered_json& value, std::string_view key,
                            std::string_view section, std::string_view where) {
  return Mapping<nlohmann::ordered_json>{where}.value(value, key, section, 0);
}
ConfigValue value_from_json(const nlohmann::json& value, std::string_view key, std::string_view section,
                            std::string_view where) {
  return Mapping<nlohmann::json>{where}.value(value, key, section, 0);
}

}  // namespace cyb
