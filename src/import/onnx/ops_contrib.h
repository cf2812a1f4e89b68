// SPDX-License-Identifier: Apache-2.0
// What the files of com.microsoft's operators share.
#pragma once

#include "import/onnx/ops_util.h"

namespace cyb::onnx {

// An activation by ONNX's name; alpha and beta are NaN where the node has none.
ValueId activated(NodeContext& c, ValueId x, const std::string& name, double alpha, double beta);
// The node as a Conv of its first three operands.
ValueId convolution(NodeContext& c);

void add_contrib_attention_converters(Registry& r);
void add_contrib_quant_converters(Registry& r);

}  // namespace cyb::onnx
