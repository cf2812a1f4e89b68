// SPDX-License-Identifier: Apache-2.0
#include "import/seq2seq_names.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

struct Rules {
  const char* model_type;
  const char* prefix;  // of the base model's tensors
  bool computes_positions = false;
  bool logits_bias = false;
};
constexpr Rules kRules[] = {
    {"t5", ""},
    {"mt5", ""},
    {"umt5", ""},
    {"bart", "model.", false, true},
    {"mbart", "model.", false, true},
    {"marian", "model.", true, true},
    {"m2m_100", "model.", true},
    {"pegasus", "model.", true, true},
};

const Rules* rules_of(const std::string& model_type) {
  for (const Rules& r : kRules)
    if (model_type == r.model_type) return &r;
  return nullptr;
}

bool same_bytes(const SafeTensor& a, const SafeTensor& b) {
  return a.type == b.type && a.shape == b.shape && std::memcmp(a.data, b.data, a.size) == 0;
}

const SafeTensor* find(const std::vector<SafeTensor>& tensors, const std::string& name) {
  for (const SafeTensor& t : tensors)
    if (t.name == name) return &t;
  return nullptr;
}

// Why the class does not read the tensor; null: it does.
const char* unread(const std::string& name, const Rules& r, const std::string& head) {
  // Old T5 files hold it, and no release of the reference reads it.
  if (name.find("EncDecAttention.relative_attention_bias") != std::string::npos)
    return "relative positions between texts, which have none";
  if (r.computes_positions && name.find("embed_positions.weight") != std::string::npos)
    return "sinusoidal positions, computed";
  if (name.ends_with(".embed_positions._float_tensor") || name.ends_with(".version")) return "a buffer";
  if (head == "none" && (name.starts_with("decoder.") || name == "lm_head.weight"))
    return "the decoder, which an encoder does not have";
  if (head != "sequence" && name.starts_with("classification_head.")) return "the head for classes";
  if (head == "sequence" && (name == "lm_head.weight" || name == "final_logits_bias"))
    return "the head for words";
  return nullptr;
}

}  // namespace

std::optional<std::string> seq2seq_head(const std::string& model_type, const std::string& architecture) {
  const Rules* r = rules_of(model_type);
  if (!r) return std::nullopt;
  const bool t5 = *r->prefix == '\0';
  if (architecture.empty() || architecture.ends_with("ForConditionalGeneration") ||
      architecture.ends_with("MTModel") || architecture.ends_with("WithLMHeadModel"))
    return "language";
  if (t5 && architecture.ends_with("EncoderModel")) return "none";
  if (model_type == std::string("bart") && architecture.ends_with("ForSequenceClassification"))
    return "sequence";
  throw error(ErrorKind::UnsupportedModel, "the class '{}' is not supported", architecture)
      .advise("supported: ForConditionalGeneration, MTModel, {}",
              t5 ? "EncoderModel" : "and BartForSequenceClassification");
}

void adapt_seq2seq_tensors(std::vector<SafeTensor>* tensors, Config* config,
                           std::vector<std::pair<std::string, std::string>>* ignored) {
  const Rules* r = rules_of(config->text("model_type"));
  if (!r) return;
  const std::string prefix = r->prefix;
  const std::string head = config->text_or("architecture.head", "language");
  // Base models are saved without the prefix.
  const bool bare =
      !prefix.empty() && std::none_of(tensors->begin(), tensors->end(),
                                      [&](const SafeTensor& t) { return t.name.starts_with(prefix); });
  for (SafeTensor& t : *tensors)
    if (bare &&
        (t.name.starts_with("encoder.") || t.name.starts_with("decoder.") || t.name == "shared.weight"))
      t.name = prefix + t.name;

  const bool shared = config->boolean_or("architecture.share_encoder_decoder_embeddings", true);
  const std::string words = prefix + "shared.weight", encoder = prefix + "encoder.embed_tokens.weight",
                    decoder = prefix + "decoder.embed_tokens.weight", lm_head = "lm_head.weight";
  if (shared && !find(*tensors, words))
    for (const std::string& other : {encoder, decoder, lm_head}) {
      const auto it = std::find_if(tensors->begin(), tensors->end(),
                                   [&](const SafeTensor& t) { return t.name == other; });
      if (it == tensors->end()) continue;
      it->name = words;
      break;
    }
  const SafeTensor* table = find(*tensors, shared ? words : decoder);
  const SafeTensor* output = find(*tensors, lm_head);
  const bool same_head = output && table && same_bytes(*output, *table);
  if (head == "language") {
    // The config's word is about the scale of the outputs too, the tensors decide about the tie.
    if (prefix.empty() && !config->has("architecture.scale_decoder_outputs"))
      config->set("architecture.scale_decoder_outputs",
                  config->boolean_or("architecture.tie_word_embeddings", true));
    if (output ? table != nullptr : prefix.empty())
      config->set("architecture.tie_word_embeddings", !output || same_head);
  }
  if (r->logits_bias && head == "language")
    config->set("architecture.final_logits_bias", find(*tensors, "final_logits_bias") != nullptr);

  // All questions before any tensor is moved.
  std::vector<const char*> reasons;
  for (const SafeTensor& t : *tensors) {
    const char* why = unread(t.name, *r, head);
    if (!why && same_head && t.name == lm_head) why = "the same as the embeddings that it is tied to";
    if (!why && shared && table && (t.name == encoder || t.name == decoder) && same_bytes(t, *table))
      why = "the shared embeddings again";
    if (!why && !shared && t.name == words && table && same_bytes(t, *table))
      why = "the decoder's embeddings again";
    reasons.push_back(why);
  }
  std::vector<SafeTensor> kept;
  for (size_t i = 0; i < reasons.size(); i++) {
    SafeTensor& t = (*tensors)[i];
    if (reasons[i])
      ignored->emplace_back(t.name, reasons[i]);
    else
      kept.push_back(std::move(t));
  }
  *tensors = std::move(kept);
}

}  // namespace cyb
