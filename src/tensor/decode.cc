// SPDX-License-Identifier: Apache-2.0
#include "tensor/decode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void check_size(const TensorSpec& spec, const Layout& layout, std::span<const uint8_t> bytes) {
  if (bytes.size() != layout.size)
    throw error(ErrorKind::WeightFormat, "tensor '{}' has {} bytes, its shape and encoding need {}",
                spec.name, bytes.size(), layout.size);
}

// The codes of block b of a row, and its scale. q4 codes come out as −8…7.
int16_t block_codes(const TensorSpec& spec, const Layout& layout, const uint8_t* group, int at, int64_t b,
                    int8_t* codes) {
  const int rows = layout.group_rows;
  const int bytes = spec.encoding == Encoding::q4 ? kBlock / 2 : kBlock;
  const uint8_t* block = group + b * rows * (2 + bytes);
  const uint8_t* quants = block + 2 * rows + 4 * at;
  uint8_t gathered[kBlock];
  for (int p = 0; p < bytes / 4; p++) std::memcpy(gathered + 4 * p, quants + p * rows * 4, 4);
  if (spec.encoding == Encoding::q4) {
    for (int i = 0; i < 16; i++) {
      codes[i] = static_cast<int8_t>((gathered[i] & 15) - 8);
      codes[i + 16] = static_cast<int8_t>((gathered[i] >> 4) - 8);
    }
  } else {
    std::memcpy(codes, gathered, kBlock);
  }
  return load<int16_t>(block + 2 * at);
}

int ternary_code(const Layout& layout, const uint8_t* group, int at, int64_t i) {
  const int64_t byte = layout.group_rows == 1 ? i / 4 : (i / 16 * layout.group_rows + at) * 4 + i % 16 / 4;
  return group[byte] >> (i % 4 * 2) & 3;
}

float scale_of_row(const TensorSpec& spec, const Layout& layout, std::span<const float> scales, int64_t r) {
  if (scales.empty()) return 1.0f;
  const int64_t n = static_cast<int64_t>(scales.size());
  if (layout.all_rows() % n != 0 || (n > 1 && !spec.order.empty()))
    throw error(ErrorKind::ShapeMismatch, "tensor '{}' has {} rows, and its scale {} values", spec.name,
                layout.all_rows(), n);
  return scales[static_cast<size_t>(r / (layout.all_rows() / n))];
}

// Row r in stored order as f32. Float types and quants only; integers of two words go through
// decode_integers.
void decode_stored_row(const TensorSpec& spec, const Layout& layout, const uint8_t* bytes,
                       std::span<const float> scales, int64_t r, float* out) {
  const uint8_t* group = bytes + layout.group_offset(r);
  const int rows = layout.group_rows, at = layout.row_in_group(r);
  const int64_t columns = layout.columns;
  const double down = std::ldexp(1.0, -spec.frac_bits);
  switch (spec.encoding) {
    case Encoding::u32:
      if (spec.bits) {
        std::memcpy(out, group, static_cast<size_t>(columns) * 4);
        return;
      }
      for (int64_t i = 0; i < columns; i++)
        out[i] = static_cast<float>(load<int32_t>(group + 4 * (i * rows + at)) * down);
      return;
    case Encoding::u16:
      for (int64_t i = 0; i < columns; i++)
        out[i] = static_cast<float>(load<int16_t>(group + 2 * (i * rows + at)) * down);
      return;
    case Encoding::q8:
    case Encoding::q4: {
      int8_t codes[kBlock];
      for (int64_t s = 0; s < layout.segments; s++)
        for (int64_t b = 0; b < layout.units; b++) {
          const int scale = block_codes(spec, layout, group, at, s * layout.units + b, codes);
          float* x = out + s * columns + b * kBlock;
          const int n = static_cast<int>(std::min<int64_t>(kBlock, columns - b * kBlock));
          float values[kBlock];
          if (spec.encoding == Encoding::q4) {
            const double unit = down / 8.0;
            for (int i = 0; i < kBlock; i++) values[i] = static_cast<float>(codes[i] * scale * unit);
          } else if (spec.zero) {
            for (int i = 0; i < kBlock; i++)
              values[i] = static_cast<float>(codes[i] * scale / 127.0 * down + spec.zero);
          } else {
            for (int i = 0; i < kBlock; i++) values[i] = static_cast<float>(codes[i] * scale / 127.0 * down);
          }
          std::memcpy(x, values, sizeof(float) * static_cast<size_t>(n));
        }
      return;
    }
    case Encoding::ternary: {
      constexpr float kValue[4] = {0, 1, -1, 0};
      const float scale = scale_of_row(spec, layout, scales, r);
      for (int64_t i = 0; i < columns; i++) out[i] = kValue[ternary_code(layout, group, at, i)] * scale;
      return;
    }
  }
}

bool wide_integers(const TensorSpec& spec) { return spec.words == 2; }

template <class T>
void unpermute(const TensorSpec& spec, const Layout& layout, const T* stored, T* logical) {
  const std::vector<int64_t> strides = logical_strides(spec);
  const size_t last = layout.stored.size() - 1;
  std::vector<int64_t> at(layout.stored.size(), 0);
  const int64_t n = elements_of(spec);
  int64_t base = 0;
  for (int64_t done = 0; done < n; done += layout.stored[last]) {
    for (int64_t i = 0; i < layout.stored[last]; i++) logical[base + i * strides[last]] = stored[done + i];
    for (size_t axis = last; axis-- > 0;) {
      base += strides[axis];
      if (++at[axis] < layout.stored[axis]) break;
      base -= strides[axis] * layout.stored[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

void decode(const TensorSpec& spec, std::span<const uint8_t> bytes, float* out,
            std::span<const float> scales) {
  const Layout layout = layout_of(spec);
  check_size(spec, layout, bytes);
  if (wide_integers(spec)) {
    std::vector<int64_t> values(static_cast<size_t>(elements_of(spec)));
    decode_integers(spec, bytes, values.data());
    for (size_t i = 0; i < values.size(); i++)
      out[i] = spec.type == DType::u64 ? static_cast<float>(static_cast<uint64_t>(values[i]))
                                       : static_cast<float>(values[i]);
    return;
  }
  std::vector<float> stored;
  float* rows = out;
  if (!spec.order.empty()) {
    stored.resize(static_cast<size_t>(elements_of(spec)));
    rows = stored.data();
  }
  const int64_t width = layout.row_values();
  for (int64_t r = 0; r < layout.all_rows(); r++)
    decode_stored_row(spec, layout, bytes.data(), scales, r, rows + r * width);
  if (!spec.order.empty()) unpermute(spec, layout, stored.data(), out);
}

std::vector<float> decode(const TensorSpec& spec, std::span<const uint8_t> bytes,
                          std::span<const float> scales) {
  check_size(spec, layout_of(spec), bytes);  // before memory is taken for a shape that a file claims
  std::vector<float> out(static_cast<size_t>(elements_of(spec)));
  decode(spec, bytes, out.data(), scales);
  return out;
}

void decode_integers(const TensorSpec& spec, std::span<const uint8_t> bytes, int64_t* out) {
  const Layout layout = layout_of(spec);
  check_size(spec, layout, bytes);
  if (is_float(spec.type))
    throw error(ErrorKind::WeightFormat, "tensor '{}' has type {}; its values are no integers", spec.name,
                to_string(spec.type));
  int64_t low = INT64_MIN, high = INT64_MAX;
  switch (spec.type) {
    case DType::boolean:
      low = 0, high = 1;
      break;
    case DType::i8:
      low = -128, high = 127;
      break;
    case DType::u8:
      low = 0, high = 255;
      break;
    case DType::u16:
      low = 0, high = UINT16_MAX;
      break;
    case DType::u32:
      low = 0, high = UINT32_MAX;
      break;
    case DType::u64:
      low = spec.words == 2 ? INT64_MIN : 0;
      break;
    default:
      break;
  }
  const int64_t width = layout.row_values();
  std::vector<int64_t> stored;
  int64_t* to = out;
  if (!spec.order.empty()) {
    stored.resize(static_cast<size_t>(elements_of(spec)));
    to = stored.data();
  }
  const int unit = spec.encoding == Encoding::q8 ? 127 : 8;
  for (int64_t r = 0; r < layout.all_rows(); r++) {
    const uint8_t* group = bytes.data() + layout.group_offset(r);
    const int rows = layout.group_rows, at = layout.row_in_group(r);
    int64_t* x = to + r * width;
    if (spec.encoding == Encoding::u16) {
      for (int64_t i = 0; i < width; i++) x[i] = load<int16_t>(group + 2 * (i * rows + at));
    } else if (spec.encoding == Encoding::u32) {
      for (int64_t i = 0; i < width; i++)
        x[i] = spec.words == 2 ? load<int64_t>(group + 8 * i) : load<int32_t>(group + 4 * (i * rows + at));
    } else {
      int8_t codes[kBlock];
      for (int64_t b = 0; b < layout.row_units(); b++) {
        const int scale = block_codes(spec, layout, group, at, b, codes);
        if (scale != unit && scale != 0)
          throw error(ErrorKind::InvalidFile,
                      "tensor '{}', row {}: scale {} where integers of type {} need {}", spec.name, r, scale,
                      to_string(spec.type), unit);
        const int64_t column = b % layout.units * kBlock;
        const int64_t n = std::min<int64_t>(kBlock, layout.columns - column);
        int64_t* y = x + b / layout.units * layout.columns + column;
        for (int64_t i = 0; i < n; i++) y[i] = (scale ? codes[i] : 0) + spec.zero;
      }
    }
    for (int64_t i = 0; i < width; i++)
      if (x[i] < low || x[i] > high)
        throw error(ErrorKind::InvalidFile, "tensor '{}', row {}: {} is no value of type {}", spec.name, r,
                    x[i], to_string(spec.type));
  }
  if (!spec.order.empty()) unpermute(spec, layout, stored.data(), out);
}

RowDecoder::RowDecoder(const TensorSpec& spec, std::span<const uint8_t> bytes, std::span<const float> scales)
    : spec_(spec), layout_(layout_of(spec)), bytes_(bytes), scales_(scales) {
  check_size(spec, layout_, bytes);
  if (spec.shape.size() < 2 || (!spec.order.empty() && spec.order[0] != 0) || spec.words != 1)
    throw error(ErrorKind::ShapeMismatch, "tensor '{}' cannot be looked up row by row", spec.name)
        .advise("rows need rank 2 or more and the first axis stored first");
  rows_ = spec.shape[0];
  const int64_t elements = elements_of(spec);
  if (elements == 0) return;
  row_values_ = elements / rows_;
  stored_rows_ = layout_.all_rows() / rows_;
  if (spec.order.empty()) return;
  const std::vector<int64_t> strides = logical_strides(spec);
  place_.resize(static_cast<size_t>(row_values_));
  std::vector<int64_t> at(layout_.stored.size(), 0);
  for (int64_t& place : place_) {
    place = 0;
    for (size_t axis = 1; axis < at.size(); axis++) place += at[axis] * strides[axis];
    for (size_t axis = at.size(); axis-- > 1;) {
      if (++at[axis] < layout_.stored[axis]) break;
      at[axis] = 0;
    }
  }
}

void RowDecoder::decode(int64_t row, float* out) const {
  std::vector<float> stored;
  float* to = out;
  if (!place_.empty()) {
    stored.resize(place_.size());
    to = stored.data();
  }
  const int64_t width = layout_.row_values();
  for (int64_t i = 0; i < stored_rows_; i++)
    decode_stored_row(spec_, layout_, bytes_.data(), scales_, row * stored_rows_ + i, to + i * width);
  for (size_t i = 0; i < place_.size(); i++) out[place_[i]] = stored[i];
}

void decode_row(const TensorSpec& spec, std::span<const uint8_t> bytes, int64_t row, float* out) {
  const RowDecoder rows(spec, bytes);
  if (row < 0 || row >= rows.rows())
    throw error(ErrorKind::ShapeMismatch, "tensor '{}' has {} rows, row {} was asked for", spec.name,
                rows.rows(), row);
  rows.decode(row, out);
}

namespace {

template <class T>
void narrow(const std::vector<int64_t>& from, Tensor& to) {
  for (size_t i = 0; i < from.size(); i++) to.at<T>(i) = static_cast<T>(from[i]);
}

}  // namespace

Tensor decode_tensor(const TensorSpec& spec, std::span<const uint8_t> bytes, std::span<const float> scales) {
  Shape shape;
  for (int64_t d : spec.shape) shape.push_back(d);
  Tensor out(spec.type, shape);
  const auto n = static_cast<size_t>(out.elements());
  if (spec.type == DType::f32) {
    if (n) decode(spec, bytes, &out.at<float>(0), scales);
  } else if (is_float(spec.type)) {
    const std::vector<float> values = decode(spec, bytes, scales);
    for (size_t i = 0; i < n; i++) out.set_real(i, static_cast<double>(values[i]));
  } else {
    std::vector<int64_t> integers(n);
    if (n) decode_integers(spec, bytes, integers.data());
    switch (size_of(spec.type)) {
      case 1:
        narrow<int8_t>(integers, out);
        break;
      case 2:
        narrow<int16_t>(integers, out);
        break;
      case 4:
        narrow<int32_t>(integers, out);
        break;
      default:
        narrow<int64_t>(integers, out);
        break;
    }
  }
  return out;
}

}  // namespace cyb
