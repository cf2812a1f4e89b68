// SPDX-License-Identifier: Apache-2.0
// What `import` and `fetch` share: options, a progress line, the report.
#pragma once

#include <string>

#include "import/import.h"

namespace CLI {
class App;
}

namespace cyb {

struct ImportFlags {
  std::string encoding = "auto";
  bool canonical = false;
  int threads = 0;
};
// --encoding, --canonical, --threads
void add_import_flags(CLI::App& command, ImportFlags& flags);
ImportOptions import_options(const ImportFlags& flags);

// Imports with a progress line on a terminal; prints warnings on stderr and the table of encodings on stdout.
ImportReport import_and_report(const std::string& path, const ImportOptions& options);

}  // namespace cyb
