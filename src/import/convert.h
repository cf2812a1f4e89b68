// SPDX-License-Identifier: Apache-2.0
// One tensor from its source to the bytes of its encoding: a pass that looks for the largest magnitude and
// for NaN, a pass that encodes. Rows stream through in chunks on all threads; the bytes come out in file
// order, the same for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "import/encoding_choice.h"
#include "tensor/encode.h"

namespace cyb {

// What a tensor became.
struct ConvertedTensor {
  TensorSpec spec;
  EncodeStats stats;
  bool kept = false;          // the source's integers, only scales rounded
  std::vector<float> scales;  // ternary: of the sibling NAME.scale; one, or one a row
};

class TensorConverter {
 public:
  explicit TensorConverter(ThreadPool& pool, bool canonical) : pool_(pool), canonical_(canonical) {}

  // Settles encoding and frac_bits (first pass). Throws WeightFormat at NaN and infinity with tensor and
  // index.
  ConvertedTensor prepare(const SourceTensor& source, const EncodingChoice& choice);
  // Second pass: hands the bytes to `sink` by their offset in the tensor, fills stats. Both functions are
  // called from several threads; `step` hears of source rows done.
  void write(const SourceTensor& source, ConvertedTensor* tensor,
             const std::function<void(uint64_t offset, std::span<const uint8_t>)>& sink,
             const std::function<void(int64_t rows)>& step);

 private:
  // f(chunk, first row, rows) for all chunks in parallel; the error of the first failing chunk is thrown.
  template <class F>
  void for_chunks(int64_t rows, int64_t chunk_rows, F&& f);
  double scan_values(const SourceTensor& source);
  bool needs_two_words(const SourceTensor& source);
  bool needs_bits(const SourceTensor& source);
  double scan_integers(const SourceTensor& source, Encoding encoding);
  std::optional<std::vector<float>> scan_ternary(const SourceTensor& source);
  bool stands_u16(const SourceTensor& source, int frac_bits, double tensor_rms);

  ThreadPool& pool_;
  bool canonical_;
};

}  // namespace cyb
