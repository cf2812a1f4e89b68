// SPDX-License-Identifier: Apache-2.0
// Chat templates: parse, render, and what goes wrong as a cyb::Error.
#include "text/template/template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/template/ast.h"
#include "text/template/renderer.h"
#include "text/template/unicode.h"

namespace cyb {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxSource = 4u << 20;

jinja::Value to_value(const ordered_json& json) {
  jinja::Depth depth;
  switch (json.type()) {
    case ordered_json::value_t::null:
      return jinja::Value::none();
    case ordered_json::value_t::boolean:
      return jinja::Value::boolean(json.get<bool>());
    case ordered_json::value_t::number_integer:
      return jinja::Value::integer(json.get<int64_t>());
    case ordered_json::value_t::number_unsigned:
      return jinja::Value::integer(json.get<uint64_t>());
    case ordered_json::value_t::number_float:
      return jinja::Value::real(json.get<double>());
    case ordered_json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (!jinja::is_valid_utf8(text))
        throw error(ErrorKind::Usage, "a text of the conversation is not valid UTF-8");
      return jinja::Value::string(text);
    }
    case ordered_json::value_t::array: {
      std::vector<jinja::Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(to_value(item));
      return jinja::Value::list(std::move(items));
    }
    case ordered_json::value_t::object: {
      jinja::Ref<jinja::Dict> dict(new jinja::Dict);
      for (const auto& [key, value] : json.items()) {
        if (!jinja::is_valid_utf8(key))
          throw error(ErrorKind::Usage, "a key of the conversation is not valid UTF-8");
        dict->set(key, to_value(value));
      }
      return jinja::Value::dict(dict);
    }
    default:
      throw error(ErrorKind::Usage, "the context of a chat template holds a value that JSON does not have");
  }
}

Error to_error(const jinja::Failure& failure, const jinja::Tree& tree, const std::string& name, size_t at) {
  if (failure.is(jinja::kTemplateError))
    return Error(ErrorKind::Usage, failure.message, "the chat template refuses this conversation");
  jinja::Position where = jinja::position_of(tree, at);
  std::string place = fmt::format("{}:{}:{}: ", name, where.line, where.column);
  if (failure.is(jinja::kUnsupported)) {
    return Error(ErrorKind::UnsupportedModel, place + "not supported in chat templates: " + failure.message,
                 "give another chat template");
  }
  if (failure.is(jinja::kLimitError)) {
    return Error(ErrorKind::InvalidConfig, place + failure.message,
                 "give another chat template or a shorter conversation");
  }
  return Error(ErrorKind::InvalidConfig, fmt::format("{}{} ({})", place, failure.message, failure.type->name),
               "the chat template does not fit the conversation; give another one");
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name) {
  if (source.size() > kMaxSource)
    throw error(ErrorKind::InvalidConfig, "{}: a template of {} bytes; {} are allowed", name, source.size(),
                kMaxSource);
  if (!jinja::is_valid_utf8(source))
    throw error(ErrorKind::InvalidConfig, "{}: the template is not valid UTF-8", name);
  auto tree = std::make_shared<jinja::Tree>();
  jinja::set_source(*tree, source);
  const TemplateLimits limits;
  jinja::Meter meter(limits.work, limits.memory, limits.text, limits.depth);
  jinja::MeterScope scope(meter);
  size_t at = 0;
  try {
    jinja::parse_tree(*tree, at);
  } catch (const jinja::Failure& failure) {
    throw to_error(failure, *tree, name, at);
  }
  ChatTemplate out;
  out.tree_ = std::move(tree);
  out.name_ = std::move(name);
  out.source_ = source;
  return out;
}

std::string ChatTemplate::render(const ordered_json& context, const RenderOptions& options) const {
  if (!context.is_object()) throw error(ErrorKind::Usage, "the context of a chat template must be an object");
  const TemplateLimits& limits = options.limits;
  jinja::Meter meter(limits.work, limits.memory, limits.text, limits.depth);
  jinja::MeterScope scope(meter);
  size_t at = 0;
  try {
    jinja::CycleGuard guard;
    jinja::Value variables = to_value(context);
    jinja::Renderer renderer(*tree_, jinja::Ref<jinja::Dict>(&variables.as<jinja::Dict>()), options.now, at);
    return renderer.run();
  } catch (const jinja::Failure& failure) {
    throw to_error(failure, *tree_, name_, at);
  }
}

}  // namespace cyb
