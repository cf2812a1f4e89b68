// SPDX-License-Identifier: Apache-2.0
// The members of a zip archive in memory, with their places, so that stored ones are used where they lie.
// (libzip gives no places.) Zip64 is read; encryption and archives in several parts are refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cyb {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;  // of the data
  uint64_t stored = 0;  // bytes in the archive
  uint64_t size = 0;    // bytes of the content
  uint32_t crc = 0;
  bool deflated = false;
};

class ZipDirectory {
 public:
  // `archive` outlives the object. Throws InvalidFile.
  explicit ZipDirectory(std::span<const uint8_t> archive);

  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember* find(std::string_view name) const;
  // The bytes of a stored member; it must not be deflated.
  std::span<const uint8_t> stored(const ZipMember& member) const {
    return archive_.subspan(member.offset, member.size);
  }
  // The content of any member, checked against its CRC; of at most `limit` bytes.
  std::vector<uint8_t> content(const ZipMember& member, uint64_t limit) const;

 private:
  std::span<const uint8_t> archive_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace cyb
