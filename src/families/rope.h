// SPDX-License-Identifier: Apache-2.0
// Rotary embedding settings in configs: the present form (`rope_parameters`), the older ones (`rope_theta`,
// `rope_scaling`), and the operator's attributes.
#pragma once

#include <string>

#include "format/config.h"
#include "ir/ops/attention.h"

namespace cyb {

// Moves rope_theta, rope_scaling and partial_rotary_factor of [architecture] into `rope_parameters`, with
// `default_theta` where none is given. Throws InvalidConfig for a rope type that is not known.
void complete_rope(Config& config, double default_theta);

// The attributes of the table at `path` ("architecture.rope_parameters"), for heads of `head_dim` channels.
ir::RopeAttrs rope_attrs(const Config& config, const std::string& path, int64_t head_dim);

}  // namespace cyb
