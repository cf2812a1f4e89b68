// SPDX-License-Identifier: Apache-2.0
#include "import/ggml_whisper.h"

#include <cstring>
#include <filesystem>
#include <map>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "import/gguf_file.h"
#include "import/whisper_names.h"

namespace cyb {
namespace {

constexpr uint32_t kMagic = 0x67676d6c;

struct Settings {
  int32_t vocab, audio_context, audio_state, audio_heads, audio_layers, text_context, text_state, text_heads,
      text_layers, mels, type;

  bool plausible() const {
    const auto in = [](int32_t v, int32_t least, int32_t most) { return v >= least && v <= most; };
    return in(vocab, 1000, 1 << 22) && in(audio_context, 1, 1 << 20) && in(audio_state, 1, 1 << 16) &&
           in(audio_heads, 1, 1 << 10) && in(audio_layers, 1, 1000) && in(text_context, 1, 1 << 20) &&
           text_state == audio_state && in(text_heads, 1, 1 << 10) && in(text_layers, 1, 1000) &&
           in(mels, 1, 1024);
  }
};

class GgmlWhisper : public SourceModel {
 public:
  explicit GgmlWhisper(const std::string& path) : file_(path) {
    name = std::filesystem::path(path).stem().string();
    if (name.starts_with("ggml-")) name = "whisper-" + name.substr(5);
    number<uint32_t>("the file's kind");
    const auto s = number<Settings>("the settings");
    config.set("model_type", "whisper");
    const std::pair<const char*, int64_t> settings[] = {{"vocab_size", s.vocab},
                                                        {"num_mel_bins", s.mels},
                                                        {"d_model", s.audio_state},
                                                        {"encoder_layers", s.audio_layers},
                                                        {"encoder_attention_heads", s.audio_heads},
                                                        {"encoder_ffn_dim", int64_t{4} * s.audio_state},
                                                        {"decoder_layers", s.text_layers},
                                                        {"decoder_attention_heads", s.text_heads},
                                                        {"decoder_ffn_dim", int64_t{4} * s.text_state},
                                                        {"max_source_positions", s.audio_context},
                                                        {"max_target_positions", s.text_context}};
    for (const auto& [key, value] : settings) config.set(std::string("architecture.") + key, value);
    // The filters are those that the front end makes itself.
    const auto rows = number<int32_t>("the mel filters"), columns = number<int32_t>("the mel filters");
    if (rows != s.mels || columns < 1 || columns > 1 << 16)
      throw damaged("mel filters of {} × {} for {} rows", rows, columns, s.mels);
    take(static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * 4, "the mel filters");
    read_vocabulary(s.vocab);
    read_tensors(s.type);
  }

 private:
  const uint8_t* take(uint64_t size, const char* what) {
    if (size > file_.size() - at_) throw damaged("the file ends within {}", what);
    const uint8_t* p = file_.data() + at_;
    at_ += size;
    return p;
  }
  template <class T>
  T number(const char* what) {
    T v{};
    std::memcpy(&v, take(sizeof v, what), sizeof v);
    return v;
  }
  template <class... Args>
  Error damaged(fmt::format_string<Args...> what, Args&&... args) const {
    return error(ErrorKind::InvalidFile, "{}: {}", file_.path(),
                 fmt::format(what, std::forward<Args>(args)...))
        .advise("the file is damaged or incomplete: fetch it again");
  }

  void read_vocabulary(int32_t size) {
    const auto count = number<int32_t>("the vocabulary");
    if (count < 1 || count > size) throw damaged("a vocabulary of {} texts for {} tokens", count, size);
    std::vector<std::string> words;
    for (int32_t i = 0; i < count; i++) {
      const auto length = number<uint32_t>("the vocabulary");
      words.emplace_back(reinterpret_cast<const char*>(take(length, "the vocabulary")), length);
    }
    vocab = write_vocab(whisper_tokenizer(words, size));
  }

  void read_tensors(int32_t file_type) {
    std::map<std::string, uint64_t> bytes_of_type;
    std::string unknown;
    constexpr int32_t kVersionFactor = 1000, kBlocksVersion = 2;
    while (at_ < file_.size()) {
      const auto rank = number<int32_t>("a tensor's header"), length = number<int32_t>("a tensor's header"),
                 type = number<int32_t>("a tensor's header");
      if (rank < 1 || rank > 4 || length < 1 || length > 256)
        throw damaged("a tensor of {} dimensions", rank);
      GgufTensor t;
      uint64_t elements = 1;
      for (int32_t d = 0; d < rank; d++) {
        const auto n = number<int32_t>("a tensor's shape");
        if (n < 1 || !checked_mul(elements, static_cast<uint64_t>(n), &elements))
          throw damaged("a tensor's shape");
        t.shape.insert(t.shape.begin(), n);
      }
      t.name =
          std::string(reinterpret_cast<const char*>(take(static_cast<uint64_t>(length), "a tensor's name")),
                      static_cast<size_t>(length));
      const GgufTypeInfo* info = type < 0 ? nullptr : gguf_type_info(static_cast<uint32_t>(type));
      if (!info) throw damaged("tensor '{}' is of the unknown type {}", t.name, type);
      if (info->block_values > 1 && file_type / kVersionFactor != kBlocksVersion)
        throw error(ErrorKind::WeightFormat, "{}: blocks of an old layout (version {})", file_.path(),
                    file_type / kVersionFactor)
            .advise("convert the original model again, or import it directly");
      const auto block = static_cast<uint64_t>(info->block_values);
      if (static_cast<uint64_t>(t.shape.back()) % block != 0)
        throw damaged("tensor '{}': rows of {} are no whole blocks", t.name, t.shape.back());
      if (!checked_mul(elements / block, static_cast<uint64_t>(info->block_bytes), &t.size))
        throw damaged("tensor '{}' is too large", t.name);
      t.type = info->type;
      t.offset = at_;
      t.data = take(t.size, "a tensor");
      t.file = &file_;
      bytes_of_type[info->name] += t.size;
      // Biases of convolutions have an axis of 1 for their broadcast.
      if (t.name.ends_with(".bias") && t.shape.size() == 2 && t.shape[1] == 1) t.shape = {t.shape[0]};
      const std::optional<std::string> checkpoint = whisper_tensor_name(t.name);
      if (checkpoint)
        tensors.push_back(gguf_source(t, *checkpoint, {}));
      else
        unknown += (unknown.empty() ? "" : ", ") + t.name;
    }
    if (!unknown.empty())
      throw error(ErrorKind::UnsupportedModel, "tensors that no Whisper has: {}", unknown);
    std::string main_type = "none";
    uint64_t most = 0;
    for (const auto& [type, bytes] : bytes_of_type)
      if (bytes > most) most = bytes, main_type = type;
    format = "whisper.cpp " + main_type;
  }

  MappedFile file_;
  uint64_t at_ = 0;
};

}  // namespace

bool is_ggml_whisper(std::span<const uint8_t> bytes) {
  uint32_t magic = 0;
  Settings s{};
  if (bytes.size() < sizeof magic + sizeof s) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  std::memcpy(&s, bytes.data() + sizeof magic, sizeof s);
  return magic == kMagic && s.plausible();
}

std::unique_ptr<SourceModel> open_ggml_whisper(const std::string& path) {
  return std::make_unique<GgmlWhisper>(path);
}

}  // namespace cyb
