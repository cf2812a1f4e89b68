// SPDX-License-Identifier: Apache-2.0
// Kernel rows of rotary embedding. Cosines and sines depend on positions and attributes only, so the calls of
// all layers share one table, made again when the positions change.
#include "ops/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "ir/ops/attention.h"
#include "ops/rope/rope.h"

namespace cyb::cpu {

using ir::Op;

namespace {

RopeConfig config_of(const ir::RopeAttrs& a, int64_t head_dim) {
  RopeConfig c;
  c.type = static_cast<RopeType>(a.scaling);
  c.dims = static_cast<int32_t>(a.dims ? a.dims : head_dim);
  c.head_dim = static_cast<int32_t>(head_dim);
  c.theta = a.theta;
  c.factor = a.factor;
  c.low_freq_factor = a.low_freq_factor;
  c.high_freq_factor = a.high_freq_factor;
  c.beta_fast = a.beta_fast;
  c.beta_slow = a.beta_slow;
  c.mscale = a.mscale;
  c.mscale_all_dim = a.mscale_all_dim;
  c.attention_factor = a.attention_factor;
  c.truncate = a.truncate;
  c.original_context = a.original_context;
  c.max_context = a.max_context;
  c.short_factor = a.short_factor.empty() ? nullptr : a.short_factor.data();
  c.long_factor = a.long_factor.empty() ? nullptr : a.long_factor.data();
  return c;
}

struct Table {
  const void* pool;  // of the backend: its calls never overlap
  ir::RopeAttrs attrs;
  int64_t head_dim;
  RopeConfig config;
  float attention_factor = 1;
  bool fresh = false;
  int64_t length = -1;  // that the frequencies were made for
  std::vector<float> inv_freq, cos, sin;
  std::vector<uint8_t> axis_of;
  std::vector<int32_t> positions;
};

bool same(const ir::RopeAttrs& a, const ir::RopeAttrs& b) {
  return ir::equal(ir::TypedAttrs<ir::RopeAttrs>(a), ir::TypedAttrs<ir::RopeAttrs>(b));
}

// The table of these attributes on this backend; it lives as long as some plan holds it.
std::shared_ptr<Table> shared_table(const Call& c) {
  static std::mutex mutex;
  static std::vector<std::weak_ptr<Table>> tables;
  std::lock_guard lock(mutex);
  const auto& attrs = c.attrs<ir::RopeAttrs>();
  const int64_t head_dim = c.in[0].shape[3];
  std::erase_if(tables, [](const auto& t) { return t.expired(); });
  for (const auto& weak : tables)
    if (auto t = weak.lock(); t && t->pool == c.pool && t->head_dim == head_dim && same(t->attrs, attrs))
      return t;
  auto t = std::make_shared<Table>();
  t->pool = c.pool;
  t->attrs = attrs;
  t->head_dim = head_dim;
  t->config = config_of(t->attrs, head_dim);
  const int32_t pairs = rope_pairs(t->config);
  t->inv_freq.resize(static_cast<size_t>(pairs));
  if (!attrs.sections.empty()) {
    std::vector<int32_t> sections(attrs.sections.begin(), attrs.sections.end());
    t->axis_of.resize(static_cast<size_t>(pairs));
    rope_axes(sections.data(), static_cast<int>(sections.size()), attrs.interleaved_sections, pairs,
              t->axis_of.data());
  }
  tables.push_back(t);
  return t;
}

void prepare_rope(Call& c) {
  auto t = shared_table(c);
  // Room now, so that a run takes none.
  const auto rows = static_cast<size_t>(c.in[0].shape[0] * c.in[0].shape[1]);
  const size_t need = rows * t->inv_freq.size();
  if (t->cos.size() < need) {
    t->cos.resize(need);
    t->sin.resize(need);
    t->fresh = false;
  }
  t->positions.reserve(static_cast<size_t>(c.in[1].elements()));
  c.prepared = t;
}

void refresh(Call& c, Table& t) {
  const int32_t* positions = c.in[1].as<int32_t>();
  const auto count = static_cast<size_t>(c.in[1].elements());
  if (t.fresh && t.positions.size() == count && std::memcmp(t.positions.data(), positions, count * 4) == 0)
    return;
  int64_t length = 0;
  if (rope_depends_on_length(t.config))
    for (size_t i = 0; i < count; i++) length = std::max<int64_t>(length, int64_t{positions[i]} + 1);
  if (t.length != length) {
    t.attention_factor = rope_frequencies(t.config, length, t.inv_freq.data());
    t.length = length;
  }
  t.positions.assign(positions, positions + count);
  const int64_t rows = c.in[0].shape[0] * c.in[0].shape[1];
  RopeTableArgs a;
  a.positions = positions;
  a.axis_stride = rows;
  a.axis_of = t.axis_of.empty() ? nullptr : t.axis_of.data();
  a.inv_freq = t.inv_freq.data();
  a.pairs = rope_pairs(t.config);
  a.attention_factor = t.attention_factor;
  a.cos = t.cos.data();
  a.sin = t.sin.data();
  c.pool->parallel_for(rows, 16, [&](int64_t begin, int64_t end, int) { rope_table(a, begin, end); });
  t.fresh = true;
}

template <Isa isa>
void run_rope(Call& c) {
  auto& t = *static_cast<Table*>(c.prepared.get());
  refresh(c, t);
  const Shape& s = c.in[0].shape;
  RopeArgs a;
  a.pairing = static_cast<RopePairs>(c.attrs<ir::RopeAttrs>().pairing);
  a.pairs = rope_pairs(t.config);
  a.head_dim = static_cast<int32_t>(s[3]);
  a.heads = static_cast<int32_t>(s[2]);
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  a.x_row = a.y_row = s[2] * s[3];
  a.x_head = a.y_head = s[3];
  a.cos = t.cos.data();
  a.sin = t.sin.data();
  c.pool->parallel_for(s[0] * s[1], 16,
                       [&](int64_t begin, int64_t end, int) { rope_kernels(isa).apply(a, begin, end); });
}

// The rotation in f64, from the same f32 angles.
void run_rope_reference(Call& c) {
  const auto& attrs = c.attrs<ir::RopeAttrs>();
  const Shape& s = c.in[0].shape;
  const RopeConfig config = config_of(attrs, s[3]);
  const int32_t pairs = rope_pairs(config);
  std::vector<float> inv_freq(static_cast<size_t>(pairs));
  std::vector<uint8_t> axis_of(static_cast<size_t>(pairs), 0);
  if (!attrs.sections.empty()) {
    std::vector<int32_t> sections(attrs.sections.begin(), attrs.sections.end());
    rope_axes(sections.data(), static_cast<int>(sections.size()), attrs.interleaved_sections, pairs,
              axis_of.data());
  }
  const int32_t* positions = c.in[1].as<int32_t>();
  int64_t length = 0;
  for (int64_t i = 0; i < c.in[1].elements(); i++)
    length = std::max<int64_t>(length, int64_t{positions[i]} + 1);
  const float factor = rope_frequencies(config, length, inv_freq.data());
  const int64_t rows = s[0] * s[1];
  for (int64_t r = 0; r < rows; r++)
    for (int64_t h = 0; h < s[2]; h++) {
      const float* x = c.in[0].f32() + (r * s[2] + h) * s[3];
      float* y = c.out[0].f32() + (r * s[2] + h) * s[3];
      if (y != x) std::memcpy(y, x, static_cast<size_t>(s[3]) * 4);
      for (int32_t j = 0; j < pairs; j++) {
        const auto k = static_cast<size_t>(j);
        const float angle = static_cast<float>(positions[axis_of[k] * rows + r]) * inv_freq[k];
        const double cosine = std::cos(static_cast<double>(angle)) * factor,
                     sine = std::sin(static_cast<double>(angle)) * factor;
        const bool half = attrs.pairing == ir::RopePairing::half;
        const int64_t first = half ? j : 2 * j, second = half ? j + pairs : 2 * j + 1;
        const double a = x[first], b = x[second];
        y[first] = static_cast<float>(a * cosine - b * sine);
        y[second] = static_cast<float>(b * cosine + a * sine);
      }
    }
}

}  // namespace

void add_rope_rows(KernelTable& t) {
  t.add({.op = Op::Rope,
         .name = "rope_avx512",
         .isa = Isa::avx512,
         .cost = 10,
         .prepare = prepare_rope,
         .run = run_rope<Isa::avx512>});
  t.add({.op = Op::Rope,
         .name = "rope_avx2",
         .isa = Isa::avx2,
         .cost = 20,
         .prepare = prepare_rope,
         .run = run_rope<Isa::avx2>});
  t.add({.op = Op::Rope,
         .name = "rope_neon",
         .isa = Isa::neon,
         .cost = 20,
         .prepare = prepare_rope,
         .run = run_rope<Isa::neon>});
  t.add({.op = Op::Rope,
         .name = "rope_plain",
         .cost = 500,
         .prepare = prepare_rope,
         .run = run_rope<Isa::scalar>});
  t.add({.op = Op::Rope, .name = "rope_reference", .cost = 1000, .run = run_rope_reference});
}

}  // namespace cyb::cpu
