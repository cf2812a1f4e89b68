// SPDX-License-Identifier: Apache-2.0
// One file from an address to the disk: resumed, retried, checked while it streams, and named only when
// complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hub/answer.h"
#include "hub/http.h"
#include "hub/observer.h"

namespace cyb {

struct Download {
  HttpRequest request;
  ServerAdvice advice;
  std::string target;  // final path; TARGET.partial and TARGET.partial.json stand beside it meanwhile
  std::string label;   // for progress and messages
  std::optional<uint64_t> size;  // what the listing says
  std::string sha256;            // what the listing says; empty: not known
  std::string git_sha1;          // id of a small file in a git repository; empty: not known
  bool hub_headers = false;  // X-Linked-Size and X-Linked-Etag of a redirect name the file's size and SHA-256
  bool pages_allowed = false;  // text/html is a file here and not a sign that something else answers
};

struct Downloaded {
  uint64_t size = 0;
  std::string sha256;
  bool resumed = false;
};

// Throws FetchError for the server's faults (the partial file stays where it may be resumed, and goes where
// its bytes are proven wrong) and Io for this machine's (full disk, read-only folder: the partial file
// stays).
Downloaded download(HttpClient& client, const Download& what, FetchObserver& observer);

// Whether a file's first bytes are those of a Git LFS pointer, which stands for a file kept elsewhere.
bool is_lfs_pointer(const std::string& head);
bool is_lfs_pointer_file(const std::string& path);

}  // namespace cyb
