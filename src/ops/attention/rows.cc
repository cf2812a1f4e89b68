// SPDX-License-Identifier: Apache-2.0
// Kernel rows of attention, and kv states as the backend interface has them.
#include "ops/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/ops/attention.h"
#include "ops/attention/attention.h"
#include "ops/attention/kv_cache.h"

namespace cyb::cpu {

using ir::Op;

namespace {

class KvState final : public StateStore {
 public:
  KvState(const KvConfig& config, const StateOptions& options)
      : cache(config, options.slots), context(options.context) {}

  int64_t length(int slot) const override { return cache.length(slot); }
  int64_t truncate(int slot, int64_t n) override { return cache.truncate(slot, n); }
  int64_t recompute_from(int slot, int64_t n) const override { return cache.recompute_from(slot, n); }
  void fork(int from, int to) override { cache.fork(from, to); }
  void select(std::span<const int32_t> index) override { cache.select(index); }
  void save(int slot, ByteSink& sink) const override { cache.save(slot, sink); }
  void load(int slot, ByteSource& source) override { cache.load(slot, source); }
  uint64_t bytes() const override { return static_cast<uint64_t>(cache.memory().bytes_reserved()); }

  KvCache cache;
  int64_t context;
};

KvCache& cache_of(const Call& c) { return static_cast<KvState*>(c.states[0])->cache; }

// Arrays of one entry a batch row, filled at each run.
struct Prepared {
  std::vector<KvSlot> slots;
  std::vector<int32_t> starts, appended;
  std::vector<int32_t> heads;  // whose probabilities are wanted
  SdpaArgs args;
  uint64_t scratch = 0;
};

KvType stored_type(const Precision& precision) {
  const DType type = precision.kv_type();
  return type == DType::f32 ? KvType::f32 : type == DType::i8 ? KvType::q8 : KvType::f16;
}

int32_t length_of(const Call& c, size_t operand, int64_t b, int64_t all) {
  if (!c.has(operand)) return static_cast<int32_t>(all);
  const int32_t n = c.in[operand].as<int32_t>()[b];
  return n < 0 ? 0 : n > all ? static_cast<int32_t>(all) : n;
}

KvRows rows_at(const Arg& a, int64_t b) {
  const int64_t heads = a.shape[2], dim = a.shape[3];
  return {a.f32() + b * a.shape[1] * heads * dim, heads * dim, dim};
}

// Appends k and v of each slot; heads are shared out among threads.
void append(const Call& c, size_t k, size_t v, size_t lengths) {
  KvCache& cache = cache_of(c);
  const int64_t batch = c.in[k].shape[0], tokens = c.in[k].shape[1], heads = c.in[k].shape[2];
  for (int64_t b = 0; b < batch; b++) {
    const int32_t n = length_of(c, lengths, b, tokens);
    const int slot = static_cast<int>(b);
    const int64_t at = cache.length(slot);
    if (n == 0) continue;
    cache.extend(slot, n);
    const KvRows kr = rows_at(c.in[k], b), vr = rows_at(c.in[v], b);
    const int64_t grain = n * (c.in[k].shape[3] + c.in[v].shape[3]) < 4096 ? heads : 1;
    c.pool->parallel_for(heads, grain, [&](int64_t begin, int64_t end, int) {
      cache.write(slot, at, n, kr, vr, static_cast<int>(begin), static_cast<int>(end));
    });
  }
}

// What does not change from run to run.
void prepare_sdpa(Call& c) {
  auto p = std::make_shared<Prepared>();
  const auto& attrs = c.attrs<ir::SdpaAttrs>();
  const Shape& q = c.in[ir::kSdpaQ].shape;
  const int64_t batch = q[0];
  SdpaArgs& a = p->args;
  a.batch = batch;
  a.queries = q[1];
  a.heads = static_cast<int32_t>(q[2]);
  a.k_dim = static_cast<int32_t>(q[3]);
  a.v_dim = static_cast<int32_t>(c.out[0].shape[3]);
  a.q = {c.in[ir::kSdpaQ].f32(), q[1] * q[2] * q[3], q[2] * q[3], q[3]};
  a.out = {c.out[0].f32(), q[1] * q[2] * a.v_dim, q[2] * a.v_dim, a.v_dim};
  a.scale = static_cast<float>(attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(static_cast<double>(q[3])));
  a.soft_cap = static_cast<float>(attrs.softcap);
  a.causal = attrs.causal;
  a.window = attrs.window;
  p->starts.resize(static_cast<size_t>(batch));
  p->appended.resize(static_cast<size_t>(batch));
  int64_t longest = 0;
  if (!c.states.empty()) {
    auto* state = static_cast<KvState*>(c.states[0]);
    p->slots.resize(static_cast<size_t>(batch));
    a.layout = state->cache.layout();
    a.kv_heads = a.layout.heads;
    a.state = p->slots.data();
    // Where the state is only read, queries stand behind its content: its last positions if causal, else 0.
    if (c.has(ir::kSdpaK)) a.query_start = p->starts.data();
    longest = state->context;
  } else {
    const Shape& k = c.in[ir::kSdpaK].shape;
    const Shape& v = c.in[ir::kSdpaV].shape;
    a.keys = k[1];
    a.kv_heads = static_cast<int32_t>(k[2]);
    a.k = {c.in[ir::kSdpaK].f32(), k[1] * k[2] * k[3], k[2] * k[3], k[3]};
    a.v = {c.in[ir::kSdpaV].f32(), v[1] * v[2] * v[3], v[2] * v[3], v[3]};
    longest = k[1];
  }
  if (c.has(ir::kSdpaLengths)) {
    a.lengths = p->appended.data();
    // Without a state the keys are as many as the tokens, unless they come from elsewhere.
    if (c.states.empty()) a.key_lengths = c.in[ir::kSdpaLengths].as<int32_t>();
    if (c.states.empty() && a.keys != a.queries) a.lengths = nullptr;
  }
  if (c.has(ir::kSdpaPrefix)) a.prefix = c.in[ir::kSdpaPrefix].as<int32_t>();
  if (c.has(ir::kSdpaSegments)) {
    a.query_segments = a.key_segments = c.in[ir::kSdpaSegments].as<int32_t>();
    a.key_segment_columns = c.in[ir::kSdpaSegments].shape[1];
  }
  if (c.has(ir::kSdpaBias)) {
    const Shape& s = c.in[ir::kSdpaBias].shape;
    a.bias = c.in[ir::kSdpaBias].f32();
    a.bias_columns = s[3];
    a.bias_row = s[2] == 1 ? 0 : s[3];
    a.bias_head = s[1] == 1 ? 0 : s[2] * s[3];
    a.bias_batch = s[0] == 1 ? 0 : s[1] * s[2] * s[3];
  }
  if (c.has(ir::kSdpaSinks)) a.sinks = c.in[ir::kSdpaSinks].f32();
  if (c.has(ir::kSdpaSlopes)) a.alibi = c.in[ir::kSdpaSlopes].f32();
  if (attrs.buckets > 0) a.relative_reach = static_cast<int32_t>(attrs.max_distance);
  if (!attrs.probabilities.empty()) {
    for (int64_t h : attrs.probabilities) p->heads.push_back(static_cast<int32_t>(h));
    a.prob_heads = p->heads.data();
    a.prob_count = static_cast<int32_t>(p->heads.size());
    a.probs = c.out[1].f32();
    a.prob_columns = c.out[1].shape[3];
  }
  p->scratch = (sdpa_scratch_bytes(a, longest, c.pool->threads()) + 63) / 64 * 64;
  c.prepared = std::move(p);
}

uint64_t relative_bytes(const Call& c) {
  const auto& attrs = c.attrs<ir::SdpaAttrs>();
  return attrs.buckets ? static_cast<uint64_t>(c.in[0].shape[2] * relative_stride(attrs.max_distance)) * 4
                       : 0;
}

uint64_t sdpa_scratch(const Call& c) {
  return static_cast<const Prepared*>(c.prepared.get())->scratch + relative_bytes(c);
}

// Appends, then says what each batch row attends to.
SdpaArgs& ready(Call& c) {
  auto& p = *static_cast<Prepared*>(c.prepared.get());
  const int64_t batch = p.args.batch;
  const bool stateful = !c.states.empty();
  const bool appends = stateful && c.has(ir::kSdpaK);
  for (int64_t b = 0; b < batch; b++) {
    p.appended[static_cast<size_t>(b)] = length_of(c, ir::kSdpaLengths, b, p.args.queries);
    p.starts[static_cast<size_t>(b)] =
        appends ? static_cast<int32_t>(cache_of(c).length(static_cast<int>(b))) : 0;
  }
  if (appends) append(c, ir::kSdpaK, ir::kSdpaV, ir::kSdpaLengths);
  if (stateful)
    for (int64_t b = 0; b < batch; b++)
      p.slots[static_cast<size_t>(b)] = cache_of(c).view(static_cast<int>(b));
  const auto& attrs = c.attrs<ir::SdpaAttrs>();
  if (attrs.buckets > 0) {
    auto* table = reinterpret_cast<float*>(c.scratch + p.scratch);
    t5_relative_table(c.in[ir::kSdpaBuckets].f32(), static_cast<int>(p.args.heads),
                      attrs.bidirectional_buckets, static_cast<int>(attrs.buckets),
                      static_cast<int>(attrs.max_distance), table);
    p.args.relative = table;
  }
  return p.args;
}

template <Isa isa>
void run_sdpa(Call& c) {
  sdpa(ready(c), attention_kernels(isa), *c.pool, c.scratch);
}

void run_sdpa_reference(Call& c) { sdpa_reference(ready(c)); }

void run_kv_cache(Call& c) { append(c, 0, 1, 2); }

}  // namespace

void add_attention_rows(KernelTable& t) {
  t.add({.op = Op::Sdpa,
         .name = "sdpa_avx512",
         .isa = Isa::avx512,
         .cost = 10,
         .scratch_bytes = sdpa_scratch,
         .prepare = prepare_sdpa,
         .run = run_sdpa<Isa::avx512>});
  t.add({.op = Op::Sdpa,
         .name = "sdpa_avx2",
         .isa = Isa::avx2,
         .cost = 20,
         .scratch_bytes = sdpa_scratch,
         .prepare = prepare_sdpa,
         .run = run_sdpa<Isa::avx2>});
  t.add({.op = Op::Sdpa,
         .name = "sdpa_neon",
         .isa = Isa::neon,
         .cost = 20,
         .scratch_bytes = sdpa_scratch,
         .prepare = prepare_sdpa,
         .run = run_sdpa<Isa::neon>});
  t.add({.op = Op::Sdpa,
         .name = "sdpa_plain",
         .cost = 500,
         .scratch_bytes = sdpa_scratch,
         .prepare = prepare_sdpa,
         .run = run_sdpa<Isa::scalar>});
  t.add({.op = Op::Sdpa,
         .name = "sdpa_reference",
         .cost = 1000,
         .scratch_bytes = sdpa_scratch,
         .prepare = prepare_sdpa,
         .run = run_sdpa_reference});
  t.add({.op = Op::KvCache, .name = "kv_append", .cost = 1000, .run = run_kv_cache});
}

std::unique_ptr<StateStore> make_state(const ir::State& state, const StateOptions& options,
                                       const Precision& precision) {
  if (state.kind == ir::State::Kind::tensor) return make_tensor_state(state, options);
  KvConfig config;
  config.heads = static_cast<int>(state.heads);
  config.k_dim = static_cast<int>(state.k_dim);
  config.v_dim = static_cast<int>(state.v_dim);
  config.type = stored_type(precision);
  config.window = state.window;
  config.slack = std::max<int64_t>(256, options.chunk);
  return std::make_unique<KvState>(config, options);
}

uint64_t position_bytes(const ir::State& state, const Precision& precision) {
  if (state.kind != ir::State::Kind::kv || state.window > 0) return 0;
  const KvLayout layout = kv_layout(static_cast<int>(state.heads), static_cast<int>(state.k_dim),
                                    static_cast<int>(state.v_dim), stored_type(precision));
  // Head by head: a page of all heads may not fit 64 bits where a program is hostile.
  return static_cast<uint64_t>(layout.heads) *
         static_cast<uint64_t>((layout.k_head_bytes() + layout.v_head_bytes()) / kKvPage);
}

}  // namespace cyb::cpu
