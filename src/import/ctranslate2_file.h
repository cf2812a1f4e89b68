// SPDX-License-Identifier: Apache-2.0
// Reader of CTranslate2's model.bin: variables with their shapes, types and bytes, and names that stand for
// other variables. Everything in the file is untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "import/safetensors_file.h"

namespace cyb {

class Ctranslate2File {
 public:
  // Whether a file begins as such a model does: nothing but a version and the name of a specification.
  static bool looks_like(const std::string& path);
  // Throws InvalidFile, naming the variable, and UnsupportedModel for versions that are not known.
  explicit Ctranslate2File(const std::string& path);

  const std::string& spec() const { return spec_; }
  uint32_t revision() const { return revision_; }
  // In the file's order; `type` is one of F32, I8, I16, I32, F16, BF16.
  const std::vector<SafeTensor>& variables() const { return variables_; }
  const SafeTensor* find(std::string_view name) const;  // by its own name or an alias
  // The value of a scalar, −1 where there is none.
  int64_t integer(std::string_view name) const;

 private:
  MappedFile file_;
  std::string spec_;
  uint32_t revision_ = 0;
  std::vector<SafeTensor> variables_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace cyb
