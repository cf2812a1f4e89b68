// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling.
#include "import/onnx/ops_contrib.h"

namespace cyb::onnx {

using namespace ir;

namespace {

// How many spatial axes the node's operands have.
int spatial_axes(NodeContext& c) {
  for (int i = 0; i < 2 && c.has(i); i++)
    if (c.in_type(i).known_rank) {
      const int spatial = c.in_type(i).rank() - 2;
      if (spatial < 1) c.invalid("operands need a batch, channels and at least one more axis");
      return spatial;
    }
  const size_t kernel = c.attr_ints("kernel_shape").size();
  if (kernel == 0) c.unsupported("only a run can tell the rank of its operands");
  return static_cast<int>(kernel);
}

void read_conv(NodeContext& c, ConvAttrs& a) {
  // The weight says how large the kernel is; where the attribute does too, they must agree.
  const std::vector<int64_t> kernel = c.attr_ints("kernel_shape");
  const Type& w = c.in_type(1);
  for (size_t i = 0; w.known_rank && i < kernel.size(); i++)
    if (w.dims.size() != kernel.size() + 2 ||
        (w.dims[i + 2].is_number() && !(w.dims[i + 2] == Dim(kernel[i]))))
      c.invalid("kernel_shape is not the shape of the weight's kernels");
  a.strides = c.attr_ints("strides");
  a.pads = c.attr_ints("pads");
  a.dilations = c.attr_ints("dilations");
  a.groups = c.attr_int("group", 1);
  a.auto_pad = auto_pad_of(c);
  if (a.auto_pad != AutoPad::none) a.pads.clear();
}

void convert_conv(NodeContext& c) { c.out(0, convolution(c)); }

void convert_conv_transpose(NodeContext& c) {
  constexpr Op kOps[] = {Op::ConvTranspose1d, Op::ConvTranspose2d, Op::ConvTranspose3d};
  const int n = spatial_axes(c);
  if (n > 3) c.unsupported(fmt::format("a transposed convolution over {} axes", n));
  ConvTransposeAttrs a;
  read_conv(c, a);
  a.output_padding = c.attr_ints("output_padding");
  a.output_shape = c.attr_ints("output_shape");
  // Some exporters write batch and channels too.
  if (a.output_shape.size() == static_cast<size_t>(n) + 2)
    a.output_shape.erase(a.output_shape.begin(), a.output_shape.begin() + 2);
  if (!a.output_shape.empty()) a.pads.clear();
  c.out(0, c.op(kOps[n - 1], trimmed({c.in(0), c.in(1), c.in_or_none(2)}), a));
}

void convert_deform_conv(NodeContext& c) {
  DeformConvAttrs a;
  read_conv(c, a);
  a.offset_groups = c.attr_int("offset_group", 1);
  c.out(0, c.op(Op::DeformConv, trimmed({c.in(0), c.in(1), c.in(2), c.in_or_none(3), c.in_or_none(4)}), a));
}

// Depthwise convolution over the past: k − 1 carried positions stand before x.
void convert_causal_conv_with_state(NodeContext& c) {
  const ValueId x = c.in(0), w = c.in(1);
  const Type& wt = c.type_of(w);
  if (!wt.known_rank || wt.rank() != 3 || !wt.dims[0].is_number() || !wt.dims[2].is_number())
    c.unsupported("the weight's shape must be known");
  const int64_t k = wt.dims[2].number();
  if (k < 1) c.invalid("an empty kernel");
  const std::string activation = c.attr_string("activation", "none");
  ConvAttrs a;
  a.groups = wt.dims[0].number();
  ValueId padded = x;
  if (c.has(3))
    padded = c.concat({c.in(3), x}, 2);
  else if (c.has_output(1))
    padded = c.op(Op::Pad, {x, c.i64s({0, 0, k - 1, 0, 0, 0})}, PadAttrs{});
  else
    a.pads = {k - 1, 0};
  ValueId y = c.op(Op::Conv1d, trimmed({padded, w, c.in_or_none(2)}), a);
  if (activation == "silu" || activation == "swish")
    y = c.cast(c.op(Op::Silu, {widened(c, y)}), c.type_of(x).dtype);
  else if (activation != "none" && !activation.empty())
    c.unsupported(fmt::format("activation '{}'", activation));
  c.out(0, y);
  if (c.has_output(1)) c.out(1, k == 1 ? c.slice(padded, 2, 0, 0) : c.slice(padded, 2, -(k - 1), INT64_MAX));
}

PoolAttrs read_pool(NodeContext& c, PoolKind kind) {
  PoolAttrs a;
  a.kind = kind;
  a.kernel = c.attr_ints("kernel_shape");
  if (a.kernel.empty()) c.invalid("no kernel_shape");
  a.strides = c.attr_ints("strides");
  a.pads = c.attr_ints("pads");
  a.dilations = c.attr_ints("dilations");
  a.auto_pad = auto_pad_of(c);
  if (a.auto_pad != AutoPad::none) a.pads.clear();
  a.ceil = c.attr_int("ceil_mode", 0) != 0;
  return a;
}

void convert_max_pool(NodeContext& c) {
  PoolAttrs a = read_pool(c, PoolKind::max);
  a.column_major = c.attr_int("storage_order", 0) != 0;
  const bool indices = c.has_output(1);
  const auto y = c.ops(Op::Pool, {c.in(0)}, a, indices ? 2 : 1);
  c.out(0, y[0]);
  if (indices) c.out(1, y[1]);
}

void convert_average_pool(NodeContext& c) {
  PoolAttrs a = read_pool(c, PoolKind::average);
  a.count_pad = c.attr_int("count_include_pad", 0) != 0;
  c.out(0, c.op(Op::Pool, {c.in(0)}, a));
}

void convert_lp_pool(NodeContext& c) {
  PoolAttrs a = read_pool(c, PoolKind::lp);
  a.p = c.attr_int("p", 2);
  c.out(0, c.op(Op::Pool, {c.in(0)}, a));
}

template <Op kReduce>
void convert_global_pool(NodeContext& c) {
  c.out(0, reduce(c, kReduce, c.in(0), axes_from(2, c.rank(0))));
}

void convert_global_lp_pool(NodeContext& c) {
  const ValueId x = c.in(0);
  const int64_t p = c.attr_int("p", 2);
  if (p < 1) c.invalid(fmt::format("p = {}", p));
  const auto axes = axes_from(2, c.rank(0));
  const ValueId magnitude = c.op(Op::Abs, {x});
  if (p == 1) return c.out(0, reduce(c, Op::ReduceSum, magnitude, axes));
  if (p == 2) return c.out(0, c.op(Op::Sqrt, {reduce(c, Op::ReduceSum, c.mul(x, x), axes)}));
  const ValueId sum =
      reduce(c, Op::ReduceSum, c.op(Op::Pow, {magnitude, c.like(x, static_cast<double>(p))}), axes);
  c.out(0, c.op(Op::Pow, {sum, c.like(x, 1.0 / static_cast<double>(p))}));
}

// Values go back to where MaxPool found them: indices are flat over the whole unpooled tensor.
void convert_max_unpool(NodeContext& c) {
  const ValueId x = c.in(0);
  const int rank = c.rank(0), spatial = rank - 2;
  const auto kernel = c.attr_ints("kernel_shape");
  const auto strides = c.attr_ints("strides", std::vector<int64_t>(kernel.size(), 1));
  const auto pads = c.attr_ints("pads", std::vector<int64_t>(kernel.size() * 2, 0));
  const auto n = static_cast<size_t>(spatial < 0 ? 0 : spatial);
  if (spatial < 1 || kernel.size() != n || strides.size() != n || pads.size() != 2 * n)
    c.invalid("kernel_shape, strides and pads do not fit the operand's rank");
  std::vector<int64_t> beyond(n);  // out = (in − 1)·stride + kernel − pads
  for (size_t i = 0; i < n; i++) beyond[i] = kernel[i] - pads[i] - pads[i + n];
  const ValueId shape = c.shape_of(x);
  const ValueId steps = c.sub(c.slice(shape, 0, 2, rank), c.i64s(std::vector<int64_t>(n, 1)));
  const ValueId inferred =
      c.concat({c.slice(shape, 0, 0, 2), c.add(c.mul(steps, c.i64s(strides)), c.i64s(beyond))}, 0);
  const ValueId zeros = expand(c, c.like(x, 0), reduce(c, Op::ReduceProd, inferred, {0}));
  const ValueId flat = c.op(Op::ScatterElements, {zeros, c.reshape(c.in(1), {-1}), c.reshape(x, {-1})},
                            ScatterAttrs{.axis = 0});
  ValueId y = c.op(Op::Reshape, {flat, inferred}, ReshapeAttrs{.shape = {}, .allow_zero = true});
  if (c.has(2)) {
    const ValueId begin = c.i64s(std::vector<int64_t>(n + 2, 0));
    y = c.op(Op::Pad, {y, c.concat({begin, c.sub(c.in(2), inferred)}, 0)}, PadAttrs{});
  }
  c.out(0, y);
}

}  // namespace

ValueId convolution(NodeContext& c) {
  constexpr Op kOps[] = {Op::Conv1d, Op::Conv2d, Op::Conv3d};
  const int n = spatial_axes(c);
  if (n > 3) c.unsupported(fmt::format("a convolution over {} axes", n));
  ConvAttrs a;
  read_conv(c, a);
  return c.op(kOps[n - 1], trimmed({c.in(0), c.in(1), c.in_or_none(2)}), a);
}

void add_conv_converters(Registry& r) {
  r.add("Conv", convert_conv);
  r.add("ConvTranspose", convert_conv_transpose);
  r.add("DeformConv", convert_deform_conv);
  r.add("CausalConvWithState", convert_causal_conv_with_state);
  r.add("MaxPool", convert_max_pool);
  r.add("AveragePool", convert_average_pool);
  r.add("LpPool", convert_lp_pool);
  r.add("GlobalAveragePool", convert_global_pool<Op::ReduceMean>);
  r.add("GlobalMaxPool", convert_global_pool<Op::ReduceMax>);
  r.add("GlobalLpPool", convert_global_lp_pool);
  r.add("MaxUnpool", convert_max_unpool);
  add_resample_converters(r);
}

}  // namespace cyb::onnx
