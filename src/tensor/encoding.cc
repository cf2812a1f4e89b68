// SPDX-License-Identifier: Apache-2.0
#include "tensor/encoding.h"

#include "base/checked.h"
#include "base/error.h"
#include "tensor/shape.h"

namespace cyb {
namespace {

constexpr const char* kNames[] = {"u32", "u16", "q8", "q4", "ternary"};

Error refuse(const TensorSpec& spec, std::string_view what) {
  return error(ErrorKind::WeightFormat, "tensor '{}': {}", spec.name, what)
      .advise("import the model again; the file does not follow the format");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); i++) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

void check_order(const TensorSpec& spec) {
  if (spec.order.empty()) return;
  if (spec.order.size() != spec.shape.size())
    throw refuse(spec, fmt::format("order has {} axes, the shape {}", spec.order.size(), spec.shape.size()));
  unsigned seen = 0;
  for (const int axis : spec.order) {
    if (axis < 0 || axis >= static_cast<int>(spec.shape.size()) || (seen >> axis & 1))
      throw refuse(spec, "order must name each axis of the shape once");
    seen |= 1u << axis;
  }
}

// Which encodings hold which integer types: the exact ones only.
bool holds(Encoding encoding, DType type) {
  switch (type) {
    case DType::boolean:
    case DType::i16:
      return encoding == Encoding::u16;
    case DType::i8:
      return encoding == Encoding::u16 || encoding == Encoding::q8 || encoding == Encoding::q4;
    case DType::u8:
      return encoding == Encoding::u16 || encoding == Encoding::q8;
    case DType::u16:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
      return encoding == Encoding::u32;
    case DType::string:
      return false;
    default:
      return true;
  }
}

void check_numbers(const TensorSpec& spec) {
  const bool integers = !is_float(spec.type);
  if (!holds(spec.encoding, spec.type))
    throw refuse(spec,
                 fmt::format("type {} cannot stand in {}", to_string(spec.type), to_string(spec.encoding)));
  if (integers || spec.bits || spec.encoding == Encoding::ternary) {
    if (spec.frac_bits != 0) throw refuse(spec, "frac_bits must be 0 for integers, bit patterns and ternary");
  } else if (spec.frac_bits < min_frac_bits(spec.encoding) || spec.frac_bits > max_frac_bits(spec.encoding)) {
    throw refuse(spec, fmt::format("frac_bits {} is outside {}…{}", spec.frac_bits,
                                   min_frac_bits(spec.encoding), max_frac_bits(spec.encoding)));
  }
  if (spec.bits && (spec.encoding != Encoding::u32 || integers))
    throw refuse(spec, "bits goes with encoding u32 and a float type only");
  const bool wide = spec.type == DType::u32 || spec.type == DType::i64 || spec.type == DType::u64;
  if (spec.words != 1 && (spec.words != 2 || !wide))
    throw refuse(spec, "words may be 2 only for types u32, i64 and u64");
  const bool offset_bytes = spec.type == DType::u8 && spec.encoding == Encoding::q8;
  if (spec.zero != (offset_bytes ? 128 : 0))
    throw refuse(spec, offset_bytes ? "u8 in q8 needs zero = 128" : "zero goes with type u8 in q8 only");
  if (spec.words == 2 && (spec.tile != 0 || !spec.order.empty()))
    throw refuse(spec, "words = 2 has neither tile nor order");
  if (spec.bits && spec.tile != 0) throw refuse(spec, "bits has no tile");
}

void check_tile(const TensorSpec& spec) {
  if (spec.tile == 0) return;
  if (spec.tile != kTileRows) throw refuse(spec, fmt::format("tile is {}, and only 8 is defined", spec.tile));
  const size_t rank = spec.shape.size();
  if (spec.order.empty()) {
    if (rank != 2 && rank != 3)
      throw refuse(
          spec, fmt::format("tile without order needs rank 2 or 3, the shape is {}", shape_text(spec.shape)));
  } else {
    if (rank < 2) throw refuse(spec, "tile needs at least 2 axes");
    if (spec.encoding != Encoding::q8 && spec.encoding != Encoding::q4)
      throw refuse(spec, fmt::format("tile with order is defined for q8 and q4, not for {}",
                                     to_string(spec.encoding)));
  }
}

}  // namespace

const char* to_string(Encoding encoding) { return kNames[static_cast<int>(encoding)]; }

std::optional<Encoding> parse_encoding(std::string_view name) {
  for (int i = 0; i < 5; i++)
    if (name == kNames[i]) return static_cast<Encoding>(i);
  return std::nullopt;
}

int default_frac_bits(Encoding encoding) {
  return encoding == Encoding::u32 ? 16 : encoding == Encoding::ternary ? 0 : 8;
}

int default_frac_bits(const TensorSpec& spec) {
  return !is_float(spec.type) || spec.bits ? 0 : default_frac_bits(spec.encoding);
}

int64_t elements_of(const TensorSpec& spec) {
  if (spec.shape.size() > kMaxRank)
    throw refuse(spec, fmt::format("rank {} is above {}", spec.shape.size(), kMaxRank));
  uint64_t n = 1;
  bool empty = false;
  for (const int64_t axis : spec.shape) {
    if (axis < 0) throw refuse(spec, fmt::format("the shape {} has a negative axis", shape_text(spec.shape)));
    if (axis == 0) empty = true;
  }
  if (empty) return 0;
  for (const int64_t axis : spec.shape)
    if (!checked_mul(n, static_cast<uint64_t>(axis), &n) || n > INT64_MAX / 64)
      throw refuse(spec, fmt::format("the shape {} has too many values", shape_text(spec.shape)));
  return static_cast<int64_t>(n);
}

std::vector<int64_t> logical_strides(const TensorSpec& spec) {
  const size_t rank = spec.shape.size();
  std::vector<int64_t> strides(rank, 1), out(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * spec.shape[i];
  for (size_t i = 0; i < rank; i++)
    out[i] = strides[spec.order.empty() ? i : static_cast<size_t>(spec.order[i])];
  return out;
}

Layout layout_of(const TensorSpec& spec) {
  const int64_t elements = elements_of(spec);
  check_order(spec);
  check_numbers(spec);
  check_tile(spec);
  Layout out;
  for (size_t i = 0; i < spec.shape.size(); i++)
    out.stored.push_back(spec.shape[spec.order.empty() ? i : static_cast<size_t>(spec.order[i])]);
  const std::vector<int64_t>& stored = out.stored;
  const bool blocks = spec.encoding == Encoding::q8 || spec.encoding == Encoding::q4;
  if (blocks && (stored.empty() || stored.back() < kBlock))
    throw refuse(spec, fmt::format("{} needs a last stored axis of at least {}; the shape is {}",
                                   to_string(spec.encoding), kBlock, shape_text(spec.shape)));

  out.columns = stored.empty() ? 1 : stored.back();
  if (elements == 0) {  // no bytes; keep the products of the other axes from overflowing
    out.rows = 0;
    return out;
  }
  if (spec.tile && spec.order.empty()) {
    out.matrices = stored.size() == 3 ? stored[0] : 1;
    out.rows = stored[stored.size() - 2];
  } else if (spec.tile) {
    out.rows = stored[0];
    for (size_t i = 1; i + 1 < stored.size(); i++) out.segments *= stored[i];
  } else {
    for (size_t i = 0; i + 1 < stored.size(); i++) out.rows *= stored[i];
  }
  out.group_rows = spec.tile ? kTileRows : 1;

  uint64_t unit_bytes = 0;
  switch (spec.encoding) {
    case Encoding::u32:
      out.units = out.columns;
      unit_bytes = 4 * static_cast<uint64_t>(spec.words);
      break;
    case Encoding::u16:
      out.units = out.columns;
      unit_bytes = 2;
      break;
    case Encoding::q8:
      out.units = ceil_div(out.columns, int64_t{kBlock});
      unit_bytes = kQ8BlockBytes;
      break;
    case Encoding::q4:
      out.units = ceil_div(out.columns, int64_t{kBlock});
      unit_bytes = kQ4BlockBytes;
      break;
    case Encoding::ternary:
      out.units = ceil_div(out.columns, int64_t{spec.tile ? 16 : 4});
      unit_bytes = spec.tile ? 4 : 1;
      break;
  }
  const uint64_t row_bytes = static_cast<uint64_t>(out.row_units()) * unit_bytes;
  uint64_t groups = 0;
  if (!checked_mul(row_bytes, static_cast<uint64_t>(out.group_rows), &out.group_bytes) ||
      !checked_mul(static_cast<uint64_t>(out.matrices), static_cast<uint64_t>(out.groups()), &groups) ||
      !checked_mul(groups, out.group_bytes, &out.size) || out.size > uint64_t{INT64_MAX})
    throw refuse(spec, fmt::format("the shape {} has too many bytes", shape_text(spec.shape)));
  return out;
}

bool uses_addenda(const TensorSpec& spec) {
  if (spec.frac_bits != default_frac_bits(spec.encoding) || !spec.order.empty() || spec.tile != 0 ||
      spec.type != DType::f32 || spec.bits || spec.zero != 0 || spec.words != 1)
    return true;
  const int64_t columns = spec.shape.empty() ? 1 : spec.shape.back();
  if (spec.encoding == Encoding::q8 || spec.encoding == Encoding::q4) return columns % kBlock != 0;
  return spec.encoding == Encoding::ternary && columns % 4 != 0;
}

}  // namespace cyb
