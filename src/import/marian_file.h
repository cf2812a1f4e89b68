// SPDX-License-Identifier: Apache-2.0
// Reader of Marian's binary models, float or with the 8-bit weights of Bergamot. Counts and sizes are checked
// before anything is used.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cyb {

struct MarianItem {
  enum class Type { f32, i8, bytes };
  std::string name;
  Type type = Type::f32;
  std::vector<int64_t> shape;
  const uint8_t* data = nullptr;
  float scale = 1;  // i8: a value is its integer divided by this

  int64_t elements() const;
};

struct MarianFile {
  std::vector<MarianItem> items;                // without the settings
  std::map<std::string, std::string> settings;  // of special:model.yml, the plain ones
};

bool is_marian_file(std::span<const uint8_t> bytes);
// Throws InvalidFile for a damaged file, UnsupportedModel for element types that are not known. Items point
// into `bytes`.
MarianFile parse_marian(std::span<const uint8_t> bytes);

}  // namespace cyb
