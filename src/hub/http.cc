// SPDX-License-Identifier: Apache-2.0
#include "hub/http.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <exception>

#include "hub/curl_library.h"
#include "hub/fetch_error.h"

namespace cyb {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kErrorBody = 4096;

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return std::string(text);
}

// What one transfer's callbacks share.
struct Transfer {
  HttpResponse response;
  BodySink* sink = nullptr;
  bool begun = false;
  std::exception_ptr thrown;

  bool wanted() const { return response.status == 200 || response.status == 206; }

  void begin() {
    if (begun) return;
    begun = true;
    sink->begin(response);
  }
};

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto* transfer = static_cast<Transfer*>(context);
  const std::string_view line(data, size * count);
  if (line.rfind("HTTP/", 0) == 0) {  // a further block after "100 Continue"
    transfer->response.headers = {};
    const auto space = line.find(' ');
    transfer->response.status = space == std::string_view::npos
                                    ? 0
                                    : std::strtol(std::string(line.substr(space + 1)).c_str(), nullptr, 10);
    return size * count;
  }
  const auto colon = line.find(':');
  if (colon != std::string_view::npos)
    transfer->response.headers.fields.emplace_back(lower(trimmed(line.substr(0, colon))),
                                                   trimmed(line.substr(colon + 1)));
  return size * count;
}

size_t on_body(char* data, size_t size, size_t count, void* context) {
  auto* transfer = static_cast<Transfer*>(context);
  const size_t bytes = size * count;
  if (!transfer->wanted()) {
    std::string& body = transfer->response.error_body;
    body.append(data, std::min(bytes, kErrorBody - std::min(kErrorBody, body.size())));
    return bytes;
  }
  try {
    transfer->begin();
    transfer->sink->data(data, bytes);
  } catch (...) {
    transfer->thrown = std::current_exception();
    return 0;
  }
  return bytes;
}

HttpFailure classify(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::none;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return HttpFailure::unreachable;
    default:
      return HttpFailure::dropped;
  }
}

}  // namespace

struct HttpClient::Impl {
  CURL* curl = nullptr;
  Impl() {
    static const CURLcode ready = curl_library().global_init(CURL_GLOBAL_DEFAULT);
    if (ready == CURLE_OK) curl = curl_library().easy_init();
    if (!curl) throw error(ErrorKind::Io, "the libcurl library does not start");
  }
  ~Impl() { curl_library().easy_cleanup(curl); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

HttpClient::HttpClient(const NetworkSettings& settings)
    : settings_(settings), impl_(std::make_unique<Impl>()) {}
HttpClient::~HttpClient() = default;

const std::string* HttpHeaders::find(const std::string& lower_name) const {
  for (auto it = fields.rbegin(); it != fields.rend(); ++it)
    if (it->first == lower_name) return &it->second;
  return nullptr;
}

std::string HttpHeaders::get(const std::string& lower_name) const {
  const std::string* value = find(lower_name);
  return value ? *value : std::string();
}

HttpResult HttpClient::get_once(const HttpRequest& request, const std::string& url, bool own_origin,
                                const std::vector<HttpHeaders>& hops, BodySink& sink) {
  CURL* curl = impl_->curl;
  curl_library().easy_reset(curl);  // keeps connections and names
  Transfer transfer;
  transfer.sink = &sink;
  transfer.response.url = url;
  transfer.response.hops = hops;
  char reason[CURL_ERROR_SIZE] = "";

  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers)
    headers = curl_library().slist_append(headers, header.c_str());
  if (own_origin && !request.bearer.empty())
    headers = curl_library().slist_append(headers, ("Authorization: Bearer " + request.bearer).c_str());
  const auto option = [&](CURLoption name, auto value) { curl_library().easy_setopt(curl, name, value); };
  option(CURLOPT_URL, url.c_str());
  option(CURLOPT_HTTPHEADER, headers);
  option(CURLOPT_ERRORBUFFER, reason);
  option(CURLOPT_NOSIGNAL, 1L);
  option(CURLOPT_FOLLOWLOCATION, 0L);
  option(CURLOPT_PROTOCOLS_STR, "http,https");
  option(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  option(CURLOPT_USERAGENT, "cyb-llm/" CYB_VERSION);
  option(CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings_.connect_timeout));
  option(CURLOPT_LOW_SPEED_LIMIT, 1L);
  option(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.stall_timeout));
  option(CURLOPT_BUFFERSIZE, 256L * 1024);
  option(CURLOPT_TCP_KEEPALIVE, 1L);
  if (request.compressed) option(CURLOPT_ACCEPT_ENCODING, "");
  if (request.netrc) option(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  const std::string& bundle = request.ca_bundle.empty() ? settings_.ca_bundle : request.ca_bundle;
  if (!bundle.empty()) option(CURLOPT_CAINFO, bundle.c_str());
  const std::string& proxy = request.proxy.empty() ? settings_.proxy : request.proxy;
  if (!proxy.empty()) option(CURLOPT_PROXY, proxy.c_str());
  const std::string host = url_host(url);
  const std::string origin = url_origin(url);
  for (const std::string& trusted : request.trusted_hosts)
    if (trusted == host || (trusted.find(':') != std::string::npos && origin.ends_with("://" + trusted))) {
      option(CURLOPT_SSL_VERIFYPEER, 0L);
      option(CURLOPT_SSL_VERIFYHOST, 0L);
    }
  option(CURLOPT_HEADERFUNCTION, on_header);
  option(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  option(CURLOPT_WRITEFUNCTION, on_body);
  option(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));

  const CURLcode code = curl_library().easy_perform(curl);
  curl_library().slist_free_all(headers);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  HttpResult result;
  result.failure = classify(code);
  curl_off_t ready = 0;  // when the connection stood
  if (code == CURLE_OPERATION_TIMEDOUT &&
      curl_library().easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &ready) == CURLE_OK && ready == 0)
    result.failure = HttpFailure::unreachable;
  if (code != CURLE_OK) result.reason = *reason ? reason : curl_library().easy_strerror(code);
  if (code == CURLE_OK && transfer.wanted()) transfer.begin();  // an empty body
  result.response = std::move(transfer.response);
  return result;
}

HttpResult HttpClient::get(const HttpRequest& request, BodySink& sink) {
  const std::string origin = url_origin(request.url);
  if (origin.empty())
    throw error(ErrorKind::Usage, "found '{}', which is no http or https address",
                printable_url(request.url));
  std::string url = request.url;
  std::vector<HttpHeaders> hops;
  // Credentials do not come back once the way has left the origin: the other host chose the address.
  bool own_origin = true;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    HttpResult result = get_once(request, url, own_origin, hops, sink);
    if (result.failure != HttpFailure::none || !is_redirect(result.response.status)) return result;
    const std::string location = result.response.headers.get("location");
    const std::string next = location.empty() ? "" : resolve_url(url, location);
    const std::string next_origin = url_origin(next);
    if (next_origin.empty())
      throw FetchError(FetchFailure::corrupt,
                       fmt::format("{} redirects to '{}'", printable_url(url), printable_url(location)),
                       "this is no http or https address: check the endpoint");
    if (url_origin(url).rfind("https:", 0) == 0 && next_origin.rfind("http:", 0) == 0)
      throw FetchError(FetchFailure::corrupt,
                       fmt::format("{} redirects from https to {}", printable_url(url), printable_url(next)),
                       "an unprotected address is not followed: give it as the source if you trust it");
    own_origin = own_origin && next_origin == origin;
    hops.push_back(std::move(result.response.headers));
    url = next;
  }
  throw FetchError(FetchFailure::corrupt,
                   fmt::format("{} redirects more than {} times", printable_url(request.url), kMaxRedirects),
                   "the server is not set up rightly: try another source");
}

long retry_after(const HttpHeaders& headers) {
  const std::string text = headers.get("retry-after");
  if (text.empty()) return -1;
  char* end = nullptr;
  const long seconds = std::strtol(text.c_str(), &end, 10);
  if (end != text.c_str() && *end == '\0') return std::max(0L, seconds);
  const time_t when = curl_library().getdate(text.c_str(), nullptr);
  if (when < 0) return -1;
  return std::max<long>(0, static_cast<long>(when - std::time(nullptr)));
}

}  // namespace cyb
