// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/weight.h"

#include <algorithm>
#include <cstdlib>

#include "backend/cpu/cpu_backend.h"
#include "tensor/decode.h"

namespace cyb::cpu {

AlignedFloats::AlignedFloats(int64_t count) : bytes_((static_cast<uint64_t>(count) * 4 + 127) / 64 * 64) {
  data_ = static_cast<float*>(std::aligned_alloc(64, bytes_));
  if (!data_) throw error(ErrorKind::OutOfMemory, "no memory for {} MB of weights", bytes_ >> 20);
}
AlignedFloats::~AlignedFloats() { std::free(data_); }

ConvWeight::ConvWeight(const TensorSpec& spec, std::span<const uint8_t> bytes, const Weight* scale)
    : spec_(spec), bytes_(bytes) {
  if (const auto* dense = dynamic_cast<const DenseWeight*>(scale)) {
    const auto* from = static_cast<const float*>(dense->data());
    scales_.assign(from, from + elements_of(scale->spec()));
  }
}

uint64_t ConvWeight::extra_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = values_ ? values_->bytes() : 0;
  for (const Form& f : forms_) bytes += f.floats->bytes();
  return bytes;
}

Tensor ConvWeight::decode() const { return decode_tensor(spec_, bytes_, scales_); }

const void* ConvWeight::values() const {
  std::lock_guard lock(mutex_);
  if (!values_) values_ = std::make_unique<Tensor>(decode());
  return values_->data();
}

const float* ConvWeight::packed(uint64_t key, int64_t floats,
                                const std::function<void(const float*, float*)>& fill) const {
  std::lock_guard lock(mutex_);
  for (const Form& f : forms_)
    if (f.key == key) return f.floats->data();
  forms_.push_back({key, std::make_unique<AlignedFloats>(floats)});
  const Tensor* from = values_.get();
  Tensor decoded;
  if (!from) from = &(decoded = decode());
  fill(from->as<float>(), forms_.back().floats->data());
  return forms_.back().floats->data();
}

const ConvWeight* conv_weight(const Arg& a) { return static_cast<const ConvWeight*>(a.weight); }

const void* plain_values(const Arg& a) { return a.weight ? conv_weight(a)->values() : a.data; }

std::unique_ptr<Weight> load_conv_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                         const Weight* scale) {
  return std::make_unique<ConvWeight>(spec, bytes, scale);
}

}  // namespace cyb::cpu
