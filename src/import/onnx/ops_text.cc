// SPDX-License-Identifier: Apache-2.0
// Strings. Identity, Concat, Gather, Equal and their like are the other groups'; what looks into strings is
// not supported: no model that runs elsewhere without its own tokenizer needs it.
#include "import/onnx/ops.h"

namespace cyb::onnx {

void add_text_converters(Registry&) {}

}  // namespace cyb::onnx
