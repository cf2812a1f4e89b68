// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/dynamic_library.h"
#include "base/error.h"

namespace cyb {
namespace {

// OpenSSL's hashes, loaded with the first one: libcrypto's tables of addresses would take a sixth of the time
// of every start.
struct Crypto {
#define CYB_CRYPTO_FUNCTIONS(X) \
  X(EVP_MD_CTX_new)             \
  X(EVP_MD_CTX_free)            \
  X(EVP_MD_CTX_copy_ex)         \
  X(EVP_DigestInit_ex)          \
  X(EVP_DigestUpdate)           \
  X(EVP_DigestFinal_ex)         \
  X(EVP_sha256)                 \
  X(EVP_sha1)
#define CYB_CRYPTO_POINTER(name) decltype(&::name) name = nullptr;
  CYB_CRYPTO_FUNCTIONS(CYB_CRYPTO_POINTER)
#undef CYB_CRYPTO_POINTER

  Crypto() {
    const DynamicLibrary library(CYB_LIBCRYPTO);
#define CYB_CRYPTO_FIND(name) library.find(#name, &name);
    CYB_CRYPTO_FUNCTIONS(CYB_CRYPTO_FIND)
#undef CYB_CRYPTO_FIND
  }
};

const Crypto& crypto() {
  static const Crypto library;
  return library;
}

std::string hexadecimal(const unsigned char* digest, unsigned length) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * length);
  for (unsigned i = 0; i < length; ++i) {
    out += kDigits[digest[i] >> 4];
    out += kDigits[digest[i] & 15];
  }
  return out;
}

}  // namespace

struct Sha256::Impl {
  EVP_MD_CTX* context = crypto().EVP_MD_CTX_new();
  Impl() {
    if (!context || crypto().EVP_DigestInit_ex(context, crypto().EVP_sha256(), nullptr) != 1)
      throw error(ErrorKind::Io, "the OpenSSL library offers no SHA-256")
          .advise("check the OpenSSL configuration of this machine");
  }
  ~Impl() { crypto().EVP_MD_CTX_free(context); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, size_t size) {
  if (size > 0) crypto().EVP_DigestUpdate(impl_->context, data, size);
}

std::string Sha256::hex() const {
  // Finishing ends a context, so a copy is finished.
  EVP_MD_CTX* copy = crypto().EVP_MD_CTX_new();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  const bool ok = copy && crypto().EVP_MD_CTX_copy_ex(copy, impl_->context) == 1 &&
                  crypto().EVP_DigestFinal_ex(copy, digest, &length) == 1;
  crypto().EVP_MD_CTX_free(copy);
  if (!ok) throw error(ErrorKind::Io, "SHA-256 failed in the OpenSSL library");
  return hexadecimal(digest, length);
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

std::string git_blob_sha1(std::string_view content) {
  EVP_MD_CTX* context = crypto().EVP_MD_CTX_new();
  const std::string head = fmt::format("blob {}", content.size());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  const bool ok = context && crypto().EVP_DigestInit_ex(context, crypto().EVP_sha1(), nullptr) == 1 &&
                  crypto().EVP_DigestUpdate(context, head.c_str(), head.size() + 1) == 1 &&
                  crypto().EVP_DigestUpdate(context, content.data(), content.size()) == 1 &&
                  crypto().EVP_DigestFinal_ex(context, digest, &length) == 1;
  crypto().EVP_MD_CTX_free(context);
  if (!ok) throw error(ErrorKind::Io, "SHA-1 failed in the OpenSSL library");
  return hexadecimal(digest, length);
}

std::string sha256_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (!file)
    throw error(ErrorKind::Io, "cannot open '{}': {}", path, std::strerror(errno)).advise("check the path");
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  size_t n;
  while ((n = std::fread(buffer.data(), 1, buffer.size(), file)) > 0) hash.update(buffer.data(), n);
  const bool failed = std::ferror(file) != 0;
  const int code = errno;
  std::fclose(file);
  if (failed) throw error(ErrorKind::Io, "cannot read '{}': {}", path, std::strerror(code));
  return hash.hex();
}

}  // namespace cyb
