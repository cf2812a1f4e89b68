// SPDX-License-Identifier: Apache-2.0
// The models on this machine, and what a name on the command line stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/catalog.h"
#include "hub/settings.h"

namespace cyb {

struct StoredModel {
  std::string name, path;
  uint64_t size = 0;
};

// By name. No store at all is an empty one.
std::vector<StoredModel> list_stored(const Settings& settings);

// Where NAME.model lies or will lie. Throws Usage for a name with other characters than letters, digits, . _
// -
std::string stored_path(const Settings& settings, const std::string& name);

// Removes models; all names are checked first, and one that is not there is an error that lists near ones.
void remove_stored(const Settings& settings, const std::vector<std::string>& names);

// Removes what downloads left behind; the number of bytes that were freed.
uint64_t clear_cache(const Settings& settings);

// The file that a path or a stored name means. Otherwise an error: how to fetch it if the catalog knows it,
// near names if not.
std::string resolve_model(const std::string& name_or_path, const Settings& settings, const Catalog& catalog);
std::string resolve_model(const std::string& name_or_path);  // with the settings and catalog of this machine

// Those of `names` that a person may have meant, nearest first.
std::vector<std::string> near_names(const std::string& text, const std::vector<std::string>& names);

}  // namespace cyb
