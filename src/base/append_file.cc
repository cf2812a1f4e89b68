// SPDX-License-Identifier: Apache-2.0
#include "base/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace cyb {
namespace {

Error system_error(const char* what, const std::string& path, int code) {
  Error result = error(ErrorKind::Io, "cannot {} '{}': {}", what, path, std::strerror(code));
  if (code == ENOSPC || code == EDQUOT)
    return result.advise(
        "free some space, or choose another place (CYB_HOME, --out), and run the command again");
  if (code == EROFS || code == EACCES || code == EPERM)
    return result.advise("choose a place that may be written (CYB_HOME, --out)");
  if (code == ENOENT || code == ENOTDIR) return result.advise("check the path");
  return result;
}

}  // namespace

AppendFile::AppendFile(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw system_error("create", path, errno);
  struct stat st;
  int code = 0;
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw error(ErrorKind::Io, "another process is writing '{}'", path)
        .advise("wait until it has finished, or end it");
  }
  if (::fstat(fd_, &st) != 0) code = errno;
  if (code == 0 && !S_ISREG(st.st_mode)) code = EINVAL;
  if (code == 0 && ::lseek(fd_, 0, SEEK_END) < 0) code = errno;
  if (code != 0) {
    ::close(fd_);
    throw system_error("open", path, code);
  }
  size_ = static_cast<uint64_t>(st.st_size);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::truncate(uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0 || ::lseek(fd_, 0, SEEK_END) < 0)
    throw system_error("truncate", path_, errno);
  size_ = size;
}

void AppendFile::write(const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd_, p, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw system_error("write", path_, errno);
    }
    p += n;
    size -= static_cast<size_t>(n);
    size_ += static_cast<uint64_t>(n);
  }
}

void AppendFile::sync() {
  if (::fsync(fd_) != 0) throw system_error("flush", path_, errno);
}

void AppendFile::publish(const std::string& target) {
  sync();
  if (::rename(path_.c_str(), target.c_str()) != 0) throw system_error("rename to", target, errno);
  ::close(fd_);
  fd_ = -1;
}

void AppendFile::remove() {
  ::unlink(path_.c_str());
  ::close(fd_);
  fd_ = -1;
}

void make_directories(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw system_error("create the folder", path, code.value());
}

uint64_t free_space(const std::string& path) {
  std::error_code code;
  const auto info = std::filesystem::space(path, code);
  return code ? UINT64_MAX : info.available;
}

}  // namespace cyb
