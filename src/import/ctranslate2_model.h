// SPDX-License-Identifier: Apache-2.0
// CTranslate2 folders as source models.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "import/source_model.h"

namespace cyb {

bool is_ctranslate2_folder(const std::string& path);
std::unique_ptr<SourceModel> open_ctranslate2_folder(const std::string& path);

// [[layer, head], …] as layer, head, layer, head, …; empty for what is no list. Throws InvalidConfig.
std::vector<int64_t> alignment_heads_of(const nlohmann::ordered_json& json);

}  // namespace cyb
