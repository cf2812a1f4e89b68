// SPDX-License-Identifier: Apache-2.0
// Conversations to prompts: the variables, nulls, tool calls, reasoning, malformed history.
#include "text/template/chat.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cyb {
namespace {

using nlohmann::ordered_json;

ChatTemplate chatml() {
  return ChatTemplate::parse(
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
}

// A message with one call whose arguments are these.
ordered_json called(const ordered_json& arguments) {
  return ordered_json::array(
      {{{"role", "user"}, {"content", "q"}},
       {{"role", "assistant"},
        {"content", nullptr},
        {"tool_calls", ordered_json::array({{{"id", "call00001"},
                                             {"type", "function"},
                                             {"function", {{"name", "f"}, {"arguments", arguments}}}}})}}});
}

std::string usage_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Usage) << e.what();
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(RenderChat, GivesMessagesAndGenerationPrompt) {
  Message user;
  user.role = "user";
  user.content = "Hi";
  EXPECT_EQ(render_chat(chatml(), std::vector<Message>{user}, nullptr, nullptr),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  ChatOptions options;
  options.add_generation_prompt = false;
  EXPECT_EQ(render_chat(chatml(), std::vector<Message>{user}, nullptr, nullptr, options),
            "<|im_start|>user\nHi<|im_end|>\n");
}

TEST(RenderChat, GivesTheVariablesOfTransformers) {
  auto t = ChatTemplate::parse(
      "{{ bos_token }}|{{ tools is none }}|{{ documents is none }}|{{ add_generation_prompt }}|{{ eos_token "
      "is defined }}|{{ enable_thinking }}");
  EXPECT_EQ(
      render_chat(t, ordered_json::array(), nullptr, {{"bos_token", "<s>"}, {"enable_thinking", false}}),
      "<s>|True|True|True|False|False");
  EXPECT_EQ(render_chat(t, ordered_json::array(), ordered_json::array(),
                        {{"tools", 5}, {"add_generation_prompt", 5}, {"enable_thinking", 1}}),
            "|True|True|True|False|1");
}

TEST(RenderChat, NullIsTheSameAsAbsent) {
  auto t = ChatTemplate::parse("{% for m in messages %}{{ m }}{% endfor %}{{ tools }}");
  ordered_json messages =
      ordered_json::parse(R"([{"role": "user", "content": null, "name": null, "tool_calls": null}])");
  ordered_json tools = ordered_json::parse(
      R"([{"type": "function", "function": {"name": "f", "description": null, "parameters": {"default": null}}}])");
  EXPECT_EQ(
      render_chat(t, messages, tools, nullptr),
      "{'role': 'user'}[{'type': 'function', 'function': {'name': 'f', 'parameters': {'default': None}}}]");
}

TEST(RenderChat, ArgumentsTakeTheFormThatTheTemplateWants) {
  auto object = ChatTemplate::parse(
      "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments|tojson }}{% endfor %}{% "
      "endfor %}");
  auto text = ChatTemplate::parse(
      "{% for m in messages %}{% for c in m.tool_calls %}{{ 'args: ' + c.function.arguments }}{% endfor %}{% "
      "endfor %}");
  auto shown = ChatTemplate::parse(
      "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}{% endfor %}");
  auto neither = ChatTemplate::parse("{% for m in messages %}{{ m.role }}{% endfor %}");
  auto refuses = ChatTemplate::parse("{{ raise_exception('no tools') if messages[1] }}");
  EXPECT_EQ(argument_form(object), ArgumentForm::Object);
  EXPECT_EQ(argument_form(text), ArgumentForm::Text);
  EXPECT_EQ(argument_form(shown), ArgumentForm::Text);
  EXPECT_EQ(argument_form(neither), ArgumentForm::Object);
  EXPECT_EQ(argument_form(refuses), ArgumentForm::Object);
  for (const ordered_json& arguments :
       {ordered_json{{"b", 1}, {"a", "x"}}, ordered_json(R"({"b":1,"a":"x"})")}) {
    EXPECT_EQ(render_chat(object, called(arguments), nullptr, nullptr), R"({"b": 1, "a": "x"})");
    EXPECT_EQ(render_chat(text, called(arguments), nullptr, nullptr), R"(args: {"b":1,"a":"x"})");
  }
  EXPECT_EQ(render_chat(text, called(R"({"b":  1})"), nullptr, nullptr), R"(args: {"b":  1})");
}

TEST(RenderChat, MalformedArgumentsNameTheMessage) {
  for (const char* bad : {"{\"a\": ", "[1]", "nonsense", "5"}) {
    EXPECT_NE(usage_error([&] { render_chat(chatml(), called(bad), nullptr, nullptr); }).find("message 1:"),
              std::string::npos)
        << bad;
    EXPECT_NE(usage_error([&] { Message::from_json(called(bad)[1], 7); }).find("message 7:"),
              std::string::npos)
        << bad;
  }
  EXPECT_NE(usage_error([&] { render_chat(chatml(), called(5), nullptr, nullptr); }).find("message 1:"),
            std::string::npos);
}

TEST(RenderChat, ReasoningGoesByAllItsNames) {
  auto t = ChatTemplate::parse("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}");
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    EXPECT_EQ(render_chat(t, ordered_json::array({{{"role", "assistant"}, {key, "r"}}}), nullptr, nullptr),
              "rr")
        << key;
  }
}

TEST(RenderChat, WhatIsNotAConversationIsAUsageError) {
  EXPECT_NE(usage_error([] { render_chat(chatml(), ordered_json(5), nullptr, nullptr); }).find("messages"),
            std::string::npos);
  EXPECT_NE(usage_error([] {
              render_chat(chatml(), ordered_json::array({1}), nullptr, nullptr);
            }).find("message 0"),
            std::string::npos);
  EXPECT_NE(usage_error([] {
              render_chat(chatml(), ordered_json::array(), ordered_json(5), nullptr);
            }).find("tools"),
            std::string::npos);
  EXPECT_NE(usage_error([] {
              render_chat(chatml(), ordered_json::array(), ordered_json::array({5}), nullptr);
            }).find("tool 0"),
            std::string::npos);
  EXPECT_NE(usage_error([] {
              render_chat(chatml(), ordered_json::array(), nullptr, ordered_json(5));
            }).find("variables"),
            std::string::npos);
  EXPECT_NE(
      usage_error([] {
        render_chat(chatml(), ordered_json::array({{{"role", "user"}, {"tool_calls", 5}}}), nullptr, nullptr);
      }).find("message 0"),
      std::string::npos);
}

TEST(Message, GoesToJsonAndBack) {
  ordered_json json = ordered_json::parse(R"({
    "role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}],
    "reasoning_content": "r", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}],
    "tool_call_id": "t", "name": "n"})");
  EXPECT_EQ(Message::from_json(json).to_json(), json);
  Message plain = Message::from_json(ordered_json::parse(
      R"({"role": "user", "content": "x", "name": null, "tool_calls": null, "tool_call_id": null})"));
  EXPECT_EQ(plain.to_json(), ordered_json::parse(R"({"role": "user", "content": "x"})"));
  EXPECT_EQ(Message::from_json(called({{"q", 1}})[1]).tool_calls[0].arguments, R"({"q":1})");
}

TEST(Message, RefusesWhatIsNotOne) {
  for (const char* bad :
       {"5", "{}", R"({"role": 5})", R"({"role": "user", "content": 5})",
        R"({"role": "user", "content": [5]})", R"({"role": "user", "content": [{"text": "x"}]})",
        R"({"role": "a", "tool_calls": 5})", R"({"role": "a", "tool_calls": [{}]})",
        R"({"role": "a", "name": 5})"}) {
    EXPECT_NE(usage_error([&] { Message::from_json(ordered_json::parse(bad), 3); }).find("message 3:"),
              std::string::npos)
        << bad;
  }
}

}  // namespace
}  // namespace cyb
