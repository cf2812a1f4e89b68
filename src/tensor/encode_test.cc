// SPDX-License-Identifier: Apache-2.0
// The error bounds that docs/model-format.md states, and what the encoder refuses.
#include "tensor/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tensor/decode.h"
#include "tensor/encode_testing.h"

namespace cyb {
namespace {

using namespace testing;

TEST(Encode, errors_stay_within_the_stated_bounds) {
  std::mt19937 random(7);
  for (int which = 0; which < kHard; which++) {
    SCOPED_TRACE(which);
    const int64_t rows = 11, columns = which % 3 ? 56 : 96;
    const std::vector<float> x = hard_values(which, static_cast<size_t>(rows * columns), random);
    for (const Encoding e : {Encoding::q8, Encoding::q4, Encoding::u16, Encoding::u32}) {
      for (const Q4Scale q4 : {Q4Scale::plain, Q4Scale::searched}) {
        TensorSpec s = spec_of(e, {rows, columns}, which % 2 ? 8 : 0);
        const std::vector<uint8_t> bytes = encode_tensor(&s, x, nullptr, q4);
        check_codes(s, bytes);
        const std::vector<float> back = decode(s, bytes);
        const double delta = std::ldexp(1.0, -s.frac_bits);
        double largest = 0;
        for (const float v : x) largest = std::max(largest, std::fabs(static_cast<double>(v)));
        for (int64_t r = 0; r < rows; r++) {
          for (int64_t begin = 0; begin < columns; begin += 32) {
            const int64_t end = std::min(columns, begin + 32);
            double m = 0, extreme = 0;
            for (int64_t i = r * columns + begin; i < r * columns + end; i++) {
              const double v = x[static_cast<size_t>(i)];
              if (std::fabs(v) > m) m = std::fabs(v), extreme = v;
            }
            for (int64_t i = r * columns + begin; i < r * columns + end; i++) {
              const double v = x[static_cast<size_t>(i)], d = back[static_cast<size_t>(i)];
              double bound = 0;
              if (e == Encoding::q8) bound = (m + delta) / 254;
              if (e == Encoding::q4 && q4 == Q4Scale::plain)
                bound = v * extreme < 0 && std::fabs(v) > m * 15 / 16 ? (m + delta) / 8 : (m + delta) / 16;
              if (e == Encoding::q4 && q4 == Q4Scale::searched) bound = 0.35 * m + delta;
              if (e == Encoding::u16) bound = delta / 2;
              if (e == Encoding::u32) bound = std::max(delta / 2, largest * 0x1p-24);
              if (m == 0) bound = 0;
              // Half a unit of f32, in which the decoded value is given.
              bound += std::max(std::fabs(d) * 0x1p-24, 0x1p-150);
              ASSERT_LE(std::fabs(v - d), bound)
                  << to_string(e) << " value " << v << " decoded " << d << " m " << m;
            }
          }
        }
      }
    }
  }
}

TEST(Encode, searched_q4_is_never_worse_than_plain_in_any_block_and_better_on_the_whole) {
  std::mt19937 random(3);
  double plain_sum = 0, searched_sum = 0;
  for (int which = 0; which < kHard; which++) {
    const std::vector<float> x = hard_values(which, 32 * 64, random);
    TensorSpec s = spec_of(Encoding::q4, {64, 32});
    std::vector<double> errors[2];
    for (const Q4Scale q4 : {Q4Scale::plain, Q4Scale::searched}) {
      const std::vector<uint8_t> bytes = encode_tensor(&s, x, nullptr, q4);
      for (size_t b = 0; b < 64; b++) {
        int16_t scale;
        std::memcpy(&scale, bytes.data() + b * 18, 2);
        double sum = 0;
        for (size_t i = 0; i < 32; i++) {
          const int byte = bytes[b * 18 + 2 + i % 16];
          const double d = ((i < 16 ? byte & 15 : byte >> 4) - 8) * std::ldexp(scale, -s.frac_bits) / 8;
          sum += (x[b * 32 + i] - d) * (x[b * 32 + i] - d);
        }
        errors[q4 == Q4Scale::searched].push_back(sum);
      }
    }
    for (size_t b = 0; b < 64; b++) ASSERT_LE(errors[1][b], errors[0][b]) << which << " block " << b;
    if (which == 0)
      for (size_t b = 0; b < 64; b++) plain_sum += errors[0][b], searched_sum += errors[1][b];
  }
  EXPECT_LT(searched_sum, 0.95 * plain_sum);
}

TEST(Encode, default_frac_bits_keep_the_canonical_bounds) {
  std::mt19937 random(5);
  auto worst = [&](Encoding e, double scale, Q4Scale q4 = Q4Scale::plain) {
    TensorSpec s = spec_of(e, {16, 64});
    std::vector<float> x(16 * 64);
    for (float& v : x) v = static_cast<float>((static_cast<double>(random()) / 4294967296.0 * 2 - 1) * scale);
    x[7] = static_cast<float>(scale);
    const TensorEncoder encoder(s, q4);
    std::vector<uint8_t> bytes(encoder.size());
    encoder.encode(0, encoder.rows(), x.data(), bytes.data());
    const std::vector<float> back = decode(s, bytes);
    double most = 0;
    for (size_t i = 0; i < x.size(); i++)
      most = std::max(most, std::fabs(static_cast<double>(x[i]) - back[i]));
    return most;
  };
  EXPECT_LE(worst(Encoding::q8, 1.0), 4e-3);
  EXPECT_LE(worst(Encoding::q4, 0.1), 1.5e-2);
  EXPECT_LE(worst(Encoding::u16, 100), 4e-3);
  EXPECT_LE(worst(Encoding::u32, 100), 1.5e-5);
  EXPECT_NE(message_of([&] { worst(Encoding::q8, 200); }).find("does not fit q8 with frac_bits 8"),
            std::string::npos);
  EXPECT_NE(message_of([&] { worst(Encoding::u16, 200); }).find("does not fit u16"), std::string::npos);
}

TEST(Encode, the_whole_range_of_f32_fits_u32_and_what_16_bits_cannot_hold_says_so) {
  for (const float m : {3.4028235e38f, 1e38f, 1.0f, 1e-30f, 1.17549435e-38f, 1e-45f}) {
    TensorSpec s = spec_of(Encoding::u32, {2});
    const std::vector<uint8_t> bytes = encode_tensor(&s, std::vector<float>{m, -m / 2});
    EXPECT_EQ(decode(s, bytes)[0], m);
  }
  EXPECT_NE(message_of([] { choose_frac_bits(Encoding::q8, 3.4028235e38); }).find("does not fit encoding q8"),
            std::string::npos);
  EXPECT_EQ(choose_frac_bits(Encoding::q8, std::ldexp(32767.0, 113)), -113);
  EXPECT_EQ(choose_frac_bits(Encoding::u16, std::ldexp(32767.0, 113)), -113);
  EXPECT_EQ(choose_frac_bits(Encoding::q4, 1e-45), 140);
  EXPECT_EQ(choose_frac_bits(Encoding::u32, 1e-45), 156);
  EXPECT_EQ(choose_frac_bits(Encoding::q8, 0), 8);
  EXPECT_EQ(choose_frac_bits(Encoding::u32, 0), 16);
  EXPECT_EQ(choose_frac_bits(Encoding::q8, 1.0), 14);
  EXPECT_EQ(choose_frac_bits(Encoding::q8, 0.99999), 14);  // 32767.67 rounded up does not fit
  EXPECT_EQ(choose_frac_bits(Encoding::q8, 0.9999), 15);
}

TEST(Encode, zeros_have_scale_zero_and_the_code_of_zero) {
  for (const int tile : {0, 8}) {
    TensorSpec q8 = spec_of(Encoding::q8, {3, 40}, tile), q4 = spec_of(Encoding::q4, {3, 40}, tile);
    const std::vector<float> x(120, -0.0f);
    for (const uint8_t b : encode_tensor(&q8, x)) ASSERT_EQ(b, 0);
    EXPECT_EQ(q8.frac_bits, 8);
    const std::vector<uint8_t> bytes = encode_tensor(&q4, x);
    const size_t rows = tile ? 8 : 1;
    for (size_t i = 0; i < bytes.size(); i++) ASSERT_EQ(bytes[i], i % (18 * rows) < 2 * rows ? 0 : 0x88) << i;
  }
}

TEST(Encode, scalars_and_empty_axes) {
  TensorSpec scalar = spec_of(Encoding::u32, {});
  EXPECT_EQ(decode(scalar, encode_tensor(&scalar, std::vector<float>{0.1f})), std::vector<float>{0.1f});
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{0}, {0, 64}, {3, 0, 2}}) {
    TensorSpec empty = spec_of(shape.size() == 2 ? Encoding::q8 : Encoding::u32, shape);
    EXPECT_TRUE(encode_tensor(&empty, {}).empty());
    EXPECT_EQ(empty.size, 0u);
    EXPECT_TRUE(decode(empty, {}).empty());
    check_codes(empty, {});
  }
}

TEST(Encode, nan_and_infinity_are_refused_with_tensor_and_index) {
  for (const Encoding e : {Encoding::q8, Encoding::q4, Encoding::u16, Encoding::u32}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> x(96, 1.0f);
      x[70] = bad;
      TensorSpec s = spec_of(e, {2, 48});
      const std::string expected = std::string("tensor 't' holds ") + (std::isnan(bad) ? "NaN" : "infinity");
      EXPECT_EQ(message_of([&] { encode_tensor(&s, x); }), expected + " at index 70");
      s.frac_bits = 10;
      const TensorEncoder encoder(s);
      std::vector<uint8_t> out(encoder.size());
      EXPECT_EQ(message_of([&] { encoder.encode(0, 2, x.data(), out.data()); }), expected + " at index 70");
    }
  }
}

TEST(Encode, row_ranges_in_any_cut_give_the_same_bytes_and_statistics) {
  std::mt19937 random(11);
  for (const Encoding e : {Encoding::q8, Encoding::q4, Encoding::u16, Encoding::u32, Encoding::ternary}) {
    for (const int kind : {0, 1, 2, 3}) {  // untiled, tiled, experts, tiled convolution
      if (kind == 3 && e != Encoding::q8 && e != Encoding::q4) continue;
      TensorSpec s = kind == 2   ? spec_of(e, {3, 19, 40}, 8)
                     : kind == 3 ? spec_of(e, {19, 40, 3}, 8, {0, 2, 1})
                                 : spec_of(e, {37, 40}, kind ? 8 : 0);
      std::vector<float> x = hard_values(0, static_cast<size_t>(elements_of(s)), random);
      if (e == Encoding::ternary)
        for (float& v : x) v = std::round(v);
      EncodeStats whole_stats;
      const std::vector<uint8_t> whole = encode_tensor(&s, x, &whole_stats);
      std::vector<float> stored(x.size());
      to_stored_order(s, x.data(), stored.data());
      const TensorEncoder encoder(s);
      std::vector<uint8_t> bytes(encoder.size(), 0xee);
      EncodeStats stats;
      const int64_t n = encoder.layout().rows, step = kind ? 8 : 5;
      for (int64_t first = 0; first < encoder.rows();) {
        const int64_t in_matrix = std::min(step, n - first % n);
        const auto range = encoder.range(first, in_matrix);
        EncodeStats part;
        encoder.encode(first, in_matrix, stored.data() + first * encoder.row_values(),
                       bytes.data() + range.offset, &part);
        stats.add(part);
        first += in_matrix;
      }
      EXPECT_EQ(bytes, whole) << to_string(e) << kind;
      EXPECT_EQ(stats.values, whole_stats.values);
      EXPECT_EQ(stats.max_error, whole_stats.max_error);
      EXPECT_NEAR(stats.sum_error_squares, whole_stats.sum_error_squares, 1e-12 * whole_stats.sum_squares);
      if (kind) {
        EXPECT_NE(message_of([&] { encoder.range(3, 8); }, ErrorKind::ShapeMismatch), "");
        EXPECT_NE(message_of([&] { encoder.range(0, 5); }, ErrorKind::ShapeMismatch), "");
      }
      EXPECT_NE(message_of([&] { encoder.range(0, 1000); }, ErrorKind::ShapeMismatch), "");
    }
  }
}

TEST(Encode, rows_are_found_in_every_layout) {
  std::mt19937 random(13);
  for (const Encoding e : {Encoding::q8, Encoding::q4, Encoding::u16, Encoding::u32, Encoding::ternary}) {
    for (const int kind : {0, 1, 2, 3, 4}) {
      if (kind == 3 && e != Encoding::q8 && e != Encoding::q4) continue;
      TensorSpec s = kind == 2   ? spec_of(e, {3, 19, 40}, 8)
                     : kind == 3 ? spec_of(e, {19, 40, 3, 2}, 8, {0, 2, 3, 1})
                     : kind == 4 ? spec_of(e, {5, 40, 33}, 0, {0, 2, 1})
                                 : spec_of(e, {37, 40}, kind ? 8 : 0);
      std::vector<float> x = hard_values(0, static_cast<size_t>(elements_of(s)), random);
      if (e == Encoding::ternary)
        for (float& v : x) v = std::round(v);
      const std::vector<uint8_t> bytes = encode_tensor(&s, x);
      const std::vector<float> all = decode(s, bytes);
      const RowDecoder rows(s, bytes);
      ASSERT_EQ(rows.rows(), s.shape[0]);
      std::vector<float> row(static_cast<size_t>(rows.row_values()));
      for (int64_t r = 0; r < rows.rows(); r++) {
        rows.decode(r, row.data());
        ASSERT_EQ(0, std::memcmp(row.data(), all.data() + r * rows.row_values(), row.size() * 4))
            << to_string(e) << kind;
      }
      decode_row(s, bytes, 1, row.data());
      EXPECT_EQ(row[0], all[row.size()]);
      EXPECT_NE(message_of([&] { decode_row(s, bytes, s.shape[0], row.data()); }, ErrorKind::ShapeMismatch),
                "");
    }
  }
}

TEST(Encode, source_integers_are_kept_and_only_the_scale_is_rounded) {
  std::mt19937 random(17);
  for (const Encoding e : {Encoding::q8, Encoding::q4}) {
    const int64_t rows = 9, blocks = 3;
    std::vector<int8_t> quants(static_cast<size_t>(rows * blocks * 32));
    std::vector<double> scales(static_cast<size_t>(rows * blocks));
    for (int8_t& q : quants)
      q = static_cast<int8_t>(e == Encoding::q8 ? int(random() % 255) - 127 : int(random() % 16) - 8);
    for (double& s : scales) s = (static_cast<double>(random()) / 4294967296.0 - 0.5) * 0.02;
    scales[4] = 0;
    std::fill_n(quants.begin() + 6 * 32, 32, int8_t{0});
    TensorSpec s = spec_of(e, {rows, blocks * 32}, 8);
    s.frac_bits = choose_frac_bits(e, quants_magnitude(quants, scales));
    const TensorEncoder encoder(s);
    std::vector<uint8_t> bytes(encoder.size());
    EncodeStats stats;
    encoder.encode_quants(0, rows, quants.data(), scales.data(), bytes.data(), &stats);
    check_codes(s, bytes);
    const std::vector<float> back = decode(s, bytes);
    const double delta = std::ldexp(1.0, -s.frac_bits), divisor = e == Encoding::q8 ? 127 : 8;
    for (size_t i = 0; i < quants.size(); i++) {
      const double exact = quants[i] * scales[i / 32] / divisor;
      const double rounded = quants[i] * std::nearbyint(scales[i / 32] / delta) * delta / divisor;
      ASSERT_EQ(back[i], static_cast<float>(rounded)) << i;
      ASSERT_LE(std::fabs(exact - rounded), std::fabs(quants[i] * delta / 2 / divisor));
    }
    EXPECT_LT(stats.relative_error(), 1e-3);
    EXPECT_EQ(stats.reencoded_blocks, 0);
    scales[2] = 1e6;
    EXPECT_NE(message_of([&] {
                encoder.encode_quants(0, rows, quants.data(), scales.data(), bytes.data());
              }).find("block 2 does not fit"),
              std::string::npos);
    scales[2] = NAN;
    EXPECT_NE(message_of([&] { encoder.encode_quants(0, rows, quants.data(), scales.data(), bytes.data()); }),
              "");
  }
}

TEST(Encode, source_blocks_with_minus_128_are_encoded_anew_and_counted) {
  std::vector<int8_t> quants(64, 100);
  quants[3] = -128;
  const std::vector<double> scales = {1.0, 1.0};
  TensorSpec s = spec_of(Encoding::q8, {1, 64});
  s.frac_bits = choose_frac_bits(Encoding::q8, quants_magnitude(quants, scales));
  const TensorEncoder encoder(s);
  std::vector<uint8_t> bytes(encoder.size());
  EncodeStats stats;
  encoder.encode_quants(0, 1, quants.data(), scales.data(), bytes.data(), &stats);
  EXPECT_EQ(stats.reencoded_blocks, 1);
  check_codes(s, bytes);
  const std::vector<float> back = decode(s, bytes);
  EXPECT_NEAR(back[3], -128.0 / 127, 1e-4);
  EXPECT_NEAR(back[0], 100.0 / 127, 128.0 / 127 / 250);
  EXPECT_EQ(back[40], static_cast<float>(100.0 / 127));
}

TEST(Encode, integers_are_exact_in_every_type) {
  struct Case {
    DType type;
    Encoding encoding;
    int words, zero;
    int64_t low, high;
  };
  const std::vector<Case> cases = {
      {DType::boolean, Encoding::u16, 1, 0, 0, 1},
      {DType::i8, Encoding::u16, 1, 0, -128, 127},
      {DType::i8, Encoding::q8, 1, 0, -128, 127},
      {DType::i8, Encoding::q4, 1, 0, -8, 7},
      {DType::u8, Encoding::u16, 1, 0, 0, 255},
      {DType::u8, Encoding::q8, 1, 128, 0, 255},
      {DType::i16, Encoding::u16, 1, 0, INT16_MIN, INT16_MAX},
      {DType::u16, Encoding::u32, 1, 0, 0, UINT16_MAX},
      {DType::i32, Encoding::u32, 1, 0, INT32_MIN, INT32_MAX},
      {DType::u32, Encoding::u32, 1, 0, 0, INT32_MAX},
      {DType::u32, Encoding::u32, 2, 0, 0, UINT32_MAX},
      {DType::i64, Encoding::u32, 1, 0, INT32_MIN, INT32_MAX},
      {DType::i64, Encoding::u32, 2, 0, INT64_MIN, INT64_MAX},
      {DType::u64, Encoding::u32, 2, 0, INT64_MIN, INT64_MAX},
  };
  std::mt19937_64 random(19);
  for (const Case& c : cases) {
    for (const int tile : {0, 8}) {
      if (tile && c.words == 2) continue;
      TensorSpec s = spec_of(c.encoding, {13, 40}, tile);
      s.type = c.type;
      s.words = c.words;
      s.zero = c.zero;
      std::vector<int64_t> x(13 * 40);
      const uint64_t span = static_cast<uint64_t>(c.high) - static_cast<uint64_t>(c.low) + 1;
      for (int64_t& v : x)
        v = static_cast<int64_t>(static_cast<uint64_t>(c.low) + (span ? random() % span : random()));
      x[0] = c.low, x[39] = c.high;
      SCOPED_TRACE(fmt::format("{} in {} words {}", to_string(c.type), to_string(c.encoding), c.words));
      const std::vector<uint8_t> bytes = encode_tensor_integers(&s, x);
      std::vector<int64_t> back(x.size());
      decode_integers(s, bytes, back.data());
      EXPECT_EQ(back, x);
      check_codes(s, bytes);
      if (c.words == 1) {
        const std::vector<float> reals = decode(s, bytes);
        for (size_t i = 0; i < x.size(); i++) ASSERT_EQ(reals[i], static_cast<float>(x[i])) << i;
      }
      if (c.low != INT64_MIN) {
        for (const int64_t bad : {c.low - 1, c.high + 1}) {
          x[77] = bad;
          EXPECT_NE(
              message_of([&] { encode_tensor_integers(&s, x); }).find(fmt::format("{} at index 77", bad)),
              std::string::npos);
        }
      }
    }
  }
}

TEST(Encode, ternary_takes_three_values_and_scales_of_its_sibling) {
  TensorSpec s = spec_of(Encoding::ternary, {4, 20}, 8);
  std::vector<float> x(80);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(static_cast<int>(i % 3) - 1);
  const std::vector<uint8_t> bytes = encode_tensor(&s, x);
  EXPECT_EQ(decode(s, bytes), x);
  const std::vector<float> one = {0.25f}, rows = {1, 2, 3, 4}, three = {1, 2, 3};
  EXPECT_EQ(decode(s, bytes, one)[3], -0.25f);
  EXPECT_EQ(decode(s, bytes, rows)[60], -4.0f);
  EXPECT_NE(message_of([&] { decode(s, bytes, three); }, ErrorKind::ShapeMismatch), "");
  x[41] = 0.5f;
  EXPECT_NE(message_of([&] { encode_tensor(&s, x); }).find("0.5 at index 41"), std::string::npos);
}

}  // namespace
}  // namespace cyb
