// SPDX-License-Identifier: Apache-2.0
// Where models are kept and fetched from: defaults, then $CYB_HOME/config.toml, then the environment.
#pragma once

#include <string>
#include <vector>

namespace cyb {

struct NetworkSettings {
  int connect_timeout = 5;  // seconds
  int stall_timeout = 30;   // seconds without a byte before a transfer counts as dropped
  int retries = 5;          // in a row without progress
  int max_wait = 120;       // longest Retry-After, in seconds, that is waited for
  std::string ca_bundle;    // empty: the system's
  std::string proxy;        // empty: http_proxy, https_proxy, no_proxy of the environment
};

struct PipSettings {
  std::string index_url = "https://pypi.org/simple";
  std::vector<std::string> extra_index_urls;
  std::vector<std::string> trusted_hosts;  // host or host:port whose certificate is not checked
  std::string cert, proxy;
  bool no_index = false;
};

struct Settings {
  std::string home;  // $CYB_HOME, else ~/.cyb
  std::string hf_endpoint = "https://huggingface.co";
  std::string hf_token;
  std::string ollama_registry = "https://registry.ollama.ai";
  PipSettings pip;
  NetworkSettings network;

  std::string models_dir() const { return home + "/models"; }
  std::string cache_dir() const { return home + "/cache"; }
  std::string catalog_path() const { return home + "/catalog.toml"; }
};

// Reads the environment, the configuration file and pip's configuration.
// Throws InvalidConfig for a file that does not parse or holds a key that is not known.
Settings load_settings();

// The same from given text of config.toml (`path` only for messages), over `settings`.
void apply_config(Settings& settings, const std::string& text, const std::string& path);

}  // namespace cyb
