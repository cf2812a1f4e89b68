// SPDX-License-Identifier: Apache-2.0
#include "hub/partial.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

namespace cyb {

std::optional<uint64_t> parse_size(const std::string& text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string print_partial_state(const PartialState& state) {
  nlohmann::json json = {
      {"url", state.url}, {"validator", state.validator}, {"sha256", state.sha256}, {"synced", state.synced}};
  if (state.size) json["size"] = *state.size;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<PartialState> parse_partial_state(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  PartialState state;
  const auto read = [&](const char* key, std::string& target) {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_string()) return false;
    target = it->get<std::string>();
    return true;
  };
  if (!read("url", state.url) || !read("validator", state.validator) || !read("sha256", state.sha256))
    return std::nullopt;
  const auto synced = json.find("synced");
  if (synced == json.end() || !synced->is_number_unsigned()) return std::nullopt;
  state.synced = synced->get<uint64_t>();
  if (const auto size = json.find("size"); size != json.end()) {
    if (!size->is_number_unsigned()) return std::nullopt;
    state.size = size->get<uint64_t>();
  }
  return state;
}

std::optional<ContentRange> parse_content_range(const std::string& text) {
  std::string_view rest = text;
  const std::string_view unit = "bytes ";
  if (rest.size() < unit.size()) return std::nullopt;
  for (size_t i = 0; i < unit.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(rest[i])) != unit[i]) return std::nullopt;
  rest.remove_prefix(unit.size());
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  const std::string span(rest.substr(0, slash)), total(rest.substr(slash + 1));
  if (total != "*" && !(range.total = parse_size(total))) return std::nullopt;
  if (span == "*") return range.total ? std::optional(range) : std::nullopt;
  const auto dash = span.find('-');
  if (dash == std::string::npos) return std::nullopt;
  range.first = parse_size(span.substr(0, dash));
  range.last = parse_size(span.substr(dash + 1));
  if (!range.first || !range.last || *range.last < *range.first) return std::nullopt;
  if (range.total && *range.last >= *range.total) return std::nullopt;
  return range;
}

std::string range_validator(const std::string& etag, const std::string& last_modified) {
  if (etag.size() > 2 && etag.front() == '"') return etag;  // weak ones start with W/
  return last_modified;
}

std::string sha256_of_etag(const std::string& etag) {
  std::string text = etag;
  if (text.rfind("W/", 0) == 0) text.erase(0, 2);
  if (text.size() == 66 && text.front() == '"' && text.back() == '"') text = text.substr(1, 64);
  if (text.size() != 64) return "";
  for (char& c : text) {
    if (!std::isxdigit(static_cast<unsigned char>(c))) return "";
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace cyb
