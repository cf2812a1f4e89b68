// SPDX-License-Identifier: Apache-2.0
// Test help: pickles and the archives around them, byte by byte.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cyb {

inline std::string little(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; i++) out.push_back(i < 8 ? static_cast<char>(value >> 8 * i) : '\0');
  return out;
}

// Operations of a pickle.
namespace op {
inline std::string proto() { return "\x80\x02"; }
inline std::string text(const std::string& s) { return "X" + little(s.size(), 4) + s; }
inline std::string bytes(const std::string& s) { return "B" + little(s.size(), 4) + s; }
inline std::string integer(int64_t v) { return "\x8a\x08" + little(static_cast<uint64_t>(v), 8); }
inline std::string name(const std::string& module, const std::string& n) {
  return "c" + module + "\n" + n + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const auto& i : items) out += i;
  return out + "t";
}
inline std::string call(const std::string& callable, const std::vector<std::string>& args) {
  return callable + tuple(args) + "R";
}
inline std::string storage(const std::string& type, const std::string& key, int64_t count) {
  return tuple({text("storage"), name("torch", type), text(key), text("cpu"), integer(count)}) + "Q";
}
inline std::string numbers(const std::vector<int64_t>& v) {
  std::vector<std::string> items;
  for (const int64_t n : v) items.push_back(integer(n));
  return tuple(items);
}
inline std::string tensor(const std::string& storage_ops, int64_t offset, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& strides) {
  return call(name("torch._utils", "_rebuild_tensor_v2"),
              {storage_ops, integer(offset), numbers(shape), numbers(strides), "\x89", "}"});
}
inline std::string dict(const std::string& key, const std::string& value) {
  return "}" + text(key) + value + "s";
}
}  // namespace op

inline std::string pickle_of_tensor(const std::string& name, int64_t count, const std::string& key = "0") {
  return op::proto() + op::dict(name, op::tensor(op::storage("FloatStorage", key, count), 0, {count}, {1})) +
         ".";
}

struct ZipText {
  std::string name, content;
  bool deflated = false;
  uint64_t said = 0;  // a size that lies; 0: the true one
};

inline std::string zip_bytes(const std::vector<ZipText>& files) {
  std::string out, entries;
  for (const ZipText& f : files) {
    std::string packed = f.content;
    if (f.deflated) {
      z_stream z{};
      deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
      packed.resize(f.content.size() + 1024);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(f.content.data()));
      z.avail_in = static_cast<uInt>(f.content.size());
      z.next_out = reinterpret_cast<Bytef*>(packed.data());
      z.avail_out = static_cast<uInt>(packed.size());
      deflate(&z, Z_FINISH);
      packed.resize(z.total_out);
      deflateEnd(&z);
    }
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(f.content.data()), static_cast<uInt>(f.content.size()));
    const std::string sizes = little(crc, 4) + little(packed.size(), 4) +
                              little(f.said ? f.said : f.content.size(), 4) + little(f.name.size(), 2) +
                              little(0, 2);
    const std::string head = little(0, 2) + little(f.deflated ? 8 : 0, 2) + little(0, 4) + sizes;
    entries += little(0x02014b50, 4) + little(20, 2) + little(20, 2) + head + little(0, 10) +
               little(out.size(), 4) + f.name;
    out += little(0x04034b50, 4) + little(20, 2) + head + f.name + packed;
  }
  return out + entries + little(0x06054b50, 4) + little(0, 4) + little(files.size(), 2) +
         little(files.size(), 2) + little(entries.size(), 4) + little(out.size(), 4) + little(0, 2);
}

inline std::string torch_zip(const std::string& pickle,
                             const std::vector<std::pair<std::string, std::string>>& files,
                             const std::string& name = "data.pkl") {
  std::vector<ZipText> all;
  if (!name.empty()) all.push_back({"a/" + name, pickle});
  for (const auto& [file, content] : files) all.push_back({"a/" + file, content});
  return zip_bytes(all);
}

}  // namespace cyb
