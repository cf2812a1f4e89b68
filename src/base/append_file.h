// SPDX-License-Identifier: Apache-2.0
// A file that grows over several runs of the program (a download that is resumed), and small helpers for
// folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cyb {

// Opens or creates `path` for appending and locks it: a second process gets an Io error instead of a mixed
// file. What is written stays on disk when the object goes away. Errors are Io with the system's reason.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  uint64_t size() const { return size_; }
  void truncate(uint64_t size);
  void write(const void* data, size_t size);
  void sync();
  // Flushes, then gives the complete file its name; the object is done.
  void publish(const std::string& target);
  // Removes the file; the object is done.
  void remove();

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Creates the folder and those above it.
void make_directories(const std::string& path);

// Bytes that may still be written below `path` (an existing folder); the largest number if unknown.
uint64_t free_space(const std::string& path);

}  // namespace cyb
