// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a recording come from.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "media/sound/decoder.h"

namespace cyb {
namespace {

constexpr size_t kInMemory = size_t{32} << 20;  // what a pipe gives beyond goes to a temporary file
constexpr uint64_t kMostBytes = uint64_t{64} << 30;

class FileBytes : public SoundBytes {
 public:
  explicit FileBytes(const std::string& path) : file_(path) {
    bytes = file_.bytes();
    name = path;
  }
  void drop(uint64_t offset, uint64_t length) const override { file_.drop(offset, length); }

 private:
  MappedFile file_;
};

class PipeBytes : public SoundBytes {
 public:
  PipeBytes(std::FILE* stream, std::string title) {
    name = std::move(title);
    std::vector<uint8_t> block(size_t{1} << 18);
    uint64_t total = 0;
    while (const size_t n = std::fread(block.data(), 1, block.size(), stream)) {
      total += n;
      if (total > kMostBytes)
        throw error(ErrorKind::InvalidFile, "{}: found more than {} GB", name, kMostBytes >> 30)
            .advise("give the recording in pieces");
      if (total > kInMemory && !spool_) {
        spool_ = std::make_unique<AtomicFile>(temporary_name(".sound"));
        spool_->write(memory_.data(), memory_.size());
        memory_ = {};
      }
      if (spool_)
        spool_->write(block.data(), n);
      else
        memory_.insert(memory_.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(n));
    }
    if (std::ferror(stream)) throw error(ErrorKind::Io, "{}: reading it failed", name);
    if (spool_) mapped_ = std::make_unique<MappedFile>(spool_->temporary_path());
    bytes = mapped_ ? mapped_->bytes() : std::span<const uint8_t>(memory_);
  }
  void drop(uint64_t offset, uint64_t length) const override {
    if (mapped_) mapped_->drop(offset, length);
  }

 private:
  std::vector<uint8_t> memory_;
  std::unique_ptr<AtomicFile> spool_;  // removed with this object
  std::unique_ptr<MappedFile> mapped_;
};

constexpr int64_t kDropStep = int64_t{8} << 20;

}  // namespace

int64_t SoundCursor::read(void* out, int64_t count) {
  count = std::clamp<int64_t>(count, 0, size() - at_);
  if (count > 0) std::memcpy(out, source_->bytes.data() + at_, static_cast<size_t>(count));
  at_ += count;
  if (at_ - kept_ >= kDropStep) {
    source_->drop(static_cast<uint64_t>(kept_), static_cast<uint64_t>(at_ - kept_));
    kept_ = at_;
  }
  return count;
}

bool SoundCursor::seek(int64_t offset, int whence) {
  const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? at_ : size();
  int64_t to = 0;
  if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > size()) return false;
  at_ = to;
  kept_ = std::min(kept_, to);
  return true;
}

std::shared_ptr<const SoundBytes> SoundBytes::open(const std::string& path) {
  std::shared_ptr<SoundBytes> result;
  std::error_code code;
  if (path == "-") {
    result = std::make_shared<PipeBytes>(stdin, "the standard input");
  } else if (std::filesystem::is_fifo(path, code)) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!stream) throw error(ErrorKind::Io, "cannot open '{}'", path).advise("check the path");
    result = std::make_shared<PipeBytes>(stream.get(), "'" + path + "'");
  } else {
    if (std::filesystem::exists(path, code) && !std::filesystem::is_regular_file(path, code))
      throw error(ErrorKind::Io, "'{}' is no file", path)
          .advise("give a recording, or '-' for the standard input");
    result = std::make_shared<FileBytes>(path);
    result->name = "'" + path + "'";
  }
  if (result->bytes.empty())
    throw error(ErrorKind::InvalidFile, "{} is empty", result->name)
        .advise("give a recording with sound in it");
  return result;
}

}  // namespace cyb
