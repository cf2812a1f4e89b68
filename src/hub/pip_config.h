// SPDX-License-Identifier: Apache-2.0
// The package index that pip is configured for, read from its files and variables; pip itself is not needed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hub/settings.h"

namespace cyb {

// "section.key" → value of one pip.conf; keys lower-case with '-', continued lines joined by '\n'.
std::map<std::string, std::string> parse_pip_config(const std::string& text);

// Lays the values of one file over `settings`: [global], then [download], which pip lets override it.
void apply_pip_config(PipSettings& settings, const std::map<std::string, std::string>& values);

// The files that pip reads, weakest first.
std::vector<std::string> pip_config_files();

// Files in pip's order, then PIP_INDEX_URL and its like. Unreadable files are skipped, as pip does.
void load_pip_settings(PipSettings& settings);

}  // namespace cyb
