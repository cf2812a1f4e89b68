// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.h"

#include "tensor/decode.h"

namespace cyb {

Weight* WeightStore::get(Backend& backend, const std::string& name, WeightRole role) {
  std::lock_guard lock(mutex_);
  auto& table = role == WeightRole::encoded ? encoded_ : dense_;
  auto& entry = table[{&backend, name}];
  if (!entry) {
    const TensorSpec* spec = source_->find(name);
    if (!spec) throw error(ErrorKind::MissingTensor, "the file has no tensor '{}'", name);
    // A ternary tensor's scale is a sibling.
    const TensorSpec* scale = spec->encoding == Encoding::ternary ? source_->find(name + ".scale") : nullptr;
    std::unique_ptr<Weight> scale_weight;
    if (scale) scale_weight = backend.load_weight(*scale, source_->bytes(*scale), nullptr, WeightRole::dense);
    entry = backend.load_weight(*spec, source_->bytes(*spec), scale_weight.get(), role);
    if (scale_weight) table[{&backend, name + ".scale"}] = std::move(scale_weight);
  }
  return table[{&backend, name}].get();
}

Tensor WeightStore::value(const std::string& name) const {
  const TensorSpec* spec = source_->find(name);
  if (!spec) throw error(ErrorKind::MissingTensor, "the file has no tensor '{}'", name);
  std::vector<float> scales;
  if (spec->encoding == Encoding::ternary)
    if (const TensorSpec* scale = source_->find(name + ".scale"))
      scales = decode(*scale, source_->bytes(*scale));
  return decode_tensor(*spec, source_->bytes(*spec), scales);
}

uint64_t WeightStore::extra_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto* table : {&encoded_, &dense_})
    for (const auto& [key, weight] : *table)
      if (weight) bytes += weight->extra_bytes();
  return bytes;
}

}  // namespace cyb
