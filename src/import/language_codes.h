// SPDX-License-Identifier: Apache-2.0
// Languages that the classes of tokenizers number behind the pieces of their SentencePiece model, in that
// order.
#pragma once

#include <span>

namespace cyb {

std::span<const char* const> mbart_languages();  // of mBART; mBART-50's are these and further ones
std::span<const char* const> mbart50_languages();
std::span<const char* const> m2m100_languages();
std::span<const char* const> nllb_languages();

}  // namespace cyb
