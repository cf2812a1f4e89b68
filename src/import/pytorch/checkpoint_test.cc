// SPDX-License-Identifier: Apache-2.0
// Checkpoints that PyTorch wrote, bit for bit against the same tensors as safetensors; containers that lie.
#include "import/pytorch/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "import/pytorch/test_pickle.h"
#include "import/test_files.h"

namespace cyb {
namespace {

const std::string kData = CYB_SOURCE_DIR "/tests/data/pytorch/";

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string fail(const std::string& path) {
  try {
    const PytorchCheckpoint checkpoint(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

void expect_state(const std::vector<SafeTensor>& tensors, const char* what) {
  const SafetensorsModel expected(kData + "state.safetensors");
  ASSERT_EQ(tensors.size(), expected.tensors().size()) << what;
  for (const SafeTensor& t : tensors) {
    const SafeTensor* e = expected.find(t.name);
    ASSERT_TRUE(e) << what << ": " << t.name;
    EXPECT_EQ(t.type, e->type) << what << ": " << t.name;
    EXPECT_EQ(t.shape, e->shape) << what << ": " << t.name;
    ASSERT_EQ(t.size, e->size) << what << ": " << t.name;
    EXPECT_EQ(std::memcmp(t.data, e->data, t.size), 0) << what << ": " << t.name;
  }
}

TEST(PytorchCheckpoint, equals_torch_in_every_container) {
  for (const char* name : {"zip.pt", "zip_protocol4.pt", "legacy.pt"})
    expect_state(PytorchCheckpoint(kData + name).tensors(), name);
}

TEST(PytorchCheckpoint, tensors_lie_in_the_file_unless_they_have_strides) {
  const PytorchCheckpoint checkpoint(kData + "zip.pt");
  for (const SafeTensor& t : checkpoint.tensors()) {
    const bool strides = t.name == "transposed" || t.name == "part" || t.name == "steps" ||
                         t.name == "permuted" || t.name == "cut" || t.name == "empty";
    EXPECT_EQ(t.file == nullptr, strides) << t.name;
  }
}

TEST(PytorchCheckpoint, nested_dictionaries_and_settings) {
  for (const char* name : {"nested.pt", "nested_legacy.pt"}) {
    const PytorchCheckpoint checkpoint(kData + name);
    expect_state(checkpoint.model_tensors(), name);
    EXPECT_EQ(checkpoint.tensors().size(), checkpoint.model_tensors().size() + 1);
    EXPECT_EQ(checkpoint.tensors().front().name, "model_state_dict.module.base");
    EXPECT_EQ(checkpoint.tensors().back().name, "optimizer.state.0.m");
    const Config& s = checkpoint.settings();
    EXPECT_EQ(s.integer("dims.n_mels"), 80);
    EXPECT_EQ(s.real("dims.x"), 1.5);
    EXPECT_TRUE(s.boolean("dims.flag"));
    EXPECT_EQ(s.text("dims.name"), "hi");
    EXPECT_EQ(s.integers("dims.list"), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(s.integer("epoch"), 7);
    EXPECT_EQ(s.real("best"), 2.5);
    EXPECT_EQ(s.integers("size"), (std::vector<int64_t>{6, 8}));
  }
}

TEST(PytorchCheckpoint, numpy_arrays_and_newer_types) {
  const PytorchCheckpoint checkpoint(kData + "arrays.pt");
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  for (const SafeTensor& t : checkpoint.tensors()) {
    EXPECT_EQ(t.shape, (std::vector<int64_t>{3, 4}));
    float values[12];
    safetensor_decode(t.type, t.data, 12, values);
    for (int i = 0; i < 12; i++) EXPECT_EQ(values[i], static_cast<float>(i)) << t.name;
  }
  const PytorchCheckpoint types(kData + "types_v3.pt");
  ASSERT_EQ(types.tensors().size(), 2u);
  EXPECT_EQ(types.tensors()[0].type, SafetensorType::F8_E4M3);
  EXPECT_EQ(types.tensors()[1].type, SafetensorType::U16);
}

TEST(PytorchCheckpoint, stands_in_the_place_of_safetensors) {
  const SafetensorsModel model(kData + "zip.pt");
  EXPECT_STREQ(model.format(), "pytorch");
  expect_state(model.tensors(), "as a model");
}

TEST(PytorchCheckpoint, shards_with_an_index) {
  const TempDir dir;
  dir.write("a.bin", torch_zip(pickle_of_tensor("x", 4), {{"data/0", std::string(16, 'a')}}));
  dir.write("b.bin", torch_zip(pickle_of_tensor("y", 2), {{"data/0", std::string(8, 'b')}}));
  const std::string index =
      dir.write("pytorch_model.bin.index.json", R"({"weight_map":{"x":"a.bin","y":"b.bin"}})");
  const SafetensorsModel model(index);
  ASSERT_EQ(model.tensors().size(), 2u);
  EXPECT_EQ(model.find("y")->data[0], 'b');
  const std::string wrong = dir.write("wrong.index.json", R"({"weight_map":{"x":"b.bin","y":"a.bin"}})");
  EXPECT_THROW(SafetensorsModel{wrong}, Error);
}

TEST(PytorchCheckpoint, containers_that_lie) {
  const TempDir dir;
  const std::string pickle = pickle_of_tensor("x", 4), data(16, 'a');
  const auto zip = [&](const std::vector<std::pair<std::string, std::string>>& files) {
    return fail(dir.write("x.pt", torch_zip(pickle, files)));
  };
  EXPECT_EQ(zip({{"data/0", data}}), "no error");
  EXPECT_HAS(zip({}), "storage '0' is not in the archive");
  EXPECT_HAS(zip({{"data/0", data.substr(1)}}), "storage '0' has 15 bytes, not 16");
  EXPECT_HAS(zip({{"data/0", data}, {"byteorder", "big"}}), "big-endian");
  EXPECT_HAS(zip({{"data/0", data}, {"data/0", data}}), "stands twice");
  EXPECT_HAS(zip({{"data/0", data}, {"b/data.pkl", pickle}}), "two files named data.pkl");
  EXPECT_HAS(fail(dir.write("x.pt", torch_zip("", {}, ""))), "no PyTorch checkpoint");
  // Paths are names in the archive and nothing else.
  EXPECT_HAS(fail(dir.write("x.pt", torch_zip(pickle_of_tensor("x", 4, "../../../../etc/passwd"), {}))),
             "storage '../../../../etc/passwd' is not in the archive");
}

TEST(PytorchCheckpoint, every_cut_is_an_error) {
  const TempDir dir;
  for (const char* name : {"zip.pt", "nested_legacy.pt"}) {
    const std::string whole = read_file(kData + name);
    for (size_t size = 0; size < whole.size(); size += 1 + size / 40)
      EXPECT_NE(fail(dir.write("x.pt", whole.substr(0, size))), "no error") << name << " cut to " << size;
  }
}

TEST(PytorchCheckpoint, changed_bytes_never_do_harm) {
  const TempDir dir;
  uint64_t seed = 12345;
  const auto next = [&seed] { return seed = seed * 6364136223846793005u + 1442695040888963407u, seed >> 33; };
  for (const char* name : {"zip.pt", "nested.pt", "nested_legacy.pt", "arrays.pt"}) {
    const std::string whole = read_file(kData + name);
    for (int round = 0; round < 300; round++) {
      std::string bytes = whole;
      for (int i = 0; i < 3; i++) bytes[next() % bytes.size()] = static_cast<char>(next());
      fail(dir.write("x.pt", bytes));
    }
  }
}

}  // namespace
}  // namespace cyb
