// SPDX-License-Identifier: Apache-2.0
// cyb-llm answer: the span of a text that answers a question.
#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/file.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/text_inputs.h"
#include "hub/store.h"
#include "tasks/question_answerer.h"

namespace cyb {
namespace {

struct Options {
  ModelFlags flags;
  std::vector<std::string> questions;
  std::string context, file;
  AnswerOptions answers;
  int64_t batch = 16;
  bool json = false;
};

std::string read_context(const Options& o) {
  constexpr uint64_t kMost = uint64_t{1} << 28;
  if (!o.context.empty() && !o.file.empty())
    throw error(ErrorKind::Usage, "a text is given, and a file with one too").advise("give one of them");
  if (!o.context.empty()) return o.context;
  if (!o.file.empty() && o.file != "-") return read_file(o.file, kMost);
  if (o.file.empty() && is_terminal(stdin))
    throw error(ErrorKind::Usage, "no text was given to look for answers in")
        .advise("give it with --context, as -f FILE, or through a pipe");
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

void answer(const Options& o) {
  const std::vector<std::string> questions = read_texts(o.questions, "");
  const std::string context = read_context(o);
  if (context.find_first_not_of(" \t\r\n") == std::string::npos)
    throw error(ErrorKind::Usage, "the text to look for answers in is empty");
  QuestionAnswerer model(resolve_model(o.flags.model), open_options(o.flags));
  for (const std::string& question : questions) {
    const auto spans = model.answer(question, context, o.answers, o.batch);
    std::string out;
    for (const QuestionAnswerer::Span& s : spans)
      out += o.json ? fmt::format("{}{{\"answer\":{},\"score\":{},\"start\":{},\"end\":{}}}",
                                  out.empty() ? "" : ",", json_text(s.text), static_cast<float>(s.score),
                                  s.begin, s.end)
                    : fmt::format("{:.4f}  {}\n", s.score, s.text);
    if (o.json)
      fmt::print("{{\"question\":{},\"answers\":[{}]}}\n", json_text(question), out);
    else
      fmt::print("{}", out);
  }
}

}  // namespace

void add_answer_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("answer", "Find the answer to a question in a text");
  add_model_flags(*c, o->flags);
  c->add_option("QUESTION,-q,--question", o->questions, "The question, or several of them")->required();
  c->add_option("-c,--context", o->context, "The text (default: standard input)");
  c->add_option("-f,--file", o->file, "A file with the text; -: standard input");
  c->add_option("--top", o->answers.top, "Answers shown, the likeliest first")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_flag("--allow-none", o->answers.allow_none, "That the text has no answer is one of the choices");
  c->add_option("--longest", o->answers.longest, "Tokens of an answer at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_option("--window", o->answers.window,
                "Tokens read at once, the question's included; longer texts take several")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  c->add_option("--stride", o->answers.stride, "Tokens that such parts share")
      ->check(CLI::Range(0, 1 << 19))
      ->capture_default_str();
  c->add_option("--batch", o->batch, "Parts computed at once; the results do not depend on it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_flag("--json", o->json, "One object a question; start and end count characters");
  c->footer(
      examples({"cyb-llm answer squad.model \"Who wrote it?\" --context \"It was written by Ada Lovelace.\"",
                "cyb-llm answer squad.model -q \"When?\" -q \"Where?\" -f report.txt --top 3 --json"}));
  c->callback([o] { answer(*o); });
}

}  // namespace cyb
