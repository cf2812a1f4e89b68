// SPDX-License-Identifier: Apache-2.0
#include "import/safetensors_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "import/file_kind.h"
#include "import/gguf_blocks.h"
#include "import/pytorch/checkpoint.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr uint64_t kMaxIndex = 32 << 20;
constexpr size_t kMaxTensors = 1 << 18;
constexpr size_t kMaxName = 4096;

struct TypeInfo {
  SafetensorType type;
  const char* name;
  int size;
};
constexpr TypeInfo kTypes[] = {
    {SafetensorType::BOOL, "BOOL", 1},       {SafetensorType::U8, "U8", 1},
    {SafetensorType::I8, "I8", 1},           {SafetensorType::U16, "U16", 2},
    {SafetensorType::I16, "I16", 2},         {SafetensorType::U32, "U32", 4},
    {SafetensorType::I32, "I32", 4},         {SafetensorType::U64, "U64", 8},
    {SafetensorType::I64, "I64", 8},         {SafetensorType::F8_E4M3, "F8_E4M3", 1},
    {SafetensorType::F8_E5M2, "F8_E5M2", 1}, {SafetensorType::F16, "F16", 2},
    {SafetensorType::BF16, "BF16", 2},       {SafetensorType::F32, "F32", 4},
    {SafetensorType::F64, "F64", 8},
};

Error damaged(std::string what) {
  return error(ErrorKind::InvalidFile, "safetensors header: {}", what)
      .advise("the file is damaged or incomplete; fetch it again");
}

// Takes the header apart while it is parsed, so that no tree of hostile size is ever built. Accepts exactly
// {NAME: {"dtype": text, "shape": [integers], "data_offsets": [two integers]}, "__metadata__": {text: text}}.
class HeaderHandler : public json::json_sax_t {
 public:
  struct Entry {
    SafeTensor tensor;
    bool has_type = false, has_shape = false;
    std::vector<uint64_t> offsets;
    bool has_offsets = false;
  };
  std::vector<Entry> entries;

  bool null() override { return fail("a null"); }
  bool boolean(bool) override { return fail("a boolean"); }
  bool number_integer(number_integer_t v) override { return fail(fmt::format("the number {}", v)); }
  bool number_float(number_float_t, const string_t& text) override {
    return fail(fmt::format("the number {}", text));
  }
  bool binary(binary_t&) override { return fail("binary data"); }

  bool number_unsigned(number_unsigned_t v) override {
    if (!in_list_) return fail(fmt::format("the number {}", v));
    if (key_ == "shape") {
      if (entry().tensor.shape.size() >= 8) throw damaged(where() + "more than 8 axes");
      if (v > INT64_MAX) throw damaged(fmt::format("{}an axis of {}", where(), v));
      entry().tensor.shape.push_back(static_cast<int64_t>(v));
    } else {
      if (entry().offsets.size() >= 2) throw damaged(where() + "data_offsets must be exactly two numbers");
      entry().offsets.push_back(v);
    }
    return true;
  }
  bool string(string_t& text) override {
    if (metadata_) return true;
    if (depth_ != 2 || in_list_ || key_ != "dtype") return fail("a text");
    if (entry().has_type) throw damaged(where() + "dtype stands twice");
    for (const TypeInfo& info : kTypes)
      if (text == info.name) {
        entry().tensor.type = info.type;
        entry().has_type = true;
        return true;
      }
    throw error(ErrorKind::WeightFormat, "{}the element type '{}' is not known", where(), text)
        .advise("known: BOOL, U8…I64, F8_E4M3, F8_E5M2, F16, BF16, F32, F64");
  }
  bool start_object(size_t) override {
    if (in_list_ || depth_ >= 2) return fail("a nested object");
    depth_++;
    return true;
  }
  bool end_object() override {
    depth_--;
    metadata_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_list_ || metadata_ || (key_ != "shape" && key_ != "data_offsets"))
      return fail("a list");
    bool& seen = key_ == "shape" ? entry().has_shape : entry().has_offsets;
    if (seen) throw damaged(fmt::format("{}{} stands twice", where(), key_));
    seen = in_list_ = true;
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      if (name == "__metadata__") {
        metadata_ = true;
      } else {
        if (name.empty() || name.size() > kMaxName)
          throw damaged(fmt::format("a tensor name of {} bytes", name.size()));
        if (entries.size() >= kMaxTensors) throw damaged(fmt::format("more than {} tensors", kMaxTensors));
        entries.emplace_back();
        entries.back().tensor.name = name;
      }
    }
    key_ = name;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw damaged(fmt::format("no valid JSON at byte {}", position));
  }

 private:
  Entry& entry() {
    if (entries.empty()) throw damaged("a value outside a tensor");
    return entries.back();
  }
  std::string where() {
    return fmt::format("tensor '{}': ", entries.empty() ? "" : entries.back().tensor.name);
  }
  bool fail(const std::string& what) {
    throw damaged(fmt::format("{} under '{}', where it cannot be", what, key_));
  }
  int depth_ = 0;
  bool metadata_ = false, in_list_ = false;
  std::string key_;
};

// Value of an 8-bit float by its bits; e4m3 has no infinities (S.1111.111 is NaN).
float float8(uint8_t bits, int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (exponent_bits == 4 && (bits & 0x7f) == 0x7f) return std::bit_cast<float>(0x7fc00000u);
  if (exponent_bits == 5 && exponent == 31)
    return mantissa ? std::bit_cast<float>(0x7fc00000u) : sign * std::bit_cast<float>(0x7f800000u);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return sign *
         std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
}

struct Float8Tables {
  float e4m3[256], e5m2[256];
  Float8Tables() {
    for (int i = 0; i < 256; i++) {
      e4m3[i] = float8(static_cast<uint8_t>(i), 4);
      e5m2[i] = float8(static_cast<uint8_t>(i), 5);
    }
  }
};
const Float8Tables& float8_tables() {
  static const Float8Tables tables;
  return tables;
}

template <class T>
void convert(const uint8_t* data, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i++) {
    T v;
    std::memcpy(&v, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    out[i] = static_cast<float>(v);
  }
}

}  // namespace

const char* to_string(SafetensorType type) { return kTypes[static_cast<int>(type)].name; }
int size_of(SafetensorType type) { return kTypes[static_cast<int>(type)].size; }

std::vector<SafeTensor> parse_safetensors(std::span<const uint8_t> bytes) {
  const FileKind kind = sniff_file(bytes, bytes.size());
  if (bytes.size() < 8 ||
      (kind != FileKind::safetensors && kind != FileKind::text && kind != FileKind::unknown))
    throw wrong_kind(kind, bytes, bytes.size(), "a safetensors file");
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader || length > bytes.size() - 8) {
    if (kind != FileKind::safetensors) throw wrong_kind(kind, bytes, bytes.size(), "a safetensors file");
    throw damaged(fmt::format("its length is {} bytes, the file has {}, the limit is {}", length,
                              bytes.size(), kMaxHeader));
  }
  const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  if (length == 0 || *text != '{') throw wrong_kind(kind, bytes, bytes.size(), "a safetensors file");
  HeaderHandler handler;
  json::sax_parse(text, text + length, &handler);

  const uint64_t data_start = 8 + length, available = bytes.size() - data_start;
  std::vector<SafeTensor> out;
  for (HeaderHandler::Entry& e : handler.entries) {
    SafeTensor& t = e.tensor;
    if (!e.has_type || !e.has_shape || e.offsets.size() != 2)
      throw damaged(fmt::format("tensor '{}' needs dtype, shape and exactly two data_offsets", t.name));
    uint64_t size = static_cast<uint64_t>(size_of(t.type));
    for (int64_t n : t.shape)
      if (!checked_mul(size, static_cast<uint64_t>(n), &size))
        throw damaged(fmt::format("tensor '{}' is too large", t.name));
    const uint64_t begin = e.offsets[0], end = e.offsets[1];
    if (begin > end || end > available)
      throw damaged(fmt::format("tensor '{}': data_offsets [{}, {}] do not lie in the data of {} bytes",
                                t.name, begin, end, available));
    if (end - begin != size)
      throw damaged(fmt::format("tensor '{}': {} bytes by its offsets, {} by shape and type", t.name,
                                end - begin, size));
    t.size = size;
    t.offset = data_start + begin;
    t.data = bytes.data() + t.offset;
    out.push_back(std::move(t));
  }
  // Empty tensors sort before what begins at the same place.
  std::sort(out.begin(), out.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
  });
  uint64_t covered = data_start;
  for (const SafeTensor& t : out) {
    if (t.offset < covered) throw damaged(fmt::format("tensor '{}' overlaps the one before it", t.name));
    if (t.offset > covered)
      throw damaged(
          fmt::format("there is a hole of {} bytes before tensor '{}'", t.offset - covered, t.name));
    covered += t.size;
  }
  if (covered != bytes.size())
    throw damaged(fmt::format("the last {} bytes of the file belong to no tensor", bytes.size() - covered));
  return out;
}

SafetensorsModel::SafetensorsModel(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) path.ends_with(".json") ? add_index(path) : add_file(path);
}

SafetensorsModel::~SafetensorsModel() = default;

void SafetensorsModel::add_file(const std::string& path) {
  auto file = std::make_unique<MappedFile>(path);
  const FileKind kind = sniff_file(file->bytes(), file->size());
  if (kind == FileKind::zip || kind == FileKind::pickle) {
    checkpoints_.push_back(std::make_unique<PytorchCheckpoint>(path));
    return add_tensors(path, checkpoints_.back()->model_tensors());
  }
  std::vector<SafeTensor> tensors;
  try {
    tensors = parse_safetensors(file->bytes());
  } catch (const Error& e) {
    throw e.at(path);
  }
  for (SafeTensor& t : tensors) t.file = file.get();
  files_.push_back(std::move(file));
  add_tensors(path, std::move(tensors));
}

void SafetensorsModel::add_tensors(const std::string& path, std::vector<SafeTensor> tensors) {
  for (SafeTensor& t : tensors) {
    if (!by_name_.emplace(t.name, tensors_.size()).second)
      throw error(ErrorKind::InvalidFile, "{}: tensor '{}' stands twice", path, t.name);
    file_of_.push_back(path);
    tensors_.push_back(std::move(t));
  }
}

void SafetensorsModel::add_index(const std::string& path) {
  const std::string text = read_file(path, kMaxIndex);
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > 8) throw error(ErrorKind::InvalidFile, "{}: nested too deep", path);
    return true;
  };
  const json index = json::parse(text, limit_depth, false);
  if (index.is_discarded() || !index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    throw error(ErrorKind::InvalidFile, "{}: no valid index (JSON with an object 'weight_map')", path);
  std::set<std::string> names;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name == "." || name == ".." || name.find_first_of("/\\") != std::string::npos)
      throw error(ErrorKind::InvalidFile, "{}: '{}' lies in the file '{}', which is no plain file name", path,
                  tensor, name);
    names.insert(name);
  }
  const fs::path folder = fs::path(path).parent_path();
  std::string missing;
  std::error_code ignored;
  for (const std::string& name : names)
    if (!fs::exists(folder / name, ignored)) missing += (missing.empty() ? "" : ", ") + name;
  if (!missing.empty())
    throw error(ErrorKind::Io, "{}: of {} files these are missing: {}", path, names.size(), missing)
        .advise("put all files of the model into one folder");
  for (const std::string& name : names) add_file((folder / name).string());
  std::string absent;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const auto it = by_name_.find(tensor);
    if (it == by_name_.end() || fs::path(file_of_[it->second]).filename().string() != file.get<std::string>())
      absent += (absent.empty() ? "" : ", ") + tensor;
  }
  if (!absent.empty())
    throw error(ErrorKind::MissingTensor, "{}: not in the files that the index names: {}", path, absent)
        .advise("a file is damaged or belongs to another version; fetch the model again");
}

const SafeTensor* SafetensorsModel::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

void safetensor_decode(SafetensorType type, const uint8_t* data, int64_t n, float* out) {
  switch (type) {
    case SafetensorType::F32:
      gguf_decode(GgufType::F32, data, n, out);
      break;
    case SafetensorType::F16:
      gguf_decode(GgufType::F16, data, n, out);
      break;
    case SafetensorType::BF16:
      gguf_decode(GgufType::BF16, data, n, out);
      break;
    case SafetensorType::F64:
      convert<double>(data, n, out);
      break;
    case SafetensorType::F8_E4M3:
      for (int64_t i = 0; i < n; i++) out[i] = float8_tables().e4m3[data[i]];
      break;
    case SafetensorType::F8_E5M2:
      for (int64_t i = 0; i < n; i++) out[i] = float8_tables().e5m2[data[i]];
      break;
    case SafetensorType::BOOL:
      for (int64_t i = 0; i < n; i++) out[i] = data[i] ? 1.0f : 0.0f;
      break;
    case SafetensorType::U8:
      convert<uint8_t>(data, n, out);
      break;
    case SafetensorType::I8:
      convert<int8_t>(data, n, out);
      break;
    case SafetensorType::U16:
      convert<uint16_t>(data, n, out);
      break;
    case SafetensorType::I16:
      convert<int16_t>(data, n, out);
      break;
    case SafetensorType::U32:
      convert<uint32_t>(data, n, out);
      break;
    case SafetensorType::I32:
      convert<int32_t>(data, n, out);
      break;
    case SafetensorType::U64:
      convert<uint64_t>(data, n, out);
      break;
    case SafetensorType::I64:
      convert<int64_t>(data, n, out);
      break;
  }
}

}  // namespace cyb
