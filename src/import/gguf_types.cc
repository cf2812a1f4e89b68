// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_types.h"

namespace cyb {
namespace {

constexpr GgufTypeInfo kTypes[] = {
    {GgufType::F32, "F32", 1, 4, true},
    {GgufType::F16, "F16", 1, 2, true},
    {GgufType::BF16, "BF16", 1, 2, true},
    {GgufType::Q4_0, "Q4_0", 32, 18, true},
    {GgufType::Q4_1, "Q4_1", 32, 20, true},
    {GgufType::Q5_0, "Q5_0", 32, 22, true},
    {GgufType::Q5_1, "Q5_1", 32, 24, true},
    {GgufType::Q8_0, "Q8_0", 32, 34, true},
    {GgufType::Q2_K, "Q2_K", 256, 84, true},
    {GgufType::Q3_K, "Q3_K", 256, 110, true},
    {GgufType::Q4_K, "Q4_K", 256, 144, true},
    {GgufType::Q5_K, "Q5_K", 256, 176, true},
    {GgufType::Q6_K, "Q6_K", 256, 210, true},
    {GgufType::IQ4_NL, "IQ4_NL", 32, 18, true},
    {GgufType::IQ4_XS, "IQ4_XS", 256, 136, true},
    {GgufType::TQ1_0, "TQ1_0", 256, 54, true},
    {GgufType::TQ2_0, "TQ2_0", 256, 66, true},
    {GgufType::MXFP4, "MXFP4", 32, 17, true},
    {GgufType::Q8_1, "Q8_1", 32, 40, false},
    {GgufType::Q8_K, "Q8_K", 256, 292, false},
    {GgufType::IQ2_XXS, "IQ2_XXS", 256, 66, false},
    {GgufType::IQ2_XS, "IQ2_XS", 256, 74, false},
    {GgufType::IQ3_XXS, "IQ3_XXS", 256, 98, false},
    {GgufType::IQ1_S, "IQ1_S", 256, 50, false},
    {GgufType::IQ3_S, "IQ3_S", 256, 110, false},
    {GgufType::IQ2_S, "IQ2_S", 256, 82, false},
    {GgufType::IQ1_M, "IQ1_M", 256, 56, false},
    {GgufType::I8, "I8", 1, 1, false},
    {GgufType::I16, "I16", 1, 2, false},
    {GgufType::I32, "I32", 1, 4, false},
    {GgufType::I64, "I64", 1, 8, false},
    {GgufType::F64, "F64", 1, 8, false},
    {GgufType::NVFP4, "NVFP4", 64, 36, false},
    {GgufType::Q1_0, "Q1_0", 128, 18, false},
};

}  // namespace

const GgufTypeInfo* gguf_type_info(uint32_t type) {
  for (const GgufTypeInfo& info : kTypes)
    if (static_cast<uint32_t>(info.type) == type) return &info;
  return nullptr;
}

const char* to_string(GgufType type) {
  const GgufTypeInfo* info = gguf_type_info(type);
  return info ? info->name : "?";
}

std::string gguf_decoded_types() {
  std::string out;
  for (const GgufTypeInfo& info : kTypes)
    if (info.decoded) out += (out.empty() ? "" : ", ") + std::string(info.name);
  return out;
}

}  // namespace cyb
