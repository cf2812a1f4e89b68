// SPDX-License-Identifier: Apache-2.0
// What each `tokenizer.ggml.pre` stands for: the steps of the original models' tokenizer.json.
#include "import/tokenizer_common.h"
#include "import/tokenizer_gguf.h"

namespace cyb {
namespace {

using Steps = std::vector<TokenizerStep>;

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kBloom = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";
// Latin, Greek, Cyrillic and other cased letters, as DeepSeek LLM lists them; in numbers where an editor
// might normalize them away.
constexpr const char* kDeepseekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿ\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-)"
    R"(\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-)"
    R"(\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-)"
    R"(\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}ℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-)"
    R"(ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";

TokenizerStep split(const char* regex) {
  return tokenizer_step("Split", {{"regex", regex}, {"behavior", "Isolated"}, {"invert", false}});
}
TokenizerStep digits(bool individual) {
  return tokenizer_step("Digits", {{"individual_digits", individual}});
}
TokenizerStep bytes(bool use_regex) {
  return tokenizer_step("ByteLevel", {{"add_prefix_space", false}, {"use_regex", use_regex}});
}

struct Pre {
  std::vector<std::string_view> names;
  Steps pre_tokenizer;
  bool nfc = false;
  bool ignore_merges = false;
};

const std::vector<Pre>& table() {
  static const std::vector<Pre> rows = {
      {{"gpt-2", "default", "phi-2", "jais", "gigachat", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de",
        "a.x-4.0", "mellum", "trillion", "granite-docling", "exaone4", "jina-v1-en", "jina-v2-code",
        "roberta-bpe"},
       {bytes(true)}},
      {{"mpt", "olmo", "modern-bert"}, {bytes(true)}, true},
      {{"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {digits(true), bytes(true)}},
      {{"command-r"}, {digits(true), bytes(true)}, true},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano", "smaug-bpe"},
       {split(kLlama3), bytes(false)},
       false,
       true},
      {{"dbrx", "chatglm-bpe", "glm4"}, {split(kLlama3), bytes(false)}},
      {{"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "kormo", "f2llmv2", "hunyuan", "solar-open",
        "grok-2"},
       {split(kQwen2), bytes(false)},
       true},
      {{"qwen35"}, {split(kQwen35), bytes(false)}, true},
      {{"tekken"}, {split(kTekken), bytes(false)}, false, true},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {split(kGpt4o), bytes(false)}, false, true},
      {{"deepseek-llm"},
       {split("[\r\n]"), split(kDeepseekLetters), split(R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)"),
        split(R"(\s+$)"), split("[一-龥ࠀ-一가-퟿]+"), digits(true), bytes(false)}},
      {{"deepseek-coder"},
       {split("[\r\n]"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"), split("[一-龥ࠀ-一가-퟿]+"),
        digits(true), bytes(false)}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {split(R"(\p{N}{1,3})"), split("[一-龥぀-ゟ゠-ヿ]+"), split(kDeepseek3), bytes(false)}},
      {{"falcon"},
       {tokenizer_step("Punctuation", {{"behavior", "Contiguous"}}), bytes(true), digits(false),
        split("[0-9][0-9][0-9]")}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {split(kBloom), bytes(false)}},
      {{"viking"}, {split(kBloom), digits(true), bytes(false)}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {split(kBailing), bytes(false)}},
      {{"seed-coder"}, {split(kSeedCoder), bytes(false)}},
  };
  return rows;
}

}  // namespace

bool apply_gguf_pre(std::string_view pre, TokenizerSpec* spec) {
  for (const Pre& row : table()) {
    for (std::string_view name : row.names) {
      if (name != pre) continue;
      if (row.nfc) spec->normalizer = {tokenizer_step("NFC")};
      spec->pre_tokenizer = row.pre_tokenizer;
      spec->ignore_merges = row.ignore_merges;
      return true;
    }
  }
  return false;
}

std::vector<std::string_view> gguf_pre_names() {
  std::vector<std::string_view> names;
  for (const Pre& row : table()) names.insert(names.end(), row.names.begin(), row.names.end());
  return names;
}

}  // namespace cyb
