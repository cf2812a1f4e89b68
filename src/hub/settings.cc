// SPDX-License-Identifier: Apache-2.0
#include "hub/settings.h"

#include <toml++/toml.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "hub/pip_config.h"

namespace cyb {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string without_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

// One row a key: what config.toml may say, and where it goes.
struct Key {
  const char* table;
  const char* name;
  std::string Settings::*text = nullptr;
  std::string NetworkSettings::*network_text = nullptr;
  int NetworkSettings::*network_number = nullptr;
  std::string PipSettings::*pip_text = nullptr;
  std::vector<std::string> PipSettings::*pip_list = nullptr;
};

const Key kKeys[] = {
    {.table = "huggingface", .name = "endpoint", .text = &Settings::hf_endpoint},
    {.table = "huggingface", .name = "token", .text = &Settings::hf_token},
    {.table = "ollama", .name = "registry", .text = &Settings::ollama_registry},
    {.table = "pypi", .name = "index_url", .pip_text = &PipSettings::index_url},
    {.table = "pypi", .name = "extra_index_urls", .pip_list = &PipSettings::extra_index_urls},
    {.table = "pypi", .name = "trusted_hosts", .pip_list = &PipSettings::trusted_hosts},
    {.table = "pypi", .name = "ca_bundle", .pip_text = &PipSettings::cert},
    {.table = "network", .name = "connect_timeout", .network_number = &NetworkSettings::connect_timeout},
    {.table = "network", .name = "stall_timeout", .network_number = &NetworkSettings::stall_timeout},
    {.table = "network", .name = "retries", .network_number = &NetworkSettings::retries},
    {.table = "network", .name = "max_wait", .network_number = &NetworkSettings::max_wait},
    {.table = "network", .name = "ca_bundle", .network_text = &NetworkSettings::ca_bundle},
    {.table = "network", .name = "proxy", .network_text = &NetworkSettings::proxy},
};

bool known_table(std::string_view name) {
  for (const Key& key : kKeys)
    if (name == key.table) return true;
  return false;
}

void apply_value(Settings& settings, const Key& key, const toml::node& node, const std::string& where) {
  if (key.network_number) {
    const auto value = node.value_exact<int64_t>();
    if (!value || *value < 0 || *value > 86400)
      throw error(ErrorKind::InvalidConfig, "{}: found no whole number from 0 to 86400", where)
          .advise("write for instance {} = 10", key.name);
    settings.network.*key.network_number = static_cast<int>(*value);
    return;
  }
  if (key.pip_list) {
    std::vector<std::string> values;
    if (const auto* array = node.as_array())
      for (const auto& item : *array)
        if (const auto value = item.value_exact<std::string>()) values.push_back(*value);
    if (!node.is_array() || values.size() != node.as_array()->size())
      throw error(ErrorKind::InvalidConfig, "{}: found no list of strings", where)
          .advise("write for instance {} = [\"…\"]", key.name);
    settings.pip.*key.pip_list = std::move(values);
    return;
  }
  const auto value = node.value_exact<std::string>();
  if (!value)
    throw error(ErrorKind::InvalidConfig, "{}: found no string", where)
        .advise("write for instance {} = \"…\"", key.name);
  if (key.text) settings.*key.text = *value;
  if (key.network_text) settings.network.*key.network_text = *value;
  if (key.pip_text) settings.pip.*key.pip_text = *value;
}

}  // namespace

void apply_config(Settings& settings, const std::string& text, const std::string& path) {
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    throw error(ErrorKind::InvalidConfig, "{}: line {}: {}", path, e.source().begin.line, e.description())
        .advise("correct the line, or remove the file to use the defaults");
  }
  for (const auto& [table, node] : root) {
    if (!known_table(table.str())) continue;  // other parts of the program have tables of their own
    if (!node.is_table())
      throw error(ErrorKind::InvalidConfig, "{}: '{}' is not a table", path, table.str())
          .advise("write [{}] and the settings below it", table.str());
    for (const auto& [name, value] : *node.as_table()) {
      const Key* found = nullptr;
      std::string names;
      for (const Key& key : kKeys) {
        if (table.str() != key.table) continue;
        names += names.empty() ? key.name : std::string(", ") + key.name;
        if (name.str() == key.name) found = &key;
      }
      if (!found)
        throw error(ErrorKind::InvalidConfig, "{}: found the unknown setting '{}.{}'", path, table.str(),
                    name.str())
            .advise("[{}] knows {}", table.str(), names);
      apply_value(settings, *found, value, fmt::format("{}: {}.{}", path, table.str(), name.str()));
    }
  }
}

Settings load_settings() {
  Settings settings;
  settings.home = without_slash(environment("CYB_HOME"));
  if (settings.home.empty()) {
    const std::string user = environment("HOME");
    if (user.empty())
      throw error(ErrorKind::InvalidConfig, "neither CYB_HOME nor HOME is set")
          .advise("set CYB_HOME to the folder that models are kept in");
    settings.home = user + "/.cyb";
  }
  load_pip_settings(settings.pip);
  const std::string config = settings.home + "/config.toml";
  std::error_code ignored;
  if (std::filesystem::exists(config, ignored)) apply_config(settings, read_file(config, 1 << 20), config);

  const auto take = [](const char* name, std::string& target) {
    const std::string value = environment(name);
    if (!value.empty()) target = value;
  };
  take("HF_ENDPOINT", settings.hf_endpoint);
  take("HF_TOKEN", settings.hf_token);
  take("CYB_OLLAMA_REGISTRY", settings.ollama_registry);
  if (settings.network.ca_bundle.empty()) {
    take("SSL_CERT_FILE", settings.network.ca_bundle);
    take("CURL_CA_BUNDLE", settings.network.ca_bundle);
  }
  if (const char* name = "CYB_CONNECT_TIMEOUT"; !environment(name).empty()) {
    char* end = nullptr;
    const std::string text = environment(name);
    const long value = std::strtol(text.c_str(), &end, 10);
    if (*end != '\0' || value < 1 || value > 86400)
      throw error(ErrorKind::InvalidConfig, "found {}='{}'", name, text)
          .advise("set it to a whole number of seconds");
    settings.network.connect_timeout = static_cast<int>(value);
  }
  settings.hf_endpoint = without_slash(settings.hf_endpoint);
  settings.ollama_registry = without_slash(settings.ollama_registry);
  settings.pip.index_url = without_slash(settings.pip.index_url);
  return settings;
}

}  // namespace cyb
