// SPDX-License-Identifier: Apache-2.0
// Whether a person looks at a stream, how wide it is, and leaving cleanly on Ctrl-C.
#pragma once

#include <cstdio>

namespace cyb {

bool is_terminal(std::FILE* stream);
// Columns of a terminal; 80 if unknown.
int terminal_columns(std::FILE* stream);
// A terminal that takes colours, and neither NO_COLOR nor TERM=dumb speaks against them.
bool wants_color(std::FILE* stream);

// Interrupt, termination and hang-up remove half-written files (AtomicFile) and end the process as they would
// have.
void clean_up_on_signals();

}  // namespace cyb
