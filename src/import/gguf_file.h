// SPDX-License-Identifier: Apache-2.0
// Reader of GGUF v2 and v3: metadata with typed getters that fail, tensor directory, split files.
// Everything in the header is untrusted: each count, length and offset is checked before it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "import/gguf_types.h"

namespace cyb {

enum class GgufValueType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
const char* to_string(GgufValueType type);

// One metadata value. Numbers are kept in `integer` (u64 as its bits) or `real`, strings point into the
// mapping.
struct GgufValue {
  GgufValueType type = GgufValueType::u8;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
  // Arrays: numbers lie unaligned in the mapping, strings are listed; an array of arrays has only its count.
  GgufValueType element = GgufValueType::u8;
  uint64_t count = 0;
  const uint8_t* numbers = nullptr;
  std::vector<std::string_view> strings;
};

// The key–value pairs of a header. A getter throws InvalidFile when the key is there with another type, or,
// without a default, when it is missing. Integers of every width answer to integer(), range-checked.
class GgufMetadata {
 public:
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const GgufValue* find(std::string_view key) const;
  const std::vector<std::string>& keys() const { return keys_; }  // in file order

  std::string string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string fallback) const;
  int64_t integer(std::string_view key, int64_t low = 0, int64_t high = INT32_MAX) const;
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t low = 0, int64_t high = INT32_MAX) const;
  double real(std::string_view key) const;  // f32 or f64; an f32 is widened exactly
  double real_or(std::string_view key, double fallback) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  // Views into the mapping, valid while the file lives.
  const std::vector<std::string_view>& strings(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<float> reals(std::string_view key) const;

  void add(std::string key, GgufValue value);  // throws on a duplicate

 private:
  const GgufValue& need(std::string_view key) const;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, GgufValue> values_;
};

struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // row-major, slowest axis first: GGUF's order reversed
  GgufType type{};
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  const MappedFile* file = nullptr;  // the shard that holds it
  uint64_t offset = 0;               // in that file

  int64_t row_length() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const;
};

// One model: a file, or all shards of a split file, whichever shard's path was given.
class GgufFile {
 public:
  explicit GgufFile(const std::string& path);
  // From bytes in memory (tests, fuzzing); the bytes must outlive the object. Shards are refused here.
  explicit GgufFile(std::span<const uint8_t> bytes);

  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;
  int version() const { return version_; }
  // The files that were read, first shard first.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  struct Shard;
  void add_shard(Shard shard);
  int version_ = 0;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<std::string> paths_;
};

// The paths of all shards when `path` is named PREFIX-00001-of-00003.gguf, else empty.
std::vector<std::string> gguf_shard_paths(const std::string& path);

}  // namespace cyb
