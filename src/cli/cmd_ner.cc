// SPDX-License-Identifier: Apache-2.0
// cyb-llm ner: names, places and other entities in texts.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/text_inputs.h"
#include "hub/store.h"
#include "tasks/text_heads.h"

namespace cyb {

namespace {

Aggregation aggregation_of(const std::string& name) {
  if (name == "first") return Aggregation::first;
  if (name == "average") return Aggregation::average;
  return name == "max" ? Aggregation::max : Aggregation::simple;
}

}  // namespace

void tag_texts(const EncoderCommand& o) {
  const std::vector<std::string> texts = read_texts(o.texts, o.file);
  EntityTagger model(resolve_model(o.flags.model), open_options(o.flags));
  const auto results = model.tag(texts, o.batch, aggregation_of(o.aggregation));
  for (size_t i = 0; i < texts.size(); i++) {
    std::string out;
    for (const EntityTagger::Entity& e : results[i])
      out += o.json ? fmt::format(
                          "{}{{\"label\":{},\"text\":{},\"score\":{},\"start\":{},\"end\":{},"
                          "\"first_token\":{},\"tokens\":{}}}",
                          out.empty() ? "" : ",", json_text(e.label), json_text(e.text), e.score, e.begin,
                          e.end, e.first, e.count)
                    : fmt::format("{}{}: {} ({:.4f})", out.empty() ? "" : "; ", e.label, e.text, e.score);
    if (o.json)
      fmt::print("{{\"index\":{},\"text\":{},\"entities\":[{}]}}\n", i, json_text(texts[i]), out);
    else
      fmt::print("{}\n", out.empty() ? "-" : out);
  }
}

void add_ner_command(CLI::App& app) {
  auto o = std::make_shared<EncoderCommand>();
  CLI::App* c = app.add_subcommand("ner", "Find names, places and other entities in texts");
  add_encoder_flags(*c, *o);
  c->add_option("--aggregation", o->aggregation,
                "What gets a label: simple (each token), or each word by its first token, the average of its "
                "tokens or the surest of them (max)")
      ->check(CLI::IsMember({"simple", "first", "average", "max"}))
      ->capture_default_str();
  c->footer(examples({"cyb-llm ner entities.model \"Ada Lovelace lived in London.\"",
                      "cyb-llm ner entities.model -f news.txt --json"}));
  c->callback([o] { tag_texts(*o); });
}

}  // namespace cyb
