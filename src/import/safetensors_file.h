// SPDX-License-Identifier: Apache-2.0
// Reader of safetensors files, one or sharded (an index.json, or all shards of a folder), and of their
// element types. The header is untrusted: lengths, offsets, overlaps and holes are checked before anything is
// used.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"

namespace cyb {

enum class SafetensorType {
  BOOL,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F8_E4M3,
  F8_E5M2,
  F16,
  BF16,
  F32,
  F64
};
const char* to_string(SafetensorType type);
int size_of(SafetensorType type);  // bytes of a value
inline bool is_float8(SafetensorType t) {
  return t == SafetensorType::F8_E4M3 || t == SafetensorType::F8_E5M2;
}

struct SafeTensor {
  std::string name;
  SafetensorType type{};
  std::vector<int64_t> shape;
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  const MappedFile* file = nullptr;
  uint64_t offset = 0;  // in that file
};

// The tensors of one file's bytes, in the order of their offsets; `file` is not set.
std::vector<SafeTensor> parse_safetensors(std::span<const uint8_t> bytes);

class PytorchCheckpoint;

// All tensors of a model.
class SafetensorsModel {
 public:
  // One .safetensors file, an index (….safetensors.index.json), or several files. PyTorch checkpoints
  // (pytorch/checkpoint.h) may stand in their place.
  explicit SafetensorsModel(const std::string& path) : SafetensorsModel(std::vector<std::string>{path}) {}
  explicit SafetensorsModel(const std::vector<std::string>& paths);
  ~SafetensorsModel();

  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  const SafeTensor* find(std::string_view name) const;
  const char* format() const { return checkpoints_.empty() ? "safetensors" : "pytorch"; }

 private:
  void add_tensors(const std::string& path, std::vector<SafeTensor> tensors);
  void add_file(const std::string& path);
  void add_index(const std::string& path);
  std::vector<SafeTensor> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<std::unique_ptr<PytorchCheckpoint>> checkpoints_;
  std::vector<std::string> file_of_;  // of each tensor
};

// `values` values to f32; integers and f64 are rounded to nearest. Safe from several threads.
void safetensor_decode(SafetensorType type, const uint8_t* data, int64_t values, float* out);

}  // namespace cyb
