// SPDX-License-Identifier: Apache-2.0
#include "format/config.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "format/toml_reader.h"

namespace cyb {
namespace {

constexpr size_t kIndexedFrom = 24;

template <class T>
ConfigArray to_array(const std::vector<T>& v) {
  return ConfigArray(v.begin(), v.end());
}

// The whole of `text` as a number; infinity is one, NaN is not.
bool parse_real(std::string_view text, double* out) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (begin != end && *begin == '+') begin++;
  const auto [stop, code] = std::from_chars(begin, end, *out);
  return code == std::errc() && stop == end && !std::isnan(*out);
}

bool value_to_real(const ConfigValue& v, double* out) {
  if (const int64_t* i = v.integer()) {
    *out = static_cast<double>(*i);
    return true;
  }
  return v.text() && parse_real(*v.text(), out);
}

// Splits a dotted path, with quoted parts. False on a quote that does not close.
bool split_path(std::string_view path, std::vector<std::string>* out) {
  size_t pos = 0;
  for (;;) {
    if (pos < path.size() && path[pos] == '"') {
      const size_t end = path.find('"', pos + 1);
      if (end == std::string_view::npos) return false;
      out->emplace_back(path.substr(pos + 1, end - pos - 1));
      pos = end + 1;
      if (pos < path.size() && path[pos] != '.') return false;
    } else {
      const size_t end = std::min(path.find('.', pos), path.size());
      out->emplace_back(path.substr(pos, end - pos));
      pos = end;
    }
    if (pos >= path.size()) return true;
    pos++;
  }
}

}  // namespace

const ConfigValue* ConfigTable::find(std::string_view key) const {
  if (!index_.empty()) {
    const auto it = index_.find(std::string(key));
    return it == index_.end() ? nullptr : &entries_[it->second].value;
  }
  for (const ConfigEntry& entry : entries_)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

ConfigValue* ConfigTable::find(std::string_view key) {
  return const_cast<ConfigValue*>(std::as_const(*this).find(key));
}

ConfigValue& ConfigTable::set(std::string_view key, ConfigValue value) {
  if (ConfigValue* old = find(key)) return *old = std::move(value);
  entries_.push_back({std::string(key), std::move(value)});
  if (!index_.empty()) {
    index_.emplace(key, entries_.size() - 1);
  } else if (entries_.size() >= kIndexedFrom) {
    for (size_t i = 0; i < entries_.size(); i++) index_.emplace(entries_[i].key, i);
  }
  return entries_.back().value;
}

bool ConfigTable::erase(std::string_view key) {
  for (size_t i = 0; i < entries_.size(); i++) {
    if (entries_[i].key != key) continue;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!index_.empty()) {
      index_.clear();
      for (size_t j = 0; j < entries_.size(); j++) index_.emplace(entries_[j].key, j);
    }
    return true;
  }
  return false;
}

std::vector<ConfigEntry>::const_iterator ConfigTable::begin() const { return entries_.begin(); }
std::vector<ConfigEntry>::const_iterator ConfigTable::end() const { return entries_.end(); }
bool ConfigTable::operator==(const ConfigTable& other) const { return entries_ == other.entries_; }

ConfigValue::ConfigValue(const std::vector<int64_t>& v) : data_(to_array(v)) {}
ConfigValue::ConfigValue(const std::vector<std::string>& v) : data_(to_array(v)) {}

ConfigValue ConfigValue::from_real(double v) { return fmt::format("{}", v); }
ConfigValue ConfigValue::from_real(float v) { return fmt::format("{}", v); }

ConfigValue ConfigValue::from_epsilon(double v) {
  if (v == 0) return int64_t{0};
  const double n = std::nearbyint(1.0 / v);
  if (n >= 1 && n <= 0x1p53 && static_cast<float>(1.0 / n) == static_cast<float>(v))
    return static_cast<int64_t>(n);
  return from_real(v);
}

ConfigValue ConfigValue::from_per_mille(double v) {
  const double n = std::nearbyint(v * 1000);
  if (std::fabs(n) <= 0x1p53) {
    const bool from_f32 = static_cast<double>(static_cast<float>(v)) == v;
    if (n / 1000 == v || (from_f32 && static_cast<float>(n / 1000) == static_cast<float>(v)))
      return static_cast<int64_t>(n);
  }
  return from_real(v);
}

ConfigValue ConfigValue::from_theta(double v) {
  if (std::nearbyint(v) == v && std::fabs(v) <= 0x1p53) return static_cast<int64_t>(v);
  return from_real(v);
}

std::string ConfigValue::describe() const {
  if (const auto* v = integer()) return fmt::format("the integer {}", *v);
  if (const auto* v = boolean()) return *v ? "true" : "false";
  if (const auto* v = text())
    return fmt::format("the text \"{}{}\"", v->substr(0, 60), v->size() > 60 ? "…" : "");
  if (const auto* v = array()) return fmt::format("a list of {}", v->size());
  return fmt::format("a table of {} keys", table()->size());
}

const ConfigValue* Config::find(std::string_view path) const {
  const ConfigTable* table = &root_;
  if (path.find_first_of(".\"") == std::string_view::npos) return table->find(path);
  std::vector<std::string> parts;
  if (!split_path(path, &parts)) return nullptr;
  for (size_t i = 0; i + 1 < parts.size(); i++) {
    const ConfigValue* v = table->find(parts[i]);
    table = v ? v->table() : nullptr;
    if (!table) return nullptr;
  }
  return table->find(parts.back());
}

bool Config::is_null(std::string_view path) const {
  std::vector<std::string> parts;
  if (!split_path(path, &parts)) return false;
  const ConfigTable* table = &root_;
  for (size_t i = 0; i + 1 < parts.size(); i++) {
    const ConfigValue* v = table->find(parts[i]);
    table = v ? v->table() : nullptr;
    if (!table) return false;
  }
  const ConfigValue* nulls = table->find("nulls");
  if (!nulls || !nulls->array()) return false;
  for (const ConfigValue& v : *nulls->array())
    if (v.text() && *v.text() == parts.back()) return true;
  return false;
}

Config Config::sub(std::string_view path) const {
  Config out;
  out.where_ = where_;
  out.prefix_ = fmt::format("{}{}.", prefix_, path);
  if (const ConfigValue* v = find(path)) {
    if (!v->table()) throw wrong(path, *v, "a table");
    out.root_ = *v->table();
  }
  return out;
}

std::vector<std::string> Config::keys(std::string_view path) const {
  const ConfigTable* table = &root_;
  if (!path.empty()) {
    const ConfigValue* v = find(path);
    if (!v) return {};
    table = v->table();
    if (!table) throw wrong(path, *v, "a table");
  }
  std::vector<std::string> out;
  for (const ConfigEntry& entry : *table) out.push_back(entry.key);
  return out;
}

Error Config::key_error(std::string_view path, std::string_view text) const {
  return error(ErrorKind::InvalidConfig, "{}{}key '{}{}': {}", where_, where_.empty() ? "" : ": ", prefix_,
               path, text);
}

Error Config::wrong(std::string_view path, const ConfigValue& found, std::string_view expected) const {
  return key_error(path, fmt::format("found {}, expected {}", found.describe(), expected))
      .advise("correct the key in the source's configuration and import again");
}

const ConfigValue& Config::need(std::string_view path) const {
  if (const ConfigValue* v = find(path)) return *v;
  throw key_error(path, is_null(path) ? "is null in the source, and a value is needed" : "is missing")
      .advise("the model's configuration lacks what its family needs; check the source, then import again");
}

int64_t Config::integer(std::string_view path) const {
  const ConfigValue& v = need(path);
  if (const int64_t* i = v.integer()) return *i;
  throw wrong(path, v, "an integer");
}

bool Config::boolean(std::string_view path) const {
  const ConfigValue& v = need(path);
  if (const bool* b = v.boolean()) return *b;
  throw wrong(path, v, "true or false");
}

std::string Config::text(std::string_view path) const {
  const ConfigValue& v = need(path);
  if (const std::string* s = v.text()) return *s;
  throw wrong(path, v, "text");
}

double Config::real(std::string_view path) const {
  const ConfigValue& v = need(path);
  double out;
  if (value_to_real(v, &out)) return out;
  throw wrong(path, v, "an integer or a decimal number as text");
}

float Config::epsilon(std::string_view path) const {
  const ConfigValue& v = need(path);
  if (const int64_t* n = v.integer()) {
    if (*n >= 0) return *n == 0 ? 0.0f : static_cast<float>(1.0 / static_cast<double>(*n));
  } else if (double out; v.text() && parse_real(*v.text(), &out) && out >= 0) {
    return static_cast<float>(out);
  }
  throw wrong(path, v, "an integer n that stands for 1/n, 0, or a decimal number as text");
}

double Config::per_mille(std::string_view path) const {
  const ConfigValue& v = need(path);
  if (const int64_t* n = v.integer()) return static_cast<double>(*n) / 1000;
  double out;
  if (v.text() && parse_real(*v.text(), &out)) return out;
  throw wrong(path, v, "an integer per mille or a decimal number as text");
}

namespace {
// Every element through `convert`, or null when one has another type.
template <class T, class F>
bool convert_list(const ConfigValue& v, std::vector<T>* out, F&& convert) {
  if (!v.array()) return false;
  out->reserve(v.array()->size());
  for (const ConfigValue& element : *v.array()) {
    T value{};
    if (!convert(element, &value)) return false;
    out->push_back(std::move(value));
  }
  return true;
}
}  // namespace

std::vector<int64_t> Config::integers(std::string_view path) const {
  std::vector<int64_t> out;
  const ConfigValue& v = need(path);
  if (convert_list(v, &out,
                   [](const ConfigValue& e, int64_t* x) { return e.integer() && (*x = *e.integer(), true); }))
    return out;
  throw wrong(path, v, "a list of integers");
}

std::vector<double> Config::reals(std::string_view path) const {
  std::vector<double> out;
  const ConfigValue& v = need(path);
  if (convert_list(v, &out, value_to_real)) return out;
  throw wrong(path, v, "a list of numbers (integers, or decimal numbers as text)");
}

std::vector<std::string> Config::texts(std::string_view path) const {
  std::vector<std::string> out;
  const ConfigValue& v = need(path);
  if (convert_list(v, &out,
                   [](const ConfigValue& e, std::string* x) { return e.text() && (*x = *e.text(), true); }))
    return out;
  throw wrong(path, v, "a list of texts");
}

std::vector<bool> Config::booleans(std::string_view path) const {
  const ConfigValue& v = need(path);
  if (!v.array()) throw wrong(path, v, "a list of true and false");
  std::vector<bool> out;
  for (const ConfigValue& e : *v.array()) {
    if (!e.boolean()) throw wrong(path, v, "a list of true and false");
    out.push_back(*e.boolean());
  }
  return out;
}

int64_t Config::integer_or(std::string_view path, int64_t value) const {
  return has(path) ? integer(path) : value;
}
bool Config::boolean_or(std::string_view path, bool value) const { return has(path) ? boolean(path) : value; }
std::string Config::text_or(std::string_view path, std::string_view value) const {
  return has(path) ? text(path) : std::string(value);
}
double Config::real_or(std::string_view path, double value) const { return has(path) ? real(path) : value; }
float Config::epsilon_or(std::string_view path, float value) const {
  return has(path) ? epsilon(path) : value;
}
double Config::per_mille_or(std::string_view path, double value) const {
  return has(path) ? per_mille(path) : value;
}
std::vector<int64_t> Config::integers_or(std::string_view path, std::vector<int64_t> value) const {
  return has(path) ? integers(path) : std::move(value);
}
std::vector<double> Config::reals_or(std::string_view path, std::vector<double> value) const {
  return has(path) ? reals(path) : std::move(value);
}
std::vector<std::string> Config::texts_or(std::string_view path, std::vector<std::string> value) const {
  return has(path) ? texts(path) : std::move(value);
}

void Config::set(std::string_view path, ConfigValue value) {
  std::vector<std::string> parts;
  if (!split_path(path, &parts)) throw key_error(path, "is no valid path");
  ConfigTable* table = &root_;
  for (size_t i = 0; i + 1 < parts.size(); i++) {
    ConfigValue* v = table->find(parts[i]);
    if (!v) v = &table->set(parts[i], ConfigTable());
    if (!v->table()) throw wrong(path, *v, fmt::format("a table at '{}'", parts[i]));
    table = v->table();
  }
  table->set(parts.back(), std::move(value));
}

bool Config::erase(std::string_view path) {
  std::vector<std::string> parts;
  if (!split_path(path, &parts)) return false;
  ConfigTable* table = &root_;
  for (size_t i = 0; i + 1 < parts.size(); i++) {
    ConfigValue* v = table->find(parts[i]);
    if (!v || !v->table()) return false;
    table = v->table();
  }
  return table->erase(parts.back());
}

}  // namespace cyb
