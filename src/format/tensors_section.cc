// SPDX-License-Identifier: Apache-2.0
#include "format/tensors_section.h"

#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "format/toml_reader.h"

namespace cyb {
namespace {

constexpr size_t kMaxTensors = 1'000'000;

class LineReader {
 public:
  LineReader(TomlReader& reader, int version) : r_(reader), version_(version) {}

  TensorSpec read() {
    spec_.name = r_.key();
    if (spec_.name.empty()) throw r_.fail("the tensor has no name");
    unsigned seen = 0;
    for (r_.begin_table(); r_.next_field();) {
      if (r_.field().size() != 1) throw fail("keys of a tensor have no dots");
      const std::string& key = r_.field()[0];
      const int which = index_of(key);
      if (which < 0) throw fail(fmt::format("unknown key '{}'", key));
      if (seen >> which & 1) throw fail(fmt::format("the key '{}' stands twice", key));
      seen |= 1u << which;
      if (version_ < 3 && which >= kAddenda)
        throw fail(fmt::format("'{}' belongs to format version 3, and this file says 2", key));
      read_key(which);
    }
    for (int i = 0; i < kAddenda; i++)
      if (!(seen >> i & 1)) throw fail(fmt::format("the key '{}' is missing", kKeys[i]));
    if (!(seen >> kFracBits & 1)) {
      spec_.frac_bits = default_frac_bits(spec_);
    } else if (!is_float(spec_.type) && spec_.frac_bits != 0) {
      throw fail("an integer type has no frac_bits");
    }
    return std::move(spec_);
  }

  Error fail(std::string_view what) const {
    return r_.fail(fmt::format("tensor '{}': {}", spec_.name, what));
  }

 private:
  static constexpr const char* kKeys[] = {"shape", "encoding", "offset", "size", "frac_bits", "order",
                                          "tile",  "type",     "bits",   "zero", "words"};
  static constexpr int kAddenda = 4, kFracBits = 4;

  static int index_of(std::string_view key) {
    for (int i = 0; i < static_cast<int>(std::size(kKeys)); i++)
      if (key == kKeys[i]) return i;
    return -1;
  }

  int small(std::string_view key) {
    const int64_t v = r_.read_integer();
    if (v < -100000 || v > 100000) throw fail(fmt::format("'{}' is out of range", key));
    return static_cast<int>(v);
  }

  uint64_t size(std::string_view key) {
    const int64_t v = r_.read_integer();
    if (v < 0) throw fail(fmt::format("'{}' is negative", key));
    return static_cast<uint64_t>(v);
  }

  void read_key(int which) {
    switch (which) {
      case 0:
        for (r_.begin_array(); r_.next_element();) {
          if (spec_.shape.size() >= 8) throw fail("the rank is above 8");
          spec_.shape.push_back(r_.read_integer());
        }
        break;
      case 1: {
        r_.read_string(&text_);
        const auto encoding = parse_encoding(text_);
        if (!encoding)
          throw fail(fmt::format("unknown encoding '{}'; known are u32, u16, q8, q4, ternary", text_));
        spec_.encoding = *encoding;
        break;
      }
      case 2:
        spec_.offset = size("offset");
        break;
      case 3:
        spec_.size = size("size");
        break;
      case 4:
        spec_.frac_bits = small("frac_bits");
        break;
      case 5:
        for (r_.begin_array(); r_.next_element();) {
          if (spec_.order.size() >= 8) throw fail("order has more than 8 axes");
          spec_.order.push_back(small("order"));
        }
        break;
      case 6:
        spec_.tile = small("tile");
        break;
      case 7: {
        r_.read_string(&text_);
        const auto type = parse_dtype(text_);
        if (!type) throw fail(fmt::format("unknown type '{}'", text_));
        spec_.type = *type;
        break;
      }
      case 8:
        spec_.bits = r_.read_boolean();
        break;
      case 9:
        spec_.zero = small("zero");
        break;
      default:
        spec_.words = small("words");
        break;
    }
  }

  TomlReader& r_;
  const int version_;
  TensorSpec spec_;
  std::string text_;
};

}  // namespace

std::vector<TensorSpec> parse_tensors(std::string_view text, const std::string& where, int first_line,
                                      int version) {
  std::vector<TensorSpec> out;
  std::unordered_set<std::string> names;
  TomlReader reader(text, where, first_line);
  while (reader.next()) {
    if (reader.is_header()) throw reader.fail("a section of tensors has no tables");
    if (reader.path().size() != 1) throw reader.fail("a tensor's name stands in quotes");
    if (out.size() >= kMaxTensors) throw reader.fail(fmt::format("more than {} tensors", kMaxTensors));
    const int line = reader.line();
    LineReader one(reader, version);
    TensorSpec spec = one.read();
    const std::string at = fmt::format("{}, line {}", where, line);
    try {
      const uint64_t size = encoded_size(spec);
      if (size != spec.size)
        throw error(ErrorKind::WeightFormat, "tensor '{}': size is {}, its shape and encoding need {}",
                    spec.name, spec.size, size)
            .advise("the file is damaged; import or fetch it again");
    } catch (const Error& e) {
      throw e.at(at);
    }
    if (version < 3 && uses_addenda(spec))
      throw error(
          ErrorKind::WeightFormat,
          "{}: tensor '{}': rows that are no whole blocks belong to format version 3, and this file says 2",
          at, spec.name)
          .advise("import the model again");
    if (!names.insert(spec.name).second)
      throw error(ErrorKind::InvalidFile, "{}: the tensor '{}' stands twice", at, spec.name);
    out.push_back(std::move(spec));
  }
  return out;
}

void print_tensor(std::string* out, const TensorSpec& spec) {
  auto list = [&](const auto& values) {
    out->push_back('[');
    for (size_t i = 0; i < values.size(); i++) {
      if (i) out->append(", ");
      out->append(std::to_string(values[i]));
    }
    out->push_back(']');
  };
  append_toml_string(out, spec.name);
  out->append(" = { shape = ");
  list(spec.shape);
  out->append(fmt::format(", encoding = \"{}\", offset = {}, size = {}", to_string(spec.encoding),
                          spec.offset, spec.size));
  if (spec.frac_bits != default_frac_bits(spec)) out->append(fmt::format(", frac_bits = {}", spec.frac_bits));
  if (!spec.order.empty()) {
    out->append(", order = ");
    list(spec.order);
  }
  if (spec.tile) out->append(fmt::format(", tile = {}", spec.tile));
  if (spec.type != DType::f32) out->append(fmt::format(", type = \"{}\"", to_string(spec.type)));
  if (spec.bits) out->append(", bits = true");
  if (spec.zero) out->append(fmt::format(", zero = {}", spec.zero));
  if (spec.words != 1) out->append(fmt::format(", words = {}", spec.words));
  out->append(" }\n");
}

}  // namespace cyb
