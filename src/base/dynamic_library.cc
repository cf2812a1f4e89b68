// SPDX-License-Identifier: Apache-2.0
#include "base/dynamic_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace cyb {

DynamicLibrary::DynamicLibrary(const std::string& name) : name_(name) {
  handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) {
    const char* reason = ::dlerror();
    throw error(ErrorKind::Io, "cannot load the library {}: {}", name, reason ? reason : "no reason given")
        .advise("install the package that it belongs to");
  }
}

void* DynamicLibrary::address(const char* symbol) const {
  void* found = ::dlsym(handle_, symbol);
  if (!found) throw error(ErrorKind::Io, "the library {} has no {}", name_, symbol);
  return found;
}

}  // namespace cyb
