// SPDX-License-Identifier: Apache-2.0
// cyb-llm as a library. A complete program:
//
//   #include <cyb/cyb.h>
//   #include <cstdio>
//
//   int main() {
//     cyb::TextModel model("smollm2.model");
//     const std::vector<cyb::ChatTurn> turns = {{"user", "Why is the sky blue?"}};
//     const cyb::TextResult r = model.chat(turns, {.max_tokens = 100}, [](std::string_view piece) {
//       std::fwrite(piece.data(), 1, piece.size(), stdout);
//       return true;
//     });
//     std::printf("\n(%s)\n", r.finish_reason.c_str());
//   }
//
// Link with the CMake target `cyb`. Every failure is a cyb::Error (base/error.h): its kind, what was found,
// what to do. Threads: a TextModel computes on threads of its own and is used by one thread at a time;
// several models may be used by several threads. stop() alone may be called from any thread while another one
// generates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

struct TextModelOptions {
  int threads = 0;  // 0: all processors
  int64_t context =
      0;  // tokens of prompt and answer together; 0: what the model was trained for and memory holds
  bool exact = false;  // f32 throughout, as the reference computes
};

struct TextOptions {
  int64_t max_tokens = -1;  // −1: to the end of the context
  std::optional<double> temperature =
      std::nullopt;  // absent: as the model says; 0: always the likeliest token
  std::optional<int64_t> top_k = std::nullopt;
  std::optional<double> top_p = std::nullopt, min_p = std::nullopt;
  uint64_t seed = 0;
  std::vector<std::string> stop = {};  // texts that end the answer and are not part of it
};

struct ChatTurn {
  std::string role;  // system, user, assistant
  std::string text;
};

struct TextResult {
  std::string text;
  std::string finish_reason;  // stop, length, cancelled
  int64_t prompt_tokens = 0, generated_tokens = 0;
};

class TextModel {
 public:
  explicit TextModel(const std::string& path, const TextModelOptions& options = {});
  ~TextModel();
  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;

  int64_t context() const;
  std::vector<int32_t> tokenize(std::string_view text) const;

  // Text in pieces as it comes, always whole characters; false ends the answer.
  using OnText = std::function<bool(std::string_view)>;
  // The answer to a conversation. What it shares with the one before is not computed again.
  TextResult chat(const std::vector<ChatTurn>& turns, const TextOptions& options = {},
                  const OnText& on_text = nullptr);
  // What follows a text.
  TextResult complete(const std::string& text, const TextOptions& options = {},
                      const OnText& on_text = nullptr);
  // Ends the answer that another thread is generating, with finish_reason "cancelled".
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cyb
