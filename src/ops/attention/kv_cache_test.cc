// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/kv_cache.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/attention/attention_testing.h"
#include "tensor/dtype.h"

namespace cyb {
namespace {

using testing::isas;
using testing::Random;
using testing::Rows;
using testing::run_reference;
using testing::run_sdpa;
using testing::same_bits;
using testing::worst;

struct Bytes : ByteSink, ByteSource {
  std::vector<uint8_t> data;
  size_t at = 0;
  void write(const void* p, size_t n) override {
    data.insert(data.end(), static_cast<const uint8_t*>(p), static_cast<const uint8_t*>(p) + n);
  }
  void read(void* p, size_t n) override {
    if (n > data.size() - at) throw error(ErrorKind::InvalidFile, "ends early");
    std::memcpy(p, data.data() + at, n);
    at += n;
  }
};

KvConfig config(KvType type, int64_t window = 0) {
  KvConfig c;
  c.heads = 2, c.k_dim = 24, c.v_dim = 20, c.type = type, c.window = window;
  return c;
}

// A causal sequence that is fed to caches in pieces.
struct Sequence {
  Rows q, k, v;
  Sequence(Random& random, int64_t n)
      : q(random, 1, n, 6, 24), k(random, 1, n, 2, 24), v(random, 1, n, 2, 20) {}

  SdpaArgs args(const KvCache& cache, const KvSlot* slot, int64_t from, int64_t n) const {
    SdpaArgs a;
    a.queries = n, a.heads = 6, a.kv_heads = 2, a.k_dim = 24, a.v_dim = 20;
    a.q = q.input();
    a.q.data += from * a.q.row;
    a.state = slot;
    a.layout = cache.layout();
    a.scale = 0.2f;
    a.causal = true;
    a.window = cache.config().window;
    return a;
  }
  // Appends positions [from, from + n) and attends from them.
  std::vector<float> step(KvCache& cache, int slot, int64_t from, int64_t n, Isa isa, int threads = 1) const {
    cache.append(slot, n, k.slot(0, from), v.slot(0, from));
    const KvSlot view = cache.view(slot);
    return run_sdpa(args(cache, &view, from, n), isa, threads);
  }
};

std::vector<float> run_in_chunks(const Sequence& s, const KvConfig& c, int64_t n, int64_t chunk, Isa isa,
                                 int threads) {
  KvCache cache(c, 1, isa);
  std::vector<float> all;
  for (int64_t at = 0; at < n; at += chunk) {
    const std::vector<float> part = s.step(cache, 0, at, std::min(chunk, n - at), isa, threads);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(KvCache, any_chunking_threads_and_instruction_set_give_the_same_bits) {
  Random random(1);
  const int64_t n = 700;  // crosses a span
  const Sequence s(random, n);
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8})
    for (const int64_t window : {0, 70}) {
      const std::vector<float> whole = run_in_chunks(s, config(type, window), n, n, detect_isa(), 1);
      for (const int64_t chunk : {1, 2, 7, 64, 130})
        EXPECT_TRUE(same_bits(run_in_chunks(s, config(type, window), n, chunk, detect_isa(), 1), whole))
            << chunk;
      EXPECT_TRUE(same_bits(run_in_chunks(s, config(type, window), n, 1, detect_isa(), 2), whole));
      for (const Isa isa : isas())
        EXPECT_TRUE(same_bits(run_in_chunks(s, config(type, window), n, 130, isa, 2), whole))
            << to_string(isa);
    }
}

TEST(KvCache, attention_over_a_state_equals_the_reference_and_in_f32_attention_over_operands) {
  Random random(2);
  const Sequence s(random, 600);
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8}) {
    KvCache cache(config(type), 1);
    const std::vector<float> got = s.step(cache, 0, 0, 600, detect_isa(), 2);
    const KvSlot view = cache.view(0);
    SdpaArgs a = s.args(cache, &view, 0, 600);
    EXPECT_LE(worst(got, run_reference(a)), 4e-6);
    a.state = nullptr;
    a.keys = 600;
    a.k = s.k.input();
    a.v = s.v.input();
    const std::vector<float> stateless = run_sdpa(a, detect_isa(), 1);
    if (type == KvType::f32)
      EXPECT_TRUE(same_bits(got, stateless));
    else
      EXPECT_LE(worst(got, stateless), type == KvType::f16 ? 4e-3 : 2e-2);
  }
}

TEST(KvCache, batch_rows_of_several_lengths_equal_single_rows) {
  Random random(3);
  const int64_t lengths[] = {0, 5, 600, 64};
  KvCache cache(config(KvType::f16), 4);
  Rows q(random, 4, 3, 6, 24), k(random, 4, 600, 2, 24), v(random, 4, 600, 2, 20);
  std::vector<KvSlot> views;
  for (int b = 0; b < 4; ++b) cache.append(b, lengths[b], k.slot(b, 0), v.slot(b, 0));
  const std::vector<int32_t> fresh = {0, 2, 3, 1};
  for (int b = 0; b < 4; ++b) views.push_back(cache.view(b));
  SdpaArgs a;
  a.batch = 4, a.queries = 3, a.heads = 6, a.kv_heads = 2, a.k_dim = 24, a.v_dim = 20;
  a.q = q.input();
  a.state = views.data();
  a.layout = cache.layout();
  a.lengths = fresh.data();
  a.causal = true;
  const std::vector<float> all = run_sdpa(a, detect_isa(), 2);
  EXPECT_LE(worst(all, run_reference(a)), 1e-5);
  const int64_t row = 3 * 6 * 20;
  for (int b = 0; b < 4; ++b) {
    SdpaArgs one = a;
    one.batch = 1;
    one.state = &views[b];
    one.lengths = &fresh[b];
    one.q.data += b * a.q.batch;
    EXPECT_TRUE(
        same_bits(run_sdpa(one, detect_isa(), 1), {all.begin() + b * row, all.begin() + (b + 1) * row}));
  }
}

TEST(KvCache, unused_entries_are_zero_and_f16_saturates) {
  Random random(4);
  KvCache cache(config(KvType::f16), 1);
  Rows k(random, 1, 70, 2, 24), v(random, 1, 70, 2, 20);
  k.data[0] = 1e6f, k.data[1] = -1e30f;
  cache.append(0, 70, k.slot(0, 0), v.slot(0, 0));
  const auto element = [&](int64_t at) {
    return f16_to_f32(
        reinterpret_cast<const uint16_t*>(cache.view(0).pages[at < 0 ? 0 : 1])[at < 0 ? -at - 1 : at]);
  };
  EXPECT_EQ(element(-1), 65504.0f);
  EXPECT_EQ(element(-17), -65504.0f);
  cache.truncate(0, 67);
  for (int64_t i = 3; i < 64; ++i) EXPECT_EQ(element(key_at(5, i, 24)), 0.0f);
  EXPECT_NE(element(key_at(5, 2, 24)), 0.0f);
  const int64_t values = 2 * 24 * 64;
  for (int64_t i = 3 * 32; i < 64 * 32; ++i) EXPECT_EQ(element(values + i), 0.0f);
  EXPECT_NE(element(values + 2 * 32), 0.0f);
}

// Codes and scales of one block as activations are rounded: by the largest, to nearest even.
TEST(KvCache, q8_holds_the_nearest_code_and_a_scale_for_each_block) {
  Random random(11);
  for (const Isa isa : isas()) {
    KvConfig c;
    c.heads = 2, c.k_dim = 40, c.v_dim = 70, c.type = KvType::q8;
    KvCache cache(c, 1, isa);
    const KvLayout& layout = cache.layout();
    Rows k(random, 1, 90, 2, 40), v(random, 1, 90, 2, 70);
    for (int64_t d = 0; d < 32; ++d) k.data[d] = 1e-31f;  // position 0, head 0: zero
    k.data[80] = 1e30f, v.data[33] = 1e-25f;              // large and small are no matter
    v.data[140] = INFINITY, v.data[280 + 69] = NAN;       // positions 1 and 2
    cache.append(0, 90, k.slot(0, 0), v.slot(0, 0));
    EXPECT_LT(layout.page_bytes(), 0.6 * kv_layout(2, 40, 70, KvType::f16).page_bytes());
    // `block` tells the block of a dimension.
    const auto check = [&](const Rows& from, auto block, int64_t h, int64_t i, int64_t d, int8_t code,
                           uint16_t bits) {
      const float* row = &from.data[static_cast<size_t>((i * 2 + h) * from.dim)];
      float top = 0;
      bool odd = false;
      for (int64_t j = 0; j < from.dim; ++j) {
        if (block(j) != block(d)) continue;
        top = std::max(top, std::fabs(row[j]));
        odd = odd || !std::isfinite(row[j]);
      }
      const float scale = bf16_to_f32(bits);
      if (odd) {
        ASSERT_TRUE(std::isnan(scale));
        ASSERT_EQ(code, 0);
      } else if (top < 0x1p-100f) {
        ASSERT_EQ(scale, 0.0f);
        ASSERT_EQ(code, 0);
      } else {
        ASSERT_GE(scale * 127.01f, top);
        ASSERT_LE(scale * 126.0f, top);
        ASSERT_LE(std::fabs(code * scale - row[d]), 0.5001f * scale) << i << ' ' << d;
      }
    };
    for (int64_t i = 0; i < 90; ++i)
      for (int64_t h = 0; h < 2; ++h) {
        const uint8_t* page = cache.view(0).pages[i / 64];
        const uint8_t *pk = page + layout.k_offset(h), *pv = page + layout.v_offset(h);
        const auto* ks = reinterpret_cast<const uint16_t*>(pk + layout.k_codes());
        const auto* vs = reinterpret_cast<const uint16_t*>(pv + layout.v_codes());
        const auto key = [](int64_t d) { return d % 20 / 4; };  // four and those half a head further on
        const auto value = [](int64_t d) { return d / 32; };
        for (int64_t d = 0; d < 40; ++d)
          check(k, key, h, i, d, static_cast<int8_t>(pk[key_at(d, i % 64, 40)]),
                ks[key_at(key(d), i % 64, 5)]);
        for (int64_t d = 0; d < 70; ++d)
          check(v, value, h, i, d, static_cast<int8_t>(pv[i % 64 * layout.v_stride + d]),
                vs[i % 64 * value_blocks(layout.v_stride) + value(d)]);
      }
    cache.truncate(0, 70);  // what is left of the page is as it was when it was taken
    const uint8_t* page = cache.view(0).pages[1];
    for (int64_t h = 0; h < 2; ++h) {
      const auto* ks = reinterpret_cast<const uint16_t*>(page + layout.k_offset(h) + layout.k_codes());
      EXPECT_NE(ks[5], 0);
      EXPECT_EQ(ks[6], 0);
      EXPECT_EQ(page[layout.k_offset(h) + key_at(39, 6, 40)], 0);
      EXPECT_EQ(page[layout.v_offset(h) + 6 * layout.v_stride + 3], 0);
    }
  }
}

TEST(KvCache, one_row_and_many_and_every_dimension_have_the_same_bits) {
  Random random(12);
  const int dims[][2] = {{1, 1}, {16, 16}, {32, 48}, {40, 70}, {37, 33}, {64, 64}, {128, 256}, {192, 128}};
  for (const KvType type : {KvType::f16, KvType::q8})
    for (const auto& dim : dims) {
      KvConfig c;
      c.heads = 1, c.k_dim = dim[0], c.v_dim = dim[1], c.type = type;
      Rows q(random, 1, 70, 7, dim[0]), k(random, 1, 150, 1, dim[0]), v(random, 1, 150, 1, dim[1]);
      KvCache cache(c, 1);
      cache.append(0, 150, k.slot(0, 0), v.slot(0, 0));
      const KvSlot view = cache.view(0);
      SdpaArgs a;
      a.queries = 70, a.heads = 7, a.kv_heads = 1, a.k_dim = dim[0], a.v_dim = dim[1];
      a.q = q.input();
      a.state = &view;
      a.layout = cache.layout();
      a.scale = 0.3f;
      const std::vector<float> all = run_sdpa(a, Isa::scalar, 1);
      EXPECT_LE(worst(all, run_reference(a)), 2e-5);
      for (const Isa isa : isas()) EXPECT_TRUE(same_bits(run_sdpa(a, isa, 2), all)) << to_string(isa);
      const int64_t row = int64_t{7} * dim[1];
      for (int64_t t = 0; t < 70; t += 23) {
        SdpaArgs one = a;
        one.queries = 1;
        one.q.data += t * a.q.row;
        for (const Isa isa : isas())
          EXPECT_TRUE(same_bits(run_sdpa(one, isa, 1), {all.begin() + t * row, all.begin() + (t + 1) * row}));
      }
      // Probabilities too.
      const int32_t heads[] = {2, 5};
      a.prob_heads = heads, a.prob_count = 2, a.prob_columns = 150;
      std::vector<float> expected, got;
      run_reference(a, &expected);
      for (const Isa isa : isas()) {
        EXPECT_TRUE(same_bits(run_sdpa(a, isa, 1, &got), all));
        EXPECT_LE(worst(got, expected), 1e-5);
      }
    }
}

TEST(KvCache, truncate_and_continue_equals_never_having_gone_on) {
  Random random(5);
  const Sequence s(random, 400);
  for (const KvType type : {KvType::f16, KvType::q8})
    for (const int64_t window : {0, 33}) {
      KvCache cache(config(type, window), 1);
      s.step(cache, 0, 0, 200, detect_isa());
      const std::vector<float> once = s.step(cache, 0, 200, 100, detect_isa());
      EXPECT_EQ(cache.recompute_from(0, 200), 200);
      EXPECT_EQ(cache.truncate(0, 200), 200);
      EXPECT_EQ(cache.length(0), 200);
      EXPECT_TRUE(same_bits(s.step(cache, 0, 200, 100, detect_isa()), once));
    }
}

TEST(KvCache, a_window_keeps_its_slack_and_says_from_where_to_compute_beyond_it) {
  Random random(6);
  const int64_t window = 40;
  const Sequence s(random, 1500);
  KvCache cache(config(KvType::f16, window), 1);
  std::vector<float> kept;
  for (int64_t at = 0; at < 1500; ++at) {
    const std::vector<float> row = s.step(cache, 0, at, 1, detect_isa());
    if (at == 1499) kept = row;
    ASSERT_LE(cache.memory().pages_used, (window + 256) / 64 + 2);
  }
  EXPECT_GT(cache.first(0), 1500 - window - 256 - 130);
  EXPECT_EQ(cache.recompute_from(0, 1499), 1499);
  EXPECT_EQ(cache.recompute_from(0, 1500 - 256), 1500 - 256);
  EXPECT_EQ(cache.recompute_from(0, 1000), 0);
  EXPECT_EQ(cache.length(0), 1500) << "asking changes nothing";
  EXPECT_EQ(cache.truncate(0, 1500 - 256), 1500 - 256);
  std::vector<float> again;
  for (int64_t at = 1500 - 256; at < 1500; ++at) again = s.step(cache, 0, at, 1, detect_isa());
  EXPECT_TRUE(same_bits(again, kept));
  EXPECT_EQ(cache.truncate(0, 1000), 0);
  EXPECT_EQ(cache.length(0), 0);
  EXPECT_EQ(cache.first(0), 0);
  EXPECT_EQ(cache.memory().pages_used, 0);
  EXPECT_TRUE(same_bits(s.step(cache, 0, 0, 10, detect_isa()),
                        run_in_chunks(s, config(KvType::f16, window), 10, 10, detect_isa(), 1)));
}

TEST(KvCache, forks_share_pages_until_they_write) {
  for (const KvType type : {KvType::f16, KvType::q8}) {
    Random random(7);
    const Sequence a(random, 200), b(random, 200);
    KvCache cache(config(type), 3);
    a.step(cache, 0, 0, 100, detect_isa());
    EXPECT_EQ(cache.memory().pages_used, 2);
    cache.fork(0, 1);
    cache.fork(1, 2);
    EXPECT_EQ(cache.memory().pages_used, 2);
    KvCache alone(config(type), 1);
    a.step(alone, 0, 0, 100, detect_isa());
    b.step(cache, 1, 100, 20, detect_isa());
    EXPECT_EQ(cache.memory().pages_used, 3) << "only the page that was written is copied";
    EXPECT_TRUE(same_bits(a.step(cache, 0, 100, 20, detect_isa()), a.step(alone, 0, 100, 20, detect_isa())));
    cache.truncate(2, 90);
    EXPECT_EQ(cache.memory().pages_used, 4);
    EXPECT_TRUE(same_bits(a.step(cache, 0, 120, 5, detect_isa()), a.step(alone, 0, 120, 5, detect_isa())));
    cache.reset(0), cache.reset(1), cache.reset(2);
    EXPECT_EQ(cache.memory().pages_used, 0);
    EXPECT_GT(cache.memory().bytes_reserved(), 0);
  }
}

TEST(KvCache, select_reorders_beams_and_copies_only_what_diverges) {
  for (const KvType type : {KvType::f16, KvType::q8}) {
    Random random(8);
    const Sequence s[] = {Sequence(random, 200), Sequence(random, 200), Sequence(random, 200)};
    KvCache cache(config(type), 3), alone(config(type), 3);
    for (int b = 0; b < 3; ++b)
      s[b].step(cache, b, 0, 70 + b, detect_isa()), s[b].step(alone, b, 0, 70 + b, detect_isa());
    const int32_t swap[] = {2, 0, 1};
    cache.select(swap);
    EXPECT_EQ(cache.memory().pages_used, 6);
    EXPECT_EQ(cache.length(0), 72);
    const int32_t narrow[] = {1, 1, 0};  // beams 0, 0, 2 of the beginning
    cache.select(narrow);
    EXPECT_EQ(cache.memory().pages_used, 4);
    const std::vector<float> expected = s[0].step(alone, 0, 70, 3, detect_isa());
    for (const int b : {0, 1}) EXPECT_TRUE(same_bits(s[0].step(cache, b, 70, 3, detect_isa()), expected));
    EXPECT_TRUE(
        same_bits(s[2].step(cache, 2, 72, 3, detect_isa()), s[2].step(alone, 2, 72, 3, detect_isa())));
    const int32_t wrong[] = {0, 3, 1};
    EXPECT_THROW(cache.select(wrong), Error);
    EXPECT_THROW(cache.select(std::span(wrong, 2)), Error);
  }
}

TEST(KvCache, a_saved_slot_continues_with_the_same_bits) {
  Random random(9);
  const Sequence s(random, 900);
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8})
    for (const int64_t window : {0, 50}) {
      KvCache cache(config(type, window), 2), other(config(type, window), 2);
      for (int64_t at = 0; at < 800; at += 100) s.step(cache, 1, at, 100, detect_isa());
      Bytes bytes;
      cache.save(1, bytes);
      s.step(other, 0, 0, 10, detect_isa());
      other.load(0, bytes);
      EXPECT_EQ(bytes.at, bytes.data.size());
      EXPECT_EQ(other.first(0), cache.first(1));
      EXPECT_TRUE(
          same_bits(s.step(other, 0, 800, 30, detect_isa()), s.step(cache, 1, 800, 30, detect_isa())));
    }
}

TEST(KvCache, damaged_foreign_and_cut_streams_are_refused_and_change_nothing) {
  Random random(10);
  const Sequence s(random, 200);
  KvCache cache(config(KvType::f16), 1);
  s.step(cache, 0, 0, 150, detect_isa());
  Bytes good;
  cache.save(0, good);
  const int64_t pages = cache.memory().pages_used;
  const auto refused = [&](Bytes bytes, KvCache& into) {
    bytes.at = 0;
    const int64_t length = into.length(0);
    EXPECT_THROW(into.load(0, bytes), Error);
    EXPECT_EQ(into.length(0), length);
  };
  for (size_t i = 0; i < good.data.size(); i += i < 80 ? 1 : 997) {
    Bytes bad = good;
    bad.data[i] ^= 0x40;
    refused(bad, cache);
    Bytes cut = good;
    cut.data.resize(i);
    refused(cut, cache);
  }
  EXPECT_EQ(cache.memory().pages_used, pages);
  KvCache other(config(KvType::f32), 1), windowed(config(KvType::f16, 9), 1);
  refused(good, other);
  refused(good, windowed);
}

TEST(KvCache, impossible_shapes_are_errors) {
  KvConfig c = config(KvType::f16);
  EXPECT_THROW(KvCache(c, 0), Error);
  c.heads = 0;
  EXPECT_THROW(KvCache(c, 1), Error);
  c.heads = 65536, c.k_dim = 65536;
  EXPECT_THROW(KvCache(c, 1), Error);
  KvCache cache(config(KvType::f16), 1);
  EXPECT_THROW(cache.extend(0, (int64_t{1} << 30) + 1), Error);
  EXPECT_THROW(cache.extend(1, 1), Error);
}

}  // namespace
}  // namespace cyb
