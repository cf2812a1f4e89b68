// SPDX-License-Identifier: Apache-2.0
#include "cli/chat_session.h"

#include <histedit.h>

#include <cstdio>
#include <memory>

#include "base/interrupt.h"
#include "base/terminal.h"
#include "cli/command.h"

namespace cyb {
namespace {

constexpr const char* kHelp =
    "/help            this list\n"
    "/clear           forget the conversation\n"
    "/system TEXT     a new system message, and a new conversation\n"
    "/retry           answer the last message again, with another seed\n"
    "/undo            forget the last message and its answer\n"
    "/history         the conversation so far\n"
    "/stats           tokens held, context, speed of the last answer\n"
    "/exit            end (as Ctrl-D does)\n"
    "A line that ends with \\ goes on in the next; \"\"\" begins and ends a text of several lines.\n"
    "Ctrl-C stops an answer.\n";

const char* g_prompt = "> ";
char* show_prompt(EditLine*) { return const_cast<char*>(g_prompt); }

// Lines from the terminal, with editing and history.
class LineReader {
 public:
  LineReader()
      : editor_(el_init("cyb-llm", stdin, stdout, stderr), el_end), history_(history_init(), history_end) {
    HistEvent event;
    history(history_.get(), &event, H_SETSIZE, 1000);
    el_set(editor_.get(), EL_PROMPT, show_prompt);
    el_set(editor_.get(), EL_EDITOR, "emacs");
    el_set(editor_.get(), EL_SIGNAL, 0);
    el_set(editor_.get(), EL_HIST, history, history_.get());
  }
  // False at the end of input. `interrupted` is set where Ctrl-C ended the line.
  bool read(const char* prompt, std::string* line, InterruptFlag& interrupt, bool* interrupted) {
    g_prompt = prompt;
    int count = 0;
    *interrupted = false;
    const char* text = el_gets(editor_.get(), &count);
    const bool raised = interrupt.raised();
    interrupt.clear();
    // The editor may go on after Ctrl-C: then there is a line, and it counts.
    if (raised && (!text || count <= 0)) {
      *interrupted = true;
      std::fputs("\n", stdout);
      el_reset(editor_.get());
      return true;
    }
    if (!text || count <= 0) return false;
    line->assign(text, static_cast<size_t>(count));
    while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
    HistEvent event;
    if (!line->empty()) history(history_.get(), &event, H_ENTER, line->c_str());
    return true;
  }

 private:
  std::unique_ptr<EditLine, void (*)(EditLine*)> editor_;
  std::unique_ptr<History, void (*)(History*)> history_;
};

Message message(const char* role, const std::string& text) {
  Message m;
  m.role = role;
  m.content = text;
  return m;
}

class Chat {
 public:
  Chat(LanguageModel& model, const RunOptions& options)
      : model_(model), options_(options), system_(options.system) {
    clear();
  }

  void run() {
    fmt::print(stderr, "{} (context {} tokens). /help lists commands, Ctrl-D ends.\n", model_.file().name(),
               model_.context());
    std::string text;
    while (read(&text)) {
      if (text.empty()) continue;
      if (text[0] == '/' && text.find('\n') == std::string::npos) {
        if (!command(text)) return;
        continue;
      }
      messages_.push_back(message("user", text));
      reply();
    }
    fmt::print("\n");
  }

 private:
  bool read(std::string* text) {
    text->clear();
    std::string line;
    bool interrupted = false;
    if (!reader_.read("> ", &line, interrupt_, &interrupted)) return false;
    if (interrupted) return true;
    const bool block = line.rfind("\"\"\"", 0) == 0;
    if (block) line.erase(0, 3);
    for (;;) {
      if (block && line.size() >= 3 && line.compare(line.size() - 3, 3, "\"\"\"") == 0) {
        line.resize(line.size() - 3);
        *text += line;
        return true;
      }
      const bool goes_on = block || (!line.empty() && line.back() == '\\');
      if (!block && goes_on) line.pop_back();
      *text += line;
      if (!goes_on) return true;
      *text += "\n";
      if (!reader_.read(". ", &line, interrupt_, &interrupted)) return !text->empty();
      if (interrupted) {
        text->clear();
        return true;
      }
    }
  }

  void clear() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back(message("system", system_));
  }

  // Answers the last user message; what does not fit is taken back.
  void reply() {
    try {
      interrupt_.clear();
      last_ = answer(model_, options_, model_.chat_ids(messages_), true, interrupt_.flag());
    } catch (const Error& e) {
      print_error(e.message(), e.advice());
      if (e.message().find("context") != std::string::npos)
        fmt::print(stderr, "/clear begins a new conversation\n");
      messages_.pop_back();
      return;
    }
    interrupt_.clear();
    fmt::print("{}\n", last_.text.empty() || last_.text.back() != '\n' ? "\n" : "");
    if (last_.result.finish_reason == "length")
      fmt::print(stderr, "(cut: {} tokens reached)\n",
                 options_.max_tokens >= 0 ? "--max-tokens" : "the context's");
    messages_.push_back(message("assistant", last_.text));
    if (options_.verbose) fmt::print(stderr, "{}\n", timing_line(last_));
  }

  // False where the chat ends.
  bool command(const std::string& text) {
    const size_t space = text.find(' ');
    const std::string name = text.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
    if (name == "/exit" || name == "/quit" || name == "/bye") return false;
    if (name == "/help" || name == "/?") {
      fmt::print("{}", kHelp);
    } else if (name == "/clear") {
      clear();
    } else if (name == "/system") {
      system_ = rest;
      clear();
    } else if (name == "/retry" || name == "/undo") {
      if (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
      if (messages_.empty() || messages_.back().role != "user") {
        fmt::print(stderr, "there is no message to {}\n", name == "/retry" ? "answer" : "forget");
        return true;
      }
      if (name == "/undo")
        messages_.pop_back();
      else
        reply();
    } else if (name == "/history") {
      for (const Message& m : messages_) fmt::print("{}: {}\n", m.role, m.content.value_or(""));
    } else if (name == "/stats") {
      fmt::print("{} of {} tokens held\n", model_.generator().held().size(), model_.context());
      if (last_.result.prompt_tokens) fmt::print("{}\n", timing_line(last_));
    } else {
      fmt::print(stderr, "unknown command {}; /help lists those that there are\n", name);
    }
    return true;
  }

  LanguageModel& model_;
  const RunOptions& options_;
  std::string system_;
  std::vector<Message> messages_;
  Answer last_;
  InterruptFlag interrupt_;
  LineReader reader_;
};

}  // namespace

void chat_session(LanguageModel& model, const RunOptions& options) { Chat(model, options).run(); }

}  // namespace cyb
