// SPDX-License-Identifier: Apache-2.0
// Element types that graphs see, and conversions between the small floats and f32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cyb {

enum class DType : uint8_t { f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean, string };

const char* to_string(DType type);                       // "f32", …, "bool", "string"
std::optional<DType> parse_dtype(std::string_view name);
size_t size_of(DType type);  // bytes of one element; string: sizeof(std::string)
constexpr bool is_float(DType t) {
  return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::f64;
}
constexpr bool is_integer(DType t) { return t >= DType::i8 && t <= DType::u64; }

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);  // round to nearest even
inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
inline uint16_t f32_to_bf16(float value) {  // round to nearest even; NaN stays NaN
  uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40);
  u += 0x7fffu + ((u >> 16) & 1);
  return static_cast<uint16_t>(u >> 16);
}

}  // namespace cyb
