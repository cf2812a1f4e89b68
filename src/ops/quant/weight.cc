// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/weight.h"

#include "tensor/decode.h"

namespace cyb::cpu {

uint8_t* IntegerWeight::Form::data() const {
  return memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
}

uint64_t IntegerWeight::extra_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = values_ ? values_->bytes() : 0;
  for (const Form& f : forms_) bytes += f.bytes;
  return bytes;
}

const uint8_t* IntegerWeight::values() const {
  std::lock_guard lock(mutex_);
  if (!values_) values_ = std::make_unique<Tensor>(decode_tensor(spec_, bytes_));
  return values_->as<uint8_t>();
}

const uint8_t* IntegerWeight::packed(uint64_t key, int64_t bytes,
                                     const std::function<void(const uint8_t*, uint8_t*)>& fill) const {
  std::lock_guard lock(mutex_);
  for (const Form& f : forms_)
    if (f.key == key) return f.data();
  const auto size = static_cast<uint64_t>(bytes) + 64;
  forms_.push_back({key, std::make_unique<uint8_t[]>(size), size});
  const Tensor* from = values_.get();
  Tensor decoded;
  if (!from) from = &(decoded = decode_tensor(spec_, bytes_));
  fill(from->as<uint8_t>(), forms_.back().data());
  return forms_.back().data();
}

const IntegerWeight* integer_weight(const Arg& a) { return static_cast<const IntegerWeight*>(a.weight); }

const uint8_t* integer_values(const Arg& a) {
  return a.weight ? integer_weight(a)->values() : static_cast<const uint8_t*>(a.data);
}

Arg plain_integers(const Arg& a) {
  Arg out = a;
  out.data = const_cast<uint8_t*>(integer_values(a));
  out.weight = nullptr;
  return out;
}

std::unique_ptr<Weight> load_integer_weight(const TensorSpec& spec, std::span<const uint8_t> bytes) {
  return std::make_unique<IntegerWeight>(spec, bytes);
}

}  // namespace cyb::cpu
