// SPDX-License-Identifier: Apache-2.0
#include "format/model_writer.h"

#include <gtest/gtest.h>

#include <thread>

#include "format/model_file_testing.h"
#include "tensor/decode.h"

namespace cyb {
namespace {

using namespace testing;

TEST_F(ModelFiles, the_same_input_gives_the_same_bytes) {
  write_file(path("a"), all_kinds());
  write_file(path("b"), all_kinds());
  EXPECT_EQ(content_of(path("a")), content_of(path("b")));
}

TEST_F(ModelFiles, a_header_that_outgrows_its_room_moves_the_weights) {
  const std::vector<Item> items = all_kinds();
  ModelWriter w(path(), head());
  for (const Item& item : items) w.add_tensor(item.spec);
  w.begin(0);
  for (size_t i = 0; i < items.size(); i++) w.write(i, 0, items[i].bytes);
  w.section("card", std::string(100000, 'x'));
  w.finish();
  const ModelFile file(path());
  file.verify();
  EXPECT_EQ(file.section("card").size(), 100000u);
  for (size_t i = 0; i < items.size(); i++) {
    const auto bytes = file.bytes(file.tensors()[i]);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), items[i].bytes.begin(), items[i].bytes.end()));
  }
}

TEST_F(ModelFiles, tensors_are_written_in_pieces_from_several_threads_and_frac_bits_come_late) {
  const Item item = encoded(spec_of("w", Encoding::q8, {200, 256}, 8));
  ModelWriter w(path(), head());
  TensorSpec planned = item.spec;
  planned.frac_bits = 8;
  w.add_tensor(planned);
  w.begin();
  std::vector<std::thread> threads;
  const size_t half = item.bytes.size() / 2;
  threads.emplace_back([&] { w.write(0, half, std::span(item.bytes).subspan(half)); });
  threads.emplace_back([&] { w.write(0, 0, std::span(item.bytes).first(half)); });
  for (std::thread& t : threads) t.join();
  w.frac_bits(0, item.spec.frac_bits);
  w.finish();
  const ModelFile file(path());
  EXPECT_EQ(file.tensor("w").frac_bits, item.spec.frac_bits);
  EXPECT_EQ(decode(file.tensor("w"), file.bytes(file.tensor("w"))), decode(item.spec, item.bytes));
}

TEST_F(ModelFiles, an_unfinished_or_incomplete_file_leaves_nothing) {
  {
    ModelWriter w(path(), head());
    w.add_tensor(spec_of("w", Encoding::u32, {4}));
    w.begin();
    EXPECT_THROW(w.finish(), Error);                                      // nothing was written
    EXPECT_THROW(w.write(0, 8, std::vector<uint8_t>(9)), Error);          // past the end
    EXPECT_THROW(w.add_tensor(spec_of("x", Encoding::u32, {4})), Error);  // too late
  }
  EXPECT_EQ(files_in_dir(), 0u);
  {
    ModelWriter w(path(), head());
    w.add_tensor(spec_of("w", Encoding::u32, {4}));
    EXPECT_THROW(w.add_tensor(spec_of("w", Encoding::u32, {4})), Error);
    EXPECT_THROW(w.section("weights", ""), Error);
    EXPECT_THROW(w.section("card", "\xff"), Error);
    w.section("config", "a = 1.5");
    w.begin();
    w.write(0, 0, std::vector<uint8_t>(16));
    EXPECT_THROW(w.finish(), Error);  // a reader would refuse the config
  }
  EXPECT_EQ(files_in_dir(), 0u);
}

}  // namespace
}  // namespace cyb
