// SPDX-License-Identifier: Apache-2.0
// Typed access to the key–value pairs of a GGUF header.
#include <cstring>

#include "base/error.h"
#include "import/gguf_file.h"

namespace cyb {
namespace {

bool is_integer(GgufValueType t) {
  switch (t) {
    case GgufValueType::u8:
    case GgufValueType::i8:
    case GgufValueType::u16:
    case GgufValueType::i16:
    case GgufValueType::u32:
    case GgufValueType::i32:
    case GgufValueType::u64:
    case GgufValueType::i64:
      return true;
    default:
      return false;
  }
}

std::string type_of(const GgufValue& value) {
  if (value.type != GgufValueType::array) return to_string(value.type);
  return fmt::format("array of {}", to_string(value.element));
}

Error wrong_type(std::string_view key, const GgufValue& value, const char* wanted) {
  return error(ErrorKind::InvalidFile, "metadata '{}' is of type {}, where {} was expected", key,
               type_of(value), wanted)
      .advise("the file is damaged or was made by a faulty converter; convert the model again");
}

template <class T>
T load(const uint8_t* p, uint64_t index) {
  T v;
  std::memcpy(&v, p + index * sizeof(T), sizeof(T));
  return v;
}

}  // namespace

const char* to_string(GgufValueType type) {
  constexpr const char* names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                   "bool", "string", "array", "u64", "i64", "f64"};
  const auto i = static_cast<uint32_t>(type);
  return i < 13 ? names[i] : "?";
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto it = values_.find(std::string(key));
  return it == values_.end() ? nullptr : &it->second;
}

const GgufValue& GgufMetadata::need(std::string_view key) const {
  if (const GgufValue* value = find(key)) return *value;
  throw error(ErrorKind::InvalidFile, "metadata '{}' is missing", key)
      .advise("the file was made by an old or faulty converter; convert the model again");
}

void GgufMetadata::add(std::string key, GgufValue value) {
  if (!values_.emplace(key, std::move(value)).second)
    throw error(ErrorKind::InvalidFile, "metadata '{}' stands twice in the header", key);
  keys_.push_back(std::move(key));
}

std::string GgufMetadata::string(std::string_view key) const {
  const GgufValue& value = need(key);
  if (value.type != GgufValueType::string) throw wrong_type(key, value, "a string");
  return std::string(value.text);
}

std::string GgufMetadata::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? string(key) : std::move(fallback);
}

int64_t GgufMetadata::integer(std::string_view key, int64_t low, int64_t high) const {
  const GgufValue& value = need(key);
  if (!is_integer(value.type)) throw wrong_type(key, value, "an integer");
  const bool wrapped = value.type == GgufValueType::u64 && value.integer < 0;
  if (wrapped || value.integer < low || value.integer > high)
    throw error(
        ErrorKind::InvalidFile, "metadata '{}' is {}, outside {}…{}", key,
        wrapped ? fmt::format("{}", static_cast<uint64_t>(value.integer)) : fmt::format("{}", value.integer),
        low, high);
  return value.integer;
}

int64_t GgufMetadata::integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double GgufMetadata::real(std::string_view key) const {
  const GgufValue& value = need(key);
  if (value.type != GgufValueType::f32 && value.type != GgufValueType::f64)
    throw wrong_type(key, value, "a real");
  return value.real;
}

double GgufMetadata::real_or(std::string_view key, double fallback) const {
  return has(key) ? real(key) : fallback;
}

bool GgufMetadata::boolean(std::string_view key) const {
  const GgufValue& value = need(key);
  if (value.type != GgufValueType::boolean) throw wrong_type(key, value, "a bool");
  return value.integer != 0;
}

bool GgufMetadata::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

const std::vector<std::string_view>& GgufMetadata::strings(std::string_view key) const {
  const GgufValue& value = need(key);
  if (value.type != GgufValueType::array || value.element != GgufValueType::string)
    throw wrong_type(key, value, "an array of strings");
  return value.strings;
}

std::vector<int64_t> GgufMetadata::integers(std::string_view key) const {
  const GgufValue& value = need(key);
  const bool numbers = is_integer(value.element) || value.element == GgufValueType::boolean;
  if (value.type != GgufValueType::array || !numbers) throw wrong_type(key, value, "an array of integers");
  std::vector<int64_t> out(value.count);
  for (uint64_t i = 0; i < value.count; i++) {
    switch (value.element) {
      case GgufValueType::u8:
      case GgufValueType::boolean:
        out[i] = load<uint8_t>(value.numbers, i);
        break;
      case GgufValueType::i8:
        out[i] = load<int8_t>(value.numbers, i);
        break;
      case GgufValueType::u16:
        out[i] = load<uint16_t>(value.numbers, i);
        break;
      case GgufValueType::i16:
        out[i] = load<int16_t>(value.numbers, i);
        break;
      case GgufValueType::u32:
        out[i] = load<uint32_t>(value.numbers, i);
        break;
      case GgufValueType::i32:
        out[i] = load<int32_t>(value.numbers, i);
        break;
      default:
        out[i] = load<int64_t>(value.numbers, i);
        break;
    }
    if (value.element == GgufValueType::u64 && out[i] < 0)
      throw error(ErrorKind::InvalidFile, "metadata '{}' holds {}, which is too large", key,
                  static_cast<uint64_t>(out[i]));
  }
  return out;
}

std::vector<float> GgufMetadata::reals(std::string_view key) const {
  const GgufValue& value = need(key);
  const bool f32 = value.element == GgufValueType::f32, f64 = value.element == GgufValueType::f64;
  if (value.type != GgufValueType::array || (!f32 && !f64)) throw wrong_type(key, value, "an array of reals");
  std::vector<float> out(value.count);
  for (uint64_t i = 0; i < value.count; i++)
    out[i] = f32 ? load<float>(value.numbers, i) : static_cast<float>(load<double>(value.numbers, i));
  return out;
}

}  // namespace cyb
