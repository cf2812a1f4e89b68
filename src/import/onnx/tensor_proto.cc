// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/tensor_proto.h"

#include <charconv>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "import/onnx/onnx.pb.h"

namespace cyb::onnx {
namespace {

// A file of a few bytes may say that a sparse tensor is huge.
constexpr uint64_t kMaxSparseElements = 1ull << 26;

[[noreturn]] void wrong(const std::string& where, const std::string& what) {
  throw error(ErrorKind::InvalidFile, "{}: {}", where, what)
      .advise("the file is damaged or was written by a faulty exporter");
}

template <class Dims>
Shape shape_of_proto(const Dims& dims, const std::string& where, uint64_t* elements) {
  if (dims.size() > kMaxRank)
    throw error(ErrorKind::UnsupportedModel, "{}: found {} axes", where, dims.size())
        .advise("tensors have at most {} axes", kMaxRank);
  Shape shape;
  uint64_t n = 1;
  bool empty = false;
  for (const int64_t d : dims) {
    if (d < 0) wrong(where, fmt::format("found the negative dimension {}", d));
    if (d == 0) empty = true;
    if (!checked_mul(n, static_cast<uint64_t>(d == 0 ? 1 : d), &n) || n > (1ull << 40))
      wrong(where, "its dimensions are larger than any file");
    shape.push_back(d);
  }
  *elements = empty ? 0 : n;
  return shape;
}

int bits_of(Elem elem) {
  switch (elem) {
    case Elem::u4:
    case Elem::i4:
    case Elem::f4e2m1:
      return 4;
    case Elem::u2:
    case Elem::i2:
      return 2;
    default:
      return static_cast<int>(size_of(held_as(elem))) * 8;
  }
}

// Values of 4 or 2 bits, packed lowest first, one to an 8-bit element.
void unpack(Elem elem, const uint8_t* packed, Tensor& out) {
  const int bits = bits_of(elem), each = 8 / bits;
  const int mask = (1 << bits) - 1, sign = 1 << (bits - 1);
  const bool is_signed = elem == Elem::i4 || elem == Elem::i2;
  const auto n = static_cast<size_t>(out.elements());
  for (size_t i = 0; i < n; i++) {
    const int v =
        (packed[i / static_cast<size_t>(each)] >> (static_cast<int>(i % static_cast<size_t>(each)) * bits)) &
        mask;
    out.at<uint8_t>(i) = static_cast<uint8_t>(is_signed ? (v ^ sign) - sign : v);
  }
}

void copy_raw(Elem elem, std::span<const uint8_t> raw, const std::string& where, Tensor& out) {
  const auto elements = static_cast<uint64_t>(out.elements());
  const uint64_t need = (elements * static_cast<uint64_t>(bits_of(elem)) + 7) / 8;
  if (raw.size() != need)
    wrong(where, fmt::format("{} bytes of data, its shape {} of {} needs {}", raw.size(),
                             cyb::to_string(out.shape()), to_string(elem), need));
  if (bits_of(elem) < 8) {
    unpack(elem, raw.data(), out);
  } else if (need > 0) {
    std::memcpy(out.data(), raw.data(), need);
    if (elem == Elem::boolean)
      for (size_t i = 0; i < elements; i++) out.at<uint8_t>(i) = out.at<uint8_t>(i) != 0;
  }
}

template <class T, class Field>
void copy_field(const Field& field, const std::string& where, Tensor& out) {
  if (static_cast<uint64_t>(field.size()) != static_cast<uint64_t>(out.elements()))
    wrong(where, fmt::format("{} values, its shape {} needs {}", field.size(), cyb::to_string(out.shape()),
                             out.elements()));
  for (int i = 0; i < field.size(); i++) {
    const auto v = field.Get(i);
    const auto narrow = static_cast<T>(v);
    // 16-bit floats are given by their bits, which may be written as negative numbers.
    if (out.type() != DType::f16 && out.type() != DType::bf16 && out.type() != DType::boolean &&
        !std::is_floating_point_v<T> && static_cast<decltype(v)>(narrow) != v)
      wrong(where, fmt::format("the value {} does not fit {}", v, cyb::to_string(out.type())));
    out.at<T>(static_cast<size_t>(i)) = out.type() == DType::boolean ? static_cast<T>(v != 0) : narrow;
  }
}

void copy_packed_int32(Elem elem, const TensorProto& proto, const std::string& where, Tensor& out) {
  const int each = 8 / bits_of(elem);
  const uint64_t need =
      ceil_div<uint64_t>(static_cast<uint64_t>(out.elements()), static_cast<uint64_t>(each));
  if (static_cast<uint64_t>(proto.int32_data_size()) != need)
    wrong(where, fmt::format("{} packed values, its shape {} needs {}", proto.int32_data_size(),
                             cyb::to_string(out.shape()), need));
  std::vector<uint8_t> bytes(need);
  for (size_t i = 0; i < need; i++) bytes[i] = static_cast<uint8_t>(proto.int32_data(static_cast<int>(i)));
  unpack(elem, bytes.data(), out);
}

uint64_t unsigned_number(const std::string& text, const std::string& key, const std::string& where) {
  uint64_t v = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc() || end != text.data() + text.size())
    wrong(where, fmt::format("external data has the {} '{}'", key, text.substr(0, 40)));
  return v;
}

std::span<const uint8_t> external_bytes(const TensorProto& proto, const std::string& where, uint64_t need,
                                        ExternalData& external) {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool has_length = false;
  for (const StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = unsigned_number(entry.value(), entry.key(), where);
    if (entry.key() == "length") {
      length = unsigned_number(entry.value(), entry.key(), where);
      has_length = true;
    }
  }
  if (has_length && length != need)
    wrong(where, fmt::format("external data of {} bytes, its shape needs {}", length, need));
  try {
    return need ? external.bytes(location, offset, need) : std::span<const uint8_t>();
  } catch (const Error& e) {
    throw e.at(where);
  }
}

}  // namespace

Elem elem_of_proto(int32_t data_type) {
  const auto elem = static_cast<Elem>(data_type);
  held_as(elem);  // throws for types that are none, or not supported
  return elem;
}

Tensor read_tensor(const TensorProto& proto, const std::string& where, ExternalData& external) {
  Elem elem{};
  try {
    elem = elem_of_proto(proto.data_type());
  } catch (const Error& e) {
    throw e.at(where);
  }
  uint64_t elements = 0;
  const Shape shape = shape_of_proto(proto.dims(), where, &elements);
  const uint64_t need = (elements * static_cast<uint64_t>(bits_of(elem)) + 7) / 8;
  if (proto.data_location() == 1) {
    if (elem == Elem::string) wrong(where, "strings cannot be external data");
    const auto bytes = external_bytes(proto, where, need, external);
    Tensor out(held_as(elem), shape);
    copy_raw(elem, bytes, where, out);
    return out;
  }
  if (proto.has_raw_data() && !(proto.raw_data().empty() && elements > 0)) {
    if (elem == Elem::string) wrong(where, "strings cannot be raw data");
    if (proto.raw_data().size() != need)
      wrong(where, fmt::format("{} bytes of data, its shape {} of {} needs {}", proto.raw_data().size(),
                               cyb::to_string(shape), to_string(elem), need));
    Tensor out(held_as(elem), shape);
    copy_raw(elem, {reinterpret_cast<const uint8_t*>(proto.raw_data().data()), proto.raw_data().size()},
             where, out);
    return out;
  }
  // Typed fields hold one value an element, so the file is at least as large as what is allocated; packed
  // ones an eighth of it.
  const uint64_t values = static_cast<uint64_t>(
      std::max({proto.float_data_size(), proto.int32_data_size(), proto.int64_data_size(),
                proto.double_data_size(), proto.uint64_data_size(), proto.string_data_size()}));
  if (elements > values * 8)
    wrong(where, fmt::format("{} values, its shape {} needs {}", values, cyb::to_string(shape), elements));
  Tensor out(held_as(elem), shape);
  switch (elem) {
    case Elem::f32:
      copy_field<float>(proto.float_data(), where, out);
      break;
    case Elem::f64:
      copy_field<double>(proto.double_data(), where, out);
      break;
    case Elem::i64:
      copy_field<int64_t>(proto.int64_data(), where, out);
      break;
    case Elem::u64:
      copy_field<uint64_t>(proto.uint64_data(), where, out);
      break;
    case Elem::u32:
      copy_field<uint32_t>(proto.uint64_data(), where, out);
      break;
    case Elem::i32:
      copy_field<int32_t>(proto.int32_data(), where, out);
      break;
    case Elem::i16:
      copy_field<int16_t>(proto.int32_data(), where, out);
      break;
    case Elem::u16:
    case Elem::f16:
    case Elem::bf16:
      copy_field<uint16_t>(proto.int32_data(), where, out);
      break;
    case Elem::i8:
      copy_field<int8_t>(proto.int32_data(), where, out);
      break;
    case Elem::string:
      if (static_cast<uint64_t>(proto.string_data_size()) != elements)
        wrong(where, fmt::format("{} strings, its shape {} needs {}", proto.string_data_size(),
                                 cyb::to_string(shape), elements));
      for (int i = 0; i < proto.string_data_size(); i++)
        out.strings()[static_cast<size_t>(i)] = proto.string_data(i);
      break;
    case Elem::u4:
    case Elem::i4:
    case Elem::f4e2m1:
    case Elem::u2:
    case Elem::i2:
      copy_packed_int32(elem, proto, where, out);
      break;
    default:  // u8, bool and the codes of 8-bit floats
      copy_field<uint8_t>(proto.int32_data(), where, out);
  }
  return out;
}

Tensor read_sparse(const SparseTensorProto& proto, const std::string& where, ExternalData& external) {
  uint64_t elements = 0;
  const Shape shape = shape_of_proto(proto.dims(), where, &elements);
  if (elements > kMaxSparseElements)
    throw error(ErrorKind::UnsupportedModel, "{}: found a sparse tensor of {} elements", where, elements)
        .advise("export it as a dense tensor");
  const Tensor values = read_tensor(proto.values(), where + " (values)", external);
  const Tensor indices = read_tensor(proto.indices(), where + " (indices)", external);
  const int64_t count = values.elements();
  const int rank = shape.rank();
  if (values.shape().rank() != 1 || indices.type() != DType::i64 || values.type() == DType::string)
    wrong(where, "a sparse tensor needs a list of numbers and i64 indices");
  const bool flat = indices.shape() == Shape{count};
  if (!flat && !(indices.shape() == Shape{count, rank}))
    wrong(where,
          fmt::format("{} sparse values have indices of shape {}", count, cyb::to_string(indices.shape())));
  Tensor out(values.type(), shape);
  const size_t size = size_of(values.type());
  for (int64_t i = 0; i < count; i++) {
    int64_t at = 0;
    bool inside = true;
    if (flat) {
      at = indices.at<int64_t>(static_cast<size_t>(i));
      inside = at >= 0 && static_cast<uint64_t>(at) < elements;
    } else {
      for (int a = 0; a < rank; a++) {
        const int64_t index = indices.at<int64_t>(static_cast<size_t>(i * rank + a));
        inside = inside && index >= 0 && index < shape[a];
        if (inside) at = at * shape[a] + index;
      }
    }
    if (!inside) wrong(where, fmt::format("sparse value {} lies outside of {}", i, cyb::to_string(shape)));
    std::memcpy(static_cast<uint8_t*>(out.data()) + static_cast<size_t>(at) * size,
                static_cast<const uint8_t*>(values.data()) + static_cast<size_t>(i) * size, size);
  }
  return out;
}

}  // namespace cyb::onnx
