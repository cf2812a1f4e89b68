// SPDX-License-Identifier: Apache-2.0
// The `config` section: an ordered tree of integers, booleans, strings, lists and tables. It has no floats:
// reals are decimal strings, small constants such as eps are reciprocals, sampling settings are per mille.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace cyb {

struct ConfigEntry;
class ConfigValue;
using ConfigArray = std::vector<ConfigValue>;

// Keys with their values, in the order in which they were set. Keys are any text; no dotted paths here.
class ConfigTable {
 public:
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const ConfigValue* find(std::string_view key) const;
  ConfigValue* find(std::string_view key);
  ConfigValue& set(std::string_view key, ConfigValue value);  // replaces in place or adds at the end
  bool erase(std::string_view key);                           // false when there was no such key

  std::vector<ConfigEntry>::const_iterator begin() const;
  std::vector<ConfigEntry>::const_iterator end() const;
  bool operator==(const ConfigTable& other) const;

 private:
  std::vector<ConfigEntry> entries_;
  std::unordered_map<std::string, size_t> index_;  // filled only for tables of many keys
};

class ConfigValue {
 public:
  template <std::integral T>
  ConfigValue(T v) : data_(static_cast<int64_t>(v)) {}
  ConfigValue(bool v) : data_(v) {}
  template <std::floating_point T>
  ConfigValue(T) = delete;  // from_real() and its kin say how a real is written
  ConfigValue(const char* v) : data_(std::string(v)) {}
  ConfigValue(std::string v) : data_(std::move(v)) {}
  ConfigValue(std::string_view v) : data_(std::string(v)) {}
  ConfigValue(ConfigArray v) : data_(std::move(v)) {}
  ConfigValue(ConfigTable v) : data_(std::move(v)) {}
  ConfigValue(const std::vector<int64_t>& v);
  ConfigValue(const std::vector<std::string>& v);

  // Reals as the format writes them.
  static ConfigValue from_real(double v);  // shortest decimal that reads back to the same f64, as a string
  static ConfigValue from_real(float v);   // … to the same f32
  static ConfigValue from_epsilon(
      double v);  // n where 1/n read as f32 equals v; 0 stays 0; else a decimal string
  static ConfigValue from_per_mille(double v);  // 0.7 → 700; what is no whole per mille: a decimal string
  static ConfigValue from_theta(double v);      // an integer where it is one; else a decimal string

  bool is_integer() const { return std::holds_alternative<int64_t>(data_); }
  bool is_boolean() const { return std::holds_alternative<bool>(data_); }
  bool is_text() const { return std::holds_alternative<std::string>(data_); }
  bool is_array() const { return std::holds_alternative<ConfigArray>(data_); }
  bool is_table() const { return std::holds_alternative<ConfigTable>(data_); }

  // Null when the value is of another kind.
  const int64_t* integer() const { return std::get_if<int64_t>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const std::string* text() const { return std::get_if<std::string>(&data_); }
  const ConfigArray* array() const { return std::get_if<ConfigArray>(&data_); }
  const ConfigTable* table() const { return std::get_if<ConfigTable>(&data_); }
  ConfigArray* array() { return std::get_if<ConfigArray>(&data_); }
  ConfigTable* table() { return std::get_if<ConfigTable>(&data_); }

  // "the integer 12", "the text \"abc\"", "a list of 3", "a table of 2 keys": for messages.
  std::string describe() const;
  bool operator==(const ConfigValue&) const = default;

 private:
  std::variant<int64_t, bool, std::string, ConfigArray, ConfigTable> data_;
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
  bool operator==(const ConfigEntry&) const = default;
};

// A tree with typed access by dotted path: "architecture.rope_parameters.rope_theta". A key that itself holds
// a dot is quoted in the path: `architecture."a.b".c`. A missing key, and a value of another type, are
// InvalidConfig errors that name the full key, what was found and what was expected.
class Config {
 public:
  Config() = default;
  explicit Config(ConfigTable root, std::string where = {})
      : root_(std::move(root)), where_(std::move(where)) {}

  // TOML without floats and dates. `where` names the source in messages; `first_line` is the number of its
  // first line.
  static Config parse(std::string_view text, const std::string& where, int first_line = 1);
  // The same tree always prints the same text: plain values of a table first, then its tables, each in its
  // order.
  std::string print() const;

  const ConfigTable& root() const { return root_; }
  ConfigTable& root() { return root_; }
  const std::string& where() const { return where_; }

  const ConfigValue* find(std::string_view path) const;  // null when absent
  bool has(std::string_view path) const { return find(path) != nullptr; }
  bool is_null(std::string_view path) const;  // the source said null: listed in `nulls` of its table
  Config sub(
      std::string_view path) const;  // the table at `path`, with its name kept for messages; empty if absent
  std::vector<std::string> keys(std::string_view path = {}) const;  // of the table at `path`; empty if absent

  int64_t integer(std::string_view path) const;
  bool boolean(std::string_view path) const;
  std::string text(std::string_view path) const;
  double real(std::string_view path) const;       // an integer or a decimal string
  float epsilon(std::string_view path) const;     // integer n → 1/n as f32, 0 → 0; or a decimal string
  double per_mille(std::string_view path) const;  // integer n → n/1000; or a decimal string
  std::vector<int64_t> integers(std::string_view path) const;
  std::vector<double> reals(std::string_view path) const;
  std::vector<std::string> texts(std::string_view path) const;
  std::vector<bool> booleans(std::string_view path) const;

  // `value` where the key is absent; a wrong type is still an error.
  int64_t integer_or(std::string_view path, int64_t value) const;
  bool boolean_or(std::string_view path, bool value) const;
  std::string text_or(std::string_view path, std::string_view value) const;
  double real_or(std::string_view path, double value) const;
  float epsilon_or(std::string_view path, float value) const;
  double per_mille_or(std::string_view path, double value) const;
  std::vector<int64_t> integers_or(std::string_view path, std::vector<int64_t> value) const;
  std::vector<double> reals_or(std::string_view path, std::vector<double> value) const;
  std::vector<std::string> texts_or(std::string_view path, std::vector<std::string> value) const;

  void set(std::string_view path, ConfigValue value);  // makes the tables on the way
  bool erase(std::string_view path);

  // An InvalidConfig error about this key, for checks that the caller makes: "…: key 'a.b': <text>".
  template <class... Args>
  Error invalid(std::string_view path, fmt::format_string<Args...> format, Args&&... args) const {
    return key_error(path, fmt::format(format, std::forward<Args>(args)...));
  }

  bool operator==(const Config& other) const { return root_ == other.root_; }

 private:
  const ConfigValue& need(std::string_view path) const;
  Error key_error(std::string_view path, std::string_view text) const;
  Error wrong(std::string_view path, const ConfigValue& found, std::string_view expected) const;

  ConfigTable root_;
  std::string where_;
  std::string prefix_;  // "architecture.vision." in a sub()
};

}  // namespace cyb
