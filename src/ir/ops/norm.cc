// SPDX-License-Identifier: Apache-2.0
// Shape rules of normalizations over channels.
#include "ir/ops/common.h"
#include "ir/ops/conv.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

// x [N, C, …], and from operand `first` on vectors of one value a channel.
void channel_norm(InferContext& c, int first) {
  const Type& x = c.type(0);
  c.require(x.rank() >= 2 && is_float(x.dtype), "needs floats [N, C, …]");
  Dim channels = x.dims[1];
  for (int i = first; i < c.operands(); i++) {
    if (!c.has(i)) continue;
    c.require(c.type(i).rank() == 1 && is_float(c.type(i).dtype), "the parameters must be vectors of floats");
    channels = c.same(channels, c.type(i).dims[0], "channels and parameters");
  }
  c.result(0, x);
}

}  // namespace

void rule_batch_norm(InferContext& c) {
  const Type& x = c.type(0);
  if (x.rank() == 1) {  // one channel for all, as exporters write it for vectors
    for (int i = 1; i < c.operands(); i++) {
      c.require(c.type(i).rank() == 1, "the parameters must be vectors of floats");
      c.same(c.type(i).dims[0], Dim(1), "channels and parameters");
    }
    return c.result(0, x);
  }
  channel_norm(c, 1);
}

void rule_instance_norm(InferContext& c) { channel_norm(c, 1); }

void rule_group_norm(InferContext& c) {
  const int64_t groups = c.attrs<GroupNormAttrs>().groups;
  const Type& x = c.type(0);
  c.require(groups > 0, "groups must be positive");
  c.require(x.rank() < 2 || !x.dims[1].is_number() || x.dims[1].number() % groups == 0,
            "channels are no multiple of groups");
  channel_norm(c, 1);
}

void rule_lrn(InferContext& c) {
  const Type& x = c.type(0);
  c.require(x.rank() >= 2 && is_float(x.dtype), "needs floats [N, C, …]");
  c.require(c.attrs<LrnAttrs>().size > 0, "size must be positive");
  c.result(0, x);
}

}  // namespace cyb::ir
