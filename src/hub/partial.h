// SPDX-License-Identifier: Apache-2.0
// What an interrupted download leaves beside its bytes, so that a later run knows whether they may be
// continued.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cyb {

struct PartialState {
  std::string url;        // asked for
  std::string validator;  // strong ETag or Last-Modified of the answer; empty: the server names none
  std::string sha256;     // expected, if known
  std::optional<uint64_t> size;
  uint64_t synced = 0;  // bytes known to have reached the disk
};

std::string print_partial_state(const PartialState& state);
// Nothing if the text is not such a state.
std::optional<PartialState> parse_partial_state(const std::string& text);

// A Content-Range header: "bytes 5-9/10", "bytes */10", "bytes 5-9/*".
struct ContentRange {
  std::optional<uint64_t> first, last, total;
};
std::optional<ContentRange> parse_content_range(const std::string& text);

// The header value that may stand in If-Range: a strong ETag, else Last-Modified, else nothing.
std::string range_validator(const std::string& etag, const std::string& last_modified);

// Lower-case SHA-256 in an ETag ("…", W/"…"), or empty.
std::string sha256_of_etag(const std::string& etag);

// A Content-Length or X-Linked-Size.
std::optional<uint64_t> parse_size(const std::string& text);

}  // namespace cyb
