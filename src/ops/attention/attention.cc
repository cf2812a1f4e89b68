// SPDX-License-Identifier: Apache-2.0
// Cuts attention into tasks: a batch row, a key head, a block of its rows, and a span where blocks are too
// few.
#include "ops/attention/attention.h"

#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/cpu_features.h"
#include "ops/attention/sdpa_rows.h"

namespace cyb {

extern const AttentionKernels kAttention_scalar, kAttention_avx2, kAttention_avx512, kAttention_neon;

const AttentionKernels& attention_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kAttention_avx512;
    case Isa::avx2:
      return kAttention_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kAttention_neon;
#endif
    default:
      return kAttention_scalar;
  }
}

namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504088896341f;

// Rows of a block: enough that a page of keys, once near, serves many; without a state it is also packed only
// once for each block.
constexpr int64_t kStateRows = 60;
constexpr int64_t kOperandRows = 264;  // a ViT's 257 tokens are not cut in two

// From so many rows on a q8 page is turned into f32 once, not by each tile of rows; it changes no bit. With
// f16 that costs more than it saves.
constexpr int64_t kExpandRows = 2 * kAttendTile + 1;

struct Shape {
  int64_t group, total_rows, block_rows, blocks, v_stride;
};

Shape shape_of(const SdpaArgs& a) {
  Shape s;
  s.group = a.heads / a.kv_heads;
  s.total_rows = a.queries * s.group;
  s.block_rows = std::max<int64_t>(1, std::min(s.total_rows, a.state ? kStateRows : kOperandRows));
  s.blocks = ceil_div(s.total_rows, s.block_rows);
  if (!a.state && s.blocks > 1) {  // of nearly one length
    s.block_rows = round_up<int64_t>(ceil_div(s.total_rows, s.blocks), kAttendTile);
    s.blocks = ceil_div(s.total_rows, s.block_rows);
  }
  s.v_stride = round_up<int64_t>(a.v_dim, 16);
  return s;
}

// How the pages come to the kernels.
KvType form_of(const SdpaArgs& a, int64_t rows, bool probabilities) {
  if (!a.state) return KvType::f32;
  if (a.layout.type == KvType::q8 && (rows >= kExpandRows || probabilities)) return KvType::f32;
  return a.layout.type;
}

// Whether pages are put together in scratch.
bool makes_pages(const SdpaArgs& a, int64_t rows) {
  return !a.state || form_of(a, rows, a.prob_count > 0) != a.layout.type;
}

// Where a span's unfinished rows are kept until all of them are there.
struct Partial {
  float *max, *sum, *out;
  static int64_t floats(const Shape& s) { return round_up<int64_t>(s.block_rows * (s.v_stride + 2), 16); }
  static Partial at(float* base, int64_t index, const Shape& s) {
    float* p = base + index * floats(s);
    return {p + s.block_rows * s.v_stride, p + s.block_rows * (s.v_stride + 1), p};
  }
  void clear(int64_t rows, int64_t v_stride) const {
    for (int64_t r = 0; r < rows; ++r) max[r] = kHidden;
    std::memset(sum, 0, static_cast<size_t>(rows) * sizeof(float));
    std::memset(out, 0, static_cast<size_t>(rows * v_stride) * sizeof(float));
  }
};

// Hands out pieces of one scratch area; with no area, only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<uint8_t*>(base)) {}
  template <class T>
  T* take(int64_t n) {
    T* p = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ += round_up<size_t>(static_cast<size_t>(n) * sizeof(T), 64);
    return p;
  }
  size_t used() const { return used_; }

 private:
  uint8_t* base_;
  size_t used_ = 0;
};

struct ThreadScratch {
  float *slope, *k_page, *v_page;
  int32_t *from, *to, *position, *segment;
  const float **q, **bias, **relative;
  const int32_t** key_segment;
  float** probs;
  Partial span, total;

  static ThreadScratch carve(Carver& c, const SdpaArgs& a, const Shape& s) {
    const int64_t rows = s.block_rows;
    ThreadScratch t;
    t.slope = c.take<float>(rows);
    const bool pages = makes_pages(a, rows);
    t.k_page = c.take<float>(pages ? kKvPage * a.k_dim : 0);
    t.v_page = c.take<float>(pages ? kKvPage * s.v_stride : 0);
    t.from = c.take<int32_t>(rows);
    t.to = c.take<int32_t>(rows);
    t.position = c.take<int32_t>(rows);
    t.segment = c.take<int32_t>(rows);
    t.q = c.take<const float*>(rows);
    t.bias = c.take<const float*>(rows);
    t.relative = c.take<const float*>(rows);
    t.key_segment = c.take<const int32_t*>(rows);
    t.probs = c.take<float*>(rows);
    for (Partial* p : {&t.span, &t.total}) {
      p->out = c.take<float>(rows * s.v_stride);
      p->max = c.take<float>(rows);
      p->sum = c.take<float>(rows);
    }
    return t;
  }
};

size_t thread_bytes(const SdpaArgs& a, const Shape& s) {
  Carver count(nullptr);
  ThreadScratch::carve(count, a, s);
  return count.used();
}

class Runner {
 public:
  Runner(const SdpaArgs& a, const AttentionKernels& kernels, ThreadPool& pool, void* scratch)
      : a_(a),
        kernels_(kernels),
        pool_(pool),
        s_(shape_of(a)),
        shaped_(a.soft_cap != 0.0f || a.alibi || a.relative || a.bias || a.query_segments ||
                !(a.scale > 0x1p-100f)),
        factor_(shaped_ ? kLog2E : a.scale * kLog2E),
        thread_bytes_(thread_bytes(a, s_)) {
    thread_base_ = static_cast<uint8_t*>(scratch);
    partials_ = reinterpret_cast<float*>(thread_base_ + thread_bytes_ * static_cast<size_t>(pool.threads()));
  }

  void run() {
    const int64_t blocks = a_.batch * a_.kv_heads * s_.blocks;
    spans_ = split_spans(blocks);
    if (spans_ == 0) {
      pool_.parallel_for(blocks, 1, [this](int64_t begin, int64_t end, int thread) {
        for (int64_t i = begin; i < end; ++i) whole_block(i, thread);
      });
      return;
    }
    pool_.parallel_for(blocks * spans_, 1, [this](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) one_span(i / spans_, i % spans_, thread);
    });
    pool_.parallel_for(blocks, 1, [this](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) merge_block(i, thread);
    });
  }

 private:
  struct Block {
    int64_t b, kv_head, first_row;
    int64_t rows;      // valid ones
    int64_t from, to;  // keys that some row sees
    ThreadScratch t;
    AttendBlock k;  // what the kernels get
  };

  // Spans of the longest batch row when they are to be shared out, else 0. The choice changes no bit.
  int64_t split_spans(int64_t blocks) const {
    if (pool_.threads() == 1 || a_.prob_count > 0 || s_.blocks > 1 || blocks >= 4 * pool_.threads()) return 0;
    int64_t most = 0;
    for (int64_t b = 0; b < a_.batch; ++b) {
      const int64_t n = sdpa_valid_queries(a_, b), start = sdpa_query_start(a_, b);
      if (n == 0) continue;
      const int64_t from = sdpa_visible(a_, b, start).from;
      const int64_t to = std::max(sdpa_visible(a_, b, start).to, sdpa_visible(a_, b, start + n - 1).to);
      if (to > from) most = std::max(most, ceil_div(to, kKvSpan) - from / kKvSpan);
    }
    return most > 1 ? most : 0;
  }

  ThreadScratch scratch_of(int thread) const {
    Carver c(thread_base_ + thread_bytes_ * static_cast<size_t>(thread));
    return ThreadScratch::carve(c, a_, s_);
  }

  int64_t head_of(const Block& block, int64_t r) const {
    return block.kv_head * s_.group + (block.first_row + r) % s_.group;
  }
  int64_t query_of(const Block& block, int64_t r) const { return (block.first_row + r) / s_.group; }
  float* result_of(const Block& block, int64_t r) const {
    return a_.out.data + block.b * a_.out.batch + query_of(block, r) * a_.out.row +
           head_of(block, r) * a_.out.head;
  }

  Block place(int64_t index, int thread) const {
    Block block{};
    // Later blocks see more keys under a causal mask: longest first keeps the threads even.
    const int64_t order = s_.blocks - 1 - index % s_.blocks;
    index /= s_.blocks;
    block.kv_head = index % a_.kv_heads;
    block.b = index / a_.kv_heads;
    block.first_row = order * s_.block_rows;
    const int64_t valid = sdpa_valid_queries(a_, block.b) * s_.group;
    block.rows = std::clamp<int64_t>(valid - block.first_row, 0, s_.block_rows);
    block.t = scratch_of(thread);
    return block;
  }

  // Zeros for the rows of a block that are no valid queries.
  void clear_invalid(const Block& block) const {
    const int64_t rows = std::min(s_.block_rows, s_.total_rows - block.first_row);
    for (int64_t r = block.rows; r < rows; ++r) {
      std::memset(result_of(block, r), 0, static_cast<size_t>(a_.v_dim) * sizeof(float));
      for (int32_t n = 0; n < a_.prob_count; ++n)
        if (a_.prob_heads[n] == head_of(block, r)) clear_probs(block, r, n);
    }
  }
  float* clear_probs(const Block& block, int64_t r, int64_t n) const {
    float* p = a_.probs + ((block.b * a_.prob_count + n) * a_.queries + query_of(block, r)) * a_.prob_columns;
    std::memset(p, 0, static_cast<size_t>(a_.prob_columns) * sizeof(float));
    return p;
  }

  // Gathers what the kernels have to know of each row.
  void gather(Block& block) const {
    ThreadScratch& t = block.t;
    const int64_t start = sdpa_query_start(a_, block.b);
    block.from = std::numeric_limits<int64_t>::max();
    block.to = 0;
    for (int64_t r = 0; r < block.rows; ++r) {
      const int64_t h = head_of(block, r), query = query_of(block, r), i = start + query;
      t.q[r] = a_.q.data + block.b * a_.q.batch + query * a_.q.row + h * a_.q.head;
      const KeyRange seen = sdpa_visible(a_, block.b, i);
      t.from[r] = static_cast<int32_t>(seen.from);
      t.to[r] = static_cast<int32_t>(seen.to);
      t.position[r] = static_cast<int32_t>(i);
      if (seen.from < seen.to) {
        block.from = std::min(block.from, seen.from);
        block.to = std::max(block.to, seen.to);
      }
      if (a_.alibi) t.slope[r] = a_.alibi[h];
      if (a_.relative)
        t.relative[r] = a_.relative + h * relative_stride(a_.relative_reach) + a_.relative_reach + 64;
      if (a_.bias) t.bias[r] = a_.bias + block.b * a_.bias_batch + h * a_.bias_head + query * a_.bias_row;
      if (a_.query_segments) {
        t.segment[r] = a_.query_segments[block.b * a_.queries + query];
        t.key_segment[r] = a_.key_segments + block.b * a_.key_segment_columns;
      }
    }
    AttendBlock& k = block.k;
    k.rows = static_cast<int32_t>(block.rows);
    k.k_dim = a_.k_dim;
    k.v_stride = static_cast<int32_t>(s_.v_stride);
    k.q = t.q;
    k.shaped = shaped_;
    k.factor = factor_;
    k.scale = a_.scale;
    k.soft_cap = a_.soft_cap;
    k.from = t.from;
    k.to = t.to;
    k.position = t.position;
    k.slope = a_.alibi ? t.slope : nullptr;
    k.bias = a_.bias ? t.bias : nullptr;
    k.bias_columns = a_.bias_columns;
    k.relative = a_.relative ? t.relative : nullptr;
    k.relative_reach = a_.relative_reach;
    k.query_segment = a_.query_segments ? t.segment : nullptr;
    k.key_segment = t.key_segment;
    k.segment_columns = a_.key_segment_columns;
  }

  // The keys that are read after page p: of the next page, or of the next head, which this thread will likely
  // attend to.
  FetchedBytes next_keys(const Block& block, int64_t p) const {
    int64_t head = block.kv_head;
    if (++p * kKvPage >= block.to) p = block.from / kKvPage, ++head;
    if (head >= a_.kv_heads) return {};
    const int64_t count = std::min(kKvPage, block.to - p * kKvPage);
    return {a_.state[block.b].pages[p] + a_.layout.k_offset(head),
            key_at(0, round_up(count, kKvLanes), a_.k_dim) * a_.layout.element_bytes()};
  }

  // A page of the state as it lies or in f32, or one packed from the operands.
  AttendPage page(const Block& block, int64_t p, bool values, KvType form) const {
    const int64_t start = p * kKvPage;
    const int32_t count = static_cast<int32_t>(std::min(kKvPage, block.to - start));
    if (a_.state) {
      const uint8_t* base = a_.state[block.b].pages[p];
      const int64_t k = a_.layout.k_offset(block.kv_head), v = a_.layout.v_offset(block.kv_head);
      if (form != a_.layout.type) {
        const ExpandPage expand{
            a_.k_dim,      static_cast<int32_t>(s_.v_stride), count, base + k, base + v, block.t.k_page,
            block.t.v_page};
        kernels_.expand_q8(expand);
        return {block.t.k_page, block.t.v_page, static_cast<int32_t>(start), count, false, {}};
      }
      return {base + k, base + v, static_cast<int32_t>(start), count, true, next_keys(block, p)};
    }
    if (count % kKvLanes != 0)  // the rest of its last block
      std::memset(block.t.k_page + key_at(0, count / kKvLanes * kKvLanes, a_.k_dim), 0,
                  static_cast<size_t>(kKvLanes * a_.k_dim) * sizeof(float));
    StorePage store{a_.k_dim,
                    values ? a_.v_dim : 0,
                    static_cast<int32_t>(s_.v_stride),
                    0,
                    count,
                    a_.k.data + block.b * a_.k.batch + start * a_.k.row + block.kv_head * a_.k.head,
                    a_.k.row,
                    a_.v.data + block.b * a_.v.batch + start * a_.v.row + block.kv_head * a_.v.head,
                    a_.v.row,
                    block.t.k_page,
                    block.t.v_page};
    kernels_.store_f32(store);
    return {block.t.k_page, block.t.v_page, static_cast<int32_t>(start), count, false, {}};
  }

  void attend(Block& block, int64_t from, int64_t to, const Partial& rows) const {
    block.k.max = rows.max;
    block.k.sum = rows.sum;
    block.k.out = rows.out;
    rows.clear(block.rows, s_.v_stride);
    const KvType form = form_of(a_, block.rows, false);
    const auto kernel = form == KvType::f16  ? kernels_.attend_f16
                        : form == KvType::q8 ? kernels_.attend_q8
                                             : kernels_.attend_f32;
    for (int64_t p = from / kKvPage; p * kKvPage < to; ++p) kernel(block.k, page(block, p, true, form));
  }

  void finish(const Block& block, const Partial& rows) const {
    for (int64_t r = 0; r < block.rows; ++r) {
      const float sink = a_.sinks ? a_.sinks[head_of(block, r)] : kHidden;
      kernels_.finish(shaped_ ? sink : sink / a_.scale, factor_, rows.max + r, rows.sum + r,
                      rows.out + r * s_.v_stride, a_.v_dim, result_of(block, r));
    }
  }

  void probabilities(Block& block, const Partial& rows) const {
    bool any = false;
    // A head may be listed more than once: each listing is one pass.
    for (int32_t n = 0; n < a_.prob_count; ++n) {
      any = false;
      for (int64_t r = 0; r < block.rows; ++r) {
        block.t.probs[r] = a_.prob_heads[n] == head_of(block, r) ? clear_probs(block, r, n) : nullptr;
        any = any || block.t.probs[r];
      }
      if (!any) continue;
      const AttendProbs probs{rows.max, rows.sum, block.t.probs, a_.prob_columns};
      const KvType form = form_of(a_, block.rows, true);
      const auto kernel = form == KvType::f16 ? kernels_.probs_f16 : kernels_.probs_f32;
      for (int64_t p = block.from / kKvPage; p * kKvPage < block.to; ++p) {
        kernel(block.k, probs, page(block, p, false, form));
      }
    }
  }

  void whole_block(int64_t index, int thread) const {
    Block block = place(index, thread);
    clear_invalid(block);
    if (block.rows == 0) return;
    gather(block);
    const Partial& total = block.t.total;
    int64_t end = block.to;
    if (block.from >= block.to) {
      total.clear(block.rows, s_.v_stride);
    } else {
      end = std::min(end, (block.from / kKvSpan + 1) * kKvSpan);
      attend(block, block.from, end, total);  // the first span merged with nothing is itself
    }
    for (int64_t at = end; at < block.to; at = end) {
      end = std::min(block.to, (at / kKvSpan + 1) * kKvSpan);
      attend(block, at, end, block.t.span);
      kernels_.merge(block.k.rows, block.k.v_stride, factor_, total.max, total.sum, total.out,
                     block.t.span.max, block.t.span.sum, block.t.span.out);
    }
    finish(block, total);
    if (a_.prob_count) probabilities(block, total);
  }

  void one_span(int64_t index, int64_t span, int thread) const {
    Block block = place(index, thread);
    const Partial rows = Partial::at(partials_, index * spans_ + span, s_);
    if (block.rows == 0) return;
    gather(block);
    const int64_t first = (block.from < block.to ? block.from / kKvSpan + span : span) * kKvSpan;
    attend(block, std::max(block.from, first), std::min(block.to, first + kKvSpan), rows);
  }

  void merge_block(int64_t index, int thread) const {
    Block block = place(index, thread);
    clear_invalid(block);
    if (block.rows == 0) return;
    const Partial& total = block.t.total;
    total.clear(block.rows, s_.v_stride);
    for (int64_t span = 0; span < spans_; ++span) {
      const Partial rows = Partial::at(partials_, index * spans_ + span, s_);
      kernels_.merge(static_cast<int32_t>(block.rows), static_cast<int32_t>(s_.v_stride), factor_, total.max,
                     total.sum, total.out, rows.max, rows.sum, rows.out);
    }
    finish(block, total);
  }

  const SdpaArgs& a_;
  const AttentionKernels& kernels_;
  ThreadPool& pool_;
  Shape s_;
  const bool shaped_;  // logits are more than scores times a positive factor
  const float factor_;
  size_t thread_bytes_;
  uint8_t* thread_base_;
  float* partials_;
  int64_t spans_ = 0;
};

}  // namespace

size_t sdpa_scratch_bytes(const SdpaArgs& args, int64_t longest, int threads) {
  const Shape s = shape_of(args);
  size_t bytes = thread_bytes(args, s) * static_cast<size_t>(threads);
  const int64_t blocks = args.batch * args.kv_heads;
  // Spans are shared out only between few blocks; a range may touch one more span than its length says.
  if (threads > 1 && s.blocks == 1 && blocks < 4 * threads)
    bytes +=
        static_cast<size_t>(blocks * (ceil_div(longest, kKvSpan) + 1) * Partial::floats(s)) * sizeof(float);
  return bytes;
}

void sdpa(const SdpaArgs& args, const AttentionKernels& kernels, ThreadPool& pool, void* scratch) {
  if (args.batch <= 0 || args.queries <= 0 || args.heads <= 0) return;
  Runner(args, kernels, pool, scratch).run();
}

}  // namespace cyb
