// SPDX-License-Identifier: Apache-2.0
// Test help: GGUF files of any (also hostile) content, in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "import/gguf_file.h"

namespace cyb {

class GgufBytes {
 public:
  template <class T>
  GgufBytes& number(T v) {
    const char* p = reinterpret_cast<const char*>(&v);
    bytes_.append(p, sizeof(T));
    return *this;
  }
  GgufBytes& text(const std::string& s) {
    number<uint64_t>(s.size());
    bytes_ += s;
    return *this;
  }
  GgufBytes& raw(const std::string& s) {
    bytes_ += s;
    return *this;
  }
  GgufBytes& header(uint32_t version, uint64_t tensors, uint64_t pairs) {
    return raw("GGUF").number(version).number(tensors).number(pairs);
  }
  GgufBytes& key(const std::string& name, GgufValueType type) {
    return text(name).number(static_cast<uint32_t>(type));
  }
  GgufBytes& tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                    uint64_t offset) {
    text(name).number(static_cast<uint32_t>(dims.size()));
    for (uint64_t d : dims) number(d);
    return number(type).number(offset);
  }
  GgufBytes& pad(size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  GgufBytes& zeros(size_t n) {
    bytes_.append(n, '\0');
    return *this;
  }
  std::span<const uint8_t> span() const {
    return {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()};
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A whole well-formed file from pairs and tensors, for tests of what lies above the reader.
class GgufBuilder {
 public:
  GgufBuilder& set(const std::string& key, const std::string& value) {
    pairs_.key(key, GgufValueType::string).text(value);
    pair_count_++;
    return *this;
  }
  GgufBuilder& set(const std::string& key, const char* value) { return set(key, std::string(value)); }
  GgufBuilder& set(const std::string& key, uint32_t value) {
    pairs_.key(key, GgufValueType::u32).number(value);
    pair_count_++;
    return *this;
  }
  GgufBuilder& set(const std::string& key, float value) {
    pairs_.key(key, GgufValueType::f32).number(value);
    pair_count_++;
    return *this;
  }
  GgufBuilder& set(const std::string& key, bool value) {
    pairs_.key(key, GgufValueType::boolean).number<uint8_t>(value);
    pair_count_++;
    return *this;
  }
  GgufBuilder& set(const std::string& key, const std::vector<std::string>& values) {
    pairs_.key(key, GgufValueType::array)
        .number(static_cast<uint32_t>(GgufValueType::string))
        .number<uint64_t>(values.size());
    for (const auto& v : values) pairs_.text(v);
    pair_count_++;
    return *this;
  }
  GgufBuilder& set(const std::string& key, const std::vector<int32_t>& values) {
    pairs_.key(key, GgufValueType::array)
        .number(static_cast<uint32_t>(GgufValueType::i32))
        .number<uint64_t>(values.size());
    for (int32_t v : values) pairs_.number(v);
    pair_count_++;
    return *this;
  }
  GgufBuilder& set(const std::string& key, const std::vector<float>& values) {
    pairs_.key(key, GgufValueType::array)
        .number(static_cast<uint32_t>(GgufValueType::f32))
        .number<uint64_t>(values.size());
    for (float v : values) pairs_.number(v);
    pair_count_++;
    return *this;
  }
  // `dims` fastest first, as the file has them; `data` the tensor's bytes.
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& dims, GgufType type,
                      const std::string& data) {
    tensors_.tensor(name, dims, static_cast<uint32_t>(type), data_.bytes().size());
    data_.raw(data).pad();
    tensor_count_++;
    return *this;
  }
  GgufBuilder& f32(const std::string& name, const std::vector<uint64_t>& dims,
                   const std::vector<float>& values) {
    return tensor(name, dims, GgufType::F32,
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  }
  std::string build() const {
    GgufBytes out;
    out.header(3, tensor_count_, pair_count_)
        .raw(pairs_.bytes())
        .raw(tensors_.bytes())
        .pad()
        .raw(data_.bytes());
    return out.bytes();
  }

 private:
  GgufBytes pairs_, tensors_, data_;
  uint64_t pair_count_ = 0, tensor_count_ = 0;
};

}  // namespace cyb
