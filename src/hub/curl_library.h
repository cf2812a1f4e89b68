// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded when an address is first looked at: it brings thirty more with it, and a model that is
// here needs none of them.
#pragma once

#define CURL_DISABLE_TYPECHECK  // its macros stand before the functions' names
#include <curl/curl.h>

namespace cyb {

#define CYB_CURL_FUNCTIONS(X) \
  X(global_init)              \
  X(easy_init)                \
  X(easy_reset)               \
  X(easy_setopt)              \
  X(easy_perform)             \
  X(easy_getinfo)             \
  X(easy_strerror)            \
  X(easy_cleanup)             \
  X(slist_append)             \
  X(slist_free_all)           \
  X(getdate)                  \
  X(free)                     \
  X(url)                      \
  X(url_get)                  \
  X(url_set)                  \
  X(url_cleanup)

// Its functions, by their names without `curl_`.
struct CurlLibrary {
#define CYB_CURL_POINTER(name) decltype(&::curl_##name) name = nullptr;
  CYB_CURL_FUNCTIONS(CYB_CURL_POINTER)
#undef CYB_CURL_POINTER
};

// Throws Io where it is not installed.
const CurlLibrary& curl_library();

}  // namespace cyb
