// SPDX-License-Identifier: Apache-2.0
#include "cli/encoder_commands.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cyb {

void add_encoder_flags(CLI::App& c, EncoderCommand& o) {
  add_model_flags(c, o.flags);
  c.add_option("TEXT", o.texts, "Texts, or paths of pictures (default: standard input, one a line)");
  c.add_option("-f,--file", o.file, "A file with one text or path a line; -: standard input");
  c.add_option("--batch", o.batch, "Inputs computed at once; the results do not depend on it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c.add_flag("--json", o.json, "One object a line");
}

bool is_encoder_task(const std::string& task) {
  for (const char* known : {"embed", "classify", "ner", "fill-mask", "rerank", "answer"})
    if (task == known) return true;
  return false;
}

void run_encoder_task(const std::string& task, const EncoderCommand& o) {
  if (task == "embed") return embed_texts(o);
  if (task == "classify") return classify_texts(o);
  if (task == "ner") return tag_texts(o);
  if (task == "fill-mask") return fill_texts(o);
  if (task == "answer")
    throw error(ErrorKind::Usage, "'{}' answers questions about a text", o.flags.model)
        .advise("cyb-llm answer {} QUESTION -f TEXT", o.flags.model);
  throw error(ErrorKind::Usage, "'{}' compares a query with documents", o.flags.model)
      .advise("cyb-llm rerank {} QUERY DOCUMENT…", o.flags.model);
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cyb
