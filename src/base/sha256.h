// SPDX-License-Identifier: Apache-2.0
// SHA-256, fed piece by piece while data streams past.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace cyb {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }

  // The digest of what was fed so far, 64 lower-case hexadecimal digits. More may be fed afterwards.
  std::string hex() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::string_view text);
std::string sha256_file(const std::string& path);  // throws Io

// The id that git gives a file of this content (SHA-1 over "blob SIZE" and the content).
std::string git_blob_sha1(std::string_view content);

}  // namespace cyb
