// SPDX-License-Identifier: Apache-2.0
// Files out of zip archives (wheels), checked while they come.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cyb {

struct ArchiveFile {
  std::string path;
  uint64_t size = 0;
};

class Archive {
 public:
  explicit Archive(const std::string& path);  // throws InvalidFile for what is no zip archive
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  const std::vector<ArchiveFile>& files() const { return files_; }  // without folders
  const ArchiveFile* find(const std::string& path) const;
  // Gives the file's bytes in pieces; throws InvalidFile when they are damaged or longer or shorter than
  // stated.
  void read(const ArchiveFile& file, const std::function<void(const char*, size_t)>& take) const;

 private:
  struct Impl;
  std::string path_;
  std::unique_ptr<Impl> impl_;
  std::vector<ArchiveFile> files_;
};

// The files of a wheel that may be part of a model: no code, no metadata, no texts about it.
std::vector<ArchiveFile> model_files(const std::vector<ArchiveFile>& files);

}  // namespace cyb
