// SPDX-License-Identifier: Apache-2.0
// Kernel rows of f32 reductions, searches and running sums.
#include "ops/rows.h"

#include <algorithm>
#include <cmath>

#include "ops/common/convert.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_ops.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kGrain = 16384;  // elements worth a second thread

const char* only_f32(const Query& q) { return q.dtype(0) == DType::f32 ? nullptr : "not f32"; }

ReduceOp op_of(Op op) {
  switch (op) {
    case Op::ReduceMean:
      return ReduceOp::mean;
    case Op::ReduceProd:
      return ReduceOp::product;
    case Op::ReduceMax:
      return ReduceOp::max;
    case Op::ReduceMin:
      return ReduceOp::min;
    default:
      return ReduceOp::sum;
  }
}

// The operand as [outer, n, inner], reduced over the middle; `plain` is false where reduced axes are apart.
struct Plan {
  int64_t outer = 1, n = 1, inner = 1;
  bool plain = true;
};

Plan plan_of(const Shape& x, uint32_t over) {
  Plan p;
  int stage = 0;  // 0: before the reduced axes, 1: in them, 2: after
  for (int i = 0; i < x.rank(); i++) {
    if (x[i] == 1) continue;
    const bool reduced = over >> i & 1;
    if (reduced && stage == 0) stage = 1;
    if (!reduced && stage == 1) stage = 2;
    if (reduced && stage == 2) p.plain = false;
    (reduced ? p.n : stage == 0 ? p.outer : p.inner) *= x[i];
  }
  return p;
}

double join(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::product:
      return a * b;
    case ReduceOp::max:
      return a != a ? a : b != b || a < b ? b : a;
    case ReduceOp::min:
      return a != a ? a : b != b || b < a ? b : a;
    default:
      return a + b;
  }
}

double identity_of(ReduceOp op) {
  return op == ReduceOp::product ? 1 : op == ReduceOp::max ? -INFINITY : op == ReduceOp::min ? INFINITY : 0;
}

float finish(ReduceOp op, double total, int64_t n) {
  return static_cast<float>(op == ReduceOp::mean ? total / static_cast<double>(n) : total);
}

// Few long rows are shared piece by piece.
bool by_pieces(const Call& c, int64_t rows, int64_t n) {
  return n > 2 * kReducePiece && rows < c.pool->threads();
}

// Asked before operands have values: from the shapes alone.
uint64_t reduce_scratch(const Call& c) {
  const int64_t rows = c.out[0].elements(), n = rows ? c.in[0].elements() / rows : 0;
  if (!by_pieces(c, rows, n)) return 0;
  return static_cast<uint64_t>(rows * ((n + kReducePiece - 1) / kReducePiece)) * sizeof(float);
}

void run_reduce(Call& c) {
  const Plan p = plan_of(c.in[0].shape, reduced_axes(c));
  const ReduceOp op = op_of(c.node->op);
  const ReduceKernels& kernels = reduce_kernels(c.isa);
  const float* x = c.in[0].f32();
  float* y = c.out[0].f32();
  const int64_t pieces = (p.n + kReducePiece - 1) / kReducePiece;
  if (c.out[0].elements() == 0) return;
  if (!p.plain || p.n == 1) return reduce_reference(c);
  auto piece = [&](int64_t row, int64_t k) {
    const int64_t from = k * kReducePiece;
    return kernels.piece(op, x + row * p.n + from, std::min(kReducePiece, p.n - from));
  };
  if (p.inner != 1) {
    const int64_t groups = (p.inner + kReduceColumns - 1) / kReduceColumns;
    c.pool->parallel_for(
        p.outer * groups, 1 + kGrain / (kReduceColumns * p.n + 1), [&](int64_t begin, int64_t end, int) {
          // Neighbouring groups of one slice go together.
          while (begin < end) {
            const int64_t o = begin / groups, g = begin % groups, m = std::min(groups - g, end - begin);
            const int64_t from = g * kReduceColumns, to = std::min(p.inner, (g + m) * kReduceColumns);
            kernels.columns(op, x + o * p.n * p.inner + from, p.n, p.inner, to - from,
                            y + o * p.inner + from);
            begin += m;
          }
        });
  } else if (by_pieces(c, p.outer, p.n)) {
    auto* parts = reinterpret_cast<float*>(c.scratch);
    c.pool->parallel_for(p.outer * pieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i++) parts[i] = piece(i / pieces, i % pieces);
    });
    for (int64_t r = 0; r < p.outer; r++) {
      double total = identity_of(op);
      for (int64_t k = 0; k < pieces; k++) total = join(op, total, parts[r * pieces + k]);
      y[r] = finish(op, total, p.n);
    }
  } else {
    c.pool->parallel_for(p.outer, 1 + kGrain / (p.n + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; r++) {
        double total = identity_of(op);
        for (int64_t k = 0; k < pieces; k++) total = join(op, total, piece(r, k));
        y[r] = finish(op, total, p.n);
      }
    });
  }
}

void run_arg(Call& c) {
  const Shape& shape = c.in[0].shape;
  const auto& a = c.attrs<ir::ArgAttrs>();
  const int axis = axis_of(a.axis, shape.rank());
  const bool largest = c.node->op == Op::Argmax;
  const int64_t n = shape[axis], inner = shape.elements(axis + 1), outer = shape.elements(0, axis);
  const float* x = c.in[0].f32();
  int64_t* y = c.out[0].as<int64_t>();
  if (inner == 1) {
    c.pool->parallel_for(outer, 1 + kGrain / (n + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; r++) y[r] = reduce_kernels(c.isa).arg(x + r * n, n, largest, a.last);
    });
    return;
  }
  // Down columns, a block of them at a time.
  constexpr int64_t kBlock = 256;
  const int64_t blocks = (inner + kBlock - 1) / kBlock;
  c.pool->parallel_for(outer * blocks, 1 + kGrain / (kBlock * n + 1), [&](int64_t begin, int64_t end, int) {
    float best[kBlock];
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t o = unit / blocks, from = unit % blocks * kBlock, width = std::min(kBlock, inner - from);
      const float* row = x + o * n * inner + from;
      int64_t* to = y + o * inner + from;
      for (int64_t i = 0; i < width; i++) best[i] = row[i], to[i] = 0;
      for (int64_t k = 1; k < n; k++) {
        row += inner;
        for (int64_t i = 0; i < width; i++) {
          const float v = row[i], b = best[i];
          const bool better = largest ? b < v : v < b;
          const bool take = (b == b) & (better | (v != v) | (a.last & (v == b)));
          best[i] = take ? v : b;
          to[i] = take ? k : to[i];
        }
      }
    }
  });
}

// Rows along the last axis, four at a time: one alone waits for each sum.
template <int rows>
void cumulate_rows(const ir::CumSumAttrs& a, bool product, const float* x, int64_t n, float* y) {
  double acc[rows];
  std::fill_n(acc, rows, product ? 1.0 : 0.0);
  for (int64_t k = 0; k < n; k++) {
    const int64_t at = a.reverse ? n - 1 - k : k;
    for (int r = 0; r < rows; r++) {
      const double v = static_cast<double>(x[r * n + at]), next = product ? acc[r] * v : acc[r] + v;
      y[r * n + at] = static_cast<float>(a.exclusive ? acc[r] : next);
      acc[r] = next;
    }
  }
}

// In f64 and in the order of the axis: nothing differs from the definition.
void run_cumulative(Call& c) {
  const Shape& shape = c.in[0].shape;
  const auto& a = c.attrs<ir::CumSumAttrs>();
  const int axis = axis_of(c.has(1) ? integer_at(c.in[1], 0) : a.axis, shape.rank());
  const int64_t n = shape[axis], inner = shape.elements(axis + 1), outer = shape.elements(0, axis);
  const bool product = c.node->op == Op::CumProd;
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (inner + kBlock - 1) / kBlock;
  const float* x = c.in[0].f32();
  float* y = c.out[0].f32();
  if (inner == 1) {
    c.pool->parallel_for((outer + 3) / 4, 1 + kGrain / (4 * n + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = 4 * begin; r < std::min(outer, 4 * end); r += 4) {
        if (r + 4 <= outer) {
          cumulate_rows<4>(a, product, x + r * n, n, y + r * n);
          continue;
        }
        for (int64_t i = r; i < outer; i++) cumulate_rows<1>(a, product, x + i * n, n, y + i * n);
      }
    });
    return;
  }
  c.pool->parallel_for(
      outer * blocks, 1 + kGrain / (std::min(inner, kBlock) * n + 1), [&](int64_t begin, int64_t end, int) {
        double acc[kBlock];
        for (int64_t unit = begin; unit < end; unit++) {
          const int64_t from = unit % blocks * kBlock, width = std::min(kBlock, inner - from);
          const int64_t base = unit / blocks * n * inner + from;
          std::fill_n(acc, width, product ? 1.0 : 0.0);
          for (int64_t k = 0; k < n; k++) {
            const int64_t at = base + (a.reverse ? n - 1 - k : k) * inner;
            for (int64_t i = 0; i < width; i++) {
              const double v = static_cast<double>(x[at + i]);
              const double next = product ? acc[i] * v : acc[i] + v;
              y[at + i] = static_cast<float>(a.exclusive ? acc[i] : next);
              acc[i] = next;
            }
          }
        }
      });
}

}  // namespace

void add_fast_reduce_rows(KernelTable& t) {
  for (Op op : {Op::ReduceSum, Op::ReduceMean, Op::ReduceMax, Op::ReduceMin, Op::ReduceProd})
    t.add({.op = op,
           .name = "reduce",
           .cost = 50,
           .reject = only_f32,
           .scratch_bytes = reduce_scratch,
           .run = run_reduce});
  for (Op op : {Op::Argmax, Op::Argmin})
    t.add({.op = op, .name = "arg", .cost = 50, .reject = only_f32, .run = run_arg});
  for (Op op : {Op::CumSum, Op::CumProd})
    t.add({.op = op, .name = "cumulative", .cost = 50, .reject = only_f32, .run = run_cumulative});
}

}  // namespace cyb::cpu
