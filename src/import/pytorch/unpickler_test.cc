// SPDX-License-Identifier: Apache-2.0
// Pickles that want more than tensors are refused by name; nothing of them is run, and they cost little.
#include "import/pytorch/unpickler.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "import/pytorch/checkpoint.h"
#include "import/pytorch/test_pickle.h"
#include "import/test_files.h"

namespace cyb {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string fail(const std::string& pickle) {
  try {
    unpickle({reinterpret_cast<const uint8_t*>(pickle.data()), pickle.size()});
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// As a checkpoint with this storage.
std::string fail_file(const std::string& pickle, const std::string& data = std::string(64, 'x')) {
  const TempDir dir;
  try {
    const PytorchCheckpoint c(dir.write("x.pt", torch_zip(op::proto() + pickle + ".", {{"data/0", data}})));
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string repeat(const std::string& s, size_t n) {
  std::string out;
  out.reserve(s.size() * n);
  while (n-- > 0) out += s;
  return out;
}

const std::string kStorage = op::storage("FloatStorage", "0", 16);

TEST(Unpickler, what_would_call_something_is_refused_by_name) {
  const std::string touch = op::text("touch /tmp/never");
  EXPECT_HAS(fail(op::call(op::name("os", "system"), {touch}) + "."), "'os.system'");
  EXPECT_HAS(fail(op::call(op::name("posix", "system"), {touch}) + "."), "'posix.system'");
  EXPECT_HAS(fail(op::call(op::name("builtins", "eval"), {touch}) + "."), "'builtins.eval'");
  EXPECT_HAS(fail(op::call(op::name("builtins", "getattr"), {touch, touch}) + "."), "'builtins.getattr'");
  EXPECT_HAS(fail(op::call(op::name("subprocess", "Popen"), {touch}) + "."), "'subprocess.Popen'");
  // The other ways to a name: STACK_GLOBAL, INST, OBJ, extensions.
  EXPECT_HAS(fail(op::text("os") + op::text("system") + "\x93" + op::tuple({touch}) + "R."), "'os.system'");
  EXPECT_HAS(fail("(" + touch + "ios\nsystem\n."), "'os.system'");
  EXPECT_HAS(fail("(cos\nsystem\n" + touch + "o."), "'os.system'");
  EXPECT_HAS(fail("\x82\x01."), "copyreg");
  // A name that only looks right, or is allowed as an argument but not to be called.
  EXPECT_HAS(fail(op::name("torch._utils", "_rebuild_tensor_v2.__globals__") + "."), "__globals__");
  EXPECT_HAS(fail(op::name("torch._utils ", "_rebuild_tensor_v2") + "."), "which is neither");
  EXPECT_HAS(fail(op::call(op::name("builtins", "int"), {op::text("1")}) + "."), "'builtins.int' is called");
  EXPECT_HAS(fail(op::call(op::name("torch", "FloatStorage"), {}) + "."), "'torch.FloatStorage' is called");
  EXPECT_HAS(fail(op::text("os") + op::tuple({touch}) + "R."), "the text 'os' is called");
  EXPECT_HAS(fail(op::name("__torch__.multimodal.model", "CLIP") + "."), "TorchScript");
  EXPECT_HAS(fail(op::call(op::name("torch._tensor", "_rebuild_from_type_v2"),
                           {op::name("_codecs", "encode"), op::name("torch", "Tensor"),
                            op::tuple({touch, touch}), "}"}) +
                  "."),
             "argument 1");
  // A state for what has none: __setstate__ of a name.
  EXPECT_HAS(fail(op::name("torch", "Tensor") + "}b."), "a state");
}

TEST(Unpickler, tensors_that_lie) {
  const auto tensor = [](const std::string& storage, int64_t offset, std::vector<int64_t> shape,
                         std::vector<int64_t> strides) {
    return fail_file(op::dict("w", op::tensor(storage, offset, shape, strides)));
  };
  EXPECT_EQ(tensor(kStorage, 0, {4, 4}, {4, 1}), "no error");
  EXPECT_EQ(tensor(kStorage, 15, {1}, {1}), "no error");
  EXPECT_HAS(tensor(kStorage, 16, {1}, {1}), "reaches out of its storage");
  EXPECT_HAS(tensor(kStorage, 0, {4, 4}, {5, 1}), "reaches out of its storage");
  EXPECT_HAS(tensor(kStorage, 0, {1, 2}, {1, 16}), "reaches out of its storage");
  EXPECT_HAS(tensor(kStorage, INT64_MAX, {4}, {1}), "reaches out of its storage");
  EXPECT_HAS(tensor(kStorage, 0, {INT64_MAX, INT64_MAX, 8}, {0, 0, 0}), "reaches out of its storage");
  EXPECT_HAS(tensor(kStorage, 0, {1LL << 40}, {0}), "bytes in a storage of");
  EXPECT_HAS(tensor(kStorage, -1, {4}, {1}), "argument 2 is the number -1");
  EXPECT_HAS(tensor(kStorage, 0, {-4}, {1}), "argument 3 is the number -4");
  EXPECT_HAS(tensor(kStorage, 0, {4}, {-1}), "argument 4 is the number -1");
  EXPECT_HAS(tensor(kStorage, 0, {4, 4}, {1}), "2 axes with 1 strides");
  EXPECT_HAS(tensor(kStorage, 0, std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1)), "9 axes");
  EXPECT_HAS(tensor(op::storage("FloatStorage", "0", 17), 0, {4}, {1}), "has 64 bytes, not 68");
  EXPECT_HAS(tensor(op::storage("FloatStorage", "0", INT64_MAX), 0, {4}, {1}), "storage '0' of");
  EXPECT_HAS(tensor(op::storage("FloatStorage", "0", -1), 0, {4}, {1}), "as its size");
  EXPECT_HAS(tensor(op::storage("ComplexFloatStorage", "0", 4), 0, {4}, {1}), "'torch.ComplexFloatStorage'");
  EXPECT_HAS(tensor(op::text("0"), 0, {4}, {1}), "argument 1 is the text '0'");
  EXPECT_HAS(fail_file(op::text("storage") + "Q"), "where a storage is meant");
}

TEST(Unpickler, broken_machines) {
  EXPECT_HAS(fail(""), "ends in the middle");
  EXPECT_HAS(fail("."), "takes more than it has");
  EXPECT_HAS(fail("t."), "takes more than it has");
  EXPECT_HAS(fail("((0t0N0."), "takes more than it has");
  EXPECT_HAS(fail("R."), "takes more than it has");
  EXPECT_HAS(fail("h\x05."), "memo number 5, which was never set");
  EXPECT_HAS(fail("Nr\xff\xff\xff\xff."), "memo number");
  EXPECT_HAS(fail("}Na."), "items for a dictionary");
  EXPECT_HAS(fail("](Ne]u."), "takes more than it has");
  EXPECT_HAS(fail("}(Nu."), "a key without a value");
  EXPECT_HAS(fail("\x80\x09."), "protocol 9");
  EXPECT_HAS(fail("\x7f."), "unknown operation 0x7f");
  EXPECT_HAS(fail("X\xff\xff\xff\x7f."), "ends in the middle");
  EXPECT_HAS(fail("\x8d" + little(UINT64_MAX, 8) + "."), "ends in the middle");
  EXPECT_HAS(fail("I12x\n."), "number that is none");
  EXPECT_HAS(fail("\x97."), "buffer");
  EXPECT_HAS(fail("Pkey\n."), "oldest form");
}

TEST(Unpickler, every_cut_of_a_pickle_is_an_error) {
  const std::string whole = pickle_of_tensor("x", 4);
  EXPECT_EQ(fail(whole), "no error");
  for (size_t size = 0; size < whole.size(); size++)
    EXPECT_NE(fail(whole.substr(0, size)), "no error") << size;
}

TEST(Unpickler, bombs) {
  // Lists in lists, by nesting and by reference: 2^40 leaves, a cycle.
  EXPECT_HAS(fail(repeat("(", 100'000) + "."), "deeper than any checkpoint");
  EXPECT_HAS(fail_file(repeat("]", 1000) + repeat("a", 999)), "deeper than any checkpoint");
  std::string doubling = "]q" + little(0, 1);
  for (uint64_t i = 1; i < 31; i++)
    doubling += "](h" + little(i - 1, 1) + "h" + little(i - 1, 1) + "eq" + little(i, 1);
  EXPECT_HAS(fail_file(doubling), "more values than any checkpoint");
  EXPECT_HAS(fail_file("]q" + little(0, 1) + "h" + little(0, 1) + "a"), "deeper than any checkpoint");
  // Many nodes, steps, copies, tensors.
  EXPECT_HAS(fail(repeat("]0", 2'000'000) + "N."), "more values than any checkpoint");
  EXPECT_HAS(fail(repeat("N0", 5'000'000) + "N."), "more steps than any checkpoint");
  const std::string copy = op::name("_codecs", "encode") + "q" + little(0, 1) +
                           op::text(std::string(1 << 20, 'x')) + op::text("latin1") + "\x86q" + little(1, 1) +
                           "R";
  EXPECT_HAS(fail(copy + repeat("h" + little(0, 1) + "h" + little(1, 1) + "R", 1000) + "."), "more copies");
  std::string wide = op::name("collections", "OrderedDict") + "q" + little(0, 1) + "}(" +
                     repeat("NN", 1 << 20) + "u\x85q" + little(1, 1) + "R";
  EXPECT_HAS(fail(wide + repeat("h" + little(0, 1) + "h" + little(1, 1) + "R", 1000) + "."), "more copies");
  const std::string many = op::name("torch._utils", "_rebuild_parameter") + "q" + little(0, 1) +
                           op::tensor(kStorage, 0, {4}, {1}) + "\x85q" + little(1, 1) + "R";
  EXPECT_EQ(fail(many + repeat("h" + little(0, 1) + "h" + little(1, 1) + "R", 1000) + "."), "no error");
  const std::string arguments =
      op::tuple({kStorage, op::integer(0), op::numbers({4}), op::numbers({1}), "\x89", "}"});
  EXPECT_HAS(fail(op::name("torch._utils", "_rebuild_tensor_v2") + "q" + little(0, 1) + arguments + "q" +
                  little(1, 1) + "R" + repeat("h" + little(0, 1) + "h" + little(1, 1) + "R", 300'000) + "."),
             "more tensors than any checkpoint");
}

TEST(Unpickler, packed_archives_and_bombs) {
  const TempDir dir;
  const auto file = [&](const std::vector<ZipText>& files) {
    try {
      const PytorchCheckpoint c(dir.write("x.pt", zip_bytes(files)));
      return std::string("no error");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const std::string pickle = pickle_of_tensor("x", 16'000'000);
  EXPECT_EQ(file({{"a/data.pkl", pickle_of_tensor("x", 4), true}, {"a/data/0", std::string(16, 'a'), true}}),
            "no error");
  EXPECT_HAS(file({{"a/data.pkl", pickle}, {"a/data/0", std::string(64'000'000, '\0'), true}}),
             "unpacks to 64000000 bytes");
  EXPECT_HAS(
      file({{"a/data.pkl", pickle_of_tensor("x", 4)}, {"a/data/0", std::string(1 << 20, '\0'), true, 16}}),
      "has 1048576 bytes, not 16");
  EXPECT_HAS(file({{"a/data.pkl", std::string(1 << 20, '.'), true, 200 << 20}}), "unpacks to");
  EXPECT_HAS(file({{"a/data.pkl", std::string(1 << 20, '.'), true, 1 << 21}}), "has 1048576 bytes, not 2097152");
}

}  // namespace
}  // namespace cyb
