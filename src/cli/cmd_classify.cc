// SPDX-License-Identifier: Apache-2.0
// cyb-llm classify: classes of texts and pictures.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/picture_commands.h"
#include "cli/text_inputs.h"
#include "hub/store.h"
#include "tasks/text_heads.h"

namespace cyb {

void classify_texts(const EncoderCommand& o) {
  const std::vector<std::string> texts = read_texts(o.texts, o.file);
  TextClassifier model(resolve_model(o.flags.model), open_options(o.flags));
  const auto results = model.classify(texts, o.batch);
  for (size_t i = 0; i < texts.size(); i++) {
    std::string out;
    const auto shown = std::min(static_cast<size_t>(o.top), results[i].size());
    for (size_t k = 0; k < shown; k++) {
      const ScoredLabel& r = results[i][k];
      out += o.json
                 ? fmt::format("{}{{\"label\":{},\"score\":{}}}", k ? "," : "", json_text(r.label), r.score)
                 : fmt::format("{}{} {:.4f}", k ? "  " : "", r.label, r.score);
    }
    if (o.json)
      fmt::print("{{\"index\":{},\"text\":{},\"labels\":[{}]}}\n", i, json_text(texts[i]), out);
    else
      fmt::print("{}\n", out);
  }
}

void add_classify_command(CLI::App& app) {
  struct Options : EncoderCommand {
    std::vector<std::string> labels;
    std::string prompt = "a photo of a {}";
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("classify", "Tell the class of texts or pictures");
  add_encoder_flags(*c, *o);
  c->add_option("--top", o->top, "Labels shown, the likeliest first")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  c->add_option("--labels", o->labels, "Of pictures: these classes, in words (CLIP, SigLIP)")->delimiter(',');
  c->add_option("--template", o->prompt, "The text that is compared with a picture; {} is the label")
      ->capture_default_str();
  c->footer(examples({"cyb-llm classify sentiment.model \"What a lovely day!\"",
                      "cyb-llm classify sentiment.model -f reviews.txt --json --top 1",
                      "cyb-llm classify vit.model cat.jpg dog.png --top 3",
                      "cyb-llm classify clip.model *.jpg --labels cat,dog,\"a red car\""}));
  c->callback([o] {
    if (is_picture_model(resolve_model(o->flags.model))) return classify_pictures(*o, o->labels, o->prompt);
    if (!o->labels.empty())
      throw error(ErrorKind::Usage, "--labels names classes of pictures, and '{}' reads texts",
                  o->flags.model)
          .advise("leave it out");
    classify_texts(*o);
  });
}

}  // namespace cyb
