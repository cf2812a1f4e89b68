// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <string>

namespace cyb {
namespace {
constexpr const char* kNames[] = {"f32", "f16", "bf16", "f64", "i8",  "u8",   "i16",
                                  "u16", "i32", "u32",  "i64", "u64", "bool", "string"};
constexpr size_t kSizes[] = {4, 2, 2, 8, 1, 1, 2, 2, 4, 4, 8, 8, 1, sizeof(std::string)};
}  // namespace

const char* to_string(DType type) { return kNames[static_cast<int>(type)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < 14; i++)
    if (name == kNames[i]) return static_cast<DType>(i);
  return std::nullopt;
}

size_t size_of(DType type) { return kSizes[static_cast<int>(type)]; }

float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t magnitude = h & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ff) << 13));
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: an exact multiple of 2^-24.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

uint16_t f32_to_f16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00;  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                       // below 2^-14: the sum rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
}

}  // namespace cyb
