// SPDX-License-Identifier: Apache-2.0
// GGUF files as models: config, texts and tensors under the checkpoint's names.
#include <array>
#include <map>

#include "base/error.h"
#include "import/gguf_config.h"
#include "import/source_model.h"
#include "import/tokenizer_gguf.h"

namespace cyb {
namespace {

class GgufModel : public SourceModel {
 public:
  explicit GgufModel(const std::string& path) : file_(path) {
    try {
      read();
    } catch (const Error& e) {
      throw e.at(path);
    }
  }

 private:
  void read() {
    const GgufMetadata& m = file_.metadata();
    if (!m.has("general.architecture")) throw missing_architecture();
    const GgufArchitecture& arch = gguf_architecture(m.string("general.architecture"));
    config = gguf_config(file_, &warnings);
    add_tensors(arch);

    name = m.string_or("general.name", "");
    license = m.string_or("general.license", "");
    if (m.has("general.languages"))
      for (const std::string_view l : m.strings("general.languages")) languages.emplace_back(l);
    description = m.string_or("general.description", "");
    const std::pair<const char*, const char*> facts[] = {
        {"general.organization", "organization"},
        {"general.author", "author"},
        {"general.quantized_by", "quantized by"},
        {"general.repo_url", "repository"},
        {"general.url", "url"},
        {"general.source.repo_url", "source repository"},
        {"general.source.url", "source url"},
        {"general.base_model.0.name", "base model"},
        {"general.base_model.0.repo_url", "base model repository"}};
    for (const auto& [key, what] : facts)
      if (m.has(key)) origin.emplace_back(what, m.string(key));

    const TokenizerSpec tokenizer = tokenizer_from_gguf(gguf_tokenizer_fields(m));
    check_vocabulary(static_cast<int64_t>(tokenizer.tokens.size()));
    vocab = write_vocab(tokenizer);
    chat = m.string_or("tokenizer.chat_template", "");
    const std::string prefix = "tokenizer.chat_template.";
    for (const std::string& key : m.keys())
      if (key.starts_with(prefix)) chats.emplace_back(key.substr(prefix.size()), m.string(key));
  }

  void add_tensors(const GgufArchitecture& arch) {
    std::map<std::string, uint64_t> bytes_of_type;
    std::string unknown;
    std::map<std::string, std::array<std::unique_ptr<SourceTensor>, 2>> halves;
    for (const GgufTensor& t : file_.tensors()) {
      const std::optional<GgufName> checkpoint = gguf_tensor_name(arch, t.name, config);
      if (!checkpoint) {
        unknown += (unknown.empty() ? "" : ", ") + t.name;
        continue;
      }
      bytes_of_type[to_string(t.type)] += t.size;
      if (checkpoint->name.empty())
        ignored.emplace_back(t.name, "read into the config");
      else if (checkpoint->part > 0)
        halves[checkpoint->name][static_cast<size_t>(checkpoint->part) - 1] =
            gguf_source(t, checkpoint->name, checkpoint->transform);
      else
        tensors.push_back(gguf_source(t, checkpoint->name, checkpoint->transform));
    }
    for (auto& [whole, half] : halves) {
      if (half[0] && half[1])
        tensors.push_back(joined_source(std::move(half[0]), std::move(half[1])));
      else
        tensors.push_back(std::move(half[half[0] ? 0 : 1]));
    }
    if (!unknown.empty())
      throw error(ErrorKind::UnsupportedModel, "tensors that architecture '{}' does not have: {}", arch.name,
                  unknown)
          .advise("a variant of this architecture that cannot be imported yet");
    std::string main_type = "none";
    uint64_t most = 0;
    for (const auto& [type, bytes] : bytes_of_type)
      if (bytes > most) most = bytes, main_type = type;
    format = "gguf " + main_type;
  }

  static Error missing_architecture() {
    return error(ErrorKind::UnsupportedModel, "the header has no general.architecture")
        .advise("this is no language model of llama.cpp; supported architectures: {}", gguf_architectures());
  }

  GgufFile file_;
};

}  // namespace

std::unique_ptr<SourceModel> open_gguf_model(const std::string& path) {
  return std::make_unique<GgufModel>(path);
}

}  // namespace cyb
