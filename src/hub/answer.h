// SPDX-License-Identifier: Apache-2.0
// From answers to errors with advice, the patience between tries, and pages small enough to hold in memory.
#pragma once

#include <functional>
#include <string>

#include "hub/fetch_error.h"
#include "hub/http.h"
#include "hub/observer.h"

namespace cyb {

// What a server's words mean for the person: advice that differs from source to source.
struct ServerAdvice {
  std::string what;          // "hf:org/repo": begins the message
  std::string unauthorized;  // 401
  std::string forbidden;     // 403
  std::string not_found;     // 404
};

// The error for an answer that is neither 200 nor 206.
FetchError status_error(const HttpResponse& response, const ServerAdvice& advice);
FetchError network_error(const HttpResult& result, const std::string& url);

// Decides whether a failed try is repeated, and waits before it is. Progress makes it patient again.
class Patience {
 public:
  Patience(const NetworkSettings& settings, FetchObserver& observer)
      : settings_(settings), observer_(observer) {}
  // True after waiting; false when the result is final. `progressed`: bytes came in since the last try.
  bool again(const HttpResult& result, const std::string& label, bool progressed);

 private:
  const NetworkSettings& settings_;
  FetchObserver& observer_;
  int failures_ = 0;
  int waits_ = 0;
  bool answered_ = false;  // the server has spoken once, so trouble afterwards is worth a retry
};

struct Page {
  std::string body;
  HttpResponse response;
};

// The body of a page of at most `limit` bytes; throws FetchError.
Page get_page(HttpClient& client, const HttpRequest& request, const ServerAdvice& advice,
              FetchObserver& observer, size_t limit = 64u << 20);

}  // namespace cyb
