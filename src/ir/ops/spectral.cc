// SPDX-License-Identifier: Apache-2.0
// Shape rules of Fourier transforms and random numbers.
#include "ir/ops/recurrent.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

constexpr int64_t kLongest = int64_t{1} << 26;

// A scalar operand, or null while it is not known.
const Tensor* scalar(const InferContext& c, int i) {
  const Tensor* t = c.host_value(i);
  c.require(!t || t->elements() == 1, "a length, step or axis must be one value");
  return t;
}

}  // namespace

void rule_dft(InferContext& c) {
  const auto& a = c.attrs<DftAttrs>();
  const Type& x = c.type(0);
  c.require(x.rank() >= 2 && is_float(x.dtype), "x must be floats […, n, …, 1 or 2]");
  const Dim parts = x.dims.back();
  c.require(!parts.is_number() || parts.number() == 1 || parts.number() == 2, "the last axis must be 1 or 2");
  Type t = x;
  t.dims.back() = a.inverse && a.onesided ? 1 : 2;
  const Tensor* axis_value = c.has(2) ? scalar(c, 2) : nullptr;
  if (c.has(2) && !axis_value) {
    for (size_t i = 0; i + 1 < t.dims.size(); i++) t.dims[i] = Dim();
    return c.result(0, t);
  }
  const int axis = c.axis(axis_value ? axis_value->integer(0) : a.axis, x.rank());
  c.require(axis != x.rank() - 1, "the last axis holds the parts of complex values");
  Dim length = x.dims[static_cast<size_t>(axis)];
  if (a.inverse && a.onesided) length = length.is_number() ? Dim(2 * (length.number() - 1)) : Dim();
  if (c.has(1)) {
    const Tensor* value = scalar(c, 1);
    length = Dim();
    if (value) {
      c.require(value->integer(0) >= 1, "the length must be positive");
      length = value->integer(0);
    }
  }
  if (length.is_number())
    c.require(length.number() >= 1 && length.number() <= kLongest, "the length must be positive");
  if (a.onesided && !a.inverse) length = length.is_number() ? Dim(length.number() / 2 + 1) : Dim();
  t.dims[static_cast<size_t>(axis)] = length;
  c.result(0, t);
}

void rule_stft(InferContext& c) {
  const auto& a = c.attrs<StftAttrs>();
  const Type& x = c.type(0);
  c.require((x.rank() == 2 || x.rank() == 3) && is_float(x.dtype),
            "the signal must be floats [B, L, 1 or 2]");
  if (x.rank() == 3 && x.dims[2].is_number())
    c.require(x.dims[2].number() == 1 || x.dims[2].number() == 2, "the last axis must be 1 or 2");
  const Tensor* step = scalar(c, 1);
  Dim frame = x.dims[1];
  if (c.has(2)) {
    c.require(c.type(2).rank() == 1 && c.type(2).dtype == x.dtype,
              "the window must be a vector of the signal's type");
    frame = c.type(2).dims[0];
  }
  if (c.has(3)) {
    const Tensor* length = scalar(c, 3);
    frame = c.has(2) && !length ? frame
            : length            ? c.has(2) ? c.same(Dim(length->integer(0)), frame, "length and window")
                                           : Dim(length->integer(0))
                                : Dim();
  }
  if (step) c.require(step->integer(0) >= 1 && step->integer(0) <= kLongest, "the step must be positive");
  if (frame.is_number())
    c.require(frame.number() >= 1 && frame.number() <= kLongest, "the frame length must be positive");
  Dim frames;
  if (step && frame.is_number() && x.dims[1].is_number()) {
    c.require(x.dims[1].number() >= frame.number(), "the signal is shorter than a frame");
    frames = (x.dims[1].number() - frame.number()) / step->integer(0) + 1;
  }
  const Dim bins = !frame.is_number() ? Dim() : a.onesided ? Dim(frame.number() / 2 + 1) : frame;
  c.result(0, {x.dtype, {x.dims[0], frames, bins, Dim(2)}});
}

void rule_random(InferContext& c) {
  const auto& a = c.attrs<RandomAttrs>();
  c.require(is_float(a.to), "random numbers are floats");
  const Tensor* shape = c.host_value(0);
  Type t{a.to, {}};
  const Type& s = c.type(0);
  c.require(s.rank() == 1 && is_integer(s.dtype), "the shape must be a vector of integers");
  if (!shape) {
    if (s.dims[0].is_number() && s.dims[0].number() <= kMaxRank)
      t.dims.resize(static_cast<size_t>(s.dims[0].number()));
    else
      t.known_rank = false;
    return c.result(0, t);
  }
  for (int64_t i = 0; i < shape->elements(); i++) {
    const int64_t d = shape->integer(static_cast<size_t>(i));
    c.require(d >= 0, "a negative axis");
    t.dims.emplace_back(d);
  }
  c.result(0, t);
}

}  // namespace cyb::ir
