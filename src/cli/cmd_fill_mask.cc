// SPDX-License-Identifier: Apache-2.0
// cyb-llm fill-mask: words that fit the gaps of texts.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/text_inputs.h"
#include "hub/store.h"
#include "tasks/text_heads.h"

namespace cyb {

void fill_texts(const EncoderCommand& o) {
  const std::vector<std::string> texts = read_texts(o.texts, o.file);
  MaskFiller model(resolve_model(o.flags.model), open_options(o.flags));
  for (size_t i = 0; i < texts.size(); i++) {
    std::string out;
    const auto gaps = model.fill(texts[i], o.top);
    for (size_t g = 0; g < gaps.size(); g++) {
      std::string words;
      for (const MaskFiller::Word& w : gaps[g])
        words += o.json ? fmt::format("{}{{\"word\":{},\"id\":{},\"score\":{}}}", words.empty() ? "" : ",",
                                      json_text(w.text), w.id, w.score)
                        : fmt::format("{}{} {:.4f}", words.empty() ? "" : "  ", w.text, w.score);
      out += o.json ? fmt::format("{}[{}]", g ? "," : "", words) : words + "\n";
    }
    if (o.json)
      fmt::print("{{\"index\":{},\"text\":{},\"gaps\":[{}]}}\n", i, json_text(texts[i]), out);
    else
      fmt::print("{}", out);
  }
}

void add_fill_mask_command(CLI::App& app) {
  auto o = std::make_shared<EncoderCommand>();
  CLI::App* c = app.add_subcommand("fill-mask", "Find the words that fit a gap");
  add_encoder_flags(*c, *o);
  c->add_option("--top", o->top, "Words for each gap, the likeliest first")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  c->footer(examples({"cyb-llm fill-mask bert.model \"Paris is the capital of [MASK].\"",
                      "cyb-llm fill-mask roberta.model \"Paris is the <mask> of France.\" --top 3 --json"}));
  c->callback([o] { fill_texts(*o); });
}

}  // namespace cyb
