// SPDX-License-Identifier: Apache-2.0
#include "hub/pip_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace cyb {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string normal_key(std::string key) {
  for (char& c : key) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (key.rfind("--", 0) == 0) key.erase(0, 2);
  return key;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool truth(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "1" || text == "true" || text == "yes" || text == "on" || text == "y" || text == "t";
}

void set_option(PipSettings& settings, const std::string& key, const std::string& value) {
  if (key == "index-url") settings.index_url = trimmed(value);
  if (key == "extra-index-url") settings.extra_index_urls = words(value);
  if (key == "trusted-host") settings.trusted_hosts = words(value);
  if (key == "cert") settings.cert = trimmed(value);
  if (key == "proxy") settings.proxy = trimmed(value);
  if (key == "no-index") settings.no_index = truth(trimmed(value));
}

}  // namespace

std::map<std::string, std::string> parse_pip_config(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream stream(text);
  std::string section, last;
  for (std::string line; std::getline(stream, line);) {
    const std::string content = trimmed(line);
    if (content.empty() || content[0] == '#' || content[0] == ';') continue;
    if (content[0] == '[' && content.back() == ']') {
      section = normal_key(trimmed(content.substr(1, content.size() - 2)));
      last.clear();
      continue;
    }
    if ((line[0] == ' ' || line[0] == '\t') && !last.empty()) {
      out[last] += "\n" + content;
      continue;
    }
    const auto split = content.find_first_of("=:");
    if (split == std::string::npos || section.empty()) continue;
    last = section + "." + normal_key(trimmed(content.substr(0, split)));
    out[last] = trimmed(content.substr(split + 1));
  }
  return out;
}

void apply_pip_config(PipSettings& settings, const std::map<std::string, std::string>& values) {
  for (const std::string section : {"global.", "download."})
    for (const auto& [key, value] : values)
      if (key.rfind(section, 0) == 0) set_option(settings, key.substr(section.size()), value);
}

std::vector<std::string> pip_config_files() {
  const std::string chosen = environment("PIP_CONFIG_FILE");
  if (chosen == "/dev/null") return {};
  std::vector<std::string> files;
  std::string dirs = environment("XDG_CONFIG_DIRS");
  std::istringstream stream(dirs.empty() ? "/etc/xdg" : dirs);
  for (std::string dir; std::getline(stream, dir, ':');) files.push_back(dir + "/pip/pip.conf");
  files.push_back("/Library/Application Support/pip/pip.conf");
  files.push_back("/etc/pip.conf");
  const std::string home = environment("HOME");
  if (!home.empty()) files.push_back(home + "/.pip/pip.conf");
  const std::string config = environment("XDG_CONFIG_HOME");
  if (!config.empty())
    files.push_back(config + "/pip/pip.conf");
  else if (!home.empty())
    files.push_back(home + "/.config/pip/pip.conf");
  const std::string venv = environment("VIRTUAL_ENV");
  if (!venv.empty()) files.push_back(venv + "/pip.conf");
  if (!chosen.empty()) files.push_back(chosen);
  return files;
}

void load_pip_settings(PipSettings& settings) {
  for (const std::string& file : pip_config_files()) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    try {
      apply_pip_config(settings, parse_pip_config(read_file(file, 1 << 20)));
    } catch (const Error&) {
      continue;
    }
  }
  for (const char* name : {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_CERT",
                           "PIP_PROXY", "PIP_NO_INDEX"}) {
    const std::string value = environment(name);
    if (!value.empty()) set_option(settings, normal_key(std::string(name).substr(4)), value);
  }
}

}  // namespace cyb
