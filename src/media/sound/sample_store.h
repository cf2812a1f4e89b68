// SPDX-License-Identifier: Apache-2.0
// The samples of a recording of any length: in memory, or, where they are many, in a temporary file. Ten
// hours need no more memory than ten minutes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cyb {

class AtomicFile;
class MappedFile;

class SampleStore {
 public:
  static constexpr size_t kInMemory = size_t{1} << 23;  // samples: 9 minutes at 16 kHz

  explicit SampleStore(size_t in_memory = kInMemory);
  ~SampleStore();
  SampleStore(SampleStore&&) noexcept;
  SampleStore& operator=(SampleStore&&) noexcept;

  void append(std::span<const float> samples);
  size_t size() const { return size_; }
  // All of them; nothing may be appended behind it. Lives as long as the store.
  std::span<const float> all();
  // Gives back the memory of samples [0, end); they are read again when they are wanted.
  void drop(size_t end) const;

 private:
  size_t in_memory_, size_ = 0;
  mutable size_t dropped_ = 0;
  std::vector<float> memory_;
  std::unique_ptr<AtomicFile> file_;  // removed with this object
  std::unique_ptr<MappedFile> mapped_;
};

}  // namespace cyb
