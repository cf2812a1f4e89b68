// SPDX-License-Identifier: Apache-2.0
// Kernel rows of operators that move elements: by runs, tiles and threads.
#include "ops/rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/ops/rules.h"
#include "ops/common/convert.h"
#include "ops/shape/copy.h"
#include "ops/shape/shape.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kGrainBytes = 65536;  // worth a second thread

void run_view(Call& c) {
  copy_bytes(c.in[0].data, c.out[0].data, static_cast<int64_t>(bytes_of(c.out[0])), *c.pool);
}

CopyPlan plan_of(const Call& c) {
  CopyPlan plan;
  plan.element = static_cast<int64_t>(size_of(c.out[0].dtype));
  return plan;
}

void move(Call& c, CopyPlan plan) {
  simplify(&plan);
  run_copy(plan, c.in[0].data, c.out[0].data, *c.pool, c.isa);
}

void run_permute(Call& c) {
  CopyPlan plan = plan_of(c);
  const Shape& x = c.in[0].shape;
  const auto strides = strides_of(x);
  const auto& axes = c.attrs<ir::AxesAttrs>().axes;
  for (int i = 0; i < x.rank(); i++) {
    int from = i;
    if (c.node->op == Op::Permute) {
      from = axis_of(axes[static_cast<size_t>(i)], x.rank());
    } else {
      const int a = axis_of(axes.empty() ? -2 : axes[0], x.rank());
      const int b = axis_of(axes.empty() ? -1 : axes[1], x.rank());
      from = i == a ? b : i == b ? a : i;
    }
    plan.push(x[from], strides[static_cast<size_t>(from)]);
  }
  move(c, plan);
}

void run_expand(Call& c) {
  CopyPlan plan = plan_of(c);
  const Shape& y = c.out[0].shape;
  const auto strides = broadcast_strides(c.in[0].shape, y);
  for (int i = 0; i < y.rank(); i++) plan.push(y[i], strides[static_cast<size_t>(i)]);
  move(c, plan);
}

void run_tile(Call& c) {
  CopyPlan plan = plan_of(c);
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  if (y.elements() == 0) return;
  const auto strides = strides_of(x);
  for (int i = 0; i < x.rank(); i++) {
    plan.push(y[i] / x[i], 0);
    plan.push(x[i], strides[static_cast<size_t>(i)]);
  }
  move(c, plan);
}

void run_slice(Call& c) {
  if (c.out[0].elements() == 0) return;
  CopyPlan plan = plan_of(c);
  const Shape& x = c.in[0].shape;
  const auto strides = strides_of(x);
  for (int i = 0; i < x.rank(); i++) plan.push(c.out[0].shape[i], strides[static_cast<size_t>(i)]);
  for (int64_t i = 0; i < c.in[1].elements(); i++) {
    const int axis = axis_of(c.has(3) ? integer_at(c.in[3], i) : i, x.rank());
    const int64_t step = c.has(4) ? integer_at(c.in[4], i) : 1;
    const ir::SliceBounds b = ir::slice_bounds(x[axis], integer_at(c.in[1], i), integer_at(c.in[2], i), step);
    plan.offset += b.start * strides[static_cast<size_t>(axis)];
    // A step is of no use for one element, and may be too large to multiply.
    if (b.count > 1) plan.strides[axis] *= step;
  }
  move(c, plan);
}

// The whole as rows, each of them the parts' pieces one after the other; f(part's byte, whole's byte, bytes).
template <class F>
void pieces(const Arg& whole, const std::vector<Arg>& parts, int axis, ThreadPool& pool, F&& f) {
  const auto unit = whole.shape.elements(axis + 1) * static_cast<int64_t>(size_of(whole.dtype));
  const int64_t row = whole.shape[axis] * unit, total = whole.shape.elements(0, axis) * row;
  pool.parallel_for(total, kGrainBytes, [&](int64_t at, int64_t end, int) {
    int64_t r = at / row, start = r * row;
    while (at < end) {
      for (size_t k = 0; k < parts.size() && at < end; k++) {
        const int64_t n = parts[k].shape[axis] * unit;
        if (at < start + n) {
          const int64_t inside = at - start, bytes = std::min(start + n, end) - at;
          f(parts[k].as<uint8_t>() + r * n + inside, whole.as<uint8_t>() + at, bytes);
          at += bytes;
        }
        start += n;
      }
      r++;
    }
  });
}

// Copies of a few bytes are moves and not calls.
inline void copy_piece(const uint8_t* from, uint8_t* to, int64_t bytes) {
  if (bytes == 4)
    std::memcpy(to, from, 4);
  else if (bytes == 8)
    std::memcpy(to, from, 8);
  else
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

void run_concat(Call& c) {
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, c.out[0].shape.rank());
  pieces(c.out[0], c.in, axis, *c.pool,
         [](uint8_t* part, uint8_t* whole, int64_t bytes) { copy_piece(part, whole, bytes); });
}

void run_split(Call& c) {
  const int axis = axis_of(c.attrs<ir::SplitAttrs>().axis, c.in[0].shape.rank());
  pieces(c.in[0], c.out, axis, *c.pool,
         [](uint8_t* part, uint8_t* whole, int64_t bytes) { copy_piece(whole, part, bytes); });
}

// Along the channels, pieces of channels in blocks are runs of memory too.
void channel_layouts(Call& c) {
  const int64_t axis =
      c.node->op == Op::Concat ? c.attrs<ir::AxisAttrs>().axis : c.attrs<ir::SplitAttrs>().axis;
  bool all = c.out[0].shape.rank() == 4 && axis_of(axis, 4) == 1;
  for (const std::vector<Arg>* args : {&c.in, &c.out})
    for (const Arg& a : *args) all = all && (a.dtype != DType::f32 || a.layout == Layout::nchw16c);
  if (all) return;
  for (std::vector<Arg>* args : {&c.in, &c.out})
    for (Arg& a : *args) a.layout = Layout::plain;
}

template <class T>
void pad_rows(Call& c, const PadPlan& plan) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  const int last = y.rank() - 1;
  const T fill = c.has(2) && c.in[2].elements() > 0 ? c.in[2].as<T>()[0] : T(0);
  const auto strides = strides_of(x);
  const int64_t columns = y[last], before = plan.before[last], length = plan.length[last];
  const int64_t rows = columns ? y.elements() / columns : 0;
  const bool plain = plan.mode == ir::PadMode::constant;
  c.pool->parallel_for(rows, kGrainBytes / (columns * static_cast<int64_t>(sizeof(T)) + 1) + 1,
                       [&](int64_t begin, int64_t end, int) {
                         for (int64_t r = begin; r < end; r++) {
                           T* to = c.out[0].as<T>() + r * columns;
                           const T* from = c.in[0].as<T>();
                           bool inside = true;
                           int64_t rest = r;
                           for (int a = last; a-- > 0 && inside; rest /= y[a]) {
                             const int64_t i = pad_source(plan, a, rest % y[a]);
                             inside = i >= 0;
                             from += i * strides[static_cast<size_t>(a)];
                           }
                           if (!inside) {
                             std::fill_n(to, columns, fill);
                             continue;
                           }
                           if (length > 0) std::copy_n(from + plan.skip[last], length, to + before);
                           const int64_t after = before + length;
                           if (plain) {
                             std::fill_n(to, before, fill);
                             std::fill_n(to + after, columns - after, fill);
                           } else {
                             for (int64_t i = 0; i < before; i++) to[i] = from[pad_source(plan, last, i)];
                             for (int64_t i = after; i < columns; i++)
                               to[i] = from[pad_source(plan, last, i)];
                           }
                         }
                       });
}

void run_pad(Call& c) {
  if (c.out[0].elements() == 0) return;
  if (c.out[0].shape.rank() == 0) return run_view(c);
  const PadPlan plan = pad_plan(c);
  visit_size(c.out[0].dtype, [&](auto tag) { pad_rows<typename decltype(tag)::type>(c, plan); });
}

}  // namespace

void add_move_rows(KernelTable& t) {
  auto add = [&](Op op, const char* name, void (*run)(Call&), void (*layouts)(Call&) = nullptr) {
    t.add({.op = op, .name = name, .cost = 50, .reject = reject_strings, .run = run, .layouts = layouts});
  };
  for (Op op : {Op::Reshape, Op::Unsqueeze, Op::Squeeze, Op::Identity}) add(op, "move", run_view);
  for (Op op : {Op::Permute, Op::Transpose}) add(op, "move", run_permute);
  add(Op::Expand, "move", run_expand);
  add(Op::Tile, "move", run_tile);
  add(Op::Slice, "move", run_slice);
  add(Op::Concat, "move", run_concat, channel_layouts);
  for (Op op : {Op::Split, Op::Chunk}) add(op, "move", run_split, channel_layouts);
  add(Op::Pad, "move", run_pad);
}

}  // namespace cyb::cpu
