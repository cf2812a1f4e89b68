// SPDX-License-Identifier: Apache-2.0
#include "cli/importing.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"
#include "cli/progress_bar.h"

namespace cyb {

void add_import_flags(CLI::App& command, ImportFlags& flags) {
  command
      .add_option("--encoding", flags.encoding, "auto, q4, q8, u16, u32 or canonical: how weights are stored")
      ->capture_default_str();
  command.add_flag("--canonical", flags.canonical, "Write format version 2, without addenda");
  command.add_option("--threads", flags.threads, "Threads for the conversion; 0: all processors")
      ->check(CLI::Range(0, 1024));
}

ImportOptions import_options(const ImportFlags& flags) {
  const auto policy = parse_encoding_policy(flags.encoding);
  if (!policy)
    throw error(ErrorKind::Usage, "found the encoding '{}'", flags.encoding)
        .advise("choose auto, q4, q8, u16, u32 or canonical");
  ImportOptions options;
  options.encoding = *policy;
  options.canonical = flags.canonical;
  options.threads = flags.threads;
  return options;
}

ImportReport import_and_report(const std::string& path, const ImportOptions& options) {
  ProgressBar bar;
  const ImportReport report = import_model(path, options, [&](const ImportProgress& progress) {
    const char* label = progress.stage == ImportProgress::Stage::check ? "checking" : "importing";
    bar.update(label, progress.done, progress.total);
  });
  bar.clear();
  for (const std::string& warning : report.warnings) fmt::print(stderr, "warning: {}\n", warning);
  fmt::print("{}", report.table());
  fmt::print("{}: {}, {} parameters, {} of weights, {}\n", report.name, report.path,
             human_count(report.parameters), human_bytes(report.bytes), report.method);
  return report;
}

}  // namespace cyb
