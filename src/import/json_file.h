// SPDX-License-Identifier: Apache-2.0
// JSON files of a model folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cyb {

constexpr uint64_t kMaxJsonFile = 16 << 20;

// Throws InvalidFile for what is no JSON, or nested deeper than any model's settings are.
nlohmann::ordered_json read_json_file(const std::string& path);
// The same; what is no object is refused too.
nlohmann::ordered_json read_json_object(const std::string& path);

}  // namespace cyb
