// SPDX-License-Identifier: Apache-2.0
// JSON (config.json, generation_config.json, …) to Config by the rules of docs/model-format.md, "config".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "format/config.h"

namespace cyb {

// A JSON object as a table. `section` is the name that the table will have: in "sampling" and "eval" some
// keys are per mille. Nulls are left out and listed under `nulls`; a list that holds null is kept as its JSON
// text. `where` names the source in errors. Use nlohmann::ordered_json to keep the source's order of keys.
ConfigTable table_from_json(const nlohmann::ordered_json& object, std::string_view section,
                            std::string_view where);
ConfigTable table_from_json(const nlohmann::json& object, std::string_view section, std::string_view where);

// One value under its key, by the same rules; null is refused.
ConfigValue value_from_json(const nlohmann::ordered_json& value, std::string_view key,
                            std::string_view section, std::string_view where);
ConfigValue value_from_json(const nlohmann::json& value, std::string_view key, std::string_view section,
                            std::string_view where);

}  // namespace cyb
