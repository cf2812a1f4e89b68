// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_blocks.h"

#include "base/cpu_features.h"
#include "base/error.h"

#define CYB_BLOCKS_ISA plain
#include "import/gguf_blocks_impl.h"

namespace cyb {

#if defined(__x86_64__)
namespace gguf_blocks::avx2 {
void decode(GgufType type, int block_values, int block_bytes, const uint8_t* p, int64_t values, float* out);
void integers(GgufType type, const uint8_t* p, int64_t values, int8_t* out, float* scales);
}  // namespace gguf_blocks::avx2
#endif

namespace {
bool use_avx2() {
  static const bool yes = isa_runs_on(Isa::avx2, detect_isa());
  return yes;
}
}  // namespace

void gguf_decode(GgufType type, const uint8_t* blocks, int64_t values, float* out) {
  const GgufTypeInfo* info = gguf_type_info(type);
  if (!info || !info->decoded)
    throw error(ErrorKind::WeightFormat, "tensors of type {} cannot be imported", to_string(type))
        .advise("types that can: {}", gguf_decoded_types());
#if defined(__x86_64__)
  if (use_avx2())
    return gguf_blocks::avx2::decode(type, info->block_values, info->block_bytes, blocks, values, out);
#endif
  gguf_blocks::plain::decode(type, info->block_values, info->block_bytes, blocks, values, out);
}

GgufGrid gguf_grid(GgufType type) {
  switch (type) {
    case GgufType::Q4_0:
      return {KeptGrid::q4, 1};
    case GgufType::Q8_0:
      return {KeptGrid::q8, 1};
    case GgufType::Q5_0:
      return {KeptGrid::q8, 7};
    case GgufType::IQ4_NL:
      return {KeptGrid::q8, 1};
    case GgufType::MXFP4:
      return {KeptGrid::q8, 10};  // of the doubled table, 20 of the value
    case GgufType::TQ1_0:
    case GgufType::TQ2_0:
      return {KeptGrid::ternary, 1};
    default:
      return {};
  }
}

void gguf_integers(GgufType type, const uint8_t* blocks, int64_t values, int8_t* integers, float* scales) {
#if defined(__x86_64__)
  if (use_avx2()) return gguf_blocks::avx2::integers(type, blocks, values, integers, scales);
#endif
  gguf_blocks::plain::integers(type, blocks, values, integers, scales);
}

}  // namespace cyb
