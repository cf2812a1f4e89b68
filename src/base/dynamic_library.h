// SPDX-License-Identifier: Apache-2.0
// Libraries that are looked for at run time: those that only some users need, and that would slow every
// start.
#pragma once

#include <string>

namespace cyb {

class DynamicLibrary {
 public:
  // Throws Io with the system's reason. The library stays loaded until the program ends.
  explicit DynamicLibrary(const std::string& name);

  template <class F>
  void find(const char* symbol, F** function) const {
    *function = reinterpret_cast<F*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;  // throws Io when there is none
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace cyb
