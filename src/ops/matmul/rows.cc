// SPDX-License-Identifier: Apache-2.0
// Kernel rows of products and their fused forms, for every instruction set, and the weights that they read.
#include "ops/rows.h"

#include <cstring>
#include <vector>

#include "base/checked.h"
#include "ir/ops/matmul.h"
#include "ops/common/reals.h"
#include "ops/conv/weight.h"
#include "ops/matmul/products.h"
#include "ops/quant/weight.h"
#include "tensor/decode.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// A matrix that products read as it lies, or packed once where the file has no tiles.
class EncodedWeight final : public Weight {
 public:
  EncodedWeight(const TensorSpec& spec, std::span<const uint8_t> bytes, const Weight* scale) : spec_(spec) {
    matrix = weight_matrix(spec.encoding, bytes.data(), spec.shape[0], spec.shape[1], spec.frac_bits,
                           spec.tile == 8);
    if (spec.tile != 8 && spec.shape[0] >= kTileRows) {
      packed_.resize(weight_bytes(spec.encoding, spec.shape[0], spec.shape[1], true) + 64);
      uint8_t* at = packed_.data() + (64 - reinterpret_cast<uintptr_t>(packed_.data()) % 64) % 64;
      pack_tiles(matrix, at, 0, (spec.shape[0] + 7) / 8);
      matrix.data = at;
      matrix.tiled = true;
    }
    if (const auto* dense = dynamic_cast<const DenseWeight*>(scale)) {
      matrix.row_scale = static_cast<const float*>(dense->data());
      matrix.row_scale_stride = scale->spec().shape.empty() || elements_of(scale->spec()) == 1 ? 0 : 1;
    }
  }
  const TensorSpec& spec() const override { return spec_; }
  uint64_t extra_bytes() const override { return packed_.size(); }

  WeightMatrix matrix;

 private:
  TensorSpec spec_;
  std::vector<uint8_t> packed_;
};

const WeightMatrix& matrix_of(const Arg& a) { return static_cast<const EncodedWeight*>(a.weight)->matrix; }

bool is_matrix(const TensorSpec& s) {
  return s.shape.size() == 2 && s.type == DType::f32 && s.order.empty() && !s.bits && s.words == 1 &&
         s.zero == 0 && s.shape[0] > 0 && s.shape[1] > 0;
}

bool reads_as_matrix(const Arg& a) { return dynamic_cast<const EncodedWeight*>(a.weight) != nullptr; }

// The plain values of an operand that is no matrix: of more axes, or of integers.
const void* values_of(const Arg& a) {
  if (a.data || !a.weight) return a.data;
  if (const auto* w = dynamic_cast<const ConvWeight*>(a.weight)) return w->values();
  if (const auto* w = dynamic_cast<const IntegerWeight*>(a.weight)) return w->values();
  return nullptr;
}

int64_t rows_of(const Arg& x) { return x.shape.elements(0, x.shape.rank() - 1); }

void plan_products(Call& c, Isa isa, std::span<const Product> list, const float* x, uint8_t* scratch) {
  c.prepared = std::make_shared<Products>(c, isa, list, x, scratch);
}

const Products& products_of(const Call& c) { return *static_cast<const Products*>(c.prepared.get()); }

// Matmul of a weight.

const char* reject_not_weight(const Query& q) {
  if (q.node.as<ir::MatmulAttrs>().form != ir::MatmulForm::nt) return "the form is nn";
  if (!q.weight(1) || !is_matrix(*q.weight(1))) return "the second operand is no weight matrix";
  if (q.operands[0]->rank() < 2 && q.operands[0]->known_rank) return "x is a vector";
  return nullptr;
}

// Matmul, which has no residual and no activation, and FusedMatmul.
template <Isa isa>
void plan_product(Call& c) {
  const bool fused = c.node->op == Op::FusedMatmul;
  const Product p{
      .w = &matrix_of(c.in[1]),
      .bias = c.has(2) ? c.in[2].f32() : nullptr,
      .y = c.out[0].f32(),
      .residual = c.has(3) ? c.in[3].f32() : nullptr,
      .activation = fused ? activation_of(c.attrs<ir::FusedMatmulAttrs>().act) : Activation::identity};
  plan_products(c, isa, {&p, 1}, c.in[0].f32(), c.scratch);
}

void run_products(Call& c) { products_of(c).run(*c.pool); }

// Matmul of two values.

const char* reject_not_f32(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

DenseArgs dense_args(const Call& c, const float* b_data, const Shape& b_shape_in) {
  const bool nt = c.attrs<ir::MatmulAttrs>().form == ir::MatmulForm::nt;
  Shape a = c.in[0].shape, b = b_shape_in;
  auto insert = [](const Shape& s, bool front) {
    Shape r;
    if (front) r.push_back(1);
    for (int64_t d : s) r.push_back(d);
    if (!front) r.push_back(1);
    return r;
  };
  if (a.rank() == 1) a = insert(a, true);
  if (b.rank() == 1) b = insert(b, nt);
  DenseArgs d;
  d.m = a[a.rank() - 2];
  d.k = a.back();
  d.n = nt ? b[b.rank() - 2] : b.back();
  d.a = c.in[0].f32();
  d.a_m = d.k;
  d.b = b_data;
  d.b_k = nt ? 1 : d.n;
  d.b_n = nt ? d.k : 1;
  d.y = c.out[0].f32();
  d.y_m = d.n;
  d.bias = c.has(2) ? c.in[2].f32() : nullptr;
  return d;
}

// Walks the batch axes; each product runs on all threads.
template <class F>
void each_batch(const Call& c, const Shape& b_shape, F&& f) {
  const Shape& a = c.in[0].shape;
  Shape batch;
  const int a_batch = std::max(0, a.rank() - 2), b_batch = std::max(0, b_shape.rank() - 2);
  const int rank = std::max(a_batch, b_batch);
  int64_t count = 1;
  for (int i = 0; i < rank; i++) {
    const int64_t x = i < rank - a_batch ? 1 : a[i - (rank - a_batch)];
    const int64_t y = i < rank - b_batch ? 1 : b_shape[i - (rank - b_batch)];
    batch.push_back(x == 1 ? y : x);
    count *= batch[i];
  }
  const int64_t a_step = a.rank() < 2 ? a.elements() : a.elements(a.rank() - 2);
  const int64_t b_step = b_shape.rank() < 2 ? b_shape.elements() : b_shape.elements(b_shape.rank() - 2);
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, a_at = 0, b_at = 0, a_unit = a_step, b_unit = b_step;
    for (int axis = rank - 1; axis >= 0; axis--) {
      const int64_t index = rest % batch[axis];
      rest /= batch[axis];
      if (const int k = axis - (rank - a_batch); k >= 0) {
        if (a[k] != 1) a_at += index * a_unit;
        a_unit *= a[k];
      }
      if (const int k = axis - (rank - b_batch); k >= 0) {
        if (b_shape[k] != 1) b_at += index * b_unit;
        b_unit *= b_shape[k];
      }
    }
    f(i, a_at, b_at);
  }
}

const char* reject_weight(const Query& q) {
  if (q.weight(1) && is_matrix(*q.weight(1))) return "the second operand is a weight matrix";
  return reject_not_f32(q);
}

template <Isa isa>
void run_dense(Call& c) {
  const DenseArgs base = dense_args(c, static_cast<const float*>(values_of(c.in[1])), c.in[1].shape);
  each_batch(c, c.in[1].shape, [&](int64_t i, int64_t a, int64_t b) {
    DenseArgs d = base;
    d.a += a;
    d.b += b;
    d.y += i * d.m * d.n;
    dense_run(*c.pool, matmul_kernels(isa), d);
  });
}

// The definition for plain operands of any type: sums in f64, integers wrap.
template <class T>
void multiply(const Call& c) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  auto widen = [](T v) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<uint64_t>(static_cast<int64_t>(v));
    else
      return static_cast<double>(v);
  };
  const DenseArgs d = dense_args(c, nullptr, c.in[1].shape);
  each_batch(c, c.in[1].shape, [&](int64_t at, int64_t a_at, int64_t b_at) {
    const T *a = c.in[0].as<T>() + a_at, *b = static_cast<const T*>(values_of(c.in[1])) + b_at;
    T* y = c.out[0].as<T>() + at * d.m * d.n;
    for (int64_t i = 0; i < d.m; i++)
      for (int64_t j = 0; j < d.n; j++) {
        Sum sum = 0;
        for (int64_t k = 0; k < d.k; k++) sum += widen(a[i * d.a_m + k]) * widen(b[k * d.b_k + j * d.b_n]);
        if (c.has(2)) sum += widen(c.in[2].as<T>()[j]);
        if constexpr (std::is_integral_v<T>)
          y[i * d.n + j] = static_cast<T>(sum);
        else
          y[i * d.n + j] = rounded<T>(sum);
      }
  });
}

// The definition, for any operands.
void run_reference(Call& c) {
  if (c.in[0].dtype != DType::f32)
    return visit_dtype(c.in[0].dtype, [&](auto tag) { multiply<typename decltype(tag)::type>(c); });
  std::vector<double> y;
  if (reads_as_matrix(c.in[1])) {
    MatmulArgs a;
    a.w = matrix_of(c.in[1]);
    a.m = c.in[0].shape.rank() < 2 ? 1 : rows_of(c.in[0]);
    a.x = c.in[0].f32();
    a.ldx = a.w.k;
    a.bias = c.has(2) ? c.in[2].f32() : nullptr;
    if (c.attrs<ir::MatmulAttrs>().form == ir::MatmulForm::nt) {
      y.resize(static_cast<size_t>(a.m * a.w.n));
      matmul_reference(a, y.data(), nullptr);
      for (size_t i = 0; i < y.size(); i++) c.out[0].f32()[i] = static_cast<float>(y[i]);
      return;
    }
  }
  std::vector<float> decoded;
  const auto* b = static_cast<const float*>(values_of(c.in[1]));
  if (reads_as_matrix(c.in[1])) {  // nn with a weight
    const WeightMatrix& w = matrix_of(c.in[1]);
    decoded.resize(static_cast<size_t>(w.n * w.k));
    for (int64_t r = 0; r < w.n; r++) gather_row(w, r, decoded.data() + r * w.k);
    b = decoded.data();
  }
  const DenseArgs base = dense_args(c, b, c.in[1].shape);
  y.resize(static_cast<size_t>(base.m * base.n));
  each_batch(c, c.in[1].shape, [&](int64_t i, int64_t a_at, int64_t b_at) {
    DenseArgs d = base;
    d.a += a_at;
    d.b += b_at;
    dense_reference(d, y.data(), nullptr);
    for (size_t k = 0; k < y.size(); k++)
      c.out[0].f32()[i * d.m * d.n + static_cast<int64_t>(k)] = static_cast<float>(y[k]);
  });
}

// FusedMatmul, FusedNormMatmul and FusedSwiGlu.

const char* reject_finished(const Query& q) {
  if (const char* why = reject_not_f32(q)) return why;
  if (!q.weight(1) || !is_matrix(*q.weight(1))) return "the second operand is no weight matrix";
  return nullptr;
}

const char* reject_fused(const Query& q) {
  if (const char* why = reject_not_f32(q)) return why;
  const size_t first = q.node.op == Op::FusedSwiGlu ? 1 : 2, step = q.node.op == Op::FusedSwiGlu ? 1 : 2;
  for (size_t i = first; i < q.operands.size(); i += step)
    if (!q.weight(i) || !is_matrix(*q.weight(i))) return "an operand is no weight matrix";
  return nullptr;
}

// The normed rows, then those of 8 bits.
uint64_t normed_bytes(const Call& c) {
  return c.has(1) ? round_up<uint64_t>(static_cast<uint64_t>(c.in[0].elements()) * 4, 64) : 0;
}

uint64_t fused_norm_scratch(const Call& c) { return normed_bytes(c) + Products::scratch_bytes(c); }

template <Isa isa>
void plan_fused_norm(Call& c) {
  std::vector<Product> list;
  for (size_t i = 0; i < c.out.size(); i++)
    list.push_back({.w = &matrix_of(c.in[2 * i + 2]),
                    .bias = c.has(2 * i + 3) ? c.in[2 * i + 3].f32() : nullptr,
                    .y = c.out[i].f32()});
  const float* x = c.has(1) ? reinterpret_cast<float*>(c.scratch) : c.in[0].f32();
  plan_products(c, isa, list, x, c.scratch + normed_bytes(c));
}

template <Isa isa>
void run_fused_norm(Call& c) {
  if (c.has(1)) {
    const auto& a = c.attrs<ir::FusedNormMatmulAttrs>();
    rms_norm_rows(*c.pool, isa, c.in[0].f32(), c.in[1].f32(), a.offset, static_cast<float>(a.eps),
                  rows_of(c.in[0]), c.in[0].shape.back(), reinterpret_cast<float*>(c.scratch));
  }
  products_of(c).run(*c.pool);
}

// What the gate is multiplied with, then the rows of 8 bits.
uint64_t up_bytes(const Call& c) {
  return round_up<uint64_t>(static_cast<uint64_t>(c.out[0].elements()) * 4, 64);
}

uint64_t fused_glu_scratch(const Call& c) { return up_bytes(c) + Products::scratch_bytes(c); }

template <Isa isa>
void plan_fused_glu(Call& c) {
  const Product list[] = {{.w = &matrix_of(c.in[1]), .y = c.out[0].f32()},
                          {.w = &matrix_of(c.in[2]), .y = reinterpret_cast<float*>(c.scratch)}};
  plan_products(c, isa, list, c.in[0].f32(), c.scratch + up_bytes(c));
}

template <Isa isa>
void run_fused_glu(Call& c) {
  products_of(c).run(*c.pool);
  float* y = c.out[0].f32();
  gated(*c.pool, isa, c.attrs<ir::FusedGluAttrs>().act, y, reinterpret_cast<float*>(c.scratch),
        c.out[0].elements(), y);
}

template <Isa isa>
void add_rows(KernelTable& t, const char* weight, const char* dense, const char* finished, const char* norm,
              const char* glu) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  t.add({.op = Op::Matmul,
         .name = weight,
         .isa = isa,
         .cost = cost,
         .encoded = 2,
         .reject = reject_not_weight,
         .scratch_bytes = Products::scratch_bytes,
         .plan = plan_product<isa>,
         .run = run_products});
  t.add({.op = Op::Matmul,
         .name = dense,
         .isa = isa,
         .cost = cost + 1,
         .encoded = 2,
         .reject = reject_weight,
         .run = run_dense<isa>});
  t.add({.op = Op::FusedMatmul,
         .name = finished,
         .isa = isa,
         .cost = cost,
         .encoded = 2,
         .reject = reject_finished,
         .scratch_bytes = Products::scratch_bytes,
         .plan = plan_product<isa>,
         .run = run_products});
  t.add({.op = Op::FusedNormMatmul,
         .name = norm,
         .isa = isa,
         .cost = cost,
         .encoded = 0x55555554u,
         .reject = reject_fused,
         .scratch_bytes = fused_norm_scratch,
         .plan = plan_fused_norm<isa>,
         .run = run_fused_norm<isa>});
  t.add({.op = Op::FusedSwiGlu,
         .name = glu,
         .isa = isa,
         .cost = cost,
         .encoded = 6,
         .reject = reject_fused,
         .scratch_bytes = fused_glu_scratch,
         .plan = plan_fused_glu<isa>,
         .run = run_fused_glu<isa>});
}

// TokenEmbed.

void run_embed(Call& c) {
  const int64_t count = c.in[0].elements(), d = c.out[0].shape.back();
  const auto scale = static_cast<float>(c.attrs<ir::TokenEmbedAttrs>().scale);
  const bool narrow_ids = c.in[0].dtype == DType::i32;
  const int64_t rows = c.in[1].shape[0];
  c.pool->parallel_for(count, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      float* y = c.out[0].f32() + i * d;
      const int64_t id = narrow_ids ? c.in[0].as<int32_t>()[i] : c.in[0].as<int64_t>()[i];
      if (id < 0 || id >= rows) {  // the task checks ids; nothing outside is read
        std::memset(y, 0, static_cast<size_t>(d) * 4);
        continue;
      }
      if (c.in[1].weight)
        gather_row(matrix_of(c.in[1]), id, y);
      else
        std::memcpy(y, c.in[1].f32() + id * d, static_cast<size_t>(d) * 4);
      if (scale != 1)
        for (int64_t k = 0; k < d; k++) y[k] *= scale;
    }
  });
}

}  // namespace

void add_matmul_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "matmul_avx512", "dense_avx512", "fused_matmul_avx512", "fused_norm_matmul_avx512",
                        "fused_swi_glu_avx512");
  add_rows<Isa::avx2>(t, "matmul_avx2", "dense_avx2", "fused_matmul_avx2", "fused_norm_matmul_avx2",
                      "fused_swi_glu_avx2");
  add_rows<Isa::neon>(t, "matmul_neon", "dense_neon", "fused_matmul_neon", "fused_norm_matmul_neon",
                      "fused_swi_glu_neon");
  add_rows<Isa::scalar>(t, "matmul_plain", "dense_plain", "fused_matmul_plain", "fused_norm_matmul_plain",
                        "fused_swi_glu_plain");
  t.add({.op = Op::Matmul, .name = "matmul_reference", .cost = 1000, .encoded = 2, .run = run_reference});
}

void add_embed_rows(KernelTable& t) {
  t.add({.op = Op::TokenEmbed, .name = "token_embed", .cost = 1000, .encoded = 2, .run = run_embed});
}

std::unique_ptr<Weight> load_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                    const Weight* scale, WeightRole role) {
  if (role == WeightRole::encoded && is_matrix(spec))
    return std::make_unique<EncodedWeight>(spec, bytes, scale);
  if (role == WeightRole::encoded && (spec.type == DType::i8 || spec.type == DType::u8))
    return load_integer_weight(spec, bytes);
  if (role == WeightRole::encoded && spec.shape.size() > 2) return load_conv_weight(spec, bytes, scale);
  std::span<const float> scales;
  if (const auto* dense = dynamic_cast<const DenseWeight*>(scale))
    scales = {static_cast<const float*>(dense->data()), static_cast<size_t>(elements_of(scale->spec()))};
  return std::make_unique<DenseWeight>(spec, decode_tensor(spec, bytes, scales));
}

}  // namespace cyb::cpu
