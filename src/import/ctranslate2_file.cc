// SPDX-License-Identifier: Apache-2.0
#include "import/ctranslate2_file.h"

#include <cstring>
#include <fstream>

#include "base/checked.h"
#include "base/error.h"

namespace cyb {
namespace {

constexpr uint32_t kNewestVersion = 6, kOldestVersion = 3;
constexpr SafetensorType kTypes[] = {SafetensorType::F32, SafetensorType::I8,  SafetensorType::I16,
                                     SafetensorType::I32, SafetensorType::F16, SafetensorType::BF16};

// Little-endian numbers and texts, one after the other.
class Cursor {
 public:
  Cursor(const MappedFile& file) : file_(file) {}

  template <class T>
  T number(const char* what) {
    T v{};
    std::memcpy(&v, take(sizeof v, what), sizeof v);
    return v;
  }
  // With its terminating zero, which is counted in the length.
  std::string text(const char* what) {
    const auto length = number<uint16_t>(what);
    const auto* bytes = reinterpret_cast<const char*>(take(length, what));
    if (length == 0 || bytes[length - 1] != 0 || std::memchr(bytes, 0, length) != bytes + length - 1)
      throw damaged("{} at byte {} is no text", what, at_ - length);
    return {bytes, length - 1u};
  }
  const uint8_t* take(uint64_t size, const char* what) {
    if (size > file_.size() - at_) throw damaged("the file ends within {}", what);
    const uint8_t* p = file_.data() + at_;
    at_ += size;
    return p;
  }
  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  template <class... Args>
  Error damaged(fmt::format_string<Args...> format, Args&&... args) const {
    return error(ErrorKind::InvalidFile, "{}: {}", file_.path(),
                 fmt::format(format, std::forward<Args>(args)...))
        .advise("the file is damaged or incomplete: fetch it again");
  }

 private:
  const MappedFile& file_;
  uint64_t at_ = 0;
};

}  // namespace

bool Ctranslate2File::looks_like(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char head[64] = {};
  in.read(head, sizeof head);
  const auto got = static_cast<size_t>(in.gcount());
  uint32_t version = 0;
  uint16_t length = 0;
  if (got < 16) return false;
  std::memcpy(&version, head, 4);
  std::memcpy(&length, head + 4, 2);
  if (version == 0 || version > 1000 || length < 6 || length > got - 6u || head[6 + length - 1] != 0)
    return false;
  return std::string_view(head + 6, length - 1u).ends_with("Spec");
}

Ctranslate2File::Ctranslate2File(const std::string& path) : file_(path) {
  Cursor in(file_);
  const auto version = in.number<uint32_t>("the version");
  if (version < kOldestVersion || version > kNewestVersion)
    throw error(ErrorKind::UnsupportedModel, "{}: version {} of CTranslate2's format", path, version)
        .advise("supported are {} to {}: convert the original model again", kOldestVersion, kNewestVersion);
  spec_ = in.text("the specification");
  revision_ = in.number<uint32_t>("the revision");
  const auto count = in.number<uint32_t>("the number of variables");
  for (uint32_t i = 0; i < count; i++) {
    SafeTensor t;
    t.name = in.text("a variable's name");
    const auto rank = in.number<uint8_t>("a variable's rank");
    if (rank > 8) throw in.damaged("variable '{}' has {} dimensions", t.name, rank);
    uint64_t elements = 1;
    for (int d = 0; d < rank; d++) {
      const auto n = in.number<uint32_t>("a variable's shape");
      t.shape.push_back(n);
      if (!checked_mul(elements, n, &elements)) throw in.damaged("variable '{}' is too large", t.name);
    }
    const auto type = in.number<uint8_t>("a variable's type");
    if (type >= std::size(kTypes)) throw in.damaged("variable '{}' is of the unknown type {}", t.name, type);
    t.type = kTypes[type];
    const auto bytes = in.number<uint32_t>("a variable's size");
    uint64_t needed = 0;
    if (!checked_mul(elements, static_cast<uint64_t>(size_of(t.type)), &needed) ||
        (needed & 0xffffffffu) != bytes)
      throw in.damaged("variable '{}' has {} bytes for {} values of {}", t.name, bytes, elements,
                       to_string(t.type));
    t.size = needed;  // the stored one has 32 bits only
    t.offset = in.at();
    t.data = in.take(needed, "a variable");
    t.file = &file_;
    if (!by_name_.emplace(t.name, variables_.size()).second) throw in.damaged("two variables '{}'", t.name);
    variables_.push_back(std::move(t));
  }
  if (in.left() == 0) return;  // before aliases
  const auto aliases = in.number<uint32_t>("the number of aliases");
  for (uint32_t i = 0; i < aliases; i++) {
    const std::string alias = in.text("an alias"), name = in.text("an alias");
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) throw in.damaged("'{}' stands for '{}', which is not there", alias, name);
    by_name_.emplace(alias, it->second);
  }
}

const SafeTensor* Ctranslate2File::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &variables_[it->second];
}

int64_t Ctranslate2File::integer(std::string_view name) const {
  const SafeTensor* t = find(name);
  if (!t || t->size != static_cast<uint64_t>(size_of(t->type))) return -1;
  float value = 0;
  safetensor_decode(t->type, t->data, 1, &value);
  return static_cast<int64_t>(value);
}

}  // namespace cyb
