// SPDX-License-Identifier: Apache-2.0
#include "format/npy.h"

#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"

namespace cyb {
namespace {

struct Code {
  const char* text;
  DType type;
};
constexpr Code kCodes[] = {{"<f4", DType::f32},  {"<f2", DType::f16}, {"<f8", DType::f64},
                           {"|i1", DType::i8},   {"|u1", DType::u8},  {"<i2", DType::i16},
                           {"<u2", DType::u16},  {"<i4", DType::i32}, {"<u4", DType::u32},
                           {"<i8", DType::i64},  {"<u8", DType::u64}, {"|b1", DType::boolean},
                           {"<V2", DType::bf16}, {"|V2", DType::bf16}};
constexpr uint64_t kMaxTexts = 1 << 24;

struct Element {
  DType type = DType::f32;
  uint64_t size = 0;     // bytes in the file
  bool unicode = false;  // of texts: four bytes a character
};

Error invalid(const std::string& where, const std::string& what) {
  return error(ErrorKind::InvalidFile, "{}: {}", where, what);
}

// The text after 'key': in the header's Python dict.
std::string_view after(std::string_view header, std::string_view key, const std::string& where) {
  const size_t at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) throw invalid(where, fmt::format("the header has no '{}'", key));
  header.remove_prefix(at + key.size() + 3);
  while (!header.empty() && header.front() == ' ') header.remove_prefix(1);
  return header;
}

// Digits at the front, at most 18 of them.
std::optional<uint64_t> take_number(std::string_view* text) {
  uint64_t n = 0;
  size_t digits = 0;
  while (digits < text->size() && digits < 18 && (*text)[digits] >= '0' && (*text)[digits] <= '9')
    n = n * 10 + static_cast<uint64_t>((*text)[digits++] - '0');
  text->remove_prefix(digits);
  if (digits == 0) return std::nullopt;
  return n;
}

Element element_of(std::string_view descr, const std::string& where) {
  const std::string_view code = descr.substr(0, std::min(descr.find_first_of(",}"), descr.size()));
  const std::string_view inner = code.size() > 2 ? code.substr(1, code.size() - 2) : std::string_view();
  for (const Code& c : kCodes)
    if (inner == c.text) return {c.type, c.type == DType::boolean ? 1 : size_of(c.type), false};
  if (inner.size() > 2 && (inner.starts_with("<U") || inner.starts_with("|S"))) {
    std::string_view digits = inner.substr(2);
    const auto length = take_number(&digits);
    const bool unicode = inner[1] == 'U';
    if (length && digits.empty() && *length >= 1 && *length <= 1 << 20)
      return {DType::string, unicode ? *length * 4 : *length, unicode};
  }
  const Error found = error(ErrorKind::InvalidFile, "{}: element type {} is not supported", where, code);
  if (inner == "|O")
    throw found.advise("an array of Python objects is a pickle: save array.astype('U') or numbers");
  throw found.advise("use little-endian numbers, bools or texts: array.astype('<f4')");
}

Shape shape_of(std::string_view dims, const Element& element, uint64_t* bytes, const std::string& where) {
  if (!dims.starts_with("(")) throw invalid(where, "no shape in the header");
  dims.remove_prefix(1);
  Shape shape;
  uint64_t n = 1;
  while (!dims.empty() && dims.front() != ')') {
    if (dims.front() == ' ' || dims.front() == ',') {
      dims.remove_prefix(1);
      continue;
    }
    const auto d = take_number(&dims);
    if (!d || shape.rank() == kMaxRank || !checked_mul(n, *d, &n))
      throw invalid(where, "a shape that is not supported");
    shape.push_back(static_cast<int64_t>(*d));
  }
  if (!checked_mul(n, element.size, bytes) || (element.type == DType::string && n > kMaxTexts))
    throw invalid(where, "a shape that is not supported");
  return shape;
}

void append_utf8(std::string* out, uint32_t c) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    *out += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
             static_cast<char>(0x80 | (c & 63))};
  } else {
    *out += {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
             static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
  }
}

// NumPy pads texts with zeros.
std::string text_of(std::string_view bytes, bool unicode, const std::string& where) {
  if (!unicode) return std::string(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
  std::string out;
  size_t last = bytes.size() / 4;
  const auto character = [&](size_t i) {
    uint32_t c;
    std::memcpy(&c, bytes.data() + 4 * i, 4);
    return c;
  };
  while (last > 0 && character(last - 1) == 0) last--;
  for (size_t i = 0; i < last; i++) {
    const uint32_t c = character(i);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) throw invalid(where, "a text with no valid character");
    append_utf8(&out, c);
  }
  return out;
}

std::u32string characters(std::string_view text, const std::string& where) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
    uint32_t c = length == 1 ? first : first & (0x7fu >> length);
    bool valid = length > 0 && i + length <= text.size();
    for (size_t k = 1; valid && k < length; k++) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      valid = (next & 0xc0) == 0x80;
      c = c << 6 | (next & 63);
    }
    if (!valid)
      throw error(ErrorKind::UnsupportedOp, "{}: a text that is no UTF-8", where)
          .advise("NumPy's texts are Unicode: leave this output out");
    out += static_cast<char32_t>(c);
    i += length;
  }
  return out;
}

// Elements in Fortran order to C order.
Tensor reordered(const Tensor& t) {
  Tensor out(t.type(), t.shape());
  const int rank = t.shape().rank();
  const auto n = static_cast<size_t>(t.elements());
  const size_t size = t.type() == DType::string ? 0 : size_of(t.type());
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < n; i++) {
    size_t from = 0, stride = 1;
    for (int a = 0; a < rank; a++) {
      from += static_cast<size_t>(at[static_cast<size_t>(a)]) * stride;
      stride *= static_cast<size_t>(t.shape()[a]);
    }
    if (size)
      std::memcpy(static_cast<uint8_t*>(out.data()) + i * size,
                  static_cast<const uint8_t*>(t.data()) + from * size, size);
    else
      out.strings()[i] = t.strings()[from];
    for (int a = rank - 1; a >= 0 && ++at[static_cast<size_t>(a)] == t.shape()[a]; a--)
      at[static_cast<size_t>(a)] = 0;
  }
  return out;
}

std::string with_header(const std::string& code, const Shape& shape) {
  std::string dims;
  for (int64_t d : shape) dims += fmt::format("{}, ", d);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code, dims);
  header.resize(round_up<size_t>(header.size() + 11, 64) - 11, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string out("\x93NUMPY\x01\x00", 8);
  out.append(reinterpret_cast<const char*>(&length), 2);
  return out + header;
}

std::string text_bytes(const Tensor& tensor, const std::string& where) {
  std::vector<std::u32string> texts;
  size_t longest = 1;
  for (const std::string& s : tensor.strings()) {
    texts.push_back(characters(s, where));
    longest = std::max(longest, texts.back().size());
  }
  if (longest * texts.size() > kMaxTexts * 16)
    throw error(ErrorKind::UnsupportedOp, "{}: {} texts of up to {} characters", where, texts.size(), longest)
        .advise("NumPy gives each the room of the longest: leave this output out");
  std::string out = with_header(fmt::format("<U{}", longest), tensor.shape());
  for (std::u32string& t : texts) {
    t.resize(longest);
    out.append(reinterpret_cast<const char*>(t.data()), longest * 4);
  }
  return out;
}

}  // namespace

Tensor parse_npy(std::string_view b, const std::string& where) {
  if (b.size() < 10 || b.substr(0, 6) != "\x93NUMPY")
    throw error(ErrorKind::InvalidFile, "{} is no .npy file", where).advise("write it with numpy.save");
  const int major = static_cast<unsigned char>(b[6]);
  if (major < 1 || major > 3) throw invalid(where, fmt::format(".npy version {}", major));
  const size_t prefix = major == 1 ? 10 : 12;
  uint32_t length = 0;
  if (b.size() < prefix) throw invalid(where, "the header is cut off");
  std::memcpy(&length, b.data() + 8, prefix - 8);
  if (length > b.size() - prefix) throw invalid(where, "the header is cut off");
  const std::string_view header = b.substr(prefix, length);
  const Element element = element_of(after(header, "descr", where), where);
  const bool fortran = after(header, "fortran_order", where).starts_with("True");
  uint64_t bytes = 0;
  const Shape shape = shape_of(after(header, "shape", where), element, &bytes, where);
  const std::string_view data = b.substr(prefix + length);
  if (bytes != data.size())
    throw invalid(where,
                  fmt::format("{} bytes of data, shape {} needs {}", data.size(), to_string(shape), bytes));
  Tensor t(element.type, shape);
  if (element.type == DType::string) {
    for (size_t i = 0; i < t.strings().size(); i++)
      t.strings()[i] = text_of(data.substr(i * element.size, element.size), element.unicode, where);
  } else if (bytes) {
    std::memcpy(t.data(), data.data(), bytes);
  }
  if (element.type == DType::boolean)
    for (size_t i = 0; i < t.bytes(); i++) t.at<uint8_t>(i) = t.at<uint8_t>(i) != 0;
  return fortran && shape.rank() > 1 ? reordered(t) : t;
}

Tensor read_npy(const std::string& path) {
  const MappedFile file(path);
  return parse_npy(file.text(), path);
}

std::string npy_bytes(const Tensor& tensor, const std::string& where) {
  if (tensor.type() == DType::string) return text_bytes(tensor, where);
  if (tensor.type() == DType::bf16) {
    Tensor wide(DType::f32, tensor.shape());
    for (size_t i = 0; i < wide.bytes() / 4; i++) wide.at<float>(i) = bf16_to_f32(tensor.at<uint16_t>(i));
    return npy_bytes(wide, where);
  }
  std::string code;
  for (const Code& c : kCodes)
    if (c.type == tensor.type()) code = c.text;
  std::string out = with_header(code, tensor.shape());
  out.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  return out;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::string bytes = npy_bytes(tensor, path);
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace cyb
