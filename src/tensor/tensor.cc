// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/system_memory.h"

namespace cyb {

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.rank(); i++) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

Tensor::Tensor(DType type, const Shape& shape) : type_(type), shape_(shape) {
  static const uint64_t memory = usable_memory();
  uint64_t n = type == DType::string ? 1 : size_of(type);
  for (int64_t dim : shape)
    if (dim < 0 || !checked_mul(n, static_cast<uint64_t>(dim), &n) || n > (1ull << 46) ||
        (memory && n > memory))
      throw error(ErrorKind::OutOfMemory, "a tensor of shape {} is too large", to_string(shape));
  if (type == DType::string)
    strings_.resize(n);
  else
    bytes_.resize(n);
}

int64_t Tensor::integer(size_t i) const {
  switch (type_) {
    case DType::i8:
      return at<int8_t>(i);
    case DType::u8:
      return at<uint8_t>(i);
    case DType::i16:
      return at<int16_t>(i);
    case DType::u16:
      return at<uint16_t>(i);
    case DType::i32:
      return at<int32_t>(i);
    case DType::u32:
      return at<uint32_t>(i);
    case DType::i64:
      return at<int64_t>(i);
    case DType::u64:
      return static_cast<int64_t>(at<uint64_t>(i));
    case DType::boolean:
      return at<uint8_t>(i) != 0;
    default:
      return static_cast<int64_t>(real(i));
  }
}

double Tensor::real(size_t i) const {
  switch (type_) {
    case DType::f32:
      return at<float>(i);
    case DType::f16:
      return f16_to_f32(at<uint16_t>(i));
    case DType::bf16:
      return bf16_to_f32(at<uint16_t>(i));
    case DType::f64:
      return at<double>(i);
    case DType::u64:
      return static_cast<double>(at<uint64_t>(i));
    case DType::string:
      return 0;
    default:
      return static_cast<double>(integer(i));
  }
}

void Tensor::set_real(size_t i, double v) {
  switch (type_) {
    case DType::f32:
      at<float>(i) = static_cast<float>(v);
      break;
    case DType::f16:
      at<uint16_t>(i) = f32_to_f16(static_cast<float>(v));
      break;
    case DType::bf16:
      at<uint16_t>(i) = f32_to_bf16(static_cast<float>(v));
      break;
    case DType::f64:
      at<double>(i) = v;
      break;
    case DType::i8:
      at<int8_t>(i) = static_cast<int8_t>(v);
      break;
    case DType::u8:
      at<uint8_t>(i) = static_cast<uint8_t>(v);
      break;
    case DType::i16:
      at<int16_t>(i) = static_cast<int16_t>(v);
      break;
    case DType::u16:
      at<uint16_t>(i) = static_cast<uint16_t>(v);
      break;
    case DType::i32:
      at<int32_t>(i) = static_cast<int32_t>(v);
      break;
    case DType::u32:
      at<uint32_t>(i) = static_cast<uint32_t>(v);
      break;
    case DType::i64:
      at<int64_t>(i) = static_cast<int64_t>(v);
      break;
    case DType::u64:
      at<uint64_t>(i) = static_cast<uint64_t>(v);
      break;
    case DType::boolean:
      at<uint8_t>(i) = v != 0;
      break;
    case DType::string:
      break;
  }
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.elements() != elements())
    throw error(ErrorKind::ShapeMismatch, "cannot view {} as {}", to_string(shape_), to_string(shape));
  Tensor out = *this;
  out.shape_ = shape;
  return out;
}

}  // namespace cyb
