// SPDX-License-Identifier: Apache-2.0
#include "import/encoder_names.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

struct Rules {
  const char* model_type;
  std::array<const char*, 2> prefixes;  // of the base model's tensors
  const char* words;                    // the embeddings, which the decoder is tied to
  const char* decoder;                  // the decoder's matrix; null: there is none of its own
  const char* bias;                     // its bias, which some files hold as decoder.bias too
  bool pools = false;                   // a sequence head reads the base model's pooler
};
constexpr const char* kWords = "embeddings.word_embeddings.weight";
constexpr const char *kCls = "cls.predictions.decoder.weight", *kClsBias = "cls.predictions.bias";
constexpr Rules kRules[] = {
    {"bert", {"bert."}, kWords, kCls, kClsBias, true},
    {"roberta", {"roberta."}, kWords, "lm_head.decoder.weight", "lm_head.bias"},
    {"xlm-roberta", {"roberta."}, kWords, "lm_head.decoder.weight", "lm_head.bias"},
    {"camembert", {"roberta."}, kWords, "lm_head.decoder.weight", "lm_head.bias"},
    {"electra", {"electra."}, kWords, "generator_lm_head.weight", "generator_lm_head.bias"},
    {"distilbert", {"distilbert."}, kWords, "vocab_projector.weight", "vocab_projector.bias"},
    {"mpnet", {"mpnet."}, kWords, "lm_head.decoder.weight", "lm_head.bias"},
    {"modernbert", {"model."}, "embeddings.tok_embeddings.weight", "decoder.weight", "decoder.bias"},
    {"nomic_bert", {"nomic_bert.", "bert."}, kWords, kCls, kClsBias, true},
    {"deberta-v2", {"deberta."}, kWords, kCls, kClsBias, true},
    {"jina_embeddings_v3", {"roberta."}, kWords, "lm_head.decoder.weight", "lm_head.bias"},
    {"gte", {"gte.", "new."}, kWords, "lm_head.decoder.weight", "lm_head.decoder.bias", true},
    {"new", {"new.", "gte."}, kWords, "lm_head.decoder.weight", "lm_head.decoder.bias", true},
    {"jina_bert", {"bert."}, kWords, kCls, kClsBias, true},
    {"jina_code_bert", {"bert."}, kWords, kCls, kClsBias, true},
};

const Rules* rules_of(const std::string& model_type) {
  for (const Rules& r : kRules)
    if (model_type == r.model_type) return &r;
  return nullptr;
}

bool starts(const std::string& name, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* p) { return name.starts_with(p); });
}

// Why the reference class with this head does not read the tensor; null: it does.
const char* unread(const std::string& name, const std::string& head, bool sequence_pools, bool positions) {
  if (name.ends_with(".position_ids") || name.ends_with(".token_type_ids")) return "a buffer that counts";
  if (starts(name, {"cls.seq_relationship.", "discriminator_predictions.", "mask_predictions."}))
    return "a head for training";
  if (starts(name, {"qa_outputs."}) && head != "question_answering") return "the head for answers";
  if (!positions && starts(name, {"embeddings.position_embeddings."})) return "positions that are not added";
  const bool decodes =
      starts(name, {"cls.", "lm_head.", "lm_predictions.", "generator_", "vocab_", "decoder."});
  if (decodes && head != "masked_lm") return "the head for masked words";
  if (starts(name, {"pooler."}) && !(head == "sequence_classification" && sequence_pools))
    return "the pooler, which belongs to another head";
  if (starts(name, {"classifier.", "pre_classifier."}) && (head == "none" || head == "masked_lm"))
    return "the head for classes";
  if (starts(name, {"head."}) && head == "none") return "a head";
  return nullptr;
}

bool same_bytes(const SafeTensor& a, const SafeTensor& b) {
  return a.type == b.type && a.shape == b.shape && std::memcmp(a.data, b.data, a.size) == 0;
}

void replace_end(std::string* name, const char* end, const char* by) {
  if (name->ends_with(end)) name->replace(name->size() - std::strlen(end), std::string::npos, by);
}

}  // namespace

std::optional<std::string> encoder_head(const std::string& model_type, const std::string& architecture) {
  if (!rules_of(model_type)) return std::nullopt;
  struct Ending {
    const char *end, *head;
  };
  static constexpr Ending kEndings[] = {{"ForMaskedLM", "masked_lm"},
                                        {"ForPreTraining", "masked_lm"},
                                        {"LMHeadModel", "masked_lm"},
                                        {"ForSequenceClassification", "sequence_classification"},
                                        {"ForTokenClassification", "token_classification"},
                                        {"ForQuestionAnswering", "question_answering"},
                                        {"Model", "none"}};
  for (const Ending& e : kEndings)
    if (architecture.ends_with(e.end)) return e.head;
  if (architecture.empty()) return "none";
  throw error(ErrorKind::UnsupportedModel, "the head of '{}' is not supported", architecture)
      .advise(
          "supported: base models and ForMaskedLM, ForSequenceClassification, ForTokenClassification, "
          "ForQuestionAnswering");
}

void adapt_encoder_tensors(std::vector<SafeTensor>* tensors, Config* config,
                           std::vector<std::pair<std::string, std::string>>* ignored) {
  const std::string type = config->text("model_type");
  const Rules* rules = rules_of(type);
  if (!rules) return;
  const std::string head = config->text_or("architecture.head", "none");
  for (SafeTensor& t : *tensors) {
    for (const char* prefix : rules->prefixes)
      if (prefix && t.name.starts_with(prefix)) {
        t.name.erase(0, std::strlen(prefix));
        break;
      }
    replace_end(&t.name, ".parametrizations.weight.original", ".weight");
    replace_end(&t.name, "LayerNorm.gamma", "LayerNorm.weight");
    replace_end(&t.name, "LayerNorm.beta", "LayerNorm.bias");
  }
  // Which of Jina's two layouts it is shows in the tensors.
  const auto is_code = [](const SafeTensor& t) {
    return t.name.ends_with(".attention.self.layer_norm_q.weight");
  };
  if (type == "jina_bert" && std::any_of(tensors->begin(), tensors->end(), is_code))
    config->set("model_type", "jina_code_bert");
  const auto find = [&](const std::string& name) -> const SafeTensor* {
    for (const SafeTensor& t : *tensors)
      if (t.name == name) return &t;
    return nullptr;
  };
  // The reference ties what is stored twice only where both hold the same values.
  const SafeTensor *words = find(rules->words), *decoder = find(rules->decoder), *bias = find(rules->bias);
  const std::string twin = std::string(rules->decoder).substr(0, std::strlen(rules->decoder) - 6) + "bias";
  const SafeTensor* second = twin == rules->bias ? nullptr : find(twin);
  const bool ties = config->boolean_or("architecture.tie_word_embeddings", true);
  const bool drop_decoder = head == "masked_lm" && ties && words && decoder && same_bytes(*words, *decoder);
  if (head == "masked_lm" && ties && decoder && !drop_decoder)
    config->set("architecture.tie_word_embeddings", false);
  const bool drop_second = second && bias && same_bytes(*bias, *second);
  const bool positions = config->boolean_or("architecture.position_biased_input", true);
  std::vector<SafeTensor> kept;
  for (SafeTensor& t : *tensors) {
    const char* why = unread(t.name, head, rules->pools, positions);
    if (!why && drop_decoder && t.name == rules->decoder) why = "the same as the embeddings it is tied to";
    if (!why && drop_second && t.name == twin) why = "the decoder's bias again";
    if (why)
      ignored->emplace_back(t.name, why);
    else
      kept.push_back(std::move(t));
  }
  // Some files hold the decoder's bias under the second name only.
  if (!bias && second)
    for (SafeTensor& t : kept)
      if (t.name == twin) t.name = rules->bias;
  *tensors = std::move(kept);
}

}  // namespace cyb
