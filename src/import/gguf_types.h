// SPDX-License-Identifier: Apache-2.0
// The tensor types that GGUF files name: block sizes, and whether this program decodes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cyb {

// Values are the numbers in the file.
enum class GgufType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q8_1 = 9,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
};

struct GgufTypeInfo {
  GgufType type;
  const char* name;
  int block_values;  // values of a block
  int block_bytes;
  bool decoded;  // gguf_blocks.h turns it into f32
};

// nullptr for a number that no GGUF version defines.
const GgufTypeInfo* gguf_type_info(uint32_t type);
inline const GgufTypeInfo* gguf_type_info(GgufType type) {
  return gguf_type_info(static_cast<uint32_t>(type));
}
const char* to_string(GgufType type);

// "F32, F16, …" of the types that are decoded.
std::string gguf_decoded_types();

}  // namespace cyb
