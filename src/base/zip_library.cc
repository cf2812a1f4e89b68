// SPDX-License-Identifier: Apache-2.0
#include "base/zip_library.h"

#include "base/dynamic_library.h"

namespace cyb {
namespace {

ZipLibrary load() {
  const DynamicLibrary library(CYB_LIBZIP);
  ZipLibrary z;
#define CYB_ZIP_FIND(name) library.find("zip_" #name, &z.name);
  CYB_ZIP_FUNCTIONS(CYB_ZIP_FIND)
#undef CYB_ZIP_FIND
  return z;
}

}  // namespace

const ZipLibrary& zip_library() {
  static const ZipLibrary library = load();
  return library;
}

}  // namespace cyb
