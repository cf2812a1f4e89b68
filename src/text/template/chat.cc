// SPDX-License-Identifier: Apache-2.0
// Conversations to prompts.
#include "text/template/chat.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cyb {
namespace {

using nlohmann::ordered_json;

const ordered_json* member(const ordered_json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text_member(const ordered_json& object, const char* key, size_t index) {
  const ordered_json* value = member(object, key);
  if (!value) return {};
  if (!value->is_string()) throw error(ErrorKind::Usage, "message {}: '{}' must be a string", index, key);
  return value->get<std::string>();
}

ordered_json without_nulls(const ordered_json& object) {
  if (!object.is_object()) return object;
  ordered_json out = ordered_json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null()) out[key] = value;
  }
  return out;
}

// The arguments of a call as an object, whichever form they came in.
ordered_json parsed_arguments(const ordered_json& arguments, size_t index) {
  if (arguments.is_object()) return arguments;
  if (!arguments.is_string())
    throw error(ErrorKind::Usage,
                "message {}: the arguments of a tool call must be an object or its JSON text", index);
  const auto& text = arguments.get_ref<const std::string&>();
  if (text.find_first_not_of(" \t\r\n") == text.npos) return ordered_json::object();
  ordered_json parsed = ordered_json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    throw error(ErrorKind::Usage, "message {}: the arguments of a tool call are not a JSON object: {}", index,
                text.substr(0, 200))
        .advise("send them complete, or leave the call out of the history");
  }
  return parsed;
}

ordered_json prepared_call(const ordered_json& given, std::optional<ArgumentForm> form, size_t index) {
  if (!given.is_object()) throw error(ErrorKind::Usage, "message {}: a tool call must be an object", index);
  ordered_json call = without_nulls(given);
  // Both {"function": {"name", "arguments"}} and {"name", "arguments"} are in use.
  bool nested = call.contains("function");
  if (nested) call["function"] = without_nulls(call["function"]);
  ordered_json& function = nested ? call["function"] : call;
  if (!function.is_object())
    throw error(ErrorKind::Usage, "message {}: the function of a tool call must be an object", index);
  if (!function.contains("arguments")) return call;
  ordered_json& arguments = function["arguments"];
  ordered_json parsed = parsed_arguments(arguments, index);
  if (form == ArgumentForm::Object) {
    arguments = std::move(parsed);
  } else if (form == ArgumentForm::Text && arguments.is_object()) {
    arguments = arguments.dump();
  }
  return call;
}

// Reasoning goes by several names; templates read one or another.
ordered_json with_reasoning_names(const ordered_json& message) {
  const ordered_json* reasoning = nullptr;
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    if (!reasoning) reasoning = member(message, key);
  }
  if (!reasoning) return message;
  ordered_json out = ordered_json::object();
  out["thinking"] = *reasoning;
  for (const auto& [key, value] : message.items()) out[key] = value;
  out["reasoning_content"] = *reasoning;
  return out;
}

ordered_json prepared_messages(const ordered_json& messages, std::optional<ArgumentForm> form) {
  ordered_json out = ordered_json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) throw error(ErrorKind::Usage, "message {}: must be an object", i);
    ordered_json message = without_nulls(messages[i]);
    if (message.contains("tool_calls")) {
      if (!message["tool_calls"].is_array())
        throw error(ErrorKind::Usage, "message {}: 'tool_calls' must be a list", i);
      for (ordered_json& call : message["tool_calls"]) call = prepared_call(call, form, i);
    }
    out.push_back(with_reasoning_names(message));
  }
  return out;
}

ordered_json prepared_tools(const ordered_json& tools) {
  if (tools.is_null() || (tools.is_array() && tools.empty())) return nullptr;
  if (!tools.is_array()) throw error(ErrorKind::Usage, "'tools' must be a list");
  ordered_json out = ordered_json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    if (!tools[i].is_object()) throw error(ErrorKind::Usage, "tool {}: must be an object", i);
    ordered_json tool = without_nulls(tools[i]);
    if (tool.contains("function")) tool["function"] = without_nulls(tool["function"]);
    out.push_back(std::move(tool));
  }
  return out;
}

bool has_tool_calls(const ordered_json& messages) {
  for (const auto& message : messages) {
    const ordered_json* calls = member(message, "tool_calls");
    if (calls && !calls->empty()) return true;
  }
  return false;
}

}  // namespace

Message Message::from_json(const ordered_json& json, size_t index) {
  if (!json.is_object()) throw error(ErrorKind::Usage, "message {}: must be an object", index);
  Message out;
  out.role = text_member(json, "role", index);
  if (out.role.empty()) throw error(ErrorKind::Usage, "message {}: 'role' is missing", index);
  if (const ordered_json* content = member(json, "content")) {
    if (content->is_string()) {
      out.content = content->get<std::string>();
    } else if (content->is_array()) {
      for (const ordered_json& part : *content) {
        if (!part.is_object() || !member(part, "type"))
          throw error(ErrorKind::Usage, "message {}: a part of the content needs a 'type'", index);
        ContentPart p;
        p.type = text_member(part, "type", index);
        if (p.type == "text") {
          p.text = text_member(part, "text", index);
        } else {
          p.json = part.dump();
        }
        out.parts.push_back(std::move(p));
      }
    } else {
      throw error(ErrorKind::Usage, "message {}: 'content' must be a string or a list of parts", index);
    }
  }
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    if (out.reasoning.empty()) out.reasoning = text_member(json, key, index);
  }
  if (const ordered_json* calls = member(json, "tool_calls")) {
    if (!calls->is_array()) throw error(ErrorKind::Usage, "message {}: 'tool_calls' must be a list", index);
    for (const ordered_json& call : *calls) {
      const ordered_json* function = member(call, "function");
      if (!function) function = &call;
      ToolCall c;
      c.id = text_member(call, "id", index);
      c.name = text_member(*function, "name", index);
      if (c.name.empty()) throw error(ErrorKind::Usage, "message {}: a tool call needs a name", index);
      const ordered_json* arguments = member(*function, "arguments");
      if (arguments) {
        ordered_json parsed = parsed_arguments(*arguments, index);
        c.arguments = arguments->is_string() ? arguments->get<std::string>() : parsed.dump();
      }
      if (c.arguments.empty()) c.arguments = "{}";
      out.tool_calls.push_back(std::move(c));
    }
  }
  out.tool_call_id = text_member(json, "tool_call_id", index);
  out.name = text_member(json, "name", index);
  return out;
}

ordered_json Message::to_json() const {
  ordered_json out = {{"role", role}};
  if (content) {
    out["content"] = *content;
  } else if (!parts.empty()) {
    out["content"] = ordered_json::array();
    for (const ContentPart& part : parts) {
      if (part.type == "text") {
        out["content"].push_back({{"type", "text"}, {"text", part.text}});
      } else {
        out["content"].push_back(ordered_json::parse(part.json));
      }
    }
  }
  if (!reasoning.empty()) out["reasoning_content"] = reasoning;
  for (const ToolCall& call : tool_calls) {
    ordered_json c = ordered_json::object();
    if (!call.id.empty()) c["id"] = call.id;
    c["type"] = "function";
    c["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    out["tool_calls"].push_back(std::move(c));
  }
  if (!tool_call_id.empty()) out["tool_call_id"] = tool_call_id;
  if (!name.empty()) out["name"] = name;
  return out;
}

ArgumentForm argument_form(const ChatTemplate& chat_template) {
  constexpr std::string_view needle = "probe_argument";
  auto rendered = [&](const ordered_json& arguments) -> std::string {
    ordered_json context = {
        {"messages",
         {{{"role", "user"}, {"content", "question"}},
          {{"role", "assistant"},
           {"content", ""},
           {"tool_calls",
            {{{"id", "call00001"},
              {"type", "function"},
              {"function", {{"name", "probe"}, {"arguments", arguments}}}}}}},
          {{"role", "tool"}, {"tool_call_id", "call00001"}, {"name", "probe"}, {"content", "answer"}}}},
        {"tools", nullptr},
        {"documents", nullptr},
        {"add_generation_prompt", false},
        {"bos_token", ""},
        {"eos_token", ""},
    };
    RenderOptions options;
    options.limits.work = 5'000'000;
    options.limits.memory = 64u << 20;
    options.limits.text = 1u << 20;
    try {
      return chat_template.render(context, options);
    } catch (const Error&) {
      return {};
    }
  };
  auto shows = [&](const std::string& text, char quote) {
    return text.find(quote + std::string(needle) + quote) != std::string::npos;
  };
  ordered_json arguments = {{std::string(needle), "value"}};
  std::string as_object = rendered(arguments);
  bool python_text = shows(as_object, '\'');  // the object was written as Python shows a dict
  if (as_object.find(needle) != std::string::npos && !python_text) return ArgumentForm::Object;
  return shows(rendered(arguments.dump()), '"') ? ArgumentForm::Text : ArgumentForm::Object;
}

std::string render_chat(const ChatTemplate& chat_template, const ordered_json& messages,
                        const ordered_json& tools, const ordered_json& extra, const ChatOptions& options) {
  if (!messages.is_array()) throw error(ErrorKind::Usage, "'messages' must be a list");
  if (!extra.is_null() && !extra.is_object())
    throw error(ErrorKind::Usage, "the variables of a chat template must be an object");
  std::optional<ArgumentForm> form = options.arguments;
  if (!form && has_tool_calls(messages)) form = argument_form(chat_template);
  ordered_json context = {
      {"messages", prepared_messages(messages, form)},
      {"tools", prepared_tools(tools)},
      {"documents", nullptr},
      {"add_generation_prompt", options.add_generation_prompt},
  };
  for (const auto& [key, value] : extra.items()) {
    if (key != "messages" && key != "tools" && key != "add_generation_prompt") context[key] = value;
  }
  return chat_template.render(context, options.render);
}

std::string render_chat(const ChatTemplate& chat_template, const std::vector<Message>& messages,
                        const ordered_json& tools, const ordered_json& extra, const ChatOptions& options) {
  ordered_json list = ordered_json::array();
  for (const Message& message : messages) list.push_back(message.to_json());
  return render_chat(chat_template, list, tools, extra, options);
}

}  // namespace cyb
