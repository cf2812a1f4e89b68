// SPDX-License-Identifier: Apache-2.0
// What families do with the keys of a config.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "format/config.h"
#include "ir/ops/matmul.h"

namespace cyb {

void set_default(Config& c, const std::string& key, ConfigValue value);
// Keeps these keys of the table at `part` only: what trained the model, or tells its classes apart, is left
// out.
void keep_settings(Config& c, const std::string& part, const std::vector<const char*>& names);

// A number of 1 to 2³¹. Throws InvalidConfig, as all of these do.
int64_t positive_setting(const Config& c, const std::string& key);
// A number for both, or a list of height and width.
std::pair<int64_t, int64_t> size_setting(const Config& c, const std::string& key);
// The decimal that people write for an epsilon.
double epsilon_setting(const Config& c, const std::string& key);
// Of the function that the key names.
ir::Activation activation_setting(const Config& c, const std::string& key);
// id2label, num_labels of [architecture] → labels = ["cat", "dog"]; the former are erased.
void complete_labels(Config& c);

// The same of the main part, whose keys begin with "architecture.": by the names behind that.
namespace main_part {

std::string key(const char* name);
void set_default(Config& c, const char* name, ConfigValue value);
int64_t positive(const Config& c, const char* name);

}  // namespace main_part

}  // namespace cyb
