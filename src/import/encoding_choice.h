// SPDX-License-Identifier: Apache-2.0
// Which encoding a tensor gets: the table "What import chooses" of docs/model-format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "import/source_tensor.h"
#include "ir/graph.h"
#include "tensor/encoding.h"

namespace cyb {

enum class EncodingPolicy { automatic, q4, q8, u16, u32, canonical };
const char* to_string(EncodingPolicy policy);  // as on the command line: "auto", "q4", …
std::optional<EncodingPolicy> parse_encoding_policy(std::string_view name);

struct EncodingRules {
  EncodingPolicy policy = EncodingPolicy::automatic;
  bool canonical = false;  // format version 2: default frac_bits, no tiles, no ragged blocks
  int64_t vocabulary = 0;  // matrices of so many rows are embeddings or the head
  bool graph = false;      // a bare graph: float tensors are u32 unless the policy says otherwise
};

// `spec` has shape, encoding and tile; frac_bits, size and offset come with the conversion.
struct EncodingChoice {
  TensorSpec spec;
  bool keep_integers = false;
  // With ternary: its scales are all the same, or the same along each row; else the encoding falls back to
  // q4.
  bool try_ternary = false;
  // For convolutions from half floats: u16 if every row stands it, else u32.
  bool try_u16 = false;
  // Constants that are no weights: as bit patterns where fixed point does not hold them.
  bool try_bits = false;
};
EncodingChoice choose_encoding(const ir::WeightUse& use, const SourceTensor& source,
                               const EncodingRules& rules);

}  // namespace cyb
