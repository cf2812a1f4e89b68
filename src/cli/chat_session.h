// SPDX-License-Identifier: Apache-2.0
// The chat of `run` without a prompt: lines in, answers out, commands that begin with a slash.
#pragma once

#include <string>

#include "cli/run_options.h"

namespace cyb {

// Until the input ends or /exit.
void chat_session(LanguageModel& model, const RunOptions& options);

}  // namespace cyb
