// SPDX-License-Identifier: Apache-2.0
#include "hub/huggingface.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/partial.h"
#include "hub/url.h"

namespace cyb {
namespace {

constexpr size_t kMostFiles = 100000;
constexpr int kMostPages = 1000;

FetchError odd_answer(const std::string& repo, const std::string& found) {
  return FetchError(FetchFailure::corrupt, fmt::format("hf:{}: {}", repo, found),
                    "check that HF_ENDPOINT names a Hub; an address of its web pages does not do");
}

std::string text_of(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

std::string license_of(const nlohmann::json& json) {
  if (const auto card = json.find("cardData"); card != json.end() && card->is_object()) {
    std::string license = text_of(*card, "license");
    const std::string name = text_of(*card, "license_name");
    if (license == "other" && !name.empty()) license = name;
    if (!license.empty()) return license;
  }
  if (const auto tags = json.find("tags"); tags != json.end() && tags->is_array())
    for (const auto& tag : *tags)
      if (tag.is_string() && tag.get<std::string>().rfind("license:", 0) == 0)
        return tag.get<std::string>().substr(8);
  return "";
}

std::string api_url(const Settings& settings, const std::string& repo) {
  return settings.hf_endpoint + "/api/models/" + escape_path(repo);
}

}  // namespace

HubRepo parse_hub_repo(const std::string& text, const std::string& repo) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    throw odd_answer(repo, "the Hub's answer about the repository is not what its API gives");
  HubRepo out;
  out.commit = text_of(json, "sha");
  out.license = license_of(json);
  if (const auto siblings = json.find("siblings"); siblings != json.end() && siblings->is_array()) {
    if (siblings->size() > kMostFiles) throw odd_answer(repo, "more than 100000 files");
    for (const auto& item : *siblings) {
      const std::string path = item.is_object() ? text_of(item, "rfilename") : "";
      if (safe_relative_path(path))
        out.files.push_back({.path = path, .size = {}, .sha256 = "", .git_sha1 = ""});
    }
  }
  return out;
}

std::vector<HubFile> parse_hub_tree(const std::string& text, const std::string& repo) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) throw odd_answer(repo, "the Hub's list of files is not what its API gives");
  std::vector<HubFile> out;
  for (const auto& item : json) {
    if (!item.is_object() || text_of(item, "type") != "file") continue;
    HubFile file;
    file.path = text_of(item, "path");
    if (!safe_relative_path(file.path)) continue;
    if (const auto size = item.find("size"); size != item.end() && size->is_number_unsigned())
      file.size = size->get<uint64_t>();
    file.git_sha1 = text_of(item, "oid");
    if (const auto lfs = item.find("lfs"); lfs != item.end() && lfs->is_object()) {
      std::string oid = text_of(*lfs, "oid");
      if (oid.rfind("sha256:", 0) == 0) oid.erase(0, 7);
      file.sha256 = sha256_of_etag(oid);
      file.git_sha1.clear();  // it is the pointer's
      if (const auto size = lfs->find("size"); size != lfs->end() && size->is_number_unsigned())
        file.size = size->get<uint64_t>();
    }
    if (file.git_sha1.size() != 40) file.git_sha1.clear();
    out.push_back(std::move(file));
  }
  return out;
}

std::string next_link(const std::string& header) {
  for (size_t at = header.find('<'); at != std::string::npos; at = header.find('<', at + 1)) {
    const size_t end = header.find('>', at);
    if (end == std::string::npos) return "";
    const size_t next = header.find(",", end);
    if (header.substr(end, next == std::string::npos ? std::string::npos : next - end).find("rel=\"next\"") !=
        std::string::npos)
      return header.substr(at + 1, end - at - 1);
    at = end;
  }
  return "";
}

ServerAdvice hub_advice(const Settings& settings, const Source& source) {
  const std::string page = settings.hf_endpoint + "/" + source.where;
  ServerAdvice advice;
  advice.what = "hf:" + source.where;
  advice.unauthorized =
      settings.hf_token.empty()
          ? fmt::format(
                "check the name; if the repository is private or gated, accept its terms at {} and set "
                "HF_TOKEN "
                "to a token that may read it",
                page)
          : fmt::format("check the name, and that the token in HF_TOKEN is valid and may read {}", page);
  advice.forbidden =
      fmt::format("accept the terms of the repository at {}{}", page,
                  settings.hf_token.empty() ? ", then set HF_TOKEN to a token that may read it"
                                            : " with the account that the token in HF_TOKEN belongs to");
  advice.not_found = "check the repository, the revision and the file: hf:org/repo@revision:file";
  return advice;
}

HubRepo list_hub_repo(HttpClient& client, const Settings& settings, const Source& source,
                      FetchObserver& observer) {
  HttpRequest request;
  request.bearer = settings.hf_token;
  request.url = api_url(settings, source.where);
  if (!source.revision.empty()) request.url += "/revision/" + escape_path(source.revision);
  const ServerAdvice advice = hub_advice(settings, source);
  const Page page = get_page(client, request, advice, observer);
  HubRepo repo = parse_hub_repo(page.body, source.where);
  const bool good_commit =
      repo.commit.size() == 40 && std::all_of(repo.commit.begin(), repo.commit.end(), [](char c) {
        return std::isxdigit(static_cast<unsigned char>(c)) != 0;
      });
  if (!good_commit)
    throw odd_answer(source.where, "the Hub does not say which commit the revision stands for");

  std::vector<HubFile> tree;
  request.url = api_url(settings, source.where) + "/tree/" + repo.commit + "?recursive=true";
  for (int pages = 0; !request.url.empty(); ++pages) {
    const Page part = get_page(client, request, advice, observer);
    for (HubFile& file : parse_hub_tree(part.body, source.where)) tree.push_back(std::move(file));
    const std::string next = next_link(part.response.headers.get("link"));
    request.url = next.empty() ? "" : resolve_url(part.response.url, next);
    if (pages > kMostPages || tree.size() > kMostFiles)
      throw odd_answer(source.where, "the list of files does not end");
    if (!request.url.empty() && url_origin(request.url) != url_origin(settings.hf_endpoint))
      throw odd_answer(source.where, "the list of files goes on at another host");
  }
  if (!tree.empty()) repo.files = std::move(tree);
  return repo;
}

std::string hub_file_url(const Settings& settings, const Source& source, const HubRepo& repo,
                         const std::string& path) {
  return settings.hf_endpoint + "/" + escape_path(source.where) + "/resolve/" + repo.commit + "/" +
         escape_path(path);
}

}  // namespace cyb
