// SPDX-License-Identifier: Apache-2.0
// ONNX's element types and how they are held.
#include "base/error.h"
#include "import/onnx/convert.h"

namespace cyb::onnx {
namespace {

struct Row {
  const char* name;
  DType held;
};
constexpr Row kRows[] = {
    {"UNDEFINED", DType::u8},      {"FLOAT", DType::f32},     {"UINT8", DType::u8},
    {"INT8", DType::i8},           {"UINT16", DType::u16},    {"INT16", DType::i16},
    {"INT32", DType::i32},         {"INT64", DType::i64},     {"STRING", DType::string},
    {"BOOL", DType::boolean},      {"FLOAT16", DType::f16},   {"DOUBLE", DType::f64},
    {"UINT32", DType::u32},        {"UINT64", DType::u64},    {"COMPLEX64", DType::f32},
    {"COMPLEX128", DType::f64},    {"BFLOAT16", DType::bf16}, {"FLOAT8E4M3FN", DType::u8},
    {"FLOAT8E4M3FNUZ", DType::u8}, {"FLOAT8E5M2", DType::u8}, {"FLOAT8E5M2FNUZ", DType::u8},
    {"UINT4", DType::u8},          {"INT4", DType::i8},       {"FLOAT4E2M1", DType::u8},
    {"FLOAT8E8M0", DType::u8},     {"UINT2", DType::u8},      {"INT2", DType::i8},
};

bool known(Elem elem) { return elem >= Elem::undefined && elem <= Elem::i2; }

}  // namespace

const char* to_string(Elem elem) { return known(elem) ? kRows[static_cast<int>(elem)].name : "unknown"; }

DType held_as(Elem elem) {
  if (!known(elem) || elem == Elem::undefined)
    throw error(ErrorKind::InvalidFile, "found the element type {}, which ONNX does not define",
                static_cast<int32_t>(elem))
        .advise("the file is damaged, or newer than what can be imported");
  if (elem == Elem::complex64 || elem == Elem::complex128)
    throw error(ErrorKind::UnsupportedModel, "found the element type {}", to_string(elem))
        .advise("export the model with real and imaginary parts as floats");
  return kRows[static_cast<int>(elem)].held;
}

Elem elem_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return Elem::f32;
    case DType::f16:
      return Elem::f16;
    case DType::bf16:
      return Elem::bf16;
    case DType::f64:
      return Elem::f64;
    case DType::i8:
      return Elem::i8;
    case DType::u8:
      return Elem::u8;
    case DType::i16:
      return Elem::i16;
    case DType::u16:
      return Elem::u16;
    case DType::i32:
      return Elem::i32;
    case DType::u32:
      return Elem::u32;
    case DType::i64:
      return Elem::i64;
    case DType::u64:
      return Elem::u64;
    case DType::boolean:
      return Elem::boolean;
    case DType::string:
      return Elem::string;
  }
  return Elem::undefined;
}

bool is_small_float(Elem elem) {
  return (elem >= Elem::f8e4m3fn && elem <= Elem::f8e5m2fnuz) || elem == Elem::f4e2m1 || elem == Elem::f8e8m0;
}

}  // namespace cyb::onnx
