// SPDX-License-Identifier: Apache-2.0
// Model families: from a config to the graphs of a model. A family reads the config only; the weights that it
// needs are those that its graphs name (ir::weight_uses), with their shapes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/config.h"
#include "ir/graph.h"

namespace cyb {

struct Family {
  const char* name;                          // "LlamaStyle"
  std::span<const char* const> model_types;  // values of the config's `model_type`
  // Writes every key of [architecture] that the family reads, with the reference class's default where the
  // source omits it, and turns old forms of keys into the present one. Throws InvalidConfig (unknown rope
  // type, …).
  void (*complete)(Config& config);
  // The graphs, of operators that have no fused form. Throws InvalidConfig.
  ir::Program (*build)(const Config& config);
};

std::span<const Family> all_families();
// The family of a `model_type`; throws UnsupportedModel, which lists those that there are.
const Family& find_family(std::string_view model_type);

}  // namespace cyb
