// SPDX-License-Identifier: Apache-2.0
#include "import/convert.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace cyb {
namespace {

// Rows of one chunk: about a million values, whole groups of eight rows.
int64_t chunk_rows_of(const SourceTensor& source) {
  constexpr int64_t kChunkValues = 1 << 20;
  const int64_t rows = kChunkValues / std::max<int64_t>(source.row_length(), 1);
  return std::max<int64_t>(rows / kTileRows * kTileRows, kTileRows);
}

// Experts are tiled one by one: a chunk must not end inside a group, which it cannot where each has whole
// groups.
int64_t chunk_rows_of(const SourceTensor& source, const Layout& layout) {
  const int64_t rows = chunk_rows_of(source);
  if (layout.matrices == 1 || layout.rows % kTileRows == 0) return rows;
  return std::max<int64_t>(1, rows / layout.rows) * layout.rows;
}

// Our scale from the source's block scale d.
double kept_scale(Encoding encoding, const GgufGrid& grid, float d) {
  return static_cast<double>(d) * (encoding == Encoding::q4 ? 8.0 : 127.0 / grid.factor);
}

void check_scales(const SourceTensor& source, int64_t first_row, std::span<const float> scales) {
  for (size_t i = 0; i < scales.size(); i++)
    if (!std::isfinite(scales[i]))
      throw error(ErrorKind::WeightFormat, "tensor '{}' holds {} at index {}", source.name(),
                  std::isnan(scales[i]) ? "NaN" : "infinity",
                  first_row * source.row_length() + static_cast<int64_t>(i) * kBlock)
          .advise("the source is damaged or was trained to divergence; use another copy of the model");
}

struct Integers {
  std::vector<int8_t> values;
  std::vector<float> scales;
  Integers(const SourceTensor& source, int64_t first, int64_t rows)
      : values(static_cast<size_t>(rows * source.row_length())),
        scales(static_cast<size_t>(rows * source.row_length() / kBlock)) {
    source.integers(first, rows, values.data(), scales.data());
    check_scales(source, first, scales);
  }
};

}  // namespace

template <class F>
void TensorConverter::for_chunks(int64_t rows, int64_t chunk_rows, F&& f) {
  const int64_t count = ceil_div(rows, chunk_rows);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
  std::atomic<bool> failed = false;
  pool_.parallel_for(count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end && !failed; i++) {
      try {
        f(i, i * chunk_rows, std::min(chunk_rows, rows - i * chunk_rows));
      } catch (...) {
        errors[static_cast<size_t>(i)] = std::current_exception();
        failed = true;
      }
    }
  });
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

double TensorConverter::scan_values(const SourceTensor& source) {
  const int64_t rows = source.rows(), chunk = chunk_rows_of(source), chunks = ceil_div(rows, chunk);
  std::vector<float> most(static_cast<size_t>(chunks), 0.0f);
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t n) {
    std::vector<float> values(static_cast<size_t>(n * source.row_length()));
    source.read(first, n, values.data());
    most[static_cast<size_t>(i)] = max_magnitude(values, source.name(), first * source.row_length());
    source.release(first, n);
  });
  return most.empty() ? 0 : static_cast<double>(*std::max_element(most.begin(), most.end()));
}

double TensorConverter::scan_integers(const SourceTensor& source, Encoding encoding) {
  const int64_t rows = source.rows(), chunk = chunk_rows_of(source), chunks = ceil_div(rows, chunk);
  std::vector<double> most(static_cast<size_t>(chunks), 0.0);
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t n) {
    const Integers q(source, first, n);
    std::vector<double> scales(q.scales.size());
    for (size_t b = 0; b < scales.size(); b++) scales[b] = kept_scale(encoding, source.grid(), q.scales[b]);
    most[static_cast<size_t>(i)] = quants_magnitude(q.values, scales);
    source.release(first, n);
  });
  return most.empty() ? 0 : *std::max_element(most.begin(), most.end());
}

// The scale of the tensor, or of each row; nothing where it changes inside a row or an integer is not
// ternary.
std::optional<std::vector<float>> TensorConverter::scan_ternary(const SourceTensor& source) {
  const int64_t rows = source.rows(), chunk = chunk_rows_of(source), chunks = ceil_div(rows, chunk);
  const int64_t row_blocks = source.row_length() / kBlock;
  std::vector<float> scales(static_cast<size_t>(rows));
  std::vector<char> good(static_cast<size_t>(chunks), 1);
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t n) {
    const Integers q(source, first, n);
    bool fine = std::all_of(q.values.begin(), q.values.end(), [](int8_t v) { return v >= -1 && v <= 1; });
    for (int64_t r = 0; r < n && fine; r++) {
      const float* d = q.scales.data() + r * row_blocks;
      scales[static_cast<size_t>(first + r)] = d[0];
      fine = std::all_of(d, d + row_blocks, [&](float v) { return v == d[0]; });
    }
    good[static_cast<size_t>(i)] = fine;
  });
  if (std::find(good.begin(), good.end(), 0) != good.end()) return {};
  if (std::all_of(scales.begin(), scales.end(), [&](float v) { return v == scales[0]; })) scales.resize(1);
  return scales;
}

// Every row's RMS error ≤ 1e-3 of max(row RMS, 1e-4 tensor RMS).
bool TensorConverter::stands_u16(const SourceTensor& source, int frac_bits, double tensor_rms) {
  const int64_t rows = source.rows(), chunk = chunk_rows_of(source), chunks = ceil_div(rows, chunk);
  std::vector<char> good(static_cast<size_t>(chunks), 1);
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t n) {
    const int64_t length = source.row_length();
    std::vector<float> values(static_cast<size_t>(n * length));
    source.read(first, n, values.data());
    for (int64_t r = 0; r < n; r++) {
      double squares = 0, errors = 0;
      for (int64_t c = 0; c < length; c++) {
        const double v = static_cast<double>(values[static_cast<size_t>(r * length + c)]);
        const double error = v - std::ldexp(std::nearbyint(std::ldexp(v, frac_bits)), -frac_bits);
        squares += v * v;
        errors += error * error;
      }
      const double size = static_cast<double>(std::max<int64_t>(length, 1));
      const double limit = 1e-3 * std::max(std::sqrt(squares / size), 1e-4 * tensor_rms);
      if (std::sqrt(errors / size) > limit) good[static_cast<size_t>(i)] = 0;
    }
  });
  return std::find(good.begin(), good.end(), 0) == good.end();
}

// Whether integers of 32 or 64 bits do not all fit i32.
bool TensorConverter::needs_two_words(const SourceTensor& source) {
  const int64_t rows = source.rows(), chunk = chunk_rows_of(source), chunks = ceil_div(rows, chunk);
  std::vector<char> wide(static_cast<size_t>(chunks), 0);
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t n) {
    std::vector<int64_t> values(static_cast<size_t>(n * source.row_length()));
    source.read_integers(first, n, values.data());
    // u64 comes as the same bits: what is negative here is large.
    const int64_t least = source.type() == DType::i64 ? INT32_MIN : 0;
    for (const int64_t v : values)
      if (v < least || v > INT32_MAX) wide[static_cast<size_t>(i)] = 1;
  });
  return std::find(wide.begin(), wide.end(), 1) != wide.end();
}

// Whether a value is not finite, or so small beside the largest that fixed point loses it.
bool TensorConverter::needs_bits(const SourceTensor& source) {
  constexpr float kSmallest = 0x1p-21f;  // of the largest: 31 bits then hold it to about 1e-3
  const int64_t rows = source.rows(), chunk = chunk_rows_of(source), chunks = ceil_div(rows, chunk);
  std::vector<float> most(static_cast<size_t>(chunks), 0.0f), least(most);
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t n) {
    std::vector<float> values(static_cast<size_t>(n * source.row_length()));
    source.read(first, n, values.data());
    float high = 0, low = std::numeric_limits<float>::infinity();
    for (const float v : values) {
      if (v == 0) continue;
      const float size = std::isfinite(v) ? std::fabs(v) : std::numeric_limits<float>::infinity();
      high = std::max(high, size);
      low = std::min(low, size);
    }
    most[static_cast<size_t>(i)] = high;
    least[static_cast<size_t>(i)] = low;
  });
  const float high = *std::max_element(most.begin(), most.end());
  return std::isinf(high) || *std::min_element(least.begin(), least.end()) < high * kSmallest;
}

ConvertedTensor TensorConverter::prepare(const SourceTensor& source, const EncodingChoice& choice) {
  ConvertedTensor out;
  out.spec = choice.spec;
  out.kept = choice.keep_integers;
  if (choice.try_ternary) {
    if (auto scales = scan_ternary(source)) {
      out.spec.encoding = Encoding::ternary;
      out.spec.frac_bits = 0;
      out.scales = std::move(*scales);
      return out;
    }
  }
  if (!is_float(out.spec.type)) {
    const bool wide =
        out.spec.type == DType::u32 || out.spec.type == DType::i64 || out.spec.type == DType::u64;
    if (wide && needs_two_words(source)) out.spec.words = 2;
    out.kept = true;
    return out;
  }
  if (choice.try_bits && source.elements() > 0 && needs_bits(source)) {
    out.spec.encoding = Encoding::u32;
    out.spec.bits = true;
    out.spec.frac_bits = 0;
    out.spec.tile = 0;
    out.kept = true;
    return out;
  }
  double magnitude = 0;
  if (source.elements() == 0) {
    out.kept = false;
    out.spec.encoding = Encoding::u32;
    out.spec.frac_bits = default_frac_bits(Encoding::u32);
    return out;
  }
  if (out.kept) {
    magnitude = scan_integers(source, out.spec.encoding);
  } else {
    magnitude = scan_values(source);
    if (choice.try_u16) {
      const int frac_bits =
          canonical_ ? default_frac_bits(Encoding::u16) : choose_frac_bits(Encoding::u16, magnitude);
      double squares = 0;
      for (int64_t r = 0; r < source.rows(); r++) {
        std::vector<float> row(static_cast<size_t>(source.row_length()));
        source.read(r, 1, row.data());
        for (const float v : row) squares += static_cast<double>(v) * static_cast<double>(v);
      }
      const double rms = std::sqrt(squares / static_cast<double>(std::max<int64_t>(source.elements(), 1)));
      out.spec.encoding = stands_u16(source, frac_bits, rms) ? Encoding::u16 : Encoding::u32;
    }
  }
  // What 16-bit integers and scales do not hold goes to u32.
  const auto hold = [&](Encoding e) {
    if (canonical_) return fits(e, default_frac_bits(e), magnitude);
    return magnitude == 0 || fits(e, min_frac_bits(e), magnitude);
  };
  if (!hold(out.spec.encoding)) {
    if (out.kept) magnitude = scan_values(source);
    out.kept = false;
    out.spec.encoding = Encoding::u32;
  }
  if (!hold(out.spec.encoding))
    throw error(ErrorKind::WeightFormat, "tensor '{}' holds {}, which the canonical format does not",
                source.name(), magnitude)
        .advise("import without --canonical");
  out.spec.frac_bits =
      canonical_ ? default_frac_bits(out.spec.encoding) : choose_frac_bits(out.spec.encoding, magnitude);
  return out;
}

void TensorConverter::write(const SourceTensor& source, ConvertedTensor* tensor,
                            const std::function<void(uint64_t offset, std::span<const uint8_t>)>& sink,
                            const std::function<void(int64_t rows)>& step) {
  if (source.elements() == 0) return;
  const TensorEncoder encoder(tensor->spec);
  const int64_t rows = source.rows(), length = source.row_length();
  const int64_t chunk = chunk_rows_of(source, encoder.layout());
  std::vector<EncodeStats> stats(static_cast<size_t>(ceil_div(rows, chunk)));
  for_chunks(rows, chunk, [&](int64_t i, int64_t first, int64_t count) {
    EncodeStats& part = stats[static_cast<size_t>(i)];
    const TensorEncoder::Range range = encoder.range(first, count);
    std::vector<uint8_t> out(range.size);
    if (!is_float(tensor->spec.type)) {
      std::vector<int64_t> values(static_cast<size_t>(count * length));
      source.read_integers(first, count, values.data());
      encoder.encode_integers(first, count, values.data(), out.data());
      part.values += count * length;
    } else if (tensor->spec.encoding == Encoding::ternary) {
      const Integers q(source, first, count);
      const std::vector<float> values(q.values.begin(), q.values.end());
      encoder.encode(first, count, values.data(), out.data(), &part);
    } else if (tensor->kept && !tensor->spec.bits) {
      const Integers q(source, first, count);
      std::vector<double> scales(q.scales.size());
      for (size_t b = 0; b < scales.size(); b++)
        scales[b] = kept_scale(tensor->spec.encoding, source.grid(), q.scales[b]);
      encoder.encode_quants(first, count, q.values.data(), scales.data(), out.data(), &part);
    } else {
      std::vector<float> values(static_cast<size_t>(count * length));
      source.read(first, count, values.data());
      encoder.encode(first, count, values.data(), out.data(), &part);
    }
    source.release(first, count);
    sink(range.offset, out);
    step(count);
  });
  // In row order, so that the sums do not depend on threads.
  for (const EncodeStats& part : stats) tensor->stats.add(part);
}

}  // namespace cyb
