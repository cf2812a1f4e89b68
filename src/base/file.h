// SPDX-License-Identifier: Apache-2.0
// Files: read-only mappings, whole reads, and targets that appear complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

// A file mapped read-only for the life of the object, in large pages where the system has the file in such:
// they are read a third faster. Throws Io with the system's reason.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  // Gives back the resident pages of [offset, offset + length): they are read again when touched.
  void drop(uint64_t offset, uint64_t length) const;

 private:
  std::string path_;
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

// Whole content; throws Io, or InvalidFile above `limit` bytes.
std::string read_file(const std::string& path, uint64_t limit = 1ull << 30);

// Writes beside the target under a temporary name; commit() flushes to disk and renames.
// Destroyed without commit(), it removes the temporary file. Errors are Io with the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Before the first write: the file will have `size` bytes, written in any order. What is written then stays
  // in the system's cache in large pages, whatever the size of the pieces (Linux, where the file system can).
  void in_large_pages(uint64_t size);
  void write(const void* data, size_t size);                      // at the end of what was written so far
  void write_at(uint64_t offset, const void* data, size_t size);  // anywhere, from any thread
  uint64_t position() const { return position_; }
  void seek(uint64_t offset) { position_ = offset; }
  void commit();
  const std::string& temporary_path() const { return temporary_; }

 private:
  void write_pieces(uint64_t offset, const void* data, size_t size);
  void fill(uint64_t begin, uint64_t end);

  std::string target_, temporary_;
  int fd_ = -1;
  uint64_t position_ = 0, large_size_ = 0;
  std::mutex filling_;
  std::vector<bool> filled_;  // by large page
};

// A name in the folder for temporary files (TMPDIR) that nothing has yet.
std::string temporary_name(const std::string& suffix);

// Removes the temporary files of every AtomicFile that is open; safe to call from a signal handler.
void remove_open_temporary_files() noexcept;

}  // namespace cyb
