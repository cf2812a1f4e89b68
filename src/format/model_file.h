// SPDX-License-Identifier: Apache-2.0
// Opens and validates a `.model` file. Nothing is copied: sections and weights are views of the mapping,
// which lives as long as the object. Weights are not read until someone does, or calls verify().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "format/config.h"
#include "tensor/encoding.h"

namespace cyb {

class ModelFile {
 public:
  // Throws InvalidFile, InvalidConfig or WeightFormat, naming section and line, and Io.
  explicit ModelFile(const std::string& path);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  const std::string& path() const { return file_.path(); }
  int version() const { return version_; }
  // The frontmatter as it stands: "cyb.name", "cyb.license", "cyb.lineage.source", …
  const Config& frontmatter() const { return frontmatter_; }
  std::string name() const { return frontmatter_.text("cyb.name"); }
  int64_t parameters() const { return frontmatter_.integer_or("cyb.parameters", 0); }

  // Section names in file order, without `weights`.
  std::vector<std::string> section_names() const;
  bool has_section(std::string_view name) const { return find_section(name) != nullptr; }
  std::string_view section(
      std::string_view name) const;               // its content; throws InvalidFile when there is none
  int section_line(std::string_view name) const;  // number of its first line in the file
  std::string section_format(
      std::string_view name) const;  // "md", "toml", "ir", "rs", …; as the frontmatter says

  const Config& config() const { return config_; }

  // Tensors in file order, and by name.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  const TensorSpec* find_tensor(std::string_view name) const;
  const TensorSpec& tensor(std::string_view name) const;  // throws MissingTensor
  std::span<const uint8_t> bytes(const TensorSpec& spec) const;
  // The factors of a ternary tensor: decoded NAME.scale; empty when there is none or for other encodings.
  std::vector<float> ternary_scales(const TensorSpec& spec) const;

  uint64_t header_size() const { return weights_at_; }  // where the weights start in the file
  uint64_t weights_size() const { return weights_size_; }
  const MappedFile& file() const { return file_; }

  // Identity and cache key, 64 hexadecimal digits: the SHA-256 of all bytes before the weights, which hold
  // the weights' own; for version 2 of the whole file.
  std::string identity() const;

  // Reads all weights: their SHA-256 (version 3), zero bytes between tensors, padding and forbidden codes.
  // Throws InvalidFile at the first fault. `progress` gets bytes done and bytes in all.
  void verify(const std::function<void(uint64_t, uint64_t)>& progress = {}) const;

 private:
  struct Part {
    std::string name;
    std::string_view content;
    size_t begin;  // in the file
  };
  const Part* find_section(std::string_view name) const;
  void read_frontmatter(std::string_view text);
  void check_files();
  void check_places() const;
  void check_scales() const;

  MappedFile file_;
  int version_ = 0;
  Config frontmatter_, config_;
  std::vector<Part> parts_;
  std::deque<std::string> unescaped_;  // contents that the file holds with escapes
  std::vector<TensorSpec> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
  uint64_t weights_at_ = 0, weights_size_ = 0;
};

}  // namespace cyb
