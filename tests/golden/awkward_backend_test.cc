// SPDX-License-Identifier: Apache-2.0
// The backend interface, proven by one that is as unlike the CPU as a test can make it: all goldens run
// across it and the CPU with the CPU's bits.
#include "support/awkward_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "families/family.h"
#include "import/import.h"
#include "ir/text.h"
#include "ops/cpu.h"
#include "support/golden.h"
#include "tasks/language_model.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

// Runs `decode` over a sequence in chunks and gives all logits.
std::vector<float> logits(const ir::Program& program, WeightStore& weights, std::vector<Backend*> backends,
                          const std::vector<int32_t>& ids) {
  SessionOptions o;
  o.backends = std::move(backends);
  o.precision.exact = true;
  Session session(program, weights, o);
  std::vector<float> all;
  for (size_t at = 0; at < ids.size();) {
    const size_t n = std::min<size_t>(ids.size() - at, at == 0 ? 5 : 1);
    Tensor tokens(DType::i32, {1, static_cast<int64_t>(n)}), positions = tokens,
                                                             rows(DType::i32, {static_cast<int64_t>(n)});
    for (size_t i = 0; i < n; i++) {
      tokens.at<int32_t>(i) = ids[at + i];
      positions.at<int32_t>(i) = static_cast<int32_t>(at + i);
      rows.at<int32_t>(i) = static_cast<int32_t>(i);
    }
    const Tensor lengths = Tensor::i32({1}, {static_cast<int32_t>(n)});
    const Tensor* inputs[] = {&tokens, &positions, &lengths, &rows};
    std::vector<Tensor> out;
    session.run("decode", inputs, out);
    all.insert(all.end(), out[0].as<float>(), out[0].as<float>() + out[0].elements());
    at += n;
  }
  return all;
}

TEST(AwkwardBackend, AllGoldensRunAcrossItWithTheSameBits) {
  const fs::path folder = fs::temp_directory_path() / ("cyb-awkward-" + std::to_string(::getpid()));
  int64_t runs = 0, models = 0;
  for (const std::string& name : test::tiny_golden_names()) {
    const test::TinyGolden g = test::read_tiny_golden(name);
    test::write_checkpoint(g, (folder / name).string());
    ImportOptions import;
    import.encoding = EncodingPolicy::u32;
    import.out = (folder / (name + ".model")).string();
    try {
      import_model((folder / name).string(), import);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::UnsupportedModel) continue;  // a family that is not there yet
      throw;
    }
    models++;
    auto file = std::make_shared<const ModelFile>(import.out);
    auto cpu = make_cpu_backend(1);
    for (bool graph : {false, true}) {
      const ir::Program program = program_of(*file, graph);
      WeightStore weights(weight_source(file));
      const auto expected = logits(program, weights, {cpu.get()}, g.sequences[0].ids);
      for (uint64_t seed = 1; seed <= 4; seed++) {
        auto awkward = test::make_awkward_backend({seed, -1});
        WeightStore own(weight_source(file));
        const auto got = logits(program, own, {awkward.get(), cpu.get()}, g.sequences[0].ids);
        ASSERT_EQ(got.size(), expected.size());
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * 4), 0) << name << ", seed " << seed;
        runs += test::awkward_runs(*awkward);
      }
    }
  }
  fs::remove_all(folder);
  EXPECT_GT(models, 10);
  EXPECT_GT(runs, models * 10);
}

struct NoWeights final : WeightSource {
  const TensorSpec* find(const std::string&) const override { return nullptr; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override { return {}; }
};

constexpr const char* kProgram = R"(ir 1
graph main(x: f32[N], c: bool[], trips: i64[]) -> (n: i64[1, ?k], r: f32[N], total: f32[], picked: f32[?])
one = const f32[] 1
y = add(x, one)
z = mul(y, x)
n = non_zero(z) : i64[1, ?k]
flat = reshape(n) shape=[-1]
picked = gather(y, flat) axis=0
r = if(c) {
  () -> (a: f32[N])
  a = sub(y, one)
} else {
  () -> (b: f32[N])
  b = mul(y, z)
}
sum = reduce_sum(r)
total = loop(trips, _, sum) carried=1 {
  (i: i64[], going: bool[], acc: f32[]) -> (going: bool[], next: f32[])
  next = add(acc, one)
}
)";

std::vector<Tensor> run_program(std::vector<Backend*> backends) {
  const ir::Program program = ir::parse(kProgram, "test");
  WeightStore weights(std::make_shared<NoWeights>());
  SessionOptions o;
  o.backends = std::move(backends);
  Session session(program, weights, o);
  const Tensor x = Tensor::f32({5}, {0, -1, 2, 0, 3}), trips = Tensor::i64({}, {4});
  Tensor c(DType::boolean, {});
  c.at<uint8_t>(0) = 0;
  const Tensor* inputs[] = {&x, &c, &trips};
  std::vector<Tensor> out;
  session.run("main", inputs, out);
  session.run("main", inputs, out);
  return out;
}

TEST(AwkwardBackend, RegionsAndDataSymbolsRunAcrossIt) {
  auto cpu = make_cpu_backend(1);
  const auto expected = run_program({cpu.get()});
  for (uint64_t seed = 1; seed <= 16; seed++) {
    auto awkward = test::make_awkward_backend({seed, -1});
    const auto got = run_program({awkward.get(), cpu.get()});
    for (size_t i = 0; i < got.size(); i++)
      EXPECT_EQ(got[i], expected[i]) << "output " << i << ", seed " << seed;
  }
}

TEST(AwkwardBackend, LateErrorsReachTheCaller) {
  auto cpu = make_cpu_backend(1);
  int failures = 0;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    auto awkward = test::make_awkward_backend({seed, 0});
    try {
      run_program({awkward.get(), cpu.get()});
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "the device was lost");
      failures++;
    }
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace cyb
