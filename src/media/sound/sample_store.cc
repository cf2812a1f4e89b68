// SPDX-License-Identifier: Apache-2.0
#include "media/sound/sample_store.h"

#include <algorithm>

#include "base/file.h"

namespace cyb {

SampleStore::SampleStore(size_t in_memory) : in_memory_(in_memory) {}
SampleStore::~SampleStore() = default;
SampleStore::SampleStore(SampleStore&&) noexcept = default;
SampleStore& SampleStore::operator=(SampleStore&&) noexcept = default;

void SampleStore::append(std::span<const float> samples) {
  size_ += samples.size();
  if (!file_ && size_ <= in_memory_) {
    memory_.insert(memory_.end(), samples.begin(), samples.end());
    return;
  }
  if (!file_) {
    file_ = std::make_unique<AtomicFile>(temporary_name(".samples"));
    file_->write(memory_.data(), memory_.size() * sizeof(float));
    memory_ = {};
  }
  file_->write(samples.data(), samples.size() * sizeof(float));
}

std::span<const float> SampleStore::all() {
  if (!file_) return memory_;
  if (!mapped_) mapped_ = std::make_unique<MappedFile>(file_->temporary_path());
  return {reinterpret_cast<const float*>(mapped_->data()), size_};
}

void SampleStore::drop(size_t end) const {
  constexpr size_t kStep = size_t{1} << 21;  // not for every window
  end = std::min(end, size_);
  if (!mapped_ || end < dropped_ + kStep) return;
  mapped_->drop(dropped_ * sizeof(float), (end - dropped_) * sizeof(float));
  dropped_ = end;
}

}  // namespace cyb
