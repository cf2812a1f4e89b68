// SPDX-License-Identifier: Apache-2.0
// cyb-llm rerank: documents in the order in which they answer a query.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/text_inputs.h"
#include "hub/store.h"
#include "tasks/text_heads.h"

namespace cyb {
namespace {

struct Options {
  EncoderCommand common;
  std::string query;
  int64_t top = 0;
};

void rerank(const Options& o) {
  const std::vector<std::string> documents = read_texts(o.common.texts, o.common.file);
  const std::vector<std::string> query = read_texts({o.query}, "");
  Reranker model(resolve_model(o.common.flags.model), open_options(o.common.flags));
  const std::vector<float> scores = model.score(query.front(), documents, o.common.batch);
  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (o.top > 0) order.resize(std::min(order.size(), static_cast<size_t>(o.top)));
  for (const size_t i : order) {
    if (o.common.json)
      fmt::print("{{\"index\":{},\"score\":{},\"text\":{}}}\n", i, scores[i], json_text(documents[i]));
    else
      fmt::print("{:.6f}  {}\n", scores[i], documents[i]);
  }
}

}  // namespace

void add_rerank_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("rerank", "Order documents by how well they answer a query");
  add_model_flags(*c, o->common.flags);
  c->add_option("QUERY", o->query, "The query")->required();
  c->add_option("DOCUMENT", o->common.texts, "Documents (default: standard input, one a line)");
  c->add_option("-f,--file", o->common.file, "A file with one document a line; -: standard input");
  c->add_option("--top", o->top, "Only so many, the best (default: all)")->check(CLI::PositiveNumber);
  c->add_option("--batch", o->common.batch, "Documents computed at once; the results do not depend on it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_flag("--json", o->common.json, "One object a line");
  c->footer(
      examples({"cyb-llm rerank reranker.model \"capital of France\" \"Paris is large.\" \"Berlin is cold.\"",
                "cyb-llm rerank reranker.model \"how to brew tea\" -f passages.txt --top 3 --json"}));
  c->callback([o] { rerank(*o); });
}

}  // namespace cyb
