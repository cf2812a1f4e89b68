// SPDX-License-Identifier: Apache-2.0
// GET over HTTP(S) with redirects followed here, so that credentials stay with the host they are meant for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hub/settings.h"
#include "hub/url.h"

namespace cyb {

struct HttpHeaders {
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case

  const std::string* find(const std::string& lower_name) const;  // the last of that name
  std::string get(const std::string& lower_name) const;          // empty if absent
};

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value", sent to every host on the way
  std::string bearer;                // sent to the url's own origin only
  bool compressed = false;           // accept gzip; never for files
  std::string ca_bundle, proxy;      // empty: the client's
  bool netrc = false;                // may take credentials from ~/.netrc
  std::vector<std::string> trusted_hosts;
};

struct HttpResponse {
  long status = 0;
  std::string url;                // the address that answered in the end
  HttpHeaders headers;            // its headers
  std::vector<HttpHeaders> hops;  // those of the redirects before
  std::string error_body;         // first bytes of an answer that is neither 200 nor 206
};

enum class HttpFailure { none, unreachable, dropped };

struct HttpResult {
  HttpFailure failure = HttpFailure::none;
  std::string reason;  // of the failure, in words
  HttpResponse response;
};

// Takes the body of a 200 or 206. May throw; the transfer then ends and get() throws the same.
class BodySink {
 public:
  virtual ~BodySink() = default;
  virtual void begin(const HttpResponse& response) {}
  virtual void data(const char* bytes, size_t size) = 0;
};

class HttpClient {
 public:
  explicit HttpClient(const NetworkSettings& settings);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Network trouble is a result, not an exception. Throws FetchError for redirects that cannot be right.
  HttpResult get(const HttpRequest& request, BodySink& sink);

  const NetworkSettings& settings() const { return settings_; }

 private:
  HttpResult get_once(const HttpRequest& request, const std::string& url, bool own_origin,
                      const std::vector<HttpHeaders>& hops, BodySink& sink);
  struct Impl;
  NetworkSettings settings_;
  std::unique_ptr<Impl> impl_;
};

// Seconds of a Retry-After header (a number or a date); -1 if there is none.
long retry_after(const HttpHeaders& headers);

}  // namespace cyb
