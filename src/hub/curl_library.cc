// SPDX-License-Identifier: Apache-2.0
#include "hub/curl_library.h"

#include "base/dynamic_library.h"

namespace cyb {
namespace {

CurlLibrary load() {
  const DynamicLibrary library(CYB_LIBCURL);
  CurlLibrary c;
#define CYB_CURL_FIND(name) library.find("curl_" #name, &c.name);
  CYB_CURL_FUNCTIONS(CYB_CURL_FIND)
#undef CYB_CURL_FIND
  return c;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = load();
  return library;
}

}  // namespace cyb
