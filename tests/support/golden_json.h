// SPDX-License-Identifier: Apache-2.0
// What the two golden readers share: files, base64, sections of a .bin file.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "support/golden.h"

namespace cyb::test {

std::string goldens_folder();
nlohmann::json read_json(const std::string& path);
std::string decode_base64(const std::string& text);

template <class T>
std::vector<T> as_values(const std::string& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

Greedy read_greedy(const nlohmann::json& j);
// The parts that every golden of a tiny model has.
TinyCheckpoint checkpoint_of(const nlohmann::json& j);

}  // namespace cyb::test
