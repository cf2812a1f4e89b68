// SPDX-License-Identifier: Apache-2.0
#include "import/pytorch/zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace cyb {
namespace {

constexpr uint64_t kMostMembers = 1 << 19;
constexpr uint32_t kMember = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;

Error damaged(const std::string& what) {
  return error(ErrorKind::InvalidFile, "zip archive: {}", what)
      .advise("the file is damaged or incomplete; fetch it again");
}

// Little-endian numbers of a record, each checked against its end.
class Record {
 public:
  Record(std::span<const uint8_t> bytes, uint64_t at, uint64_t size) {
    if (at > bytes.size() || bytes.size() - at < size) throw damaged("a record lies outside of the file");
    bytes_ = bytes.subspan(at, size);
  }
  uint64_t number(uint64_t at, int size) const {
    if (at > bytes_.size() || bytes_.size() - at < static_cast<uint64_t>(size))
      throw damaged("a record is too short");
    uint64_t v = 0;
    for (int i = 0; i < size; i++) v |= uint64_t{bytes_[at + static_cast<uint64_t>(i)]} << 8 * i;
    return v;
  }

 private:
  std::span<const uint8_t> bytes_;
};

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

Directory find_directory(std::span<const uint8_t> archive) {
  constexpr uint64_t kEndSize = 22, kMostComment = 65535;
  if (archive.size() < kEndSize) throw damaged("it is too short");
  const uint64_t last = archive.size() - kEndSize, first = last > kMostComment ? last - kMostComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    const Record end(archive, at, kEndSize);
    if (end.number(0, 4) != kEnd || end.number(20, 2) != last - at) continue;
    if (end.number(4, 2) != end.number(6, 2)) throw damaged("it has several parts");
    Directory d{end.number(16, 4), end.number(12, 4), end.number(10, 2)};
    if (d.offset != 0xffffffff && d.size != 0xffffffff && d.count != 0xffff) return d;
    if (at < 20) throw damaged("its end record is missing");
    const Record locator(archive, at - 20, 20);
    if (locator.number(0, 4) != kLocator64) return d;
    const Record end64(archive, locator.number(8, 8), 56);
    if (end64.number(0, 4) != kEnd64) throw damaged("its end record is missing");
    return {end64.number(48, 8), end64.number(40, 8), end64.number(32, 8)};
  }
  throw damaged("its table of contents is missing: the file ends too early");
}

// The 64-bit forms of those of `values` that are all ones, in the order of the format.
void read_zip64(const Record& entry, uint64_t at, uint64_t size, std::span<uint64_t* const> values) {
  for (const uint64_t end = at + size; at + 4 <= end;) {
    const uint64_t id = entry.number(at, 2), length = entry.number(at + 2, 2);
    at += 4;
    if (length > end - at) throw damaged("an extra field is too long");
    if (id == 1) {
      uint64_t from = at;
      for (uint64_t* value : values) {
        if (*value != 0xffffffff) continue;
        if (from + 8 > at + length) throw damaged("a 64-bit size is missing");
        *value = entry.number(from, 8);
        from += 8;
      }
    }
    at += length;
  }
}

}  // namespace

ZipDirectory::ZipDirectory(std::span<const uint8_t> archive) : archive_(archive) {
  const Directory directory = find_directory(archive);
  if (directory.count > kMostMembers) throw damaged(fmt::format("{} members", directory.count));
  if (directory.offset > archive.size() || archive.size() - directory.offset < directory.size)
    throw damaged("its table of contents lies outside of the file");
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; i++) {
    constexpr uint64_t kFixed = 46, kLocalFixed = 30;
    const Record fixed(archive, at, kFixed);
    if (fixed.number(0, 4) != kEntry) throw damaged("its table of contents is damaged");
    const uint64_t flags = fixed.number(8, 2), method = fixed.number(10, 2), name = fixed.number(28, 2),
                   extra = fixed.number(30, 2), comment = fixed.number(32, 2);
    const Record entry(archive, at, kFixed + name + extra);
    ZipMember m;
    m.name.assign(reinterpret_cast<const char*>(archive.data()) + at + kFixed, name);
    m.crc = static_cast<uint32_t>(fixed.number(16, 4));
    m.stored = fixed.number(20, 4), m.size = fixed.number(24, 4);
    uint64_t local_at = fixed.number(42, 4);
    uint64_t* const values[] = {&m.size, &m.stored, &local_at};
    read_zip64(entry, kFixed + name, extra, values);
    const std::string what = fmt::format("'{}' ", m.name);
    if (flags & 1) throw damaged(what + "is encrypted");
    if (method != 0 && method != 8) throw damaged(what + fmt::format("is packed by method {}", method));
    m.deflated = method == 8;
    const Record local(archive, local_at, kLocalFixed);
    if (local.number(0, 4) != kMember) throw damaged(what + "is not where the table of contents says");
    m.offset = local_at + kLocalFixed + local.number(26, 2) + local.number(28, 2);
    if (m.offset > archive.size() || archive.size() - m.offset < m.stored)
      throw damaged(what + "does not lie in the file");
    if (!m.deflated && m.stored != m.size) throw damaged(what + "has two sizes");
    if (!by_name_.emplace(m.name, members_.size()).second) throw damaged(what + "stands twice");
    members_.push_back(std::move(m));
    at += kFixed + name + extra + comment;
  }
}

const ZipMember* ZipDirectory::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &members_[it->second];
}

std::vector<uint8_t> ZipDirectory::content(const ZipMember& m, uint64_t limit) const {
  if (m.size > limit)
    throw error(ErrorKind::InvalidFile, "zip archive: '{}' unpacks to {} bytes; the limit is {}", m.name,
                m.size, limit)
        .advise("pack the file again without compression");
  const std::span<const uint8_t> packed = archive_.subspan(m.offset, m.stored);
  std::vector<uint8_t> out;
  if (!m.deflated) {
    out.assign(packed.begin(), packed.end());
  } else {
    // The buffer grows with what really comes out: a size that is only stated costs nothing.
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw error(ErrorKind::OutOfMemory, "zlib cannot start");
    const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&z, inflateEnd);
    uint64_t from = 0;
    constexpr uint64_t kPiece = 1 << 20;
    for (int state = Z_OK; state != Z_STREAM_END;) {
      if (z.avail_in == 0) {
        const uint64_t n = std::min(kPiece, packed.size() - from);
        if (n == 0) throw damaged(fmt::format("'{}' ends too early", m.name));
        z.next_in = const_cast<Bytef*>(packed.data() + from);
        z.avail_in = static_cast<uInt>(n);
        from += n;
      }
      const size_t had = out.size();
      if (had > m.size) throw damaged(fmt::format("'{}' is longer than stated", m.name));
      out.resize(had + kPiece);
      z.next_out = out.data() + had;
      z.avail_out = kPiece;
      state = inflate(&z, Z_NO_FLUSH);
      out.resize(had + kPiece - z.avail_out);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        throw damaged(fmt::format("'{}' cannot be unpacked", m.name));
    }
    if (out.size() != m.size)
      throw damaged(fmt::format("'{}' has {} bytes, not {}", m.name, out.size(), m.size));
  }
  uLong crc = crc32_z(0, nullptr, 0);
  crc = crc32_z(crc, out.data(), out.size());
  if (crc != m.crc) throw damaged(fmt::format("'{}' has another checksum than stated", m.name));
  return out;
}

}  // namespace cyb
