// SPDX-License-Identifier: Apache-2.0
// Normalizations as several operators compose them.
#pragma once

#include "import/onnx/ops_util.h"

namespace cyb::onnx {

// LayerNorm, or RmsNorm, over the axes from `axis` on; scale and bias (kNone: absent) broadcast to x.
ValueId normalized(NodeContext& c, ValueId x, ValueId scale, ValueId bias, int64_t axis, double eps,
                   bool root_mean_square);
// Mean and 1 / √(biased variance + eps) over axes, which are kept.
void moments(NodeContext& c, ValueId x, std::vector<int64_t> axes, double eps, ValueId& mean,
             ValueId& inverse_deviation);

}  // namespace cyb::onnx
