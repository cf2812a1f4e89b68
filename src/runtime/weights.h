// SPDX-License-Identifier: Apache-2.0
// The weights of a model, loaded into the form of each backend when a plan first needs them, once for all
// sessions.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "backend/backend.h"
#include "tensor/tensor.h"

namespace cyb {

// Where encoded tensors come from: a mapped file, or memory in tests.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const TensorSpec* find(const std::string& name) const = 0;  // null: no such tensor
  virtual std::span<const uint8_t> bytes(const TensorSpec& spec) const = 0;
};

class WeightStore {
 public:
  explicit WeightStore(std::shared_ptr<const WeightSource> source) : source_(std::move(source)) {}
  const WeightSource& source() const { return *source_; }
  // Throws MissingTensor.
  Weight* get(Backend& backend, const std::string& name, WeightRole role);
  // The decoded values on the host, for those that only the executor reads. Throws MissingTensor.
  Tensor value(const std::string& name) const;
  // Memory taken beside the mapping.
  uint64_t extra_bytes() const;

 private:
  std::shared_ptr<const WeightSource> source_;
  mutable std::mutex mutex_;
  std::map<std::pair<Backend*, std::string>, std::unique_ptr<Weight>> encoded_, dense_;
};

}  // namespace cyb
