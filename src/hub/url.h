// SPDX-License-Identifier: Apache-2.0
// Addresses: parts, resolution, escaping, and a form that may be printed.
#pragma once

#include <string>

namespace cyb {

// "https://host:443" in lower case with the port written out; empty for what is no http(s) address.
std::string url_origin(const std::string& url);
std::string url_host(const std::string& url);
// The path, decoded.
std::string url_path(const std::string& url);
// What follows '#'.
std::string url_fragment(const std::string& url);
// `reference` as seen from the page at `base`; empty if it cannot be read.
std::string resolve_url(const std::string& base, const std::string& reference);
// Percent-encodes what may not stand in a path; '/' stays.
std::string escape_path(const std::string& path);
// The address without user, password, query and fragment.
std::string printable_url(const std::string& url);
// Whether a path that a server sent stays below the folder it is meant for.
bool safe_relative_path(const std::string& path);

}  // namespace cyb
