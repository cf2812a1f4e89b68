// SPDX-License-Identifier: Apache-2.0
// The tensors that a program needs against those that a source has.
#pragma once

#include <string>
#include <vector>

#include "import/source_model.h"
#include "ir/graph.h"

namespace cyb {

struct MatchedTensor {
  ir::WeightUse use;
  const SourceTensor* source = nullptr;
};

// In the program's order. Throws MissingTensor for needed tensors that are not there, UnsupportedModel for
// tensors that nothing reads, ShapeMismatch for other shapes than the config asks for; each lists all names.
std::vector<MatchedTensor> match_tensors(const std::vector<ir::WeightUse>& uses, const SourceModel& source);

}  // namespace cyb
