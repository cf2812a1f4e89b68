// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "import/file_kind.h"

namespace cyb {
namespace {

constexpr uint64_t kMaxPairs = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 18;
constexpr uint64_t kMaxKey = 65535;  // the format's own limit
constexpr uint64_t kMaxTensorName = 256;
constexpr uint64_t kMaxString = 1ull << 26;
constexpr uint64_t kMaxArray = 1ull << 26;
constexpr uint64_t kMaxAlignment = 1ull << 20;
constexpr uint32_t kMaxRank = 4;
constexpr int kMaxDepth = 4;

Error damaged(std::string what) {
  return error(ErrorKind::InvalidFile, "GGUF header: {}", what)
      .advise("the file is damaged or incomplete; fetch it again");
}

size_t width(GgufValueType type) {
  switch (type) {
    case GgufValueType::u8:
    case GgufValueType::i8:
    case GgufValueType::boolean:
      return 1;
    case GgufValueType::u16:
    case GgufValueType::i16:
      return 2;
    case GgufValueType::u32:
    case GgufValueType::i32:
    case GgufValueType::f32:
      return 4;
    case GgufValueType::u64:
    case GgufValueType::i64:
    case GgufValueType::f64:
      return 8;
    default:
      return 0;
  }
}

class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  const uint8_t* take(uint64_t n, const char* what) {
    if (n > left())
      throw damaged(fmt::format("{} at byte {} needs {} bytes, {} are left", what, position_, n, left()));
    const uint8_t* p = bytes_.data() + position_;
    position_ += n;
    return p;
  }
  template <class T>
  T read(const char* what) {
    T v;
    std::memcpy(&v, take(sizeof(T), what), sizeof(T));
    return v;
  }
  std::string_view text(uint64_t limit, const char* what) {
    const auto length = read<uint64_t>(what);
    if (length > limit)
      throw damaged(fmt::format("{} of {} bytes, above the limit of {}", what, length, limit));
    return {reinterpret_cast<const char*>(take(length, what)), length};
  }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t position_ = 0;
};

GgufValueType read_type(Cursor& in, std::string_view key) {
  const auto type = in.read<uint32_t>("a value type");
  if (type > static_cast<uint32_t>(GgufValueType::f64))
    throw damaged(fmt::format("metadata '{}' has the unknown value type {}", key, type));
  return static_cast<GgufValueType>(type);
}

void check_bools(const uint8_t* p, uint64_t n, std::string_view key) {
  for (uint64_t i = 0; i < n; i++)
    if (p[i] > 1) throw damaged(fmt::format("metadata '{}' holds the bool {}", key, p[i]));
}

void read_array(Cursor& in, std::string_view key, GgufValue& out, int depth) {
  if (depth > kMaxDepth)
    throw damaged(fmt::format("metadata '{}' nests arrays deeper than {}", key, kMaxDepth));
  out.element = read_type(in, key);
  out.count = in.read<uint64_t>("an array length");
  if (out.count > kMaxArray)
    throw damaged(fmt::format("metadata '{}' is an array of {} elements, above the limit of {}", key,
                              out.count, kMaxArray));
  if (out.element == GgufValueType::string) {
    // Each string takes at least its length field, so the list cannot be larger than the file allows.
    if (out.count > in.left() / 8)
      throw damaged(fmt::format("metadata '{}': {} strings do not fit in the file", key, out.count));
    out.strings.reserve(out.count);
    for (uint64_t i = 0; i < out.count; i++) out.strings.push_back(in.text(kMaxString, "a string"));
  } else if (out.element == GgufValueType::array) {
    for (uint64_t i = 0; i < out.count; i++) {
      GgufValue inner;
      read_array(in, key, inner, depth + 1);
    }
  } else {
    out.numbers = in.take(out.count * width(out.element), "an array");
    if (out.element == GgufValueType::boolean) check_bools(out.numbers, out.count, key);
  }
}

GgufValue read_value(Cursor& in, std::string_view key) {
  GgufValue out;
  out.type = read_type(in, key);
  switch (out.type) {
    case GgufValueType::u8:
      out.integer = in.read<uint8_t>("a value");
      break;
    case GgufValueType::i8:
      out.integer = in.read<int8_t>("a value");
      break;
    case GgufValueType::u16:
      out.integer = in.read<uint16_t>("a value");
      break;
    case GgufValueType::i16:
      out.integer = in.read<int16_t>("a value");
      break;
    case GgufValueType::u32:
      out.integer = in.read<uint32_t>("a value");
      break;
    case GgufValueType::i32:
      out.integer = in.read<int32_t>("a value");
      break;
    case GgufValueType::u64:
    case GgufValueType::i64:
      out.integer = in.read<int64_t>("a value");
      break;
    case GgufValueType::f32:
      out.real = in.read<float>("a value");
      break;
    case GgufValueType::f64:
      out.real = in.read<double>("a value");
      break;
    case GgufValueType::boolean: {
      const uint8_t* p = in.take(1, "a value");
      check_bools(p, 1, key);
      out.integer = *p;
      break;
    }
    case GgufValueType::string:
      out.text = in.text(kMaxString, "a string");
      break;
    case GgufValueType::array:
      read_array(in, key, out, 1);
      break;
  }
  return out;
}

uint64_t read_alignment(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.find("general.alignment");
  if (!value) return 32;
  if (value->type != GgufValueType::u32)
    throw damaged(
        fmt::format("general.alignment is of type {}, where u32 was expected", to_string(value->type)));
  const auto alignment = static_cast<uint64_t>(value->integer);
  if (alignment < 8 || alignment > kMaxAlignment || !std::has_single_bit(alignment))
    throw damaged(
        fmt::format("general.alignment is {}, not a power of two in 8…{}", alignment, kMaxAlignment));
  return alignment;
}

// The directory entry; `offset` is relative to the data until place_tensors.
GgufTensor read_tensor(Cursor& in) {
  GgufTensor t;
  t.name = std::string(in.text(kMaxTensorName, "a tensor name"));
  if (t.name.empty()) throw damaged("a tensor without a name");
  const auto rank = in.read<uint32_t>("a tensor rank");
  if (rank > kMaxRank)
    throw damaged(fmt::format("tensor '{}' has {} axes, above the limit of {}", t.name, rank, kMaxRank));
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++) {
    const auto n = in.read<uint64_t>("a tensor axis");
    if (n == 0 || n > INT64_MAX || !checked_mul(count, n, &count) || count > INT64_MAX)
      throw damaged(fmt::format("tensor '{}': axis {} is {}, which cannot be", t.name, i, n));
    t.shape.insert(t.shape.begin(), static_cast<int64_t>(n));
  }
  const auto number = in.read<uint32_t>("a tensor type");
  const GgufTypeInfo* info = gguf_type_info(number);
  if (!info)
    throw error(ErrorKind::WeightFormat, "tensor '{}' has the unknown type number {}", t.name, number)
        .advise("types that can be imported: {}", gguf_decoded_types());
  t.type = info->type;
  if (t.row_length() % info->block_values != 0)
    throw damaged(fmt::format("tensor '{}': rows of {} values are not whole {} blocks of {}", t.name,
                              t.row_length(), info->name, info->block_values));
  const uint64_t blocks = count / static_cast<uint64_t>(info->block_values);
  if (!checked_mul(blocks, static_cast<uint64_t>(info->block_bytes), &t.size))
    throw damaged(fmt::format("tensor '{}' is too large", t.name));
  t.offset = in.read<uint64_t>("a tensor offset");
  return t;
}

void place_tensors(std::vector<GgufTensor>& tensors, std::span<const uint8_t> bytes, uint64_t data_start,
                   uint64_t alignment) {
  const uint64_t available = bytes.size() - data_start;
  for (GgufTensor& t : tensors) {
    if (t.offset % alignment != 0)
      throw damaged(
          fmt::format("tensor '{}' begins at {}, not a multiple of {}", t.name, t.offset, alignment));
    if (t.offset > available || t.size > available - t.offset)
      throw damaged(
          fmt::format("tensor '{}' needs {} bytes at {} of the data, which has {}: the file is truncated",
                      t.name, t.size, t.offset, available));
    t.offset += data_start;
    t.data = bytes.data() + t.offset;
  }
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); i++)
    if (order[i - 1]->offset + order[i - 1]->size > order[i]->offset)
      throw damaged(fmt::format("tensors '{}' and '{}' overlap", order[i - 1]->name, order[i]->name));
}

}  // namespace

GgufHeader parse_gguf_header(std::span<const uint8_t> bytes) {
  const FileKind kind = sniff_file(bytes, bytes.size());
  if (kind != FileKind::gguf) throw wrong_kind(kind, bytes, bytes.size(), "a GGUF file");
  Cursor in(bytes);
  in.take(4, "the magic");
  GgufHeader out;
  const auto version = in.read<uint32_t>("the version");
  if (version == 1)
    throw error(ErrorKind::InvalidFile, "this is a GGUF file of version 1")
        .advise("convert the model again; v2 and v3 are read");
  if (version != 2 && version != 3)
    throw error(ErrorKind::InvalidFile, "this is a GGUF file of version {}", version)
        .advise("v2 and v3 are read; a newer cyb-llm may know this one");
  out.version = static_cast<int>(version);
  const auto tensor_count = in.read<uint64_t>("the tensor count");
  const auto pair_count = in.read<uint64_t>("the metadata count");
  if (tensor_count > kMaxTensors)
    throw damaged(fmt::format("{} tensors, above the limit of {}", tensor_count, kMaxTensors));
  if (pair_count > kMaxPairs)
    throw damaged(fmt::format("{} metadata pairs, above the limit of {}", pair_count, kMaxPairs));

  for (uint64_t i = 0; i < pair_count; i++) {
    std::string key(in.text(kMaxKey, "a metadata key"));
    if (key.empty()) throw damaged("an empty metadata key");
    GgufValue value = read_value(in, key);
    out.metadata.add(std::move(key), std::move(value));
  }
  const uint64_t alignment = read_alignment(out.metadata);
  constexpr uint64_t kSmallestEntry = 8 + 1 + 4 + 4 + 8;
  if (tensor_count > in.left() / kSmallestEntry)
    throw damaged(fmt::format("{} tensors do not fit in the file", tensor_count));
  out.tensors.reserve(tensor_count);
  for (uint64_t i = 0; i < tensor_count; i++) out.tensors.push_back(read_tensor(in));

  uint64_t data_start = round_up(in.position(), alignment);  // position <= file size, alignment is small
  if (data_start > bytes.size()) {
    if (tensor_count > 0) throw damaged("it ends before the weights: the file is truncated");
    data_start = bytes.size();
  }
  place_tensors(out.tensors, bytes, data_start, alignment);
  return out;
}

}  // namespace cyb
