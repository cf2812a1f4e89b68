// SPDX-License-Identifier: Apache-2.0
// Files beside a model that hold its tensors. Only files in the model's folder (or below it) are opened.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"

namespace cyb::onnx {

class ExternalData {
 public:
  // `model_path` may be empty: then there is no folder, and no file is opened.
  explicit ExternalData(const std::string& model_path);

  // The bytes [offset, offset + length) of a file named relative to the model's folder; length 0: to its end.
  // Throws InvalidFile for names that lead elsewhere and for ranges outside the file.
  std::span<const uint8_t> bytes(const std::string& location, uint64_t offset, uint64_t length);
  uint64_t total() const { return total_; }  // bytes of all files that were opened

 private:
  const MappedFile& open(const std::string& location);
  std::string folder_;
  std::map<std::string, std::unique_ptr<MappedFile>> files_;
  uint64_t total_ = 0;
};

}  // namespace cyb::onnx
