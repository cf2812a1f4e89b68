// SPDX-License-Identifier: Apache-2.0
// Conversations, and the prompt that a chat template makes of them, with the variables that transformers'
// apply_chat_template gives.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "text/template/template.h"

namespace cyb {

struct ToolCall {
  std::string id;  // may be empty
  std::string name;
  std::string arguments;  // JSON text of an object
};

// A piece of a message's content: {"type": "text", "text": …}, or another type with its own keys.
struct ContentPart {
  std::string type;
  std::string text;  // of type "text"
  std::string json;  // other types: the whole part as JSON text
};

struct Message {
  std::string role;
  std::optional<std::string> content;  // plain text, or
  std::vector<ContentPart> parts;      // parts, when there is no plain text
  std::string reasoning;               // "reasoning_content"
  std::vector<ToolCall> tool_calls;    // of an assistant
  std::string tool_call_id;            // of a tool's answer
  std::string name;

  // From a message as the OpenAI API has it. null is the same as absent. `index` is named in errors (Usage):
  // a role that is missing, content that is neither text nor parts, tool calls whose arguments are not a JSON
  // object.
  static Message from_json(const nlohmann::ordered_json& json, size_t index = 0);
  // Empty fields are left out; arguments of tool calls are a JSON text.
  nlohmann::ordered_json to_json() const;
};

// How a template wants the arguments of tool calls in the history.
enum class ArgumentForm { Object, Text };
// Found by rendering a made-up call both ways; Object if the template does not show calls at all.
ArgumentForm argument_form(const ChatTemplate& chat_template);

struct ChatOptions {
  bool add_generation_prompt = true;
  std::optional<ArgumentForm>
      arguments;  // found out with argument_form() when not given and there are tool calls
  RenderOptions render;
};

// `messages` and `tools` (null or empty: none) as the OpenAI API has them. `extra` are more variables of the
// template: bos_token, eos_token, enable_thinking, …; they cannot replace messages, tools or
// add_generation_prompt. Keys whose value is null are dropped from messages; reasoning is passed under all of
// its names.
std::string render_chat(const ChatTemplate& chat_template, const nlohmann::ordered_json& messages,
                        const nlohmann::ordered_json& tools, const nlohmann::ordered_json& extra,
                        const ChatOptions& options = {});
std::string render_chat(const ChatTemplate& chat_template, const std::vector<Message>& messages,
                        const nlohmann::ordered_json& tools, const nlohmann::ordered_json& extra,
                        const ChatOptions& options = {});

}  // namespace cyb
