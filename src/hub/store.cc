// SPDX-License-Identifier: Apache-2.0
#include "hub/store.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "hub/source.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
const std::string kSuffix = ".model";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::vector<std::string> stored_names(const Settings& settings) {
  std::vector<std::string> out;
  for (const StoredModel& model : list_stored(settings)) out.push_back(model.name);
  return out;
}

Error not_stored(const std::string& name, const std::vector<std::string>& stored) {
  const Error found = error(ErrorKind::Io, "there is no model '{}'", name);
  const auto near = near_names(name, stored);
  if (!near.empty()) return found.advise("did you mean {}?", joined(near));
  if (stored.empty()) return found.advise("none are stored yet: cyb-llm fetch smollm2");
  return found.advise("stored are {}", joined(stored));
}

}  // namespace

std::vector<std::string> near_names(const std::string& text, const std::vector<std::string>& names) {
  std::vector<std::pair<size_t, std::string>> found;
  const std::string wanted = lower(text).substr(0, 200);
  for (const std::string& name : names) {
    const std::string other = lower(name);
    const size_t distance = edit_distance(wanted, other);
    const bool part = wanted.size() >= 3 &&
                      (other.find(wanted) != std::string::npos || wanted.find(other) != std::string::npos);
    if (part || distance <= std::max<size_t>(2, wanted.size() / 4))
      found.emplace_back(part ? 0 : distance, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> out;
  for (const auto& [distance, name] : found)
    if (out.size() < 5) out.push_back(name);
  return out;
}

std::vector<StoredModel> list_stored(const Settings& settings) {
  std::vector<StoredModel> out;
  std::error_code code;
  fs::directory_iterator at(settings.models_dir(), code);
  if (code == std::errc::no_such_file_or_directory) return out;
  if (code)
    throw error(ErrorKind::Io, "cannot read the folder '{}': {}", settings.models_dir(), code.message())
        .advise("check CYB_HOME and the permissions of the folder");
  for (; at != fs::directory_iterator(); at.increment(code)) {
    const std::string file = at->path().filename().string();
    if (!file.ends_with(kSuffix) || file.size() == kSuffix.size() || !at->is_regular_file(code)) continue;
    StoredModel model{file.substr(0, file.size() - kSuffix.size()), at->path().string(), at->file_size(code)};
    out.push_back(std::move(model));
  }
  std::sort(out.begin(), out.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return out;
}

std::string stored_path(const Settings& settings, const std::string& name) {
  if (!valid_store_name(name))
    throw error(ErrorKind::Usage, "found the model name '{}'", name)
        .advise("names are made of letters, digits, '.', '_' and '-', and begin with a letter or digit");
  return settings.models_dir() + "/" + name + kSuffix;
}

void remove_stored(const Settings& settings, const std::vector<std::string>& names) {
  const auto stored = stored_names(settings);
  for (const std::string& name : names)
    if (std::find(stored.begin(), stored.end(), name) == stored.end()) throw not_stored(name, stored);
  for (const std::string& name : names) {
    std::error_code code;
    fs::remove(stored_path(settings, name), code);
    if (code)
      throw error(ErrorKind::Io, "cannot remove '{}': {}", stored_path(settings, name), code.message())
          .advise("check the permissions of {}", settings.models_dir());
  }
}

uint64_t clear_cache(const Settings& settings) {
  std::error_code code;
  uint64_t bytes = 0;
  for (fs::recursive_directory_iterator at(settings.cache_dir(), code), end; !code && at != end;
       at.increment(code)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) bytes += at->file_size(ignored);
  }
  std::error_code failed;
  fs::remove_all(settings.cache_dir(), failed);
  if (failed)
    throw error(ErrorKind::Io, "cannot clear '{}': {}", settings.cache_dir(), failed.message())
        .advise("check the permissions of the folder");
  return bytes;
}

std::string resolve_model(const std::string& text, const Settings& settings, const Catalog& catalog) {
  std::error_code code;
  if (text.empty())
    throw error(ErrorKind::Usage, "found an empty model name").advise("cyb-llm list shows the models");
  const bool path = text.find('/') != std::string::npos || text.ends_with(kSuffix);
  if (!path && valid_store_name(text)) {
    const std::string stored = stored_path(settings, text);
    if (fs::is_regular_file(stored, code)) return stored;
  }
  if (fs::is_directory(text, code))
    throw error(ErrorKind::Usage, "'{}' is a folder, not a .model file", text)
        .advise("import it first: cyb-llm import {}", text);
  if (fs::exists(text, code)) return text;
  if (path)
    throw error(ErrorKind::Io, "there is no file '{}'", text)
        .advise("check the path; cyb-llm list shows the stored models");
  if (catalog.find(text))
    throw error(ErrorKind::Io, "the model '{}' is not on this machine", text)
        .advise("cyb-llm fetch {}", text);
  std::vector<std::string> names = stored_names(settings);
  const bool any = !names.empty();
  for (const CatalogEntry& entry : catalog.entries)
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) names.push_back(entry.name);
  const auto near = near_names(text, names);
  const Error found = error(ErrorKind::Io, "there is no model '{}'", text);
  if (!near.empty())
    throw found.advise("did you mean {}? A model that is not stored is fetched with: cyb-llm fetch NAME",
                       joined(near));
  throw found.advise(
      "{}fetch one with cyb-llm fetch NAME: a name of the catalog ({}), hf:org/repo, ollama:name, an address",
      any ? "cyb-llm list shows the stored models; " : "", joined(names));
}

std::string resolve_model(const std::string& name_or_path) {
  const Settings settings = load_settings();
  return resolve_model(name_or_path, settings, load_catalog(settings.catalog_path()));
}

}  // namespace cyb
