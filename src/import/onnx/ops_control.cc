// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan. Types of carried values are widened until the body gives back what it takes.
#include "import/onnx/ops_util.h"

namespace cyb::onnx {

using namespace ir;

namespace {

// What holds for values of both types.
Type joined(const NodeContext& c, const Type& a, const Type& b) {
  if (a.dtype != b.dtype)
    c.invalid(fmt::format("a carried value is {} first, then {}", to_string(a.dtype), to_string(b.dtype)));
  Type t{a.dtype, {}};
  t.known_rank = a.known_rank && b.known_rank && a.rank() == b.rank();
  if (t.known_rank)
    for (size_t i = 0; i < a.dims.size(); i++) t.dims.push_back(a.dims[i] == b.dims[i] ? a.dims[i] : Dim());
  return t;
}

// Converts the body with the given types of `carried` values; while it gives others, with types that hold
// for both. `first_input` and `first_output` say where the carried values stand.
NodeContext::Region body_of(NodeContext& c, std::vector<NodeContext::RegionInput> inputs, size_t carried,
                            size_t first_input, size_t first_output) {
  for (;;) {
    NodeContext::Region region = c.region("body", inputs);
    if (region.graph->outputs.size() < first_output + carried)
      c.invalid("the body has fewer results than carried values");
    bool changed = false;
    for (size_t i = 0; i < carried; i++) {
      NodeContext::RegionInput& in = inputs[first_input + i];
      const Type out = region.graph->value(region.graph->outputs[first_output + i]).type;
      const Type both = joined(c, in.type, out);
      if (!(both == in.type)) {
        changed = true;
        in.type = both;
      }
    }
    if (!changed) return region;
  }
}

std::vector<std::unique_ptr<Graph>> one(std::unique_ptr<Graph> graph) {
  std::vector<std::unique_ptr<Graph>> out;
  out.push_back(std::move(graph));
  return out;
}

void convert_if(NodeContext& c) {
  NodeContext::Region yes = c.region("then_branch", {});
  NodeContext::Region no = c.region("else_branch", {});
  const size_t n = yes.graph->outputs.size();
  if (no.graph->outputs.size() != n || static_cast<int>(n) < c.outputs())
    c.invalid("the branches differ in how many values they give");
  const std::vector<Elem> elems = yes.elems;
  std::vector<std::unique_ptr<Graph>> regions = one(std::move(yes.graph));
  regions.push_back(std::move(no.graph));
  const auto results = c.control(Op::If, {c.in(0)}, std::make_unique<TypedAttrs<NoAttrs>>(),
                                 std::move(regions), static_cast<int>(n));
  for (int i = 0; i < c.outputs(); i++)
    if (c.has_output(i)) c.out(i, results[static_cast<size_t>(i)], elems[static_cast<size_t>(i)]);
}

void convert_loop(NodeContext& c) {
  std::vector<ValueId> operands = {c.in_or_none(0), c.in_or_none(1)};
  std::vector<NodeContext::RegionInput> inputs = {{{DType::i64, {}}, Elem::i64},
                                                  {{DType::boolean, {}}, Elem::boolean}};
  for (int i = 2; i < c.inputs(); i++) {
    operands.push_back(c.in(i));
    inputs.push_back({c.in_type(i), c.elem(i)});
  }
  const size_t carried = operands.size() - 2;
  NodeContext::Region body = body_of(c, inputs, carried, 2, 1);
  const size_t results = body.graph->outputs.size() - 1;
  if (c.outputs() > static_cast<int>(results))
    c.invalid("the body gives fewer values than the loop has results");
  const std::vector<Elem> elems = body.elems;
  const auto ids =
      c.control(Op::Loop, operands,
                std::make_unique<TypedAttrs<LoopAttrs>>(LoopAttrs{.carried = static_cast<int64_t>(carried)}),
                one(std::move(body.graph)), static_cast<int>(results));
  for (int i = 0; i < c.outputs(); i++)
    if (c.has_output(i)) c.out(i, ids[static_cast<size_t>(i)], elems[static_cast<size_t>(i) + 1]);
}

// What Scan's attributes say of one sequence.
struct Course {
  int64_t axis = 0;
  bool backward = false;
};

std::vector<Course> courses(const NodeContext& c, size_t n, const char* axes_name,
                            const char* directions_name) {
  const auto axes = c.attr_ints(axes_name);
  const auto directions = c.attr_ints(directions_name);
  if ((!axes.empty() && axes.size() != n) || (!directions.empty() && directions.size() != n))
    c.invalid(fmt::format("{} and {} need one entry a sequence", axes_name, directions_name));
  std::vector<Course> out(n);
  for (size_t i = 0; i < n; i++) {
    if (!axes.empty()) out[i].axis = axes[i];
    if (!directions.empty()) out[i].backward = directions[i] == 1;
  }
  return out;
}

// Puts `axis` first, or with `back` the first axis there.
ValueId moved(NodeContext& c, ValueId x, int64_t axis, bool back) {
  if (axis == 0) return x;
  const Type& t = c.type_of(x);
  if (!t.known_rank) c.unsupported("only a run can tell the rank of a sequence");
  const int a = axis_from(c, axis, t.rank());
  std::vector<int64_t> order;
  for (int i = 0; i < t.rank(); i++)
    if (i != (back ? 0 : a)) order.push_back(i);
  order.insert(order.begin() + (back ? a : 0), back ? 0 : a);
  return c.permute(x, order);
}

// One pass over sequences that run along their first axis; gives the carried values, then the stacked ones.
std::vector<ValueId> scan(NodeContext& c, const std::vector<ValueId>& states,
                          const std::vector<ValueId>& sequences, const std::vector<Elem>& elems,
                          std::vector<Elem>& result_elems) {
  std::vector<NodeContext::RegionInput> inputs;
  std::vector<ValueId> operands = states;
  for (size_t i = 0; i < states.size(); i++) inputs.push_back({c.type_of(states[i]), elems[i]});
  for (size_t i = 0; i < sequences.size(); i++) {
    Type t = c.type_of(sequences[i]);
    if (t.known_rank) {
      if (t.rank() < 1) c.invalid("a sequence without axes");
      t.dims.erase(t.dims.begin());
    }
    inputs.push_back({t, elems[states.size() + i]});
    operands.push_back(sequences[i]);
  }
  NodeContext::Region body = body_of(c, inputs, states.size(), 0, 0);
  const auto results = static_cast<int>(body.graph->outputs.size());
  result_elems = body.elems;
  return c.control(
      Op::Scan, operands,
      std::make_unique<TypedAttrs<ScanAttrs>>(ScanAttrs{.carried = static_cast<int64_t>(states.size())}),
      one(std::move(body.graph)), results);
}

// Opset 8 scans each entry of a batch by itself, along axis 1.
void convert_scan_8(NodeContext& c, size_t sequences) {
  if (c.has(0)) c.unsupported("sequence_lens");
  const auto n = static_cast<size_t>(c.inputs() - 1);
  if (sequences < 1 || sequences > n) c.invalid("num_scan_inputs");
  const size_t carried = n - sequences;
  const std::vector<Course> in = courses(c, sequences, "", "directions");
  const Type t = c.in_type(1);
  if (!t.known_rank || t.rank() < 1 || !t.dims[0].is_number() || t.dims[0].number() > 64 ||
      t.dims[0] == Dim(0))
    c.unsupported("a batch that is not known to be of 1 to 64");
  std::vector<std::vector<ValueId>> parts;
  std::vector<Elem> elems, result_elems;
  for (size_t i = 0; i < n; i++) elems.push_back(c.elem(static_cast<int>(i) + 1));
  for (int64_t b = 0; b < t.dims[0].number(); b++) {
    std::vector<ValueId> states, scanned;
    for (size_t i = 0; i < n; i++) {
      ValueId x = c.squeeze(c.slice(c.in(static_cast<int>(i) + 1), 0, b, b + 1), {0});
      if (i >= carried && in[i - carried].backward) x = reversed(c, x, 0);
      (i < carried ? states : scanned).push_back(x);
    }
    const auto results = scan(c, states, scanned, elems, result_elems);
    parts.resize(results.size());
    for (size_t i = 0; i < results.size(); i++) parts[i].push_back(c.unsqueeze(results[i], {0}));
  }
  for (int i = 0; i < c.outputs(); i++)
    if (c.has_output(i))
      c.out(i, c.concat(parts.at(static_cast<size_t>(i)), 0), result_elems[static_cast<size_t>(i)]);
}

void convert_scan(NodeContext& c) {
  const int64_t given = c.attr_int("num_scan_inputs", 0);
  if (given < 1) c.invalid(fmt::format("num_scan_inputs = {}", given));
  const auto sequences = static_cast<size_t>(given);
  if (c.opset() < 9) return convert_scan_8(c, sequences);
  const auto n = static_cast<size_t>(c.inputs());
  if (sequences > n) c.invalid("num_scan_inputs");
  const size_t carried = n - sequences;
  const std::vector<Course> in = courses(c, sequences, "scan_input_axes", "scan_input_directions");
  std::vector<ValueId> states, scanned;
  std::vector<Elem> elems, result_elems;
  for (size_t i = 0; i < n; i++) {
    ValueId x = c.in(static_cast<int>(i));
    elems.push_back(c.elem(static_cast<int>(i)));
    if (i < carried) {
      states.push_back(x);
      continue;
    }
    x = moved(c, x, in[i - carried].axis, false);
    scanned.push_back(in[i - carried].backward ? reversed(c, x, 0) : x);
  }
  const auto results = scan(c, states, scanned, elems, result_elems);
  if (c.outputs() > static_cast<int>(results.size())) c.invalid("the body gives fewer values than results");
  const std::vector<Course> out =
      courses(c, results.size() - carried, "scan_output_axes", "scan_output_directions");
  for (int i = 0; i < c.outputs(); i++) {
    if (!c.has_output(i)) continue;
    const auto k = static_cast<size_t>(i);
    ValueId y = results[k];
    if (k >= carried) {
      if (out[k - carried].backward) y = reversed(c, y, 0);
      y = moved(c, y, out[k - carried].axis, true);
    }
    c.out(i, y, result_elems[k]);
  }
}

}  // namespace

void add_control_converters(Registry& r) {
  r.add("If", convert_if);
  r.add("Loop", convert_loop);
  r.add("Scan", convert_scan);
}

}  // namespace cyb::onnx
