// SPDX-License-Identifier: Apache-2.0
// The card of an imported model, and where it says it came from.
#pragma once

#include <string>

#include "format/config.h"
#include "import/import.h"
#include "import/source_model.h"

namespace cyb {

// `given` is how the person named the source, empty when only the path is known: then the source's own words,
// or its file name, never a path of this machine.
ConfigTable lineage_of(const SourceModel& source, const std::string& path, const std::string& given,
                       const ImportReport& report);
// `family` may be empty.
std::string card_of(const SourceModel& source, const char* family, const std::string& path,
                    const std::string& given, const ImportReport& report);

// The inputs and outputs of each graph, as a section of a card.
std::string inputs_and_outputs(const ir::Program& program);

}  // namespace cyb
