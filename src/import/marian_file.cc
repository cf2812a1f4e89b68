// SPDX-License-Identifier: Apache-2.0
#include "import/marian_file.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

constexpr uint64_t kVersion = 1, kMostItems = 1 << 16, kMostName = 4096, kMostRank = 4;
constexpr char kSettings[] = "special:model.yml";

[[noreturn]] void damaged(const std::string& what) {
  throw error(ErrorKind::InvalidFile, "Marian model: {}", what)
      .advise("the file is damaged or incomplete; fetch it again");
}

class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : rest_(bytes) {}
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  std::span<const uint8_t> take(uint64_t n) {
    if (n > rest_.size()) damaged("it ends within its own tables or values");
    const auto part = rest_.first(n);
    rest_ = rest_.subspan(n);
    return part;
  }
  uint64_t left() const { return rest_.size(); }

 private:
  std::span<const uint8_t> rest_;
};

struct Header {
  uint64_t name, type, rank, size;
};

MarianItem::Type type_of(uint64_t type, const std::string& name) {
  switch (type) {
    case 0x404:
      return MarianItem::Type::f32;
    case 0x4101:
      return MarianItem::Type::i8;
    case 0x101:
      return MarianItem::Type::bytes;
    default:
      throw error(ErrorKind::UnsupportedModel, "Marian model: '{}' has elements of the type 0x{:x}", name,
                  type)
          .advise(
              "float32 and intgemm8 models are supported; convert it with marian-conv --gemm-type float32");
  }
}

// "key: value" lines; lists and nested settings are left out.
std::map<std::string, std::string> read_settings(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos || line.starts_with(' ') || line.starts_with('#')) continue;
    std::string_view value = line.substr(colon + 2);
    while (!value.empty() && (value.back() == '\0' || value.back() == '\r')) value.remove_suffix(1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    out.emplace(line.substr(0, colon), value);
  }
  return out;
}

}  // namespace

int64_t MarianItem::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

bool is_marian_file(std::span<const uint8_t> bytes) {
  uint64_t head[3];
  if (bytes.size() < sizeof head) return false;
  std::memcpy(head, bytes.data(), sizeof head);
  return head[0] == kVersion && head[1] > 0 && head[1] <= kMostItems && head[2] > 1 && head[2] <= kMostName &&
         bytes.size() > 16 + head[1] * sizeof(Header);
}

MarianFile parse_marian(std::span<const uint8_t> bytes) {
  Bytes in(bytes);
  if (const auto version = in.number<uint64_t>(); version != kVersion)
    damaged(fmt::format("version {}, where {} is known", version, kVersion));
  const auto count = in.number<uint64_t>();
  if (count == 0 || count > kMostItems) damaged(fmt::format("{} tensors", count));
  std::vector<Header> headers;
  for (uint64_t i = 0; i < count; i++) {
    headers.push_back(in.number<Header>());
    const Header& h = headers.back();
    if (h.name < 2 || h.name > kMostName || h.rank > kMostRank)
      damaged(fmt::format("tensor {} has a name of {} bytes and {} axes", i, h.name, h.rank));
  }
  MarianFile out;
  std::vector<MarianItem> items(count);
  for (uint64_t i = 0; i < count; i++) {
    const auto name = in.take(headers[i].name);
    items[i].name.assign(reinterpret_cast<const char*>(name.data()), headers[i].name - 1);
    items[i].type = type_of(headers[i].type, items[i].name);
  }
  for (uint64_t i = 0; i < count; i++) {
    int64_t elements = 1;
    for (uint64_t a = 0; a < headers[i].rank; a++) {
      const int64_t d = in.number<int32_t>();
      if (d < 1 || elements > (int64_t{1} << 33) / d)
        damaged(fmt::format("'{}' has an axis of {}", items[i].name, d));
      elements *= d;
      items[i].shape.push_back(d);
    }
  }
  in.take(in.number<uint64_t>());  // up to a boundary
  for (uint64_t i = 0; i < count; i++) {
    MarianItem& item = items[i];
    const auto data = in.take(headers[i].size);
    item.data = data.data();
    const auto n = static_cast<uint64_t>(item.elements());
    const uint64_t needed = item.type == MarianItem::Type::f32  ? n * 4
                            : item.type == MarianItem::Type::i8 ? n + 4
                                                                : n;
    if (data.size() < needed)
      damaged(fmt::format("'{}' has {} bytes, its shape needs {}", item.name, data.size(), needed));
    if (item.type == MarianItem::Type::i8) {
      std::memcpy(&item.scale, data.data() + n, 4);
      if (!(item.scale > 0) || !std::isfinite(item.scale))
        damaged(fmt::format("'{}' has the scale {}", item.name, item.scale));
    }
    if (item.name == kSettings)
      out.settings = read_settings({reinterpret_cast<const char*>(data.data()), n});
    else
      out.items.push_back(std::move(item));
  }
  return out;
}

}  // namespace cyb
