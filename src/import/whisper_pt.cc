// SPDX-License-Identifier: Apache-2.0
#include "import/whisper_pt.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "import/pytorch/checkpoint.h"
#include "import/tokenizer_json.h"
#include "import/whisper_names.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, const char*> kSettings[] = {{"n_vocab", "vocab_size"},
                                                             {"n_mels", "num_mel_bins"},
                                                             {"n_audio_state", "d_model"},
                                                             {"n_audio_layer", "encoder_layers"},
                                                             {"n_audio_head", "encoder_attention_heads"},
                                                             {"n_text_layer", "decoder_layers"},
                                                             {"n_text_head", "decoder_attention_heads"},
                                                             {"n_audio_ctx", "max_source_positions"},
                                                             {"n_text_ctx", "max_target_positions"}};

// Empty for what is no base64.
std::string from_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    const size_t v = kAlphabet.find(c);
    if (v == std::string_view::npos) return "";
    bits = bits << 6 | static_cast<uint32_t>(v);
    if ((have += 6) >= 8) {
      have -= 8;
      out += static_cast<char>(bits >> have & 0xFF);
    }
  }
  return out;
}

// Lines of a token in base64 and its rank.
std::vector<std::string> read_tiktoken(const std::string& path) {
  const std::string text = read_file(path, 64 << 20);
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    size_t rank = 0;
    const std::string_view number = space == std::string_view::npos ? "" : line.substr(space + 1);
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (parsed.ec != std::errc() || rank >= kMaxTokens)
      throw error(ErrorKind::InvalidFile, "{}: '{}' is no token with its rank", path, line.substr(0, 80));
    if (rank >= words.size()) words.resize(rank + 1);
    words[rank] = from_base64(line.substr(0, space));
  }
  return words;
}

class WhisperCheckpoint : public SourceModel {
 public:
  explicit WhisperCheckpoint(const std::string& path) : checkpoint_(path) {
    name = "whisper-" + fs::path(path).stem().string();
    const Config& settings = checkpoint_.settings();
    config.set("model_type", "whisper");
    for (const auto& [own, key] : kSettings)
      config.set(std::string("architecture.") + key, settings.integer(std::string("dims.") + own));
    for (const char* side : {"audio", "text"}) {
      const int64_t state = settings.integer(fmt::format("dims.n_{}_state", side));
      if (state < 1 || state > 1 << 20)
        throw settings.invalid(fmt::format("dims.n_{}_state", side), "{}", state);
      config.set(*side == 'a' ? "architecture.encoder_ffn_dim" : "architecture.decoder_ffn_dim", 4 * state);
    }
    read_vocabulary(fs::path(path).parent_path());
    add_tensors();
  }

 private:
  void read_vocabulary(const fs::path& folder) {
    std::error_code none;
    if (fs::exists(folder / "tokenizer.json", none)) {
      const TokenizerSpec spec = tokenizer_from_folder(folder.empty() ? "." : folder.string());
      check_vocabulary(static_cast<int64_t>(spec.tokens.size()));
      vocab = write_vocab(spec);
      return;
    }
    const int64_t size = config.integer("architecture.vocab_size");
    const char* file = size >= 51865 ? "multilingual.tiktoken" : "gpt2.tiktoken";
    if (!fs::exists(folder / file, none))
      throw error(ErrorKind::Tokenizer, "the checkpoint holds no vocabulary")
          .advise("put {} (of OpenAI's package, whisper/assets) or tokenizer.json beside it", file);
    vocab = write_vocab(whisper_tokenizer(read_tiktoken((folder / file).string()), size));
  }

  void add_tensors() {
    std::string unknown;
    std::map<std::string, uint64_t> bytes_of_type;
    tensors_ = checkpoint_.model_tensors();
    for (SafeTensor& t : tensors_) {
      bytes_of_type[to_string(t.type)] += t.size;
      if (t.name == "decoder.mask") {
        ignored.emplace_back(t.name, "a buffer for masks");
        continue;
      }
      const std::optional<std::string> to = whisper_tensor_name(t.name);
      if (!to) {
        unknown += (unknown.empty() ? "" : ", ") + t.name;
        continue;
      }
      t.name = *to;
      tensors.push_back(safetensor_source(t, nullptr, 128, 128));
    }
    if (!unknown.empty())
      throw error(ErrorKind::UnsupportedModel, "tensors that no Whisper has: {}", unknown);
    const auto most = std::max_element(bytes_of_type.begin(), bytes_of_type.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    format = "pytorch " + (most == bytes_of_type.end() ? "none" : most->first);
  }

  PytorchCheckpoint checkpoint_;
  std::vector<SafeTensor> tensors_;
};

}  // namespace

bool is_whisper_checkpoint(const std::string& path) {
  const PytorchCheckpoint checkpoint(path);
  return checkpoint.settings().has("dims.n_mels") && checkpoint.settings().has("dims.n_text_ctx");
}

std::unique_ptr<SourceModel> open_whisper_checkpoint(const std::string& path) {
  return std::make_unique<WhisperCheckpoint>(path);
}

}  // namespace cyb
