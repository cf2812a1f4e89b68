// SPDX-License-Identifier: Apache-2.0
// The decoders, compiled once for each instruction set: the including file defines CYB_BLOCKS_ISA as a
// namespace. One rounding per operation, in the order of the reference; plain loops of fixed length, which
// compilers vectorize. Only static functions and no library templates: a second copy for other processors
// must not reach the linker.

namespace cyb::gguf_blocks::CYB_BLOCKS_ISA {
namespace {

inline uint16_t load16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | (p[1] << 8)); }

// Exact, branch-free: the half's bits as a small f32, scaled by 2^112.
inline float half(uint16_t h) {
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7fff) << 13;
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  uint32_t bits = __builtin_bit_cast(uint32_t, scaled);
  bits = magnitude >= 0x0f800000u ? (magnitude | 0x7f800000u) : bits;
  return __builtin_bit_cast(float, bits | (static_cast<uint32_t>(h & 0x8000) << 16));
}
inline float half_at(const uint8_t* p) { return half(load16(p)); }

// 2^(e − 128), the scale of an MXFP4 block whose table holds doubled values.
inline float e8m0_half(uint8_t e) {
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return __builtin_bit_cast(float, bits);
}

const int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const int8_t kMxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void decode_f32(const uint8_t* p, int64_t n, float* out) {
  __builtin_memcpy(out, p, static_cast<size_t>(n) * 4);
}

void decode_f16(const uint8_t* p, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i++) out[i] = half(load16(p + 2 * i));
}

void decode_bf16(const uint8_t* p, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i++)
    out[i] = __builtin_bit_cast(float, static_cast<uint32_t>(load16(p + 2 * i)) << 16);
}

// Integers of one block of 32, for the formats that have nothing finer than that.
inline void nibbles(const uint8_t* q, int8_t* out) {
  for (int i = 0; i < 16; i++) {
    out[i] = static_cast<int8_t>(q[i] & 15);
    out[16 + i] = static_cast<int8_t>(q[i] >> 4);
  }
}
inline void ints_q4(const uint8_t* q, int8_t* out) {
  nibbles(q, out);
  for (int i = 0; i < 32; i++) out[i] = static_cast<int8_t>(out[i] - 8);
}
inline void ints_q5(const uint8_t* high, const uint8_t* q, int8_t* out) {
  uint32_t bits;
  __builtin_memcpy(&bits, high, 4);
  nibbles(q, out);
  for (int i = 0; i < 32; i++) out[i] = static_cast<int8_t>(out[i] | (((bits >> i) & 1) << 4));
}
inline void ints_table(const int8_t* table, const uint8_t* q, int8_t* out) {
  for (int i = 0; i < 16; i++) {
    out[i] = table[q[i] & 15];
    out[16 + i] = table[q[i] >> 4];
  }
}
inline void scaled(float d, const int8_t* q, int n, float* out) {
  for (int i = 0; i < n; i++) out[i] = d * static_cast<float>(q[i]);
}
inline void scaled_plus(float d, float m, const int8_t* q, int n, float* out) {
  for (int i = 0; i < n; i++) out[i] = d * static_cast<float>(q[i]) + m;
}
inline void scaled_minus(float d, float m, const int8_t* q, int n, float* out) {
  for (int i = 0; i < n; i++) out[i] = d * static_cast<float>(q[i]) - m;
}

void block_q4_0(const uint8_t* p, float* out) {
  int8_t q[32];
  ints_q4(p + 2, q);
  scaled(half_at(p), q, 32, out);
}

void block_q4_1(const uint8_t* p, float* out) {
  int8_t q[32];
  nibbles(p + 4, q);
  scaled_plus(half_at(p), half_at(p + 2), q, 32, out);
}

void block_q5_0(const uint8_t* p, float* out) {
  int8_t q[32];
  ints_q5(p + 2, p + 6, q);
  for (int i = 0; i < 32; i++) q[i] = static_cast<int8_t>(q[i] - 16);
  scaled(half_at(p), q, 32, out);
}

void block_q5_1(const uint8_t* p, float* out) {
  int8_t q[32];
  ints_q5(p + 4, p + 8, q);
  scaled_plus(half_at(p), half_at(p + 2), q, 32, out);
}

void block_q8_0(const uint8_t* p, float* out) {
  scaled(half_at(p), reinterpret_cast<const int8_t*>(p + 2), 32, out);
}

void block_q2_k(const uint8_t* p, float* out) {
  const uint8_t *scales = p, *qs = p + 16;
  const float d = half_at(p + 80), dmin = half_at(p + 82);
  for (int g = 0; g < 16; g++) {  // 16 values each
    const uint8_t* from = qs + (g / 8) * 32 + (g % 2) * 16;
    const int shift = (g / 2 % 4) * 2;
    int8_t q[16];
    for (int i = 0; i < 16; i++) q[i] = static_cast<int8_t>((from[i] >> shift) & 3);
    scaled_minus(d * static_cast<float>(scales[g] & 15), dmin * static_cast<float>(scales[g] >> 4), q, 16,
                 out + g * 16);
  }
}

void block_q3_k(const uint8_t* p, float* out) {
  const uint8_t *mask = p, *qs = p + 32, *scales = p + 96;
  const float d = half_at(p + 108);
  for (int g = 0; g < 16; g++) {
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
    const int high = (scales[8 + g % 4] >> (2 * (g / 4))) & 3;
    const float dl = d * static_cast<float>((low | (high << 4)) - 32);
    const uint8_t* from = qs + (g / 8) * 32 + (g % 2) * 16;
    const uint8_t* bits = mask + (g % 2) * 16;
    const int shift = (g / 2 % 4) * 2;
    int8_t q[16];
    for (int i = 0; i < 16; i++)  // the offset of 4 applies where the mask's bit is clear
      q[i] = static_cast<int8_t>(((from[i] >> shift) & 3) - (((bits[i] >> (g / 2)) & 1) ? 0 : 4));
    scaled(dl, q, 16, out + g * 16);
  }
}

// The 6-bit scales and minima of Q4_K and Q5_K.
inline void k_scales(const uint8_t* p, uint8_t* scale, uint8_t* minimum) {
  for (int i = 0; i < 4; i++) {
    scale[i] = p[i] & 63;
    minimum[i] = p[4 + i] & 63;
    scale[4 + i] = static_cast<uint8_t>((p[8 + i] & 15) | ((p[i] >> 2) & 0x30));
    minimum[4 + i] = static_cast<uint8_t>((p[8 + i] >> 4) | ((p[4 + i] >> 2) & 0x30));
  }
}

void block_q4_k(const uint8_t* p, float* out) {
  const float d = half_at(p), dmin = half_at(p + 2);
  uint8_t scale[8], minimum[8];
  k_scales(p + 4, scale, minimum);
  for (int g = 0; g < 8; g++) {
    const uint8_t* from = p + 16 + (g / 2) * 32;
    const int shift = (g % 2) * 4;
    int8_t q[32];
    for (int i = 0; i < 32; i++) q[i] = static_cast<int8_t>((from[i] >> shift) & 15);
    scaled_minus(d * static_cast<float>(scale[g]), dmin * static_cast<float>(minimum[g]), q, 32,
                 out + g * 32);
  }
}

void block_q5_k(const uint8_t* p, float* out) {
  const float d = half_at(p), dmin = half_at(p + 2);
  uint8_t scale[8], minimum[8];
  k_scales(p + 4, scale, minimum);
  const uint8_t* high = p + 16;
  for (int g = 0; g < 8; g++) {
    const uint8_t* from = p + 48 + (g / 2) * 32;
    const int shift = (g % 2) * 4;
    int8_t q[32];
    for (int i = 0; i < 32; i++)
      q[i] = static_cast<int8_t>(((from[i] >> shift) & 15) | (((high[i] >> g) & 1) << 4));
    scaled_minus(d * static_cast<float>(scale[g]), dmin * static_cast<float>(minimum[g]), q, 32,
                 out + g * 32);
  }
}

void block_q6_k(const uint8_t* p, float* out) {
  const uint8_t *low = p, *high = p + 128;
  const int8_t* scales = reinterpret_cast<const int8_t*>(p + 192);
  const float d = half_at(p + 208);
  for (int g = 0; g < 16; g++) {
    const int eighth = g / 2, r = eighth % 4;
    const uint8_t* from = low + (eighth / 4) * 64 + (r % 2) * 32 + (g % 2) * 16;
    const uint8_t* top = high + (eighth / 4) * 32 + (g % 2) * 16;
    const int shift = (r / 2) * 4;
    int8_t q[16];
    for (int i = 0; i < 16; i++)
      q[i] = static_cast<int8_t>((((from[i] >> shift) & 15) | (((top[i] >> (2 * r)) & 3) << 4)) - 32);
    scaled(d * static_cast<float>(scales[g]), q, 16, out + g * 16);
  }
}

void block_iq4_nl(const uint8_t* p, float* out) {
  int8_t q[32];
  ints_table(kIq4, p + 2, q);
  scaled(half_at(p), q, 32, out);
}

void block_iq4_xs(const uint8_t* p, float* out) {
  const float d = half_at(p);
  const uint16_t high = load16(p + 2);
  for (int g = 0; g < 8; g++) {
    const int low = (p[4 + g / 2] >> (4 * (g % 2))) & 15;
    const int scale = (low | (((high >> (2 * g)) & 3) << 4)) - 32;
    int8_t q[32];
    ints_table(kIq4, p + 8 + g * 16, q);
    scaled(d * static_cast<float>(scale), q, 32, out + g * 32);
  }
}

inline int8_t trit(uint8_t byte, int power) {
  return static_cast<int8_t>(((static_cast<uint8_t>(byte * power) * 3) >> 8) - 1);
}

void ints_tq1_0(const uint8_t* p, int8_t* out) {
  const int powers[5] = {1, 3, 9, 27, 81};
  for (int n = 0; n < 5; n++)
    for (int i = 0; i < 32; i++) out[n * 32 + i] = trit(p[i], powers[n]);
  for (int n = 0; n < 5; n++)
    for (int i = 0; i < 16; i++) out[160 + n * 16 + i] = trit(p[32 + i], powers[n]);
  for (int n = 0; n < 4; n++)
    for (int i = 0; i < 4; i++) out[240 + n * 4 + i] = trit(p[48 + i], powers[n]);
}

void ints_tq2_0(const uint8_t* p, int8_t* out) {
  for (int g = 0; g < 8; g++)
    for (int i = 0; i < 32; i++)
      out[g * 32 + i] = static_cast<int8_t>(((p[(g / 4) * 32 + i] >> (2 * (g % 4))) & 3) - 1);
}

void block_tq1_0(const uint8_t* p, float* out) {
  int8_t q[256];
  ints_tq1_0(p, q);
  scaled(half_at(p + 52), q, 256, out);
}

void block_tq2_0(const uint8_t* p, float* out) {
  int8_t q[256];
  ints_tq2_0(p, q);
  scaled(half_at(p + 64), q, 256, out);
}

void block_mxfp4(const uint8_t* p, float* out) {
  int8_t q[32];
  ints_table(kMxfp4, p + 1, q);
  scaled(e8m0_half(p[0]), q, 32, out);
}

using BlockDecoder = void (*)(const uint8_t*, float*);
BlockDecoder block_decoder(GgufType type) {
  switch (type) {
    case GgufType::Q4_0:
      return block_q4_0;
    case GgufType::Q4_1:
      return block_q4_1;
    case GgufType::Q5_0:
      return block_q5_0;
    case GgufType::Q5_1:
      return block_q5_1;
    case GgufType::Q8_0:
      return block_q8_0;
    case GgufType::Q2_K:
      return block_q2_k;
    case GgufType::Q3_K:
      return block_q3_k;
    case GgufType::Q4_K:
      return block_q4_k;
    case GgufType::Q5_K:
      return block_q5_k;
    case GgufType::Q6_K:
      return block_q6_k;
    case GgufType::IQ4_NL:
      return block_iq4_nl;
    case GgufType::IQ4_XS:
      return block_iq4_xs;
    case GgufType::TQ1_0:
      return block_tq1_0;
    case GgufType::TQ2_0:
      return block_tq2_0;
    case GgufType::MXFP4:
      return block_mxfp4;
    default:
      return nullptr;
  }
}

}  // namespace

void decode(GgufType type, int block_values, int block_bytes, const uint8_t* p, int64_t values, float* out) {
  if (type == GgufType::F32) return decode_f32(p, values, out);
  if (type == GgufType::F16) return decode_f16(p, values, out);
  if (type == GgufType::BF16) return decode_bf16(p, values, out);
  const BlockDecoder block = block_decoder(type);
  for (int64_t i = 0; i < values; i += block_values, p += block_bytes) block(p, out + i);
}

void integers(GgufType type, const uint8_t* p, int64_t values, int8_t* out, float* scales) {
  for (int64_t i = 0; i < values;) {
    switch (type) {
      case GgufType::Q4_0:
        ints_q4(p + 2, out + i);
        *scales++ = half_at(p);
        i += 32, p += 18;
        break;
      case GgufType::Q5_0:
        ints_q5(p + 2, p + 6, out + i);
        for (int k = 0; k < 32; k++) out[i + k] = static_cast<int8_t>((out[i + k] - 16) * 7);
        *scales++ = half_at(p);
        i += 32, p += 22;
        break;
      case GgufType::Q8_0:
        __builtin_memcpy(out + i, p + 2, 32);
        *scales++ = half_at(p);
        i += 32, p += 34;
        break;
      case GgufType::IQ4_NL:
        ints_table(kIq4, p + 2, out + i);
        *scales++ = half_at(p);
        i += 32, p += 18;
        break;
      case GgufType::MXFP4:
        ints_table(kMxfp4, p + 1, out + i);
        for (int k = 0; k < 32; k++) out[i + k] = static_cast<int8_t>(out[i + k] * 10);
        *scales++ = e8m0_half(p[0]);
        i += 32, p += 17;
        break;
      case GgufType::TQ1_0:
      case GgufType::TQ2_0: {
        const bool one = type == GgufType::TQ1_0;
        one ? ints_tq1_0(p, out + i) : ints_tq2_0(p, out + i);
        const float d = half_at(p + (one ? 52 : 64));
        for (int k = 0; k < 8; k++) *scales++ = d;
        i += 256, p += one ? 54 : 66;
        break;
      }
      default:
        return;
    }
  }
}

}  // namespace cyb::gguf_blocks::CYB_BLOCKS_ISA
