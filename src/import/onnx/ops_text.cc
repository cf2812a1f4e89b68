// SPDX-License-Identifier: Apache-2.0
// Operators on strings. What moves strings or compares them (Identity, Concat, Gather, Equal, …) stands in
// the other groups.
#include "import/onnx/ops.h"
#include "ir/ops/text.h"

namespace cyb::onnx {
namespace {

void convert_split(NodeContext& c) {
  const ir::StringSplitAttrs a{.delimiter = c.attr_string("delimiter", ""),
                               .most = c.attr_int("maxsplit", -1)};
  const auto y = c.ops(Op::StringSplit, {c.in(0)}, a, 2);
  c.out(0, y[0]);
  if (c.has_output(1)) c.out(1, y[1]);
}

void convert_normalize(NodeContext& c) {
  const std::string change = c.attr_string("case_change_action", "NONE");
  ir::StringNormalizeAttrs a{.case_sensitive = c.attr_int("is_case_sensitive", 0) != 0};
  if (change == "LOWER")
    a.change = ir::CaseChange::lower;
  else if (change == "UPPER")
    a.change = ir::CaseChange::upper;
  else if (change != "NONE")
    c.invalid(fmt::format("case_change_action is '{}'", change));
  std::vector<ValueId> operands = {c.in(0)};
  if (std::vector<std::string> stop = c.attr_strings("stopwords"); !stop.empty()) {
    Tensor t(DType::string, {static_cast<int64_t>(stop.size())});
    t.strings() = std::move(stop);
    operands.push_back(c.constant(std::move(t)));
  }
  c.out(0, c.op(Op::StringNormalize, operands, a));
}

void convert_regex(NodeContext& c) {
  c.out(0, c.op(Op::RegexFullMatch, {c.in(0)}, ir::RegexAttrs{.pattern = c.attr_string("pattern", "")}));
}

}  // namespace

void add_text_converters(Registry& r) {
  r.add("StringConcat", convert_binary<Op::StringConcat>);
  r.add("StringSplit", convert_split);
  r.add("StringNormalizer", convert_normalize);
  r.add("RegexFullMatch", convert_regex);
}

}  // namespace cyb::onnx
