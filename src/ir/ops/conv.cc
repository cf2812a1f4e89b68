// SPDX-License-Identifier: Apache-2.0
// Shape rules of convolutions and pooling over N C spatial.
#include "ir/ops/conv.h"

#include "ir/ops/rules.h"
#include "ir/ops/window.h"

namespace cyb::ir {
namespace {

// An attribute with one entry an axis (or two, for pads), each from `least` on.
void check_list(const InferContext& c, const std::vector<int64_t>& list, size_t count, int64_t least,
                const char* name) {
  if (list.empty()) return;
  c.require(list.size() == count, fmt::format("{} needs {} entries, not {}", name, count, list.size()));
  for (int64_t v : list)
    c.require(v >= least && v <= kWindowLimit, fmt::format("{} has an entry {}", name, v));
}

template <class A>
void check_windows(const InferContext& c, const A& a, size_t axes) {
  check_list(c, a.strides, axes, 1, "strides");
  check_list(c, a.dilations, axes, 1, "dilations");
  check_list(c, a.pads, 2 * axes, 0, "pads");
}

void check_size(const InferContext& c, Dim d) {
  c.require(!d.is_number() || d.number() <= kWindowLimit, "an axis is too long");
}

// How many spatial axes: of x, which must be as the operator says.
size_t spatial_axes(const InferContext& c, const Type& x) {
  int want = 0;
  switch (c.node().op) {
    case Op::Conv1d:
    case Op::ConvTranspose1d:
      want = 1;
      break;
    case Op::Conv2d:
    case Op::ConvTranspose2d:
      want = 2;
      break;
    case Op::Conv3d:
    case Op::ConvTranspose3d:
      want = 3;
      break;
    default:
      c.require(x.rank() >= 3 && x.rank() <= 5, "x must be [N, C, …] with 1 to 3 spatial axes");
      return static_cast<size_t>(x.rank() - 2);
  }
  c.require(x.rank() == want + 2, fmt::format("x must be [N, C, …] of rank {}", want + 2));
  return static_cast<size_t>(want);
}

// Sizes along the spatial axes; where they are not known, a window that keeps the size keeps the symbol.
template <class Outputs>
Dim output_dim(const InferContext& c, Dim in, Dim kernel, Window w, Outputs&& outputs) {
  check_size(c, in);
  check_size(c, kernel);
  if (w.output_shape >= 0) return Dim(w.output_shape);
  if (!kernel.is_number() && w.auto_pad != AutoPad::same_upper && w.auto_pad != AutoPad::same_lower)
    return Dim();
  if (kernel.is_number()) {
    c.require(kernel.number() >= 1, "the kernel is empty");
    w.kernel = kernel.number();
  }
  if (in.is_number()) {
    const int64_t out = outputs(w, in.number());
    c.require(out >= 0, fmt::format("a window over {} does not fit an axis of {} with pads {} and {}",
                                    w.extent(), in.number(), w.begin, w.end));
    return Dim(out);
  }
  Window probe = w;
  const int64_t far = int64_t{1} << 29;
  return w.stride == 1 && outputs(probe, far) == far ? in : Dim();
}

void check_operands(const InferContext& c, Dim out_channels, int bias) {
  const Type& x = c.type(0);
  c.require(is_float(x.dtype), "x must be of a float type");
  c.require(c.type(1).dtype == x.dtype, "x and w must be of one type");
  if (!c.has(bias)) return;
  c.require(c.type(bias).rank() == 1 && c.type(bias).dtype == x.dtype,
            "the bias must be a vector of the same type");
  c.same(c.type(bias).dims[0], out_channels, "bias and output channels");
}

template <class A>
Type convolution(InferContext& c, const A& a) {
  const Type &x = c.type(0), &w = c.type(1);
  const size_t axes = spatial_axes(c, x);
  c.require(w.rank() == x.rank(), "x and w need the same rank");
  check_windows(c, a, axes);
  c.require(a.groups >= 1 && a.groups <= kWindowLimit, fmt::format("groups is {}", a.groups));
  if (w.dims[1].is_number()) {
    check_size(c, w.dims[1]);
    c.same(x.dims[1], Dim(w.dims[1].number() * a.groups), "channels of x and w · groups");
  }
  if (w.dims[0].is_number())
    c.require(w.dims[0].number() % a.groups == 0, "groups does not divide the output channels");
  if (c.node().op != Op::ConvInteger) check_operands(c, w.dims[0], c.node().op == Op::DeformConv ? 3 : 2);
  Type y{x.dtype, {x.dims[0], w.dims[0]}};
  const std::vector<Window> windows = windows_of(a, std::vector<int64_t>(axes, 1));
  for (size_t i = 0; i < axes; i++)
    y.dims.push_back(output_dim(c, x.dims[i + 2], w.dims[i + 2], windows[i],
                                [](Window& v, int64_t in) { return v.outputs(in); }));
  return y;
}

}  // namespace

void rule_conv(InferContext& c) { c.result(0, convolution(c, c.attrs<ConvAttrs>())); }

void rule_conv_integer(InferContext& c) {
  Type y = convolution(c, c.attrs<ConvAttrs>());
  for (int i = 0; i < 2; i++)
    c.require(c.type(i).dtype == DType::i8 || c.type(i).dtype == DType::u8, "operands must be 8-bit integers");
  for (int i = 2; i < 4; i++) {
    if (!c.has(i)) continue;
    const Type& z = c.type(i);
    c.require(z.dtype == c.type(i - 2).dtype && z.rank() <= 1, "a zero point must be of its operand's type");
    if (z.rank() == 1 && !(z.dims[0] == Dim(1)))
      c.same(z.dims[0], i == 2 ? Dim(1) : c.type(1).dims[0], "zero points and channels");
  }
  y.dtype = DType::i32;
  c.result(0, y);
}

void rule_deform_conv(InferContext& c) {
  const auto& a = c.attrs<DeformConvAttrs>();
  const Type &x = c.type(0), &w = c.type(1), &offset = c.type(2);
  c.require(x.rank() == 4, "x must be [N, C, H, W]");
  Type y = convolution<ConvAttrs>(c, a);
  c.require(a.offset_groups >= 1 && a.offset_groups <= kWindowLimit, "offset_groups must be positive");
  if (x.dims[1].is_number())
    c.require(x.dims[1].number() % a.offset_groups == 0, "offset_groups does not divide the channels");
  const Dim taps = w.dims[2] * w.dims[3] * Dim(a.offset_groups);
  for (int i : {2, 4}) {
    if (!c.has(i)) continue;
    const Type& t = c.type(i);
    c.require(t.rank() == 4 && t.dtype == x.dtype, "offset and mask must be of x's rank and type");
    y.dims[0] = c.same(y.dims[0], t.dims[0], "batches");
    c.same(taps * Dim(i == 2 ? 2 : 1), t.dims[1], "values of offset or mask");
    for (size_t d = 2; d < 4; d++) y.dims[d] = c.same(y.dims[d], t.dims[d], "positions of offset or mask");
  }
  c.require(offset.rank() == 4, "needs offsets");
  c.result(0, y);
}

void rule_fused_conv(InferContext& c) {
  Type y = convolution<ConvAttrs>(c, c.attrs<FusedConvAttrs>());
  if (c.has(3)) {
    const Type& r = c.type(3);
    c.require(r.dtype == y.dtype && r.rank() == y.rank(), "the residual must be as the result");
    // It is an addition like any other: what was open when the graph was fused may turn out to broadcast.
    y.dims = c.broadcast(y.dims, r.dims);
  }
  c.result(0, y);
}

void rule_conv_transpose(InferContext& c) {
  const auto& a = c.attrs<ConvTransposeAttrs>();
  const Type &x = c.type(0), &w = c.type(1);
  const size_t axes = spatial_axes(c, x);
  c.require(w.rank() == x.rank(), "x and w need the same rank");
  check_windows(c, a, axes);
  check_list(c, a.output_padding, axes, 0, "output_padding");
  check_list(c, a.output_shape, axes, 0, "output_shape");
  c.require(a.groups >= 1 && a.groups <= kWindowLimit, fmt::format("groups is {}", a.groups));
  const Dim in_channels = c.same(x.dims[1], w.dims[0], "channels of x and w");
  if (in_channels.is_number())
    c.require(in_channels.number() % a.groups == 0, "groups does not divide the input channels");
  check_size(c, w.dims[1]);
  const Dim out_channels = w.dims[1] * Dim(a.groups);
  check_operands(c, out_channels, 2);
  Type y{x.dtype, {x.dims[0], out_channels}};
  const std::vector<Window> windows = windows_of(a, std::vector<int64_t>(axes, 1));
  for (size_t i = 0; i < axes; i++)
    y.dims.push_back(output_dim(c, x.dims[i + 2], w.dims[i + 2], windows[i],
                                [](Window& v, int64_t in) { return v.transposed_outputs(in); }));
  c.result(0, y);
}

void rule_pool(InferContext& c) {
  const auto& a = c.attrs<PoolAttrs>();
  const Type& x = c.type(0);
  const size_t axes = spatial_axes(c, x);
  c.require(a.kernel.size() == axes, fmt::format("kernel needs {} entries", axes));
  check_list(c, a.kernel, axes, 1, "kernel");
  check_windows(c, a, axes);
  c.require(x.dtype != DType::string && x.dtype != DType::boolean, "x must be numbers");
  c.require(a.kind == PoolKind::max || is_float(x.dtype), "averages need a float type");
  c.require(a.kind != PoolKind::lp || a.p >= 1, "p must be at least 1");
  Type y{x.dtype, {x.dims[0], x.dims[1]}};
  const std::vector<Window> windows = windows_of(a);
  for (size_t i = 0; i < axes; i++)
    y.dims.push_back(output_dim(c, x.dims[i + 2], Dim(a.kernel[i]), windows[i],
                                [](Window& v, int64_t in) { return v.outputs(in); }));
  c.result(0, y);
  if (c.results().size() > 1) {
    c.require(a.kind == PoolKind::max, "only maxima have indices");
    y.dtype = DType::i64;
    c.result(1, y);
  }
}

}  // namespace cyb::ir
