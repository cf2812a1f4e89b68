// SPDX-License-Identifier: Apache-2.0
#include "import/encoding_choice.h"

namespace cyb {
namespace {

constexpr const char* kPolicies[] = {"auto", "q4", "q8", "u16", "u32", "canonical"};

bool holds_integers(Encoding encoding, KeptGrid grid) {
  if (encoding == Encoding::q4) return grid == KeptGrid::q4 || grid == KeptGrid::ternary;
  if (encoding == Encoding::q8) return grid != KeptGrid::none;
  return false;
}

// The encoding of a matrix, before what the format can hold is looked at.
Encoding matrix_encoding(EncodingPolicy policy, KeptGrid grid, bool embedding_or_head) {
  switch (policy) {
    case EncodingPolicy::automatic:
      return grid == KeptGrid::q4 || grid == KeptGrid::ternary ? Encoding::q4 : Encoding::q8;
    case EncodingPolicy::q4:
      return embedding_or_head ? Encoding::q8 : Encoding::q4;
    case EncodingPolicy::q8:
      return Encoding::q8;
    case EncodingPolicy::u16:
      return Encoding::u16;
    case EncodingPolicy::canonical:
      return Encoding::q4;
    case EncodingPolicy::u32:
      break;
  }
  return Encoding::u32;
}

// Integers and bools are kept as they are; large tables of 8 bits as quants whose scales are 1.
void choose_exact(const SourceTensor& source, TensorSpec& spec) {
  constexpr int64_t kLarge = 4096;
  const DType type = spec.type;
  const bool bytes = type == DType::i8 || type == DType::u8;
  spec.frac_bits = 0;
  if (bytes && source.row_length() >= kBlock && source.elements() >= kLarge) {
    spec.encoding = Encoding::q8;
    spec.zero = type == DType::u8 ? 128 : 0;
  } else if (bytes || type == DType::boolean || type == DType::i16) {
    spec.encoding = Encoding::u16;
  } else {
    spec.encoding = Encoding::u32;
  }
}

}  // namespace

const char* to_string(EncodingPolicy policy) { return kPolicies[static_cast<int>(policy)]; }

std::optional<EncodingPolicy> parse_encoding_policy(std::string_view name) {
  for (int i = 0; i < 6; i++)
    if (name == kPolicies[i]) return static_cast<EncodingPolicy>(i);
  return std::nullopt;
}

EncodingChoice choose_encoding(const ir::WeightUse& use, const SourceTensor& source,
                               const EncodingRules& rules) {
  EncodingChoice out;
  out.spec.name = use.name;
  out.spec.shape = source.shape();
  const size_t rank = source.shape().size();
  const int64_t columns = source.row_length();
  const int64_t rows = rank >= 2 ? source.shape()[rank - 2] : 1;  // of one expert
  const KeptGrid grid = source.grid().kind;
  out.spec.type = source.type();
  if (!is_float(out.spec.type)) {
    choose_exact(source, out.spec);
    return out;
  }

  const EncodingPolicy policy =
      rules.graph && rules.policy == EncodingPolicy::automatic ? EncodingPolicy::u32 : rules.policy;
  out.try_bits = rules.graph && !use.matrix && !use.conv;
  const bool matrix = use.matrix && (rank == 2 || rank == 3) && columns >= kBlock;
  if (matrix) {
    const bool embedding_or_head = use.lookup || (rules.vocabulary > 0 && rows == rules.vocabulary);
    out.spec.encoding = matrix_encoding(policy, grid, embedding_or_head);
    out.keep_integers = holds_integers(out.spec.encoding, grid);
    out.try_ternary = rules.policy == EncodingPolicy::automatic && grid == KeptGrid::ternary;
  } else if (use.conv && rank >= 3 && source.is_half() && policy != EncodingPolicy::u32) {
    out.try_u16 = true;
  } else if (rules.policy == EncodingPolicy::canonical && rank >= 2) {
    out.spec.encoding = Encoding::u16;  // the alignment plan's "rest"; norms and biases are u32
  }

  const bool blocks = out.spec.encoding == Encoding::q4 || out.spec.encoding == Encoding::q8;
  if (rules.canonical) {
    if (blocks && columns % kBlock != 0) {  // a padded last block is an addendum
      out.spec.encoding = Encoding::u16;
      out.keep_integers = out.try_ternary = false;
    }
    if (columns % 4 != 0) out.try_ternary = false;
  } else if (use.matrix && (rank == 2 || rank == 3) && rows >= kTileRows) {
    out.spec.tile = kTileRows;
  }
  return out;
}

}  // namespace cyb
