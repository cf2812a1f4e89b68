// SPDX-License-Identifier: Apache-2.0
#include "hub/answer.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace cyb {
namespace {

// What the server itself says: the Hub's header, a JSON body's message, or nothing.
std::string server_words(const HttpResponse& response) {
  std::string words = response.headers.get("x-error-message");
  if (words.empty() && !response.error_body.empty() && response.error_body[0] == '{') {
    const auto json = nlohmann::json::parse(response.error_body, nullptr, false);
    if (json.is_object()) {
      for (const char* key : {"error", "message", "detail"})
        if (const auto it = json.find(key); it != json.end() && it->is_string())
          words = it->get<std::string>();
      if (const auto it = json.find("errors"); it != json.end() && it->is_array() && !it->empty())
        if (const auto& first = it->front();
            first.is_object() && first.contains("message") && first["message"].is_string())
          words = first["message"].get<std::string>();
    }
  }
  std::string clean;
  for (const char c : words.substr(0, 300)) clean += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
  return clean;
}

bool transient(long status) { return status == 408 || status == 429 || (status >= 500 && status != 501); }

void wait_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

class TextSink : public BodySink {
 public:
  explicit TextSink(size_t limit) : limit_(limit) {}
  void begin(const HttpResponse& response) override { url_ = printable_url(response.url); }
  void data(const char* bytes, size_t size) override {
    if (size > limit_ - body.size())
      throw FetchError(FetchFailure::corrupt, fmt::format("{} sends more than {} bytes", url_, limit_),
                       "a list of this size is not expected: check the endpoint");
    body.append(bytes, size);
  }
  std::string body;

 private:
  size_t limit_;
  std::string url_;
};

}  // namespace

FetchError status_error(const HttpResponse& response, const ServerAdvice& advice) {
  const long status = response.status;
  const std::string words = server_words(response);
  std::string found = fmt::format("{}: {} answers {}", advice.what, printable_url(response.url), status);
  if (!words.empty()) found += " (" + words + ")";
  std::string todo;
  if (status == 401) todo = advice.unauthorized;
  if (status == 403) todo = advice.forbidden;
  if (status == 404 || status == 410) todo = advice.not_found;
  if (status == 429) {
    const long wait = retry_after(response.headers);
    todo = wait >= 0 ? fmt::format("too many requests: try again in {} s", wait)
                     : std::string("too many requests: try again later");
  }
  if (status == 407) todo = "the proxy asks for a password: set it in https_proxy";
  if (status >= 500) todo = "the server has trouble: try again later, what was fetched is kept";
  if (todo.empty()) todo = "check the source and the endpoint";
  return FetchError(status >= 500 ? FetchFailure::unreachable : FetchFailure::refused, found, todo);
}

FetchError network_error(const HttpResult& result, const std::string& url) {
  if (result.failure == HttpFailure::unreachable)
    return FetchError(
        FetchFailure::unreachable, fmt::format("cannot reach {}: {}", url_host(url), result.reason),
        result.reason.find("certificate") != std::string::npos
            ? "if you trust the host, name its authority's file: SSL_CERT_FILE or network.ca_bundle"
            : "check the network, the proxy and the endpoint setting, or name another source");
  return FetchError(FetchFailure::unreachable,
                    fmt::format("the connection to {} broke off: {}", url_host(url), result.reason),
                    "run the command again: it goes on where it stopped");
}

bool Patience::again(const HttpResult& result, const std::string& label, bool progressed) {
  if (progressed) failures_ = 0;
  if (result.failure == HttpFailure::none) {
    answered_ = true;
    if (!transient(result.response.status)) return false;
    const long wait = retry_after(result.response.headers);
    if (wait > settings_.max_wait) return false;
    if (wait >= 0) {
      if (++waits_ > std::max(1, settings_.retries)) return false;
      observer_.note(fmt::format("{}: the server asks to wait {} s", label, wait));
      wait_for(static_cast<double>(wait));
      return true;
    }
    if (++failures_ > settings_.retries) return false;
    observer_.note(fmt::format("{}: the server answers {}, trying again", label, result.response.status));
  } else {
    answered_ = answered_ || progressed || result.response.status != 0;
    // A host that never answered is given up at once, so that the next source gets its turn.
    if (result.failure == HttpFailure::unreachable && !answered_) return false;
    if (++failures_ > (answered_ ? settings_.retries : std::min(1, settings_.retries))) return false;
    observer_.note(fmt::format("{}: {}, trying again", label, result.reason));
  }
  wait_for(std::min(30.0, 0.3 * (1 << std::min(failures_ - 1, 7))));
  return true;
}

Page get_page(HttpClient& client, const HttpRequest& request, const ServerAdvice& advice,
              FetchObserver& observer, size_t limit) {
  HttpRequest asked = request;
  asked.compressed = true;
  Patience patience(client.settings(), observer);
  for (;;) {
    TextSink sink(limit);
    HttpResult result = client.get(asked, sink);
    const bool good = result.failure == HttpFailure::none && result.response.status == 200;
    if (good && sink.body.empty()) {
      result.failure = HttpFailure::dropped;
      result.reason = "the server sent an empty page";
    } else if (good) {
      return Page{std::move(sink.body), std::move(result.response)};
    }
    if (patience.again(result, advice.what, false)) continue;
    if (result.failure != HttpFailure::none) throw network_error(result, request.url);
    throw status_error(result.response, advice);
  }
}

}  // namespace cyb
