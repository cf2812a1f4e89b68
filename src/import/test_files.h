// SPDX-License-Identifier: Apache-2.0
// Test help: temporary folders, safetensors bytes.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace cyb {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "cyb_import_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string p = (path_ / name).string();
    std::ofstream(p, std::ios::binary) << bytes;
    return p;
  }
  std::string path(const std::string& name = "") const {
    return (name.empty() ? path_ : path_ / name).string();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& e : std::filesystem::directory_iterator(path_))
      out.push_back(e.path().filename().string());
    return out;
  }

 private:
  std::filesystem::path path_;
};

// A safetensors file from header text and data.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
}

class SafetensorsBuilder {
 public:
  SafetensorsBuilder& tensor(const std::string& name, const std::string& type,
                             const std::vector<int64_t>& shape, const std::string& data) {
    header_ += (header_.empty() ? "" : ",") + ("\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[");
    for (size_t i = 0; i < shape.size(); i++) header_ += (i ? "," : "") + std::to_string(shape[i]);
    header_ += "],\"data_offsets\":[" + std::to_string(data_.size()) + "," +
               std::to_string(data_.size() + data.size()) + "]}";
    data_ += data;
    return *this;
  }
  SafetensorsBuilder& f32(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<float>& v) {
    return tensor(name, "F32", shape,
                  std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)));
  }
  std::string build() const { return safetensors_bytes("{" + header_ + "}", data_); }

 private:
  std::string header_, data_;
};

}  // namespace cyb
