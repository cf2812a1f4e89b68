// SPDX-License-Identifier: Apache-2.0
#include "hub/catalog.h"

#include <toml++/toml.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "hub/builtin_catalog.h"
#include "hub/partial.h"
#include "hub/url.h"

namespace cyb {
namespace {

class Reader {
 public:
  Reader(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

  Error wrong(const std::string& found) const {
    return error(ErrorKind::InvalidConfig, "{}: {}", where_, found)
        .advise("see docs/fetching.md for what an entry holds");
  }
  std::string text(const char* key, bool needed) {
    const toml::node* node = take(key);
    if (!node && !needed) return "";
    const auto value = node ? node->value_exact<std::string>() : std::nullopt;
    if (!value || (needed && value->empty())) throw wrong(fmt::format("'{}' is no text", key));
    return *value;
  }
  bool flag(const char* key) {
    const toml::node* node = take(key);
    if (!node) return false;
    const auto value = node->value_exact<bool>();
    if (!value) throw wrong(fmt::format("'{}' is neither true nor false", key));
    return *value;
  }
  std::vector<std::string> texts(const char* key) {
    const toml::node* node = take(key);
    std::vector<std::string> out;
    if (!node) return out;
    if (!node->is_array()) throw wrong(fmt::format("'{}' is no list", key));
    for (const auto& item : *node->as_array()) {
      const auto value = item.value_exact<std::string>();
      if (!value) throw wrong(fmt::format("'{}' holds something else than text", key));
      out.push_back(*value);
    }
    return out;
  }
  const toml::array* tables(const char* key) {
    const toml::node* node = take(key);
    if (!node || !node->is_array_of_tables()) throw wrong(fmt::format("there is no [[…{}]]", key));
    return node->as_array();
  }
  void end() const {
    for (const auto& [key, node] : table_) {
      bool known = false;
      for (const std::string& name : known_) known = known || name == key.str();
      if (!known) throw wrong(fmt::format("unknown key '{}'", key.str()));
    }
  }

 private:
  const toml::node* take(const char* key) {
    known_.push_back(key);
    return table_.get(key);
  }
  const toml::table& table_;
  std::string where_;
  std::vector<std::string> known_;
};

CatalogSource read_source(const toml::table& table, const std::string& where) {
  Reader reader(table, where);
  CatalogSource out;
  const std::string from = reader.text("from", true);
  try {
    out.source = parse_source(from);
  } catch (const Error& e) {
    throw reader.wrong(e.message());
  }
  if (out.source.kind == SourceKind::name)
    throw reader.wrong(fmt::format("'{}' is another catalog name", from));
  out.files = reader.texts("files");
  out.file_name = reader.text("file_name", false);
  const std::string sha256 = reader.text("sha256", false);
  out.sha256 = sha256_of_etag(sha256);
  if (out.sha256.empty() && !sha256.empty()) throw reader.wrong("'sha256' is not 64 hexadecimal digits");
  if (!out.files.empty() && out.source.kind != SourceKind::pypi)
    throw reader.wrong("'files' belongs to pypi: sources");
  // The model's parts, one a package, then those files of the first package that belong beside the model.
  if (!out.files.empty() && out.files.size() < out.source.packages.size())
    throw reader.wrong(fmt::format("{} files for {} packages", out.files.size(), out.source.packages.size()));
  for (const std::string& file : out.files)
    if (!safe_relative_path(file)) throw reader.wrong(fmt::format("'{}' is no path inside a package", file));
  if (!out.file_name.empty() &&
      (!safe_relative_path(out.file_name) || out.file_name.find('/') != std::string::npos))
    throw reader.wrong(fmt::format("'{}' is no file name", out.file_name));
  reader.end();
  return out;
}

}  // namespace

const CatalogEntry* Catalog::find(const std::string& name) const {
  for (const CatalogEntry& entry : entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

const CatalogEntry* Catalog::default_entry() const {
  for (const CatalogEntry& entry : entries)
    if (entry.is_default) return &entry;
  return nullptr;
}

Catalog parse_catalog(const std::string& text, const std::string& path) {
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    throw error(ErrorKind::InvalidConfig, "{}: line {}: {}", path, e.source().begin.line, e.description())
        .advise("correct the line, or remove the file to use the built-in catalog");
  }
  Catalog catalog;
  Reader top(root, path);
  const toml::array* models = top.tables("models");
  top.end();
  for (const auto& node : *models) {
    const toml::table& table = *node.as_table();
    const std::string where =
        fmt::format("{}: model '{}'", path, table["name"].value<std::string>().value_or("?"));
    Reader reader(table, where);
    CatalogEntry entry;
    entry.name = reader.text("name", true);
    if (!valid_store_name(entry.name))
      throw reader.wrong("the name holds other characters than letters, digits, . _ -");
    if (catalog.find(entry.name)) throw reader.wrong("there are two of that name");
    entry.description = reader.text("description", true);
    entry.license = reader.text("license", true);
    entry.is_default = reader.flag("default");
    int number = 0;
    for (const auto& source : *reader.tables("sources"))
      entry.sources.push_back(read_source(*source.as_table(), fmt::format("{}, source {}", where, ++number)));
    reader.end();
    if (entry.sources.empty()) throw reader.wrong("there is no source");
    catalog.entries.push_back(std::move(entry));
  }
  return catalog;
}

Catalog load_catalog(const std::string& override_path) {
  Catalog catalog = parse_catalog(builtin_catalog(), "built-in catalog");
  std::error_code ignored;
  if (override_path.empty() || !std::filesystem::exists(override_path, ignored)) return catalog;
  Catalog own = parse_catalog(read_file(override_path, 16 << 20), override_path);
  const bool own_default = own.default_entry() != nullptr;
  for (CatalogEntry& entry : catalog.entries) {
    if (own.find(entry.name)) continue;
    if (own_default) entry.is_default = false;
    own.entries.push_back(std::move(entry));
  }
  return own;
}

}  // namespace cyb
