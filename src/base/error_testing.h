// SPDX-License-Identifier: Apache-2.0
// What the tests of errors share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace cyb::testing {

// The message of the error that f throws, which must be of `kind`.
template <class F>
std::string error_message(F&& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(to_string(e.kind()), std::string(to_string(kind)));
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace cyb::testing
