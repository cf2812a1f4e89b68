// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/checked.h"
#include "base/error.h"

namespace cyb {
namespace {

Error io_error(const char* what, const std::string& path) {
  const int code = errno;
  Error result = error(ErrorKind::Io, "cannot {} '{}': {}", what, path, std::strerror(code));
  if (code == ENOSPC) return result.advise("free some space, or choose another place (CYB_HOME, --out)");
  if (code == EROFS || code == EACCES)
    return result.advise("choose a place that may be written (CYB_HOME, --out)");
  if (code == ENOENT) return result.advise("check the path");
  return result;
}

constexpr uint64_t kLargePage = 2 << 20;

// A mapping can use a large page only where address and offset in the file fit it.
void* map_aligned(uint64_t size, int fd) {
  if (size < kLargePage) return ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  void* room =
      ::mmap(nullptr, size + kLargePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  auto* begin = static_cast<uint8_t*>(room);
  const auto address = reinterpret_cast<uintptr_t>(room);
  const uint64_t before = round_up<uint64_t>(address, kLargePage) - address;
  const uint64_t length = round_up<uint64_t>(size, 4096);
  void* p = ::mmap(begin + before, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  if (p == MAP_FAILED) {
    const int code = errno;
    ::munmap(room, size + kLargePage);
    errno = code;
    return p;
  }
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + length, kLargePage - before);
#ifdef MADV_HUGEPAGE
  ::madvise(p, size, MADV_HUGEPAGE);  // then also what is read from disk comes in large pages
#endif
  return p;
}

// Temporary names that a signal handler must remove. Slots are claimed by storing a heap copy.
constexpr int kSlots = 16;
std::atomic<char*> g_temporary[kSlots];

void register_temporary(const std::string& path) {
  char* copy = ::strdup(path.c_str());
  for (auto& slot : g_temporary) {
    char* expected = nullptr;
    if (slot.compare_exchange_strong(expected, copy)) return;
  }
  ::free(copy);
}

void forget_temporary(const std::string& path) {
  for (auto& slot : g_temporary) {
    char* held = slot.load();
    if (held && path == held && slot.compare_exchange_strong(held, nullptr)) {
      ::free(held);
      return;
    }
  }
}

}  // namespace

std::string temporary_name(const std::string& suffix) {
  std::error_code code;
  std::filesystem::path folder = std::filesystem::temp_directory_path(code);
  if (code) folder = "/tmp";
  std::random_device random;
  return (folder / fmt::format("cyb-llm-{:08x}{:08x}{}", random(), random(), suffix)).string();
}

void remove_open_temporary_files() noexcept {
  for (auto& slot : g_temporary)
    if (char* held = slot.load()) ::unlink(held);
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw io_error("open", path);
  struct stat st;
  if (::fstat(fd, &st) != 0) {
    ::close(fd);
    throw io_error("stat", path);
  }
  if (S_ISDIR(st.st_mode)) {
    ::close(fd);
    throw error(ErrorKind::Io, "'{}' is a directory, not a file", path);
  }
  size_ = static_cast<uint64_t>(st.st_size);
  if (size_ > 0) {
    void* p = map_aligned(size_, fd);
    if (p == MAP_FAILED) {
      ::close(fd);
      throw io_error("map", path);
    }
    data_ = static_cast<const uint8_t*>(p);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::drop(uint64_t offset, uint64_t length) const {
  if (!data_ || offset >= size_) return;
  const uint64_t page = 4096;
  const uint64_t begin = (offset + page - 1) / page * page;
  const uint64_t end = std::min(size_, offset + length) / page * page;
  if (end > begin) ::madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_DONTNEED);
}

std::string read_file(const std::string& path, uint64_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw io_error("open", path);
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0) {
      if (errno == EINTR) continue;
      Error e = io_error("read", path);
      ::close(fd);
      throw e;
    }
    if (n == 0) break;
    out.append(buffer, static_cast<size_t>(n));
    if (out.size() > limit) {
      ::close(fd);
      throw error(ErrorKind::InvalidFile, "'{}' is larger than {} bytes", path, limit);
    }
  }
  ::close(fd);
  return out;
}

AtomicFile::AtomicFile(const std::string& target) : target_(target) {
  temporary_ = fmt::format("{}.{}.partial", target, ::getpid());
  fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw io_error("create", temporary_);
  register_temporary(temporary_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
    forget_temporary(temporary_);
  }
}

void AtomicFile::write(const void* data, size_t size) {
  write_at(position_, data, size);
  position_ += size;
}

void AtomicFile::in_large_pages(uint64_t size) {
  if (size < kLargePage) return;
  large_size_ = size;
  filled_.assign(ceil_div(size, kLargePage), false);
}

// The system takes large pages only for large writes: so the first write into each one is zeros for all of
// it.
void AtomicFile::fill(uint64_t begin, uint64_t end) {
  static const std::vector<uint8_t> zeros(kLargePage);
  const std::lock_guard lock(filling_);
  for (uint64_t i = begin / kLargePage; i * kLargePage < std::min(end, large_size_); i++) {
    if (filled_[i]) continue;
    write_pieces(i * kLargePage, zeros.data(), std::min(kLargePage, large_size_ - i * kLargePage));
    filled_[i] = true;
  }
}

void AtomicFile::write_at(uint64_t offset, const void* data, size_t size) {
  if (large_size_ > 0 && size > 0) fill(offset, offset + size);
  write_pieces(offset, data, size);
}

void AtomicFile::write_pieces(uint64_t offset, const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::pwrite(fd_, p, size, static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      throw io_error("write", target_);
    }
    p += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) throw io_error("flush", target_);
  ::close(fd_);
  fd_ = -1;
  const bool renamed = ::rename(temporary_.c_str(), target_.c_str()) == 0;
  Error failure = renamed ? Error(ErrorKind::Io, "") : io_error("rename to", target_);
  if (!renamed) ::unlink(temporary_.c_str());
  forget_temporary(temporary_);
  if (!renamed) throw failure;
  // The directory entry must reach the disk too; a failure here loses nothing that was there before.
  const std::string dir = std::filesystem::path(target_).parent_path().string();
  const int fd = ::open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
}

}  // namespace cyb
