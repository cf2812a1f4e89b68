// SPDX-License-Identifier: Apache-2.0
// cyb-llm tokenize: ids and pieces of a text.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "format/model_file.h"
#include "hub/store.h"
#include "text/tokenizer.h"

namespace cyb {
namespace {

struct Options {
  std::string model;
  std::optional<std::string> text;
  std::vector<int32_t> decode;
  bool special = false, no_special = false, ids = false, json = false;
};

void tokenize(const Options& o) {
  const ModelFile file(resolve_model(o.model));
  const Tokenizer tokenizer = Tokenizer::from_vocab(file.section("vocab"));
  if (!o.decode.empty()) {
    fmt::print("{}\n", tokenizer.decode(o.decode, {.skip_special = false, .continues = false}));
    return;
  }
  const std::string text = o.text ? *o.text : std::string(std::istreambuf_iterator<char>(std::cin), {});
  const std::vector<int32_t> ids =
      tokenizer.encode(text, {.parse_special = o.special, .add_special = !o.no_special});
  if (o.json) {
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
    for (int32_t id : ids) tokens.push_back({{"id", id}, {"token", std::string(tokenizer.token_text(id))}});
    fmt::print("{}\n", tokens.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  if (o.ids) {
    for (size_t i = 0; i < ids.size(); i++) fmt::print("{}{}", i ? " " : "", ids[i]);
    fmt::print("\n");
    return;
  }
  for (int32_t id : ids) fmt::print("{:>8}  {}\n", id, tokenizer.token_text(id));
  fmt::print("{} tokens\n", ids.size());
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("tokenize", "Show the tokens of a text");
  c->add_option("MODEL", o->model, "A name from the store or the path of a .model file")->required();
  c->add_option("TEXT", o->text, "The text (default: standard input)");
  c->add_option("--decode", o->decode, "Ids to turn back into text")->delimiter(',');
  c->add_flag("--special", o->special, "Texts of control tokens become them");
  c->add_flag("--no-special", o->no_special, "Add no tokens around the text");
  c->add_flag("--ids", o->ids, "Ids only, on one line");
  c->add_flag("--json", o->json, "A list of objects");
  c->footer(
      examples({"cyb-llm tokenize smollm2 \"Hello, world\"", "cyb-llm tokenize smollm2 --ids < text.txt",
                "cyb-llm tokenize smollm2 --decode 19556,28,905"}));
  c->callback([o] { tokenize(*o); });
}

}  // namespace cyb
