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
  for (const KvType type : {KvType::f16, KvType::f32})
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
  for (const KvType type : {KvType::f16, KvType::f32}) {
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
      EXPECT_LE(worst(got, stateless), 4e-3);
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
  EXPECT_EQ(element(-65), -65504.0f);
  cache.truncate(0, 67);
  for (int64_t i = 3; i < 64; ++i) EXPECT_EQ(element(5 * 64 + i), 0.0f);
  EXPECT_NE(element(5 * 64 + 2), 0.0f);
  const int64_t values = 2 * 24 * 64;
  for (int64_t i = 3 * 32; i < 64 * 32; ++i) EXPECT_EQ(element(values + i), 0.0f);
  EXPECT_NE(element(values + 2 * 32), 0.0f);
}

TEST(KvCache, truncate_and_continue_equals_never_having_gone_on) {
  Random random(5);
  const Sequence s(random, 400);
  for (const int64_t window : {0, 33}) {
    KvCache cache(config(KvType::f16, window), 1);
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
  Random random(7);
  const Sequence a(random, 200), b(random, 200);
  KvCache cache(config(KvType::f16), 3);
  a.step(cache, 0, 0, 100, detect_isa());
  EXPECT_EQ(cache.memory().pages_used, 2);
  cache.fork(0, 1);
  cache.fork(1, 2);
  EXPECT_EQ(cache.memory().pages_used, 2);
  KvCache alone(config(KvType::f16), 1);
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

TEST(KvCache, select_reorders_beams_and_copies_only_what_diverges) {
  Random random(8);
  const Sequence s[] = {Sequence(random, 200), Sequence(random, 200), Sequence(random, 200)};
  KvCache cache(config(KvType::f16), 3), alone(config(KvType::f16), 3);
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
  EXPECT_TRUE(same_bits(s[2].step(cache, 2, 72, 3, detect_isa()), s[2].step(alone, 2, 72, 3, detect_isa())));
  const int32_t wrong[] = {0, 3, 1};
  EXPECT_THROW(cache.select(wrong), Error);
  EXPECT_THROW(cache.select(std::span(wrong, 2)), Error);
}

TEST(KvCache, a_saved_slot_continues_with_the_same_bits) {
  Random random(9);
  const Sequence s(random, 900);
  for (const KvType type : {KvType::f16, KvType::f32})
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
