// SPDX-License-Identifier: Apache-2.0
#include "hub/url.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "hub/curl_library.h"

namespace cyb {
namespace {

using Url = std::unique_ptr<CURLU, decltype(CurlLibrary::url_cleanup)>;

Url parse(const std::string& url) {
  Url handle(curl_library().url(), curl_library().url_cleanup);
  if (!handle || curl_library().url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    handle.reset();
  return handle;
}

std::string part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (!url || curl_library().url_get(url.get(), which, &text, flags) != CURLUE_OK || !text) return "";
  std::string out = text;
  curl_library().free(text);
  return out;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::string url_host(const std::string& url) { return lower(part(parse(url), CURLUPART_HOST)); }

std::string url_origin(const std::string& url) {
  const Url parsed = parse(url);
  const std::string scheme = lower(part(parsed, CURLUPART_SCHEME));
  const std::string host = lower(part(parsed, CURLUPART_HOST));
  if (host.empty() || (scheme != "http" && scheme != "https")) return "";
  return scheme + "://" + host + ":" + part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::string url_path(const std::string& url) { return part(parse(url), CURLUPART_PATH, CURLU_URLDECODE); }

std::string url_fragment(const std::string& url) { return part(parse(url), CURLUPART_FRAGMENT); }

std::string resolve_url(const std::string& base, const std::string& reference) {
  const Url url = parse(base);
  if (!url || curl_library().url_set(url.get(), CURLUPART_URL, reference.c_str(), 0) != CURLUE_OK) return "";
  return part(url, CURLUPART_URL);
}

std::string escape_path(const std::string& path) {
  static const char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string printable_url(const std::string& url) {
  const Url parsed = parse(url);
  if (!parsed) return url.substr(0, 200);
  for (const CURLUPart which : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT})
    curl_library().url_set(parsed.get(), which, nullptr, 0);
  return part(parsed, CURLUPART_URL);
}

bool safe_relative_path(const std::string& path) {
  if (path.empty() || path.size() > 1024 || path.front() == '/' || path.back() == '/') return false;
  size_t begin = 0;
  for (;;) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string piece = path.substr(begin, end - begin);
    if (piece.empty() || piece == "." || piece == "..") return false;
    if (end == path.size()) break;
    begin = end + 1;
  }
  return std::none_of(path.begin(), path.end(),
                      [](unsigned char c) { return c < 32 || c == 127 || c == '\\' || c == ':'; });
}

}  // namespace cyb
