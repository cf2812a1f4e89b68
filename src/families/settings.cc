// SPDX-License-Identifier: Apache-2.0
#include "families/settings.h"

#include <algorithm>

namespace cyb {

void set_default(Config& c, const std::string& key, ConfigValue value) {
  if (!c.has(key)) c.set(key, std::move(value));
}

void keep_settings(Config& c, const std::string& part, const std::vector<const char*>& names) {
  for (const std::string& key : c.keys(part))
    if (std::none_of(names.begin(), names.end(), [&](const char* n) { return key == n; }))
      c.erase(part + "." + key);
}

int64_t positive_setting(const Config& c, const std::string& key) {
  const int64_t v = c.integer(key);
  if (v < 1 || v > (int64_t{1} << 31)) throw c.invalid(key, "{} is out of range", v);
  return v;
}

std::pair<int64_t, int64_t> size_setting(const Config& c, const std::string& key) {
  const ConfigValue* value = c.find(key);
  std::vector<int64_t> size;
  if (value && value->is_array())
    size = c.integers(key);
  else
    size.assign(2, c.integer(key));
  if (size.size() != 2) throw c.invalid(key, "{} numbers instead of height and width", size.size());
  for (const int64_t v : size)
    if (v < 1 || v > 1 << 16) throw c.invalid(key, "{} is out of range", v);
  return {size[0], size[1]};
}

double epsilon_setting(const Config& c, const std::string& key) {
  const float eps = c.epsilon(key);
  if (!(eps >= 0 && eps < 1)) throw c.invalid(key, "{} is out of range", eps);
  return std::stod(fmt::format("{}", eps));
}

ir::Activation activation_setting(const Config& c, const std::string& key) {
  using ir::Activation;
  const std::string name = c.text(key);
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::gelu_quick;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "tanh") return Activation::tanh;
  throw c.invalid(key, "unknown activation '{}'", name)
      .advise("supported: gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, silu, tanh");
}

void complete_labels(Config& c) {
  constexpr int64_t kMost = 1 << 20;
  const std::string part = "architecture.";
  const ConfigValue* ids = c.find(part + "id2label");
  std::vector<std::string> labels;
  if (ids && ids->is_table() && !ids->table()->empty()) {
    const ConfigTable& table = *ids->table();
    for (size_t i = 0; i < table.size(); i++) {
      const ConfigValue* name = table.find(std::to_string(i));
      if (!name || !name->is_text()) throw c.invalid(part + "id2label", "no text for label {}", i);
      labels.push_back(*name->text());
    }
  } else {
    const int64_t count = c.integer_or(part + "num_labels", 2);
    if (count < 1 || count > kMost) throw c.invalid(part + "num_labels", "{} labels", count);
    for (int64_t i = 0; i < count; i++) labels.push_back("LABEL_" + std::to_string(i));
  }
  set_default(c, part + "labels", labels);
  for (const char* done : {"id2label", "label2id", "num_labels"}) c.erase(part + done);
}

namespace main_part {

std::string key(const char* name) { return std::string("architecture.") + name; }

void set_default(Config& c, const char* name, ConfigValue value) {
  cyb::set_default(c, key(name), std::move(value));
}

int64_t positive(const Config& c, const char* name) { return positive_setting(c, key(name)); }

}  // namespace main_part
}  // namespace cyb
