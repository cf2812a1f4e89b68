// SPDX-License-Identifier: Apache-2.0
#include "format/npy.h"

#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"

namespace cyb {
namespace {

struct Code {
  const char* text;
  DType type;
};
constexpr Code kCodes[] = {{"<f4", DType::f32}, {"<f2", DType::f16}, {"<f8", DType::f64},
                           {"|i1", DType::i8},  {"|u1", DType::u8},  {"<i2", DType::i16},
                           {"<u2", DType::u16}, {"<i4", DType::i32}, {"<u4", DType::u32},
                           {"<i8", DType::i64}, {"<u8", DType::u64}, {"|b1", DType::boolean}};

// The text after 'key': in the header's Python dict.
std::string_view after(std::string_view header, std::string_view key, const std::string& where) {
  const size_t at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos)
    throw error(ErrorKind::InvalidFile, "{}: the header has no '{}'", where, key);
  header.remove_prefix(at + key.size() + 3);
  while (!header.empty() && header.front() == ' ') header.remove_prefix(1);
  return header;
}

}  // namespace

Tensor parse_npy(std::string_view b, const std::string& where) {
  if (b.size() < 10 || b.substr(0, 6) != "\x93NUMPY")
    throw error(ErrorKind::InvalidFile, "{} is no .npy file", where).advise("write it with numpy.save");
  const int major = static_cast<unsigned char>(b[6]);
  if (major < 1 || major > 3) throw error(ErrorKind::InvalidFile, "{}: .npy version {}", where, major);
  const size_t prefix = major == 1 ? 10 : 12;
  uint32_t length = 0;
  if (b.size() < prefix) throw error(ErrorKind::InvalidFile, "{}: the header is cut off", where);
  std::memcpy(&length, b.data() + 8, prefix - 8);
  if (length > b.size() - prefix) throw error(ErrorKind::InvalidFile, "{}: the header is cut off", where);
  const std::string_view header = b.substr(prefix, length);
  const std::string_view descr = after(header, "descr", where);
  const Code* code = nullptr;
  for (const Code& c : kCodes)
    if (descr.size() > 4 && descr.substr(1, 3) == c.text) code = &c;
  if (!code)
    throw error(ErrorKind::InvalidFile, "{}: element type {} is not supported", where,
                descr.substr(0, descr.find(',')))
        .advise("use little-endian numbers or bools: array.astype('<f4')");
  if (!after(header, "fortran_order", where).starts_with("False"))
    throw error(ErrorKind::InvalidFile, "{}: the array is in Fortran order", where)
        .advise("save numpy.ascontiguousarray(array)");
  std::string_view dims = after(header, "shape", where);
  if (!dims.starts_with("(")) throw error(ErrorKind::InvalidFile, "{}: no shape in the header", where);
  dims.remove_prefix(1);
  Shape shape;
  uint64_t bytes = size_of(code->type);
  while (!dims.empty() && dims.front() != ')') {
    if (dims.front() == ' ' || dims.front() == ',') {
      dims.remove_prefix(1);
      continue;
    }
    int64_t n = 0;
    size_t digits = 0;
    while (digits < dims.size() && dims[digits] >= '0' && dims[digits] <= '9' && digits < 18)
      n = n * 10 + (dims[digits++] - '0');
    if (digits == 0 || shape.rank() == kMaxRank || !checked_mul(bytes, static_cast<uint64_t>(n), &bytes))
      throw error(ErrorKind::InvalidFile, "{}: a shape that is not supported", where);
    shape.push_back(n);
    dims.remove_prefix(digits);
  }
  const std::string_view data = b.substr(prefix + length);
  if (bytes != data.size())
    throw error(ErrorKind::InvalidFile, "{}: {} bytes of data, shape {} needs {}", where, data.size(),
                to_string(shape), bytes);
  Tensor t(code->type, shape);
  if (bytes) std::memcpy(t.data(), data.data(), bytes);
  if (code->type == DType::boolean)
    for (size_t i = 0; i < t.bytes(); i++) t.at<uint8_t>(i) = t.at<uint8_t>(i) != 0;
  return t;
}

Tensor read_npy(const std::string& path) {
  const MappedFile file(path);
  return parse_npy(file.text(), path);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const Code* code = nullptr;
  for (const Code& c : kCodes)
    if (c.type == tensor.type()) code = &c;
  if (!code)
    throw error(ErrorKind::UnsupportedOp, "{}: NumPy has no type {}", path, to_string(tensor.type()))
        .advise("cast the value to f32 in the program");
  std::string shape;
  for (int64_t d : tensor.shape()) shape += fmt::format("{}, ", d);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code->text, shape);
  header.resize(round_up<size_t>(header.size() + 11, 64) - 11, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  AtomicFile file(path);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(&length, 2);
  file.write(header.data(), header.size());
  file.write(tensor.data(), tensor.bytes());
  file.commit();
}

}  // namespace cyb
