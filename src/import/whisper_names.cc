// SPDX-License-Identifier: Apache-2.0
#include "import/whisper_names.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "import/tokenizer_common.h"

namespace cyb {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
    {"encoder.positional_embedding", "model.encoder.embed_positions.weight"},
    {"decoder.positional_embedding", "model.decoder.embed_positions.weight"},
    {"decoder.token_embedding.weight", "model.decoder.embed_tokens.weight"},
    {"encoder.ln_post.weight", "model.encoder.layer_norm.weight"},
    {"encoder.ln_post.bias", "model.encoder.layer_norm.bias"},
    {"decoder.ln.weight", "model.decoder.layer_norm.weight"},
    {"decoder.ln.bias", "model.decoder.layer_norm.bias"},
    {"encoder.conv1.weight", "model.encoder.conv1.weight"},
    {"encoder.conv1.bias", "model.encoder.conv1.bias"},
    {"encoder.conv2.weight", "model.encoder.conv2.weight"},
    {"encoder.conv2.bias", "model.encoder.conv2.bias"},
};
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {"attn_ln", "self_attn_layer_norm"},
    {"attn.query", "self_attn.q_proj"},
    {"attn.key", "self_attn.k_proj"},
    {"attn.value", "self_attn.v_proj"},
    {"attn.out", "self_attn.out_proj"},
    {"cross_attn_ln", "encoder_attn_layer_norm"},
    {"cross_attn.query", "encoder_attn.q_proj"},
    {"cross_attn.key", "encoder_attn.k_proj"},
    {"cross_attn.value", "encoder_attn.v_proj"},
    {"cross_attn.out", "encoder_attn.out_proj"},
    {"mlp_ln", "final_layer_norm"},
    {"mlp.0", "fc1"},
    {"mlp.2", "fc2"},
};

constexpr std::string_view kLanguages[] = {
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt",  "tr", "pl", "ca", "nl", "ar", "sv", "it", "id",
    "hi", "fi", "vi", "he", "uk", "el", "ms", "cs", "ro",  "da", "hu", "ta", "no", "th", "ur", "hr", "bg",
    "lt", "la", "mi", "ml", "cy", "sk", "te", "fa", "lv",  "bn", "sr", "az", "sl", "kn", "et", "mk", "br",
    "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw",  "gl", "mr", "pa", "si", "km", "sn", "yo", "so",
    "af", "oc", "ka", "be", "tg", "sd", "gu", "am", "yi",  "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt",
    "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln", "ha", "ba", "jw", "su", "yue"};

std::string utf8(uint32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

// Bytes in their printable mapping: those that are characters stand for themselves, the others for those from
// U+0100.
std::array<std::string, 256> byte_letters() {
  std::array<std::string, 256> out;
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; b++) {
    const bool printable = (b > 32 && b < 127) || (b > 160 && b != 173);
    out[b] = utf8(printable ? b : next++);
  }
  return out;
}

}  // namespace

std::optional<std::string> whisper_tensor_name(std::string_view name) {
  for (const auto& [own, checkpoint] : kWhole)
    if (name == own) return std::string(checkpoint);
  const size_t dot = name.find('.');
  const std::string_view side = name.substr(0, dot);
  if (dot == std::string_view::npos || (side != "encoder" && side != "decoder")) return std::nullopt;
  std::string_view rest = name.substr(dot + 1);
  if (!rest.starts_with("blocks.")) return std::nullopt;
  rest.remove_prefix(7);
  const size_t end = rest.find('.'), last = rest.rfind('.');
  if (end == std::string_view::npos || end == 0 || last == end ||
      rest.substr(0, end).find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  const std::string_view part = rest.substr(end + 1, last - end - 1), what = rest.substr(last);
  if (what != ".weight" && what != ".bias") return std::nullopt;
  for (const auto& [own, checkpoint] : kParts)
    if (part == own)
      return fmt::format("model.{}.layers.{}.{}{}", side, rest.substr(0, end), checkpoint, what);
  return std::nullopt;
}

TokenizerSpec whisper_tokenizer(const std::vector<std::string>& words, int64_t size) {
  // 1,501 times, and seven tokens beside the languages.
  constexpr int64_t kTimes = 1501, kOthers = 8, kMultilingual = 51865;
  const int64_t base = size >= kMultilingual ? 50257 : 50256;
  const int64_t languages = size - base - kTimes - kOthers;
  if (languages < 0 || languages > static_cast<int64_t>(std::size(kLanguages)) ||
      static_cast<int64_t>(words.size()) < base)
    throw error(ErrorKind::Tokenizer,
                "a vocabulary of {} tokens, {} of them with texts, is of no Whisper model", size,
                words.size())
        .advise("import the original model instead");
  const std::array<std::string, 256> letters = byte_letters();
  TokenizerSpec spec;
  for (int64_t i = 0; i < base; i++) {
    std::string text;
    for (const char c : words[static_cast<size_t>(i)]) text += letters[static_cast<uint8_t>(c)];
    spec.tokens.push_back(text);
  }
  std::vector<bool> excluded(static_cast<size_t>(base), false);
  derive_merges(&spec, {}, excluded);
  const auto add = [&](const std::string& text, bool special) {
    AddedToken token;
    token.id = static_cast<uint32_t>(spec.tokens.size());
    token.special = special;
    spec.tokens.push_back(text);
    spec.added.push_back(token);
  };
  spec.eos = spec.bos = spec.pad = static_cast<uint32_t>(base);
  add("<|endoftext|>", true);
  add("<|startoftranscript|>", true);
  for (int64_t i = 0; i < languages; i++) add("<|" + std::string(kLanguages[i]) + "|>", true);
  for (const char* name : {"<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>",
                           "<|nospeech|>", "<|notimestamps|>"})
    add(name, true);
  for (int64_t i = 0; i < kTimes; i++) add(fmt::format("<|{}.{:02}|>", i / 50, i % 50 * 2), true);
  spec.pre_tokenizer = {tokenizer_step("ByteLevel", {{"add_prefix_space", false}, {"use_regex", true}})};
  spec.decoder = {tokenizer_step("ByteLevel")};
  return spec;
}

}  // namespace cyb
