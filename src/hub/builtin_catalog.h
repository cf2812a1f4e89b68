// SPDX-License-Identifier: Apache-2.0
// The text of catalog.toml, put into the program by the build.
#pragma once

#include <string>

namespace cyb {

std::string builtin_catalog();

}  // namespace cyb
