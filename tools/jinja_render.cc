// SPDX-License-Identifier: Apache-2.0
// Renders chat templates for comparison with Python's jinja2: one JSON object a line in, one a line out.
// In:  {"template": text, "context": object, "now": "2024-07-26T12:34:56" (optional)}
//      {"template": text, "chat": {messages, tools, add_generation_prompt, extra}} goes through render_chat.
// Out: {"output": text} or {"error": {"kind": name, "message": text}}.
#include <cstdio>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "text/template/chat.h"
#include "text/template/template.h"

using nlohmann::ordered_json;

namespace {

std::tm parse_time(const std::string& text) {
  std::tm t{};
  if (std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min,
                  &t.tm_sec) != 6) {
    throw cyb::error(cyb::ErrorKind::Usage, "'{}' is not a time", text);
  }
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  timegm(&t);  // fills in the day of the week and of the year
  return t;
}

ordered_json render(const ordered_json& request) {
  try {
    cyb::RenderOptions options;
    if (request.contains("now")) options.now = parse_time(request["now"].get<std::string>());
    auto chat_template = cyb::ChatTemplate::parse(request.at("template").get_ref<const std::string&>());
    if (!request.contains("chat")) return {{"output", chat_template.render(request.at("context"), options)}};
    const ordered_json& chat = request["chat"];
    cyb::ChatOptions chat_options;
    chat_options.render = options;
    chat_options.add_generation_prompt = chat.value("add_generation_prompt", false);
    return {
        {"output", cyb::render_chat(chat_template, chat.at("messages"), chat.value("tools", ordered_json()),
                                    chat.value("extra", ordered_json::object()), chat_options)}};
  } catch (const cyb::Error& e) {
    return {{"error", {{"kind", cyb::to_string(e.kind())}, {"message", e.message()}}}};
  }
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line))
    std::cout << render(ordered_json::parse(line)).dump() << '\n' << std::flush;
}
