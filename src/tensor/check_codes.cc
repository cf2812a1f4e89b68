// SPDX-License-Identifier: Apache-2.0
// What a well-formed tensor never holds: the slow check behind `show --verify` and `fetch`.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tensor/decode.h"

namespace cyb {
namespace {

class CodeCheck {
 public:
  CodeCheck(const TensorSpec& spec, std::span<const uint8_t> bytes)
      : spec_(spec), layout_(layout_of(spec)), bytes_(bytes) {}

  void run() {
    if (bytes_.size() != layout_.size) fail(0, "has another size than its shape implies");
    const int64_t groups = layout_.matrices * layout_.groups();
    for (int64_t g = 0; g < groups && layout_.size > 0; g++) {
      const uint8_t* group = bytes_.data() + static_cast<uint64_t>(g) * layout_.group_bytes;
      const int64_t first = g % layout_.groups() * layout_.group_rows;
      const int used = static_cast<int>(std::min<int64_t>(layout_.group_rows, layout_.rows - first));
      const int64_t row = g / layout_.groups() * layout_.rows + first;
      switch (spec_.encoding) {
        case Encoding::u32:
        case Encoding::u16:
          fixed(group, row, used);
          break;
        case Encoding::q8:
        case Encoding::q4:
          blocks(group, row, used);
          break;
        case Encoding::ternary:
          ternary(group, row, used);
          break;
      }
    }
    if (!is_float(spec_.type)) integers();
  }

 private:
  [[noreturn]] void fail(int64_t row, std::string_view what) const {
    throw error(ErrorKind::InvalidFile, "tensor '{}', row {}: {}", spec_.name, row, what)
        .advise("the file is damaged or was written by a faulty program; import or fetch it again");
  }

  void fixed(const uint8_t* group, int64_t row, int used) const {
    if (used == layout_.group_rows) return;
    const int width = spec_.encoding == Encoding::u32 ? 4 : 2, rows = layout_.group_rows;
    for (int64_t i = 0; i < layout_.columns; i++)
      for (int b = used * width; b < rows * width; b++)
        if (group[i * rows * width + b]) fail(row, "padding rows are not zero");
  }

  void blocks(const uint8_t* group, int64_t row, int used) const {
    const bool q4 = spec_.encoding == Encoding::q4;
    const int rows = layout_.group_rows, bytes = q4 ? kBlock / 2 : kBlock;
    const int64_t rest = layout_.columns % kBlock;
    for (int64_t b = 0; b < layout_.row_units(); b++) {
      const uint8_t* block = group + b * rows * (2 + bytes);
      const uint8_t* quants = block + 2 * rows;
      if (!q4 && is_float(spec_.type)) {
        unsigned low = 0;
        for (int i = 0; i < rows * kBlock; i++) low |= quants[i] == 0x80 ? 1u : 0u;
        if (low) fail(row, "q8 of real weights holds −128");
      }
      for (int r = used; r < rows; r++) {
        if (block[2 * r] || block[2 * r + 1]) fail(row, "padding rows have a scale");
        for (int i = 0; i < bytes; i++)
          if (quants[(i / 4 * rows + r) * 4 + i % 4] != (q4 ? 0x88 : 0))
            fail(row, "padding rows are not zero");
      }
      if (rest == 0 || b % layout_.units != layout_.units - 1) continue;
      for (int r = 0; r < used; r++)
        for (int i = static_cast<int>(rest); i < kBlock; i++) {
          const int at = q4 ? i % 16 : i;
          const int byte = quants[(at / 4 * rows + r) * 4 + at % 4];
          const int code = !q4 ? byte : (i < 16 ? byte & 15 : byte >> 4) - 8;
          if (code != 0) fail(row + r, "the padding of the last block is not zero");
        }
    }
  }

  void ternary(const uint8_t* group, int64_t row, int used) const {
    for (uint64_t i = 0; i < layout_.group_bytes; i++)
      if (group[i] & group[i] >> 1 & 0x55) fail(row, "the ternary code 11 is forbidden");
    const int rows = layout_.group_rows;
    const int64_t places = layout_.units * (rows == 1 ? 4 : 16);
    for (int r = 0; r < rows; r++)
      for (int64_t i = r < used ? layout_.columns : 0; i < places; i++) {
        const int64_t byte = rows == 1 ? i / 4 : (i / 16 * rows + r) * 4 + i % 16 / 4;
        if (group[byte] >> (i % 4 * 2) & 3) fail(row + r, "ternary padding is not zero");
      }
  }

  void integers() const {
    std::vector<int64_t> values(static_cast<size_t>(elements_of(spec_)));
    decode_integers(spec_, bytes_, values.data());
  }

  const TensorSpec& spec_;
  const Layout layout_;
  std::span<const uint8_t> bytes_;
};

}  // namespace

void check_codes(const TensorSpec& spec, std::span<const uint8_t> bytes) { CodeCheck(spec, bytes).run(); }

}  // namespace cyb
