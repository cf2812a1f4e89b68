// SPDX-License-Identifier: Apache-2.0
// The names of settings in a `vocab` section, for both directions.
#pragma once

#include "text/tokenizer_spec.h"

namespace cyb::vocab {

struct Flag {
  const char* name;
  bool TokenizerSpec::*field;
};
constexpr Flag kFlags[] = {{"byte_fallback", &TokenizerSpec::byte_fallback},
                           {"fuse_unk", &TokenizerSpec::fuse_unk},
                           {"ignore_merges", &TokenizerSpec::ignore_merges}};
struct Role {
  const char* name;
  std::optional<uint32_t> TokenizerSpec::*field;
};
constexpr Role kRoles[] = {
    {"unk", &TokenizerSpec::unk},   {"bos", &TokenizerSpec::bos},
    {"eos", &TokenizerSpec::eos},   {"pad", &TokenizerSpec::pad},
    {"sep", &TokenizerSpec::sep},   {"cls", &TokenizerSpec::cls},
    {"mask", &TokenizerSpec::mask}, {"first_unlisted", &TokenizerSpec::first_unlisted}};
struct AddedFlag {
  const char* name;
  bool AddedToken::*field;
};
constexpr AddedFlag kAddedFlags[] = {
    {"special", &AddedToken::special},       {"lstrip", &AddedToken::lstrip},
    {"rstrip", &AddedToken::rstrip},         {"single_word", &AddedToken::single_word},
    {"normalized", &AddedToken::normalized}, {"outside", &AddedToken::outside}};
struct StepList {
  const char* name;
  std::vector<TokenizerStep> TokenizerSpec::*field;
};
constexpr StepList kStepLists[] = {{"normalizer", &TokenizerSpec::normalizer},
                                   {"pre_tokenizer", &TokenizerSpec::pre_tokenizer},
                                   {"post_processor", &TokenizerSpec::post_processor},
                                   {"decoder", &TokenizerSpec::decoder}};

}  // namespace cyb::vocab
