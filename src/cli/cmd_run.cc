// SPDX-License-Identifier: Apache-2.0
// cyb-llm run: answers a prompt, continues a text, opens a chat, or runs a program on arrays.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "cli/chat_session.h"
#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/graph_model.h"
#include "cli/picture_commands.h"
#include "cli/run_options.h"
#include "hub/store.h"
#include "text/utf8.h"

namespace cyb {
namespace {

void print_json(const LanguageModel& model, const Answer& a) {
  const double prompt_s = a.result.prompt_ms / 1000, decode_s = a.result.decode_ms / 1000;
  const auto computed = static_cast<double>(a.result.prompt_tokens - a.result.reused_tokens);
  const auto generated = static_cast<double>(a.result.tokens.size());
  nlohmann::ordered_json j{{"text", a.text},
                           {"prompt_tokens", a.result.prompt_tokens},
                           {"generated_tokens", a.result.tokens.size()},
                           {"drafted_tokens", a.result.drafted_tokens},
                           {"accepted_tokens", a.result.accepted_tokens},
                           {"finish_reason", a.result.finish_reason},
                           {"seed", a.seed},
                           {"model", model.file().name()},
                           {"backend", model.backend().name()},
                           {"timings",
                            {{"prompt_ms", a.result.prompt_ms},
                             {"decode_ms", a.result.decode_ms},
                             {"prompt_tokens_per_s", prompt_s > 0 ? computed / prompt_s : 0},
                             {"decode_tokens_per_s", decode_s > 0 ? generated / decode_s : 0}}}};
  fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// The first byte that is no part of UTF-8; npos: there is none.
size_t invalid_utf8(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Prefix p = utf8_prefix(std::string_view(text).substr(at));
    if (!p.valid) return at;
    at += p.length;
  }
  return std::string::npos;
}

std::string read_stdin() {
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  // A pipe's text usually ends with a line end that nobody meant.
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

bool wants_arrays(const RunOptions& o) {
  return !o.graph.inputs.empty() || !o.graph.dims.empty() || !o.outputs.empty() || !o.output_dir.empty();
}

void check_program_options(const RunOptions& o) {
  if (o.prompt || !o.system.empty() || o.raw || o.json)
    throw error(ErrorKind::Usage,
                "a program on arrays: a prompt, --system, --raw and --json have no meaning there")
        .advise("give its inputs with --input NAME=file.npy; cyb-llm show {} lists them", o.flags.model);
}

// Recordings in the place of a prompt.
void transcribe(const RunOptions& o) {
  if (!o.system.empty() || o.raw)
    throw error(ErrorKind::Usage, "'{}' writes down recordings: --system and --raw have no meaning",
                o.flags.model)
        .advise("cyb-llm transcribe --help tells what it takes");
  std::vector<std::string> files = o.more;
  if (o.prompt) files.insert(files.begin(), *o.prompt);
  if (files.empty() && !is_terminal(stdin)) files = {"-"};
  SpeechFlags flags = o.speech;
  flags.output_dir = o.output_dir;
  if (o.search.beams > 0) flags.beams = static_cast<int>(o.search.beams);
  if (o.search.batch_given) flags.batch = static_cast<int>(o.search.batch);
  if (o.temperature && flags.temperatures.empty()) flags.temperatures = {*o.temperature};
  if (o.json) flags.format = "json";
  transcribe_files(o.flags, files, flags, o.verbose, o.explain);
}

void check_one_prompt(const RunOptions& o) {
  if (!o.more.empty())
    throw error(ErrorKind::Usage, "a prompt and '{}' are given; the model takes one", o.more.front())
        .advise("put the prompt into quotes");
}

void run(const RunOptions& o) {
  const std::string path = resolve_model(o.flags.model);
  const std::shared_ptr<const ModelFile> file = open_unless_bare(path);
  const std::string task = file ? file->config().text_or("task", "") : "";
  const bool arrays = wants_arrays(o) || !file;
  if (arrays || task == "transcribe" || task == "translate" || is_encoder_task(task))
    check_no_kv_type(o.flags);
  if (o.graph.inputs.empty() && o.outputs.empty() && task == "transcribe") return transcribe(o);
  if (o.prompt && !wants_arrays(o) && !file)
    if (GraphModel model = open_graph_model(path, o.flags.path == "graph"); hears_voices(model.program))
      return run_voice(o, std::move(model));
  if (arrays) {
    check_one_prompt(o);
    check_program_options(o);
    return run_program(o, path);
  }
  if (task == "translate") {
    check_one_prompt(o);
    return translate_texts(o, path);
  }
  if (is_encoder_task(task)) {
    if (!o.system.empty() || o.raw)
      throw error(ErrorKind::Usage,
                  "'{}' reads texts and does not answer: --system and --raw have no meaning", o.flags.model)
          .advise("cyb-llm {} --help tells what it takes", task);
    EncoderCommand command;
    command.flags = o.flags;
    if (o.prompt) command.texts = {*o.prompt};
    command.texts.insert(command.texts.end(), o.more.begin(), o.more.end());
    command.json = o.json;
    if (!is_picture_model(path)) return run_encoder_task(task, command);
    return task == "classify" ? classify_pictures(command, {}, "") : embed_texts(command);
  }
  check_one_prompt(o);
  LanguageModel model(file, open_options(o.flags));
  if (!o.template_file.empty())
    model.set_template(ChatTemplate::parse(read_file(o.template_file, 16 << 20), o.template_file));
  if (o.verbose)
    fmt::print(stderr, "{}: {}; context {} of {} tokens\n", model.file().name(), model.backend().describe(),
               model.context(), model.trained_context());
  const bool chat = model.has_template() && !o.raw;
  std::optional<std::string> prompt = o.prompt;
  if (!prompt && !is_terminal(stdin)) prompt = read_stdin();
  if (!prompt) {
    if (!chat)
      throw error(ErrorKind::Usage, "{}, and no text to continue was given",
                  o.raw ? "--raw is set" : "the model has no chat template")
          .advise("cyb-llm run {} \"Once upon a time\"", o.flags.model);
    if (o.json)
      throw error(ErrorKind::Usage, "--json answers one prompt, and none was given")
          .advise("give a prompt, or pipe one in");
    return chat_session(model, o);
  }
  if (const size_t bad = invalid_utf8(*prompt); bad != std::string::npos)
    throw error(ErrorKind::Usage, "the prompt is not valid UTF-8: byte {} is 0x{:02x}", bad + 1,
                static_cast<unsigned char>((*prompt)[bad]))
        .advise("convert it, for example with iconv -t UTF-8");
  if (prompt->empty())
    throw error(ErrorKind::Usage, "the prompt is empty")
        .advise("give some text, or none at all to open a chat");
  if (!chat && !o.system.empty())
    throw error(ErrorKind::Usage, "--system needs a chat template")
        .advise("{}", o.raw ? "leave --raw or --system out" : "put the instruction into the prompt");

  std::vector<int32_t> ids;
  if (chat) {
    std::vector<Message> messages;
    auto say = [&](const char* role, const std::string& text) {
      Message m;
      m.role = role;
      m.content = text;
      messages.push_back(std::move(m));
    };
    if (!o.system.empty()) say("system", o.system);
    say("user", *prompt);
    ids = model.chat_ids(messages);
  } else {
    ids = model.text_ids(*prompt, o.raw);
  }
  InterruptFlag interrupt;
  const Answer a = answer(model, o, ids, !o.json, interrupt.flag());
  if (o.json)
    print_json(model, a);
  else if (a.text.empty() || a.text.back() != '\n')
    fmt::print("\n");
  if (o.verbose) fmt::print(stderr, "{}\n", timing_line(a));
  if (o.explain) fmt::print("{}", model.session().explain("decode"));
  if (interrupt.raised()) throw Exit{130};
}

}  // namespace

Answer answer(LanguageModel& model, const RunOptions& o, const std::vector<int32_t>& prompt, bool stream,
              const std::atomic<bool>* cancel) {
  GenerateOptions g;
  g.max_tokens = o.max_tokens;
  g.stop_ids = model.stop_ids();
  g.lookup = o.lookup && model.any_cut();
  SamplerSettings& s = g.sampler;
  s = model.sampler();
  if (o.temperature) s.temperature = *o.temperature;
  if (o.top_k) s.top_k = *o.top_k;
  if (o.top_p) s.top_p = *o.top_p;
  if (o.min_p) s.min_p = *o.min_p;
  if (o.repeat_penalty) s.repetition_penalty = *o.repeat_penalty;
  if (o.presence_penalty) s.presence_penalty = *o.presence_penalty;
  if (o.frequency_penalty) s.frequency_penalty = *o.frequency_penalty;
  Answer a;
  a.seed = o.seed ? *o.seed : std::random_device{}();
  s.seed = a.seed;
  TextAnswer made = model.answer(
      prompt, g, o.stop,
      [&](std::string_view piece) {
        if (stream) {
          std::fwrite(piece.data(), 1, piece.size(), stdout);
          std::fflush(stdout);
        }
        return true;
      },
      cancel);
  a.text = std::move(made.text);
  a.result = std::move(made.result);
  return a;
}

std::string timing_line(const Answer& a) {
  const auto computed = static_cast<double>(a.result.prompt_tokens - a.result.reused_tokens);
  return fmt::format(
      "prompt {} tokens ({} reused), {:.0f} ms, {:.1f} tokens/s; answer {} tokens ({} of {} guesses right), "
      "{:.0f} ms, {:.1f} tokens/s; {}; seed {}",
      a.result.prompt_tokens, a.result.reused_tokens, a.result.prompt_ms,
      computed / std::max(a.result.prompt_ms, 1e-3) * 1000, a.result.tokens.size(), a.result.accepted_tokens,
      a.result.drafted_tokens, a.result.decode_ms,
      static_cast<double>(a.result.tokens.size()) / std::max(a.result.decode_ms, 1e-3) * 1000,
      a.result.finish_reason, a.seed);
}

void add_run_command(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* c = app.add_subcommand("run", "Answer a prompt, open a chat, or run a program on arrays");
  add_model_flags(*c, o->flags);
  add_kv_flag(*c, o->flags);
  c->add_option("PROMPT", o->prompt, "The prompt (default: standard input if it is piped, else a chat)");
  c->add_option("FILES", o->more, "Further recordings, pictures or texts, for models that take many");
  c->add_option("--system", o->system, "The system message");
  c->add_option("--chat-template", o->template_file, "A Jinja file in place of the model's chat template")
      ->check(CLI::ExistingFile);
  c->add_option("--max-tokens", o->max_tokens,
                "Tokens of the answer at most (default: to the end of the context)")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--temperature", o->temperature, "0: always the likeliest token (default: as the model says)")
      ->check(CLI::Range(0.0, 100.0));
  c->add_option("--top-k", o->top_k, "Only the k likeliest tokens; 0: all")->check(CLI::NonNegativeNumber);
  c->add_option("--top-p", o->top_p, "Only the likeliest tokens that together have this probability")
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--min-p", o->min_p, "Only tokens at least this likely, relative to the likeliest")
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--repeat-penalty", o->repeat_penalty, "Makes tokens that were there less likely; 1: not")
      ->check(CLI::Range(0.01, 100.0));
  c->add_option("--presence-penalty", o->presence_penalty,
                "Subtracted from the logit of tokens that were there")
      ->check(CLI::Range(-100.0, 100.0));
  c->add_option("--frequency-penalty", o->frequency_penalty,
                "Subtracted for each time that a token was there")
      ->check(CLI::Range(-100.0, 100.0));
  c->add_option(
      "--seed", o->seed,
      "Same seed, same answer (default: a new one, told by --json and --verbose); of random inputs (0)");
  c->add_option("--stop", o->stop, "End the answer before this text; may be given several times")
      ->allow_extra_args(false);
  c->add_flag("--raw", o->raw, "The prompt as it is: no chat template, special tokens may be written out");
  c->add_flag("--lookup,!--no-lookup", o->lookup,
              "On by default: where a text repeats itself, several tokens are tried at once: "
              "faster, with the same answer");
  c->add_flag("--json", o->json, "Print one object: text, counts, finish_reason, seed, timings");
  c->add_flag("--verbose", o->verbose, "Tell context, tokens and speed on standard error");
  c->add_flag("--explain", o->explain,
              "After the answer: nodes before and after fusion, kernels, places, memory");
  c->add_option("--from", o->search.from, "The language of the texts: en, en_XX, eng_Latn (translation)");
  c->add_option("--to", o->search.to, "The language to write (translation)");
  c->add_option("--task", o->search.task, "A task of the model's own list: summarization (T5 and its like)");
  c->add_option("-f,--file", o->search.file, "A file with one text a line; -: standard input (translation)");
  c->add_option("--beams", o->search.beams, "Sequences searched side by side (default: as the model says)")
      ->check(CLI::Range(1, 64));
  c->add_option("--length-penalty", o->search.length_penalty, "Above 0: longer results; below: shorter")
      ->check(CLI::Range(-10.0, 10.0));
  c->add_option("--batch", o->search.batch, "Texts computed at once; the results do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_speech_flags(*c, o->speech);
  add_graph_input_flags(*c, o->graph);
  c->add_option("--output", o->outputs, "NAME=file.npy: write an output; file.npz: all (default: print them)")
      ->allow_extra_args(false);
  c->add_option("--output-dir", o->output_dir, "Write each output as NAME.npy into this folder");
  c->add_option("--repeat", o->repeat, "Run a program so many times, and tell how long it took (1)")
      ->check(CLI::Range(1, 1000000));
  c->footer(examples(
      {"cyb-llm run smollm2 \"Why is the sky blue?\"", "cyb-llm run smollm2",
       "git diff | cyb-llm run smollm2 --system \"Summarize this change.\"",
       "cyb-llm run gemma3-270m \"Once upon a time\" --max-tokens 100 --temperature 0.8 --seed 7",
       "cyb-llm run opus-mt-en-de.model \"How are you?\"",
       "cyb-llm run nllb.model --from en --to pt -f lines.txt --beams 4 --json",
       "cyb-llm run whisper-base talk.mp3 --format srt", "cyb-llm run silero-vad recording.mp3 'more/*.m4a'",
       "cyb-llm run program.ir --input x=x.npy --output y=y.npy",
       "cyb-llm run model.onnx --input images=random:1x3x320x320 --output-dir out"}));
  c->callback([o, c] {
    o->search.batch_given = c->count("--batch") > 0;
    run(*o);
  });
}

}  // namespace cyb
