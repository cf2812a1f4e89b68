// SPDX-License-Identifier: Apache-2.0
#include "tensor/encode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/encode_kernels.h"

namespace cyb {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000u;

// What the stored integer or scale of the largest value is, which must not exceed `limit_of`.
double stored_magnitude(Encoding encoding, int frac_bits, double magnitude) {
  const double scaled = std::ldexp(magnitude, frac_bits);
  return encoding == Encoding::q8 || encoding == Encoding::q4 ? std::ceil(scaled) : std::nearbyint(scaled);
}
double limit_of(Encoding encoding) { return encoding == Encoding::u32 ? 2147483647.0 : 32767.0; }

template <class T>
void store(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
void permute(const TensorSpec& spec, const T* logical, T* stored) {
  const Layout layout = layout_of(spec);
  const int64_t n = elements_of(spec);
  if (spec.order.empty() || n == 0) {
    std::copy_n(logical, n, stored);
    return;
  }
  const std::vector<int64_t> strides = logical_strides(spec);
  const size_t last = layout.stored.size() - 1;
  std::vector<int64_t> at(layout.stored.size(), 0);
  int64_t base = 0;
  for (int64_t done = 0; done < n; done += layout.stored[last]) {
    for (int64_t i = 0; i < layout.stored[last]; i++) stored[done + i] = logical[base + i * strides[last]];
    for (size_t axis = last; axis-- > 0;) {
      base += strides[axis];
      if (++at[axis] < layout.stored[axis]) break;
      base -= strides[axis] * layout.stored[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

void EncodeStats::add(const EncodeStats& other) {
  values += other.values;
  sum_squares += other.sum_squares;
  sum_error_squares += other.sum_error_squares;
  max_error = std::max(max_error, other.max_error);
  max_magnitude = std::max(max_magnitude, other.max_magnitude);
  reencoded_blocks += other.reencoded_blocks;
}

double EncodeStats::rms() const { return values ? std::sqrt(sum_squares / static_cast<double>(values)) : 0; }
double EncodeStats::rms_error() const {
  return values ? std::sqrt(sum_error_squares / static_cast<double>(values)) : 0;
}
double EncodeStats::relative_error() const {
  return sum_squares > 0 ? std::sqrt(sum_error_squares / sum_squares) : 0;
}

float max_magnitude(std::span<const float> values, std::string_view tensor, int64_t first) {
  const uint32_t bits = encode_kernels::table().max_bits(values.data(), static_cast<int64_t>(values.size()));
  if (bits < kInfinityBits) return std::bit_cast<float>(bits);
  for (size_t i = 0; i < values.size(); i++)
    if (!std::isfinite(values[i]))
      throw error(ErrorKind::WeightFormat, "tensor '{}' holds {} at index {}", tensor,
                  std::isnan(values[i]) ? "NaN" : "infinity", first + static_cast<int64_t>(i))
          .advise("the source is damaged or was trained to divergence; use another copy of the model");
  return std::bit_cast<float>(bits);
}

bool fits(Encoding encoding, int frac_bits, double magnitude) {
  return stored_magnitude(encoding, frac_bits, magnitude) <= limit_of(encoding);
}

int choose_frac_bits(Encoding encoding, double magnitude) {
  if (encoding == Encoding::ternary) return 0;
  if (magnitude == 0) return default_frac_bits(encoding);
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent−1), 2^exponent)
  int f = std::min((encoding == Encoding::u32 ? 31 : 15) - exponent, max_frac_bits(encoding));
  if (!fits(encoding, f, magnitude)) f--;
  if (f < min_frac_bits(encoding) || !fits(encoding, f, magnitude))
    throw error(ErrorKind::WeightFormat, "a magnitude of {} does not fit encoding {}", magnitude,
                to_string(encoding))
        .advise("store the tensor as u32");
  return f;
}

double quants_magnitude(std::span<const int8_t> quants, std::span<const double> scales) {
  double most = 0;
  for (size_t b = 0; b < scales.size(); b++) {
    const int8_t* q = quants.data() + b * kBlock;
    const bool low = std::find(q, q + kBlock, int8_t{-128}) != q + kBlock;
    most = std::max(most, std::fabs(scales[b]) * (low ? 128.0 / 127.0 : 1.0));
  }
  return most;
}

struct TensorEncoder::Row {
  std::vector<int16_t> scales;
  std::vector<int8_t> quants;
  std::vector<float> padded;
  std::vector<int32_t> fixed;
};

TensorEncoder::TensorEncoder(const TensorSpec& spec, Q4Scale q4_scale)
    : spec_(spec), layout_(layout_of(spec)), q4_scale_(q4_scale) {}

void TensorEncoder::check_range(int64_t first, int64_t count) const {
  const int64_t rows = layout_.rows, end = first + count;
  const bool aligned =
      first >= 0 && count >= 0 && end <= layout_.all_rows() &&
      (count == 0 || (first % rows % layout_.group_rows == 0 && (end % rows % layout_.group_rows == 0)));
  if (!aligned)
    throw error(ErrorKind::ShapeMismatch, "tensor '{}': rows {}…{} are no whole groups of its {} rows",
                spec_.name, first, end, layout_.all_rows());
}

TensorEncoder::Range TensorEncoder::range(int64_t first, int64_t count) const {
  check_range(first, count);
  if (count == 0) return {};
  const uint64_t begin = layout_.group_offset(first);
  const uint64_t end = layout_.group_offset(first + count - 1) + layout_.group_bytes;
  return {begin, end - begin};
}

// Calls f(row, bytes of its group) for each row; groups are cleared before their first row.
template <class F>
void TensorEncoder::for_rows(int64_t first, int64_t count, uint8_t* out, F&& f) const {
  const uint64_t begin = range(first, count).offset;
  for (int64_t r = first; r < first + count; r++) {
    uint8_t* group = out + (layout_.group_offset(r) - begin);
    if (layout_.row_in_group(r) == 0) clear_group(group);
    f(r, group);
  }
}

// The code of zero, scale 0. Row padding keeps it.
void TensorEncoder::clear_group(uint8_t* group) const {
  std::memset(group, 0, layout_.group_bytes);
  if (spec_.encoding != Encoding::q4) return;
  const int scales = 2 * layout_.group_rows, block = kQ4BlockBytes * layout_.group_rows;
  for (int64_t b = 0; b < layout_.row_units(); b++)
    std::memset(group + b * block + scales, 0x88, static_cast<size_t>(block - scales));
}

void TensorEncoder::place_blocks(int64_t r, const Row& row, uint8_t* group) const {
  const bool q4 = spec_.encoding == Encoding::q4;
  const int rows = layout_.group_rows, at = layout_.row_in_group(r);
  const int bytes = q4 ? kBlock / 2 : kBlock;
  for (int64_t b = 0; b < layout_.row_units(); b++) {
    uint8_t* block = group + b * rows * (2 + bytes);
    store(block + 2 * at, row.scales[static_cast<size_t>(b)]);
    uint8_t* quants = block + 2 * rows;
    const int8_t* q = row.quants.data() + b * kBlock;
    uint8_t code[kBlock];
    if (q4) {
      for (int i = 0; i < 16; i++) code[i] = static_cast<uint8_t>((q[i] + 8) | (q[i + 16] + 8) << 4);
    } else {
      std::memcpy(code, q, kBlock);
    }
    if (rows == 1) {
      std::memcpy(quants, code, static_cast<size_t>(bytes));
    } else {
      for (int p = 0; p < bytes / 4; p++) std::memcpy(quants + (p * rows + at) * 4, code + 4 * p, 4);
    }
  }
}

void TensorEncoder::encode_blocks(int64_t r, const float* values, Row* row, EncodeStats* stats) const {
  const encode_kernels::Table& kernels = encode_kernels::table();
  const int64_t columns = layout_.columns, units = layout_.units;
  row->scales.resize(static_cast<size_t>(layout_.row_units()));
  row->quants.resize(static_cast<size_t>(layout_.row_units()) * kBlock);
  encode_kernels::Errors errors;
  auto run = [&](const float* x, int64_t n, int64_t at) {
    int16_t* scales = row->scales.data() + at;
    int8_t* quants = row->quants.data() + at * kBlock;
    if (spec_.encoding == Encoding::q8)
      kernels.q8(x, n, spec_.frac_bits, scales, quants, &errors);
    else
      kernels.q4(x, n, spec_.frac_bits, q4_scale_ == Q4Scale::searched, scales, quants, &errors);
  };
  const int64_t whole = columns / kBlock, rest = columns % kBlock;
  if (rest == 0) {
    run(values, layout_.row_units(), 0);
  } else {
    for (int64_t s = 0; s < layout_.segments; s++) {
      const float* x = values + s * columns;
      run(x, whole, s * units);
      float last[kBlock] = {};
      std::copy_n(x + whole * kBlock, rest, last);
      run(last, 1, s * units + whole);
    }
  }
  stats->sum_squares += errors.sum_squares;
  stats->sum_error_squares += errors.sum_error_squares;
  stats->max_error = std::max(stats->max_error, errors.max_error);
}

void TensorEncoder::encode_fixed(int64_t r, const float* values, uint8_t* group, EncodeStats* stats) const {
  const int64_t columns = layout_.columns;
  const int rows = layout_.group_rows, at = layout_.row_in_group(r);
  const bool wide = spec_.encoding == Encoding::u32;
  encode_kernels::Errors errors;
  int32_t codes[1024];
  for (int64_t begin = 0; begin < columns; begin += 1024) {
    const int64_t n = std::min<int64_t>(1024, columns - begin);
    encode_kernels::table().fixed(values + begin, n, spec_.frac_bits, codes, &errors);
    for (int64_t i = 0; i < n; i++) {
      const int64_t place = (begin + i) * rows + at;
      if (wide)
        store(group + 4 * place, codes[i]);
      else
        store(group + 2 * place, static_cast<int16_t>(codes[i]));
    }
  }
  stats->sum_squares += errors.sum_squares;
  stats->sum_error_squares += errors.sum_error_squares;
  stats->max_error = std::max(stats->max_error, errors.max_error);
}

void TensorEncoder::encode_ternary(int64_t r, const float* values, uint8_t* group) const {
  const int rows = layout_.group_rows, at = layout_.row_in_group(r);
  for (int64_t i = 0; i < layout_.columns; i++) {
    const float v = values[i];
    if (v != 0 && v != 1 && v != -1)
      throw error(ErrorKind::WeightFormat, "tensor '{}': {} at index {} is no ternary value", spec_.name, v,
                  r * layout_.columns + i)
          .advise("divide by the scale first, or choose another encoding");
    const unsigned code = v == 0 ? 0u : v == 1 ? 1u : 2u;
    // Tiled: 4 bytes of each row in turn for each 16 columns.
    const int64_t byte = rows == 1 ? i / 4 : (i / 16 * rows + at) * 4 + i % 16 / 4;
    group[byte] = static_cast<uint8_t>(group[byte] | code << (i % 4 * 2));
  }
}

void TensorEncoder::encode(int64_t first, int64_t count, const float* values, uint8_t* out,
                           EncodeStats* stats) const {
  if (!is_float(spec_.type))
    throw error(ErrorKind::WeightFormat, "tensor '{}' has type {}; its values are integers", spec_.name,
                to_string(spec_.type));
  EncodeStats local;
  const int64_t width = row_values();
  local.values = count * width;
  Row row;
  for_rows(first, count, out, [&](int64_t r, uint8_t* group) {
    const float* x = values + (r - first) * width;
    if (spec_.bits) {
      for (int64_t i = 0; i < width; i++) store(group + 4 * i, x[i]);
      return;
    }
    const double m = max_magnitude({x, static_cast<size_t>(width)}, spec_.name, r * width);
    local.max_magnitude = std::max(local.max_magnitude, m);
    if (spec_.encoding == Encoding::ternary) {
      encode_ternary(r, x, group);
      for (int64_t i = 0; i < width; i++) local.sum_squares += static_cast<double>(x[i]) * x[i];
      return;
    }
    if (!fits(spec_.encoding, spec_.frac_bits, m))
      throw error(ErrorKind::WeightFormat, "tensor '{}': a magnitude of {} does not fit {} with frac_bits {}",
                  spec_.name, m, to_string(spec_.encoding), spec_.frac_bits)
          .advise("store the tensor as u32, or in format version 3 with frac_bits of its own");
    if (spec_.encoding == Encoding::u32 || spec_.encoding == Encoding::u16) {
      encode_fixed(r, x, group, &local);
    } else {
      encode_blocks(r, x, &row, &local);
      place_blocks(r, row, group);
    }
  });
  if (stats) stats->add(local);
}

void TensorEncoder::encode_quants(int64_t first, int64_t count, const int8_t* quants, const double* scales,
                                  uint8_t* out, EncodeStats* stats) const {
  const bool q8 = spec_.encoding == Encoding::q8;
  if ((!q8 && spec_.encoding != Encoding::q4) || !is_float(spec_.type))
    throw error(ErrorKind::WeightFormat, "tensor '{}': source integers are kept in q8 and q4 only",
                spec_.name);
  const double divisor = q8 ? 127.0 : 8.0, up = std::ldexp(1.0, spec_.frac_bits);
  const int64_t blocks = row_blocks(), units = layout_.units;
  const int64_t rest = layout_.columns % kBlock;
  EncodeStats local;
  local.values = count * row_values();
  encode_kernels::Errors errors;
  Row row;
  row.scales.resize(static_cast<size_t>(blocks));
  row.quants.resize(static_cast<size_t>(blocks) * kBlock);
  for_rows(first, count, out, [&](int64_t r, uint8_t* group) {
    const int8_t* q = quants + (r - first) * blocks * kBlock;
    const double* s = scales + (r - first) * blocks;
    for (int64_t b = 0; b < blocks; b++, q += kBlock) {
      const int64_t n = rest && b % units == units - 1 ? rest : kBlock;
      int8_t* codes = row.quants.data() + b * kBlock;
      std::memset(codes, 0, kBlock);
      const bool low = q8 && std::find(q, q + n, int8_t{-128}) != q + n;
      const double magnitude = std::fabs(s[b]) * (low ? 128.0 / 127.0 : 1.0);
      if (!(std::isfinite(magnitude) && fits(spec_.encoding, spec_.frac_bits, magnitude)))
        throw error(ErrorKind::WeightFormat, "tensor '{}': scale {} of block {} does not fit frac_bits {}",
                    spec_.name, s[b], r * blocks + b, spec_.frac_bits)
            .advise("the source is damaged, or the tensor must be stored as u32");
      if (low) {  // encoded anew from its values
        float x[kBlock] = {};
        for (int64_t i = 0; i < n; i++) x[i] = static_cast<float>(q[i] * s[b] / divisor);
        encode_kernels::table().q8(x, 1, spec_.frac_bits, &row.scales[static_cast<size_t>(b)], codes,
                                   &errors);
        local.reencoded_blocks++;
      } else {
        const double scale = std::nearbyint(s[b] * up);
        const double off = std::fabs(s[b] - scale / up) / divisor;
        bool any = false;
        for (int64_t i = 0; i < n; i++) {
          const double v = q[i] * s[b] / divisor, e = q[i] * off;
          local.sum_squares += v * v;
          local.sum_error_squares += e * e;
          local.max_error = std::max(local.max_error, std::fabs(e));
          local.max_magnitude = std::max(local.max_magnitude, std::fabs(v));
          any = any || q[i] != 0;
          if (!q8 && (q[i] < -8 || q[i] > 7))
            throw error(ErrorKind::WeightFormat, "tensor '{}': the integer {} does not fit q4", spec_.name,
                        q[i]);
        }
        if (any && scale != 0) std::memcpy(codes, q, static_cast<size_t>(n));
        row.scales[static_cast<size_t>(b)] = any ? static_cast<int16_t>(scale) : int16_t{0};
      }
    }
    place_blocks(r, row, group);
  });
  local.sum_squares += errors.sum_squares;
  local.sum_error_squares += errors.sum_error_squares;
  local.max_error = std::max(local.max_error, errors.max_error);
  if (stats) stats->add(local);
}

void TensorEncoder::encode_integers(int64_t first, int64_t count, const int64_t* values, uint8_t* out) const {
  if (is_float(spec_.type))
    throw error(ErrorKind::WeightFormat, "tensor '{}' has type {}; its values are no integers", spec_.name,
                to_string(spec_.type));
  int64_t low = INT32_MIN, high = INT32_MAX;
  switch (spec_.type) {
    case DType::boolean:
      low = 0, high = 1;
      break;
    case DType::i8:
      low = spec_.encoding == Encoding::q4 ? -8 : -128, high = spec_.encoding == Encoding::q4 ? 7 : 127;
      break;
    case DType::u8:
      low = 0, high = 255;
      break;
    case DType::i16:
      low = INT16_MIN, high = INT16_MAX;
      break;
    case DType::u16:
      low = 0, high = UINT16_MAX;
      break;
    case DType::u32:
      low = 0, high = spec_.words == 2 ? int64_t{UINT32_MAX} : INT32_MAX;
      break;
    case DType::u64:
      low = spec_.words == 2 ? INT64_MIN : 0, high = spec_.words == 2 ? INT64_MAX : INT32_MAX;
      break;
    case DType::i64:
      if (spec_.words == 2) low = INT64_MIN, high = INT64_MAX;
      break;
    default:
      break;
  }
  const int64_t width = row_values();
  const int rows = layout_.group_rows;
  Row row;
  for_rows(first, count, out, [&](int64_t r, uint8_t* group) {
    const int64_t* x = values + (r - first) * width;
    const int at = layout_.row_in_group(r);
    for (int64_t i = 0; i < width; i++)
      if (x[i] < low || x[i] > high)
        throw error(ErrorKind::WeightFormat, "tensor '{}': {} at index {} does not fit type {} in {}",
                    spec_.name, x[i], r * width + i, to_string(spec_.type), to_string(spec_.encoding));
    if (spec_.encoding == Encoding::u16) {
      for (int64_t i = 0; i < width; i++) store(group + 2 * (i * rows + at), static_cast<int16_t>(x[i]));
    } else if (spec_.encoding == Encoding::u32 && spec_.words == 2) {
      for (int64_t i = 0; i < width; i++) store(group + 8 * i, x[i]);
    } else if (spec_.encoding == Encoding::u32) {
      for (int64_t i = 0; i < width; i++) store(group + 4 * (i * rows + at), static_cast<int32_t>(x[i]));
    } else {  // quants with a scale that makes them the values
      row.scales.assign(static_cast<size_t>(row_blocks()), spec_.encoding == Encoding::q8 ? 127 : 8);
      row.quants.assign(static_cast<size_t>(row_blocks()) * kBlock, 0);
      const int64_t columns = layout_.columns;
      for (int64_t i = 0; i < width; i++)
        row.quants[static_cast<size_t>(i / columns * layout_.units * kBlock + i % columns)] =
            static_cast<int8_t>(x[i] - spec_.zero);
      place_blocks(r, row, group);
    }
  });
}

void to_stored_order(const TensorSpec& spec, const float* logical, float* stored) {
  permute(spec, logical, stored);
}
void to_stored_order(const TensorSpec& spec, const int64_t* logical, int64_t* stored) {
  permute(spec, logical, stored);
}

std::vector<uint8_t> encode_tensor(TensorSpec* spec, std::span<const float> logical, EncodeStats* stats,
                                   Q4Scale q4_scale) {
  spec->frac_bits = spec->bits ? 0 : choose_frac_bits(spec->encoding, max_magnitude(logical, spec->name));
  const TensorEncoder encoder(*spec, q4_scale);
  if (static_cast<int64_t>(logical.size()) != elements_of(*spec))
    throw error(ErrorKind::ShapeMismatch, "tensor '{}': {} values for a shape of {}", spec->name,
                logical.size(), elements_of(*spec));
  spec->size = encoder.size();
  std::vector<uint8_t> out(encoder.size());
  if (out.empty()) return out;
  std::vector<float> stored;
  const float* rows = logical.data();
  if (!spec->order.empty()) {
    stored.resize(logical.size());
    to_stored_order(*spec, logical.data(), stored.data());
    rows = stored.data();
  }
  encoder.encode(0, encoder.rows(), rows, out.data(), stats);
  return out;
}

std::vector<uint8_t> encode_tensor_integers(TensorSpec* spec, std::span<const int64_t> logical) {
  spec->frac_bits = 0;
  const TensorEncoder encoder(*spec);
  if (static_cast<int64_t>(logical.size()) != elements_of(*spec))
    throw error(ErrorKind::ShapeMismatch, "tensor '{}': {} values for a shape of {}", spec->name,
                logical.size(), elements_of(*spec));
  spec->size = encoder.size();
  std::vector<uint8_t> out(encoder.size());
  if (out.empty()) return out;
  std::vector<int64_t> stored(logical.size());
  to_stored_order(*spec, logical.data(), stored.data());
  encoder.encode_integers(0, encoder.rows(), stored.data(), out.data());
  return out;
}

}  // namespace cyb
