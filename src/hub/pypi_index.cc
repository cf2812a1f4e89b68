// SPDX-License-Identifier: Apache-2.0
#include "hub/pypi_index.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "hub/fetch_error.h"
#include "hub/partial.h"
#include "hub/url.h"

namespace cyb {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

FetchError no_page(const std::string& page_url, const std::string& found) {
  return FetchError(FetchFailure::corrupt, fmt::format("{}: {}", printable_url(page_url), found),
                    "check that the index setting (pip config, PIP_INDEX_URL) names a package index");
}

std::string unescape_html(const std::string& text) {
  static const std::pair<const char*, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&#x27;", '\''}};
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool found = false;
    for (const auto& [entity, c] : kEntities)
      if (text.compare(i, std::string_view(entity).size(), entity) == 0) {
        out += c;
        i += std::string_view(entity).size();
        found = true;
        break;
      }
    if (!found) out += text[i++];
  }
  return out;
}

// The attributes of the tag whose name ends at `at`; `at` moves behind its '>'.
std::vector<std::pair<std::string, std::string>> read_attributes(const std::string& text, size_t& at) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (at < text.size() && text[at] != '>') {
    if (space(text[at]) || text[at] == '/') {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && text[at] != '=' && text[at] != '>' && !space(text[at])) ++at;
    const std::string name = lower(text.substr(begin, at - begin));
    std::string value;
    while (at < text.size() && space(text[at])) ++at;
    if (at < text.size() && text[at] == '=') {
      ++at;
      while (at < text.size() && space(text[at])) ++at;
      if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
        const size_t end = std::min(text.find(text[at], at + 1), text.size());
        value = text.substr(at + 1, end - at - 1);
        at = std::min(end + 1, text.size());
      } else {
        const size_t from = at;
        while (at < text.size() && text[at] != '>' && !space(text[at])) ++at;
        value = text.substr(from, at - from);
      }
    }
    out.emplace_back(name, unescape_html(value));
  }
  if (at < text.size()) ++at;
  return out;
}

// The last piece of an address, decoded.
std::string last_piece(const std::string& url) {
  const std::string path = url_path(url);
  return path.substr(path.rfind('/') + 1);
}

std::string hash_of_fragment(const std::string& url) {
  const std::string fragment = url_fragment(url);
  return fragment.rfind("sha256=", 0) == 0 ? sha256_of_etag(fragment.substr(7)) : "";
}

// A version cut for comparison; `ok` is false for what no packaging tool would write.
struct Version {
  bool ok = false;
  uint64_t epoch = 0;
  std::vector<uint64_t> release;
  // Pre-release phase: dev only < a < b < rc < none.
  int phase = 4;
  uint64_t phase_number = 0;
  int64_t post = -1, dev = -1;
};

uint64_t take_number(const std::string& text, size_t& at) {
  uint64_t value = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])))
    value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(text[at++] - '0'), 1ull << 48);
  return value;
}

Version parse_version(const std::string& raw) {
  std::string text = lower(raw.substr(0, raw.find('+')));
  if (!text.empty() && text[0] == 'v') text.erase(0, 1);
  Version out;
  size_t at = 0;
  const auto digit = [&] { return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); };
  if (!digit()) return out;
  uint64_t number = take_number(text, at);
  if (at < text.size() && text[at] == '!') {
    out.epoch = number;
    ++at;
    if (!digit()) return out;
    number = take_number(text, at);
  }
  out.release.push_back(number);
  while (at + 1 < text.size() && text[at] == '.' && std::isdigit(static_cast<unsigned char>(text[at + 1]))) {
    ++at;
    out.release.push_back(take_number(text, at));
  }
  while (out.release.size() > 1 && out.release.back() == 0) out.release.pop_back();
  while (at < text.size()) {
    const bool dash = text[at] == '-';
    while (at < text.size() && (text[at] == '.' || text[at] == '-' || text[at] == '_')) ++at;
    if (dash && digit()) {  // 1.0-1 is a post release
      out.post = static_cast<int64_t>(take_number(text, at));
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at]))) ++at;
    const std::string word = text.substr(begin, at - begin);
    if (word.empty()) return out;
    if (at + 1 < text.size() && (text[at] == '.' || text[at] == '-' || text[at] == '_') &&
        std::isdigit(static_cast<unsigned char>(text[at + 1])))
      ++at;
    const uint64_t value = take_number(text, at);
    if (word == "a" || word == "alpha")
      out.phase = 1, out.phase_number = value;
    else if (word == "b" || word == "beta")
      out.phase = 2, out.phase_number = value;
    else if (word == "rc" || word == "c" || word == "pre" || word == "preview")
      out.phase = 3, out.phase_number = value;
    else if (word == "post" || word == "rev" || word == "r")
      out.post = static_cast<int64_t>(value);
    else if (word == "dev")
      out.dev = static_cast<int64_t>(value);
    else
      return out;
  }
  if (out.phase == 4 && out.post < 0 && out.dev >= 0) out.phase = 0;
  out.ok = true;
  return out;
}

template <class T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

std::vector<IndexFile> parse_index_json(const std::string& text, const std::string& page_url) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array())
    throw no_page(page_url, "the answer is no list of files");
  if (const auto meta = json.find("meta"); meta != json.end() && meta->is_object())
    if (const auto version = meta->find("api-version"); version != meta->end() && version->is_string())
      if (version->get<std::string>().rfind("1.", 0) != 0)
        throw no_page(page_url,
                      fmt::format("found API version '{}', known is 1", version->get<std::string>()));
  std::vector<IndexFile> out;
  for (const auto& item : json["files"]) {
    if (!item.is_object() || !item.contains("filename") || !item["filename"].is_string() ||
        !item.contains("url") || !item["url"].is_string())
      throw no_page(page_url, "a file has no name or no address");
    IndexFile file;
    file.filename = item["filename"].get<std::string>();
    const std::string url = item["url"].get<std::string>();
    file.sha256 = hash_of_fragment(resolve_url(page_url, url));
    file.url = resolve_url(page_url, url.substr(0, url.find('#')));
    if (const auto hashes = item.find("hashes"); hashes != item.end() && hashes->is_object())
      if (const auto hash = hashes->find("sha256"); hash != hashes->end() && hash->is_string()) {
        file.sha256 = sha256_of_etag(hash->get<std::string>());
        if (file.sha256.empty())
          throw no_page(page_url, "the digest of '" + file.filename + "' is no SHA-256");
      }
    if (const auto size = item.find("size"); size != item.end() && size->is_number_unsigned())
      file.size = size->get<uint64_t>();
    if (const auto yanked = item.find("yanked"); yanked != item.end())
      file.yanked = yanked->is_string() || (yanked->is_boolean() && yanked->get<bool>());
    if (!file.url.empty()) out.push_back(std::move(file));
  }
  return out;
}

std::vector<IndexFile> parse_index_html(const std::string& text, const std::string& page_url) {
  std::vector<IndexFile> out;
  std::string base = page_url;
  bool any_tag = false;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    ++at;
    if (text.compare(at, 3, "!--") == 0) {
      at = std::min(text.find("-->", at), text.size());
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]))) ++at;
    const std::string tag = lower(text.substr(begin, at - begin));
    if (tag != "a" && tag != "base") {
      any_tag = any_tag || tag == "html" || tag == "body";
      continue;
    }
    any_tag = true;
    IndexFile file;
    std::string href;
    for (const auto& [name, value] : read_attributes(text, at)) {
      if (name == "href") href = value;
      if (name == "data-yanked") file.yanked = true;
    }
    if (tag == "base") {
      const std::string changed = resolve_url(page_url, href);
      if (!changed.empty()) base = changed;
      continue;
    }
    if (href.empty()) continue;
    const std::string url = resolve_url(base, href);
    if (url.empty()) continue;
    file.sha256 = hash_of_fragment(url);
    file.url = url.substr(0, url.find('#'));
    file.filename = last_piece(file.url);
    out.push_back(std::move(file));
  }
  if (!any_tag) throw no_page(page_url, "the answer is no page of links");
  return out;
}

std::string normal_project_name(const std::string& name) {
  std::string out;
  for (const char c : lower(name)) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  return out;
}

int compare_versions(const std::string& a, const std::string& b) {
  const Version x = parse_version(a), y = parse_version(b);
  if (x.ok != y.ok) return x.ok ? 1 : -1;
  if (!x.ok) return order(a, b);
  if (const int c = order(x.epoch, y.epoch)) return c;
  if (const int c = order(x.release, y.release)) return c;
  if (const int c = order(x.phase, y.phase)) return c;
  if (const int c = order(x.phase_number, y.phase_number)) return c;
  if (const int c = order(x.post, y.post)) return c;
  const auto dev = [](const Version& v) { return v.dev < 0 ? INT64_MAX : v.dev; };
  return order(dev(x), dev(y));
}

bool is_prerelease(const std::string& version) {
  const Version parsed = parse_version(version);
  return !parsed.ok || parsed.phase < 4 || parsed.dev >= 0;
}

std::optional<Wheel> parse_wheel_name(const std::string& filename) {
  const std::string suffix = ".whl";
  if (filename.size() <= suffix.size() || !filename.ends_with(suffix)) return std::nullopt;
  std::vector<std::string> pieces;
  const std::string stem = filename.substr(0, filename.size() - suffix.size());
  for (size_t begin = 0;;) {
    const size_t end = std::min(stem.find('-', begin), stem.size());
    pieces.push_back(stem.substr(begin, end - begin));
    if (end == stem.size()) break;
    begin = end + 1;
  }
  if (pieces.size() != 5 && pieces.size() != 6) return std::nullopt;  // six: with a build number
  const size_t tags = pieces.size() - 3;
  return Wheel{pieces[0], pieces[1], pieces[tags] + "-" + pieces[tags + 1] + "-" + pieces[tags + 2]};
}

IndexFile choose_wheel(const std::vector<IndexFile>& files, const std::string& project,
                       const std::string& version) {
  const IndexFile* best = nullptr;
  std::string best_version, seen;
  bool best_any = false, best_stable = false;
  for (const IndexFile& file : files) {
    const auto wheel = parse_wheel_name(file.filename);
    if (!wheel || normal_project_name(wheel->project) != normal_project_name(project)) continue;
    if (seen.find(wheel->version) == std::string::npos && seen.size() < 200)
      seen += (seen.empty() ? "" : ", ") + wheel->version;
    if (!version.empty() ? compare_versions(wheel->version, version) != 0 : file.yanked) continue;
    const bool any = wheel->tags.ends_with("-any");
    const bool stable = !is_prerelease(wheel->version);
    const int newer = best ? compare_versions(wheel->version, best_version) : 1;
    const bool better = !best || (stable != best_stable ? stable : newer != 0 ? newer > 0 : any && !best_any);
    if (!better) continue;
    best = &file;
    best_version = wheel->version;
    best_any = any;
    best_stable = stable;
  }
  if (best) return *best;
  const std::string wanted = version.empty() ? project : project + "==" + version;
  if (seen.empty())
    throw FetchError(FetchFailure::refused, fmt::format("the index has no wheel of '{}'", wanted),
                     "only packages with wheels can be used: check the name");
  throw FetchError(FetchFailure::refused, fmt::format("the index has no usable wheel of '{}'", wanted),
                   "it has the versions " + seen);
}

}  // namespace cyb
