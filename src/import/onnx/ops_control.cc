// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan. Types of carried values are widened until the body gives back what it takes.
#include "import/onnx/onnx.pb.h"
#include "import/onnx/ops_util.h"
#include "import/onnx/sequences.h"

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

using RegionInput = NodeContext::RegionInput;
using Region = NodeContext::Region;

// Where the parts of value `index` begin among the graph's outputs.
size_t first_part(const Region& region, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index; i++) at += static_cast<size_t>(region.forms[i].parts());
  return at;
}

// Says of a value that is always there that it is.
void give_present(Region& region, size_t index) {
  Tensor yes(DType::boolean, {});
  yes.at<uint8_t>(0) = 1;
  Graph& g = *region.graph;
  const auto at = static_cast<std::ptrdiff_t>(first_part(region, index + 1));
  g.outputs.insert(g.outputs.begin() + at, g.add_constant("", std::move(yes)));
  g.output_names.insert(g.output_names.begin() + at, "present");
  region.forms[index].optional = true;
}

// Brings values of two sides to one form; both give the index of theirs.
void same_form(const NodeContext& c, const ValueForm& a, const ValueForm& b) {
  if (a.sequence != b.sequence) c.invalid("a value is a tensor on one side and a sequence on the other");
}

RegionInput input_of(NodeContext& c, const Binding& b, std::vector<ValueId>& operands) {
  RegionInput in;
  in.form = form_of(b);
  for (const ValueId id : parts_of(c, b)) {
    operands.push_back(id);
    in.types.push_back(c.type_of(id));
  }
  return in;
}

// Converts the body with the given types of `carried` values; while it gives others, with types that hold
// for both. `first_input` and `first_output` say where the carried values stand. A carried value that is
// optional on one side only becomes so on both; `operands` are those of the carried values.
Region body_of(NodeContext& c, std::vector<RegionInput> inputs, size_t carried, size_t first_input,
               size_t first_output, std::vector<std::vector<ValueId>>& operands) {
  for (;;) {
    Region region = c.region("body", inputs);
    if (region.forms.size() < first_output + carried)
      c.invalid("the body has fewer results than carried values");
    bool changed = false;
    for (size_t i = 0; i < carried; i++) {
      RegionInput& in = inputs[first_input + i];
      const size_t result = first_output + i;
      same_form(c, in.form, region.forms[result]);
      if (in.form.optional && !region.forms[result].optional) give_present(region, result);
      if (!in.form.optional && region.forms[result].optional) {
        in.form.optional = true;
        in.types.push_back({DType::boolean, {}});
        Tensor yes(DType::boolean, {});
        yes.at<uint8_t>(0) = 1;
        operands[i].push_back(c.constant(std::move(yes)));
        changed = true;
        continue;
      }
      const size_t at = first_part(region, result);
      for (size_t k = 0; k < in.types.size(); k++) {
        const Type out = region.graph->value(region.graph->outputs[at + k]).type;
        const Type both = joined(c, in.types[k], out);
        changed = changed || !(both == in.types[k]);
        in.types[k] = both;
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

// Binds the node's results to values whose forms are given, in order.
void bind_results(NodeContext& c, const std::vector<ValueId>& ids, const std::vector<ValueForm>& forms,
                  size_t first) {
  size_t at = 0;
  if (static_cast<size_t>(c.outputs()) > forms.size() - first)
    c.invalid("the sub-graph gives fewer values than there are results");
  for (int i = 0; i < c.outputs(); i++) {
    const ValueForm& form = forms[first + static_cast<size_t>(i)];
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(at);
    at += static_cast<size_t>(form.parts());
    if (c.has_output(i)) c.bind(i, binding_of(form, {from, from + form.parts()}));
  }
}

void convert_if(NodeContext& c) {
  // A condition that is known leaves one branch, in place.
  if (const Tensor* condition = c.constant_in(0); condition && condition->elements() == 1) {
    const AttributeProto* branch = c.attr(condition->integer(0) ? "then_branch" : "else_branch");
    if (!branch || !branch->has_g()) c.invalid("a branch is missing");
    const std::vector<Binding> values = c.graph().inline_graph(branch->g(), {});
    if (static_cast<size_t>(c.outputs()) > values.size())
      c.invalid("the branch gives fewer values than there are results");
    for (int i = 0; i < c.outputs(); i++) c.bind(i, values[static_cast<size_t>(i)]);
    return;
  }
  Region yes = c.region("then_branch", {});
  Region no = c.region("else_branch", {});
  if (no.forms.size() != yes.forms.size()) c.invalid("the branches differ in how many values they give");
  for (size_t i = 0; i < yes.forms.size(); i++) {
    same_form(c, yes.forms[i], no.forms[i]);
    if (yes.forms[i].optional && !no.forms[i].optional) give_present(no, i);
    if (no.forms[i].optional && !yes.forms[i].optional) give_present(yes, i);
  }
  const auto results = static_cast<int>(yes.graph->outputs.size());
  const std::vector<ValueForm> forms = yes.forms;
  std::vector<std::unique_ptr<Graph>> regions = one(std::move(yes.graph));
  regions.push_back(std::move(no.graph));
  bind_results(
      c, c.control(Op::If, {c.in(0)}, std::make_unique<TypedAttrs<NoAttrs>>(), std::move(regions), results),
      forms, 0);
}

void convert_loop(NodeContext& c) {
  std::vector<ValueId> operands = {c.in_or_none(0), c.in_or_none(1)};
  std::vector<RegionInput> inputs = {{{Elem::i64}, {{DType::i64, {}}}},
                                     {{Elem::boolean}, {{DType::boolean, {}}}}};
  std::vector<std::vector<ValueId>> carried;
  for (int i = 2; i < c.inputs(); i++) inputs.push_back(input_of(c, c.binding(i), carried.emplace_back()));
  Region body = body_of(c, inputs, carried.size(), 2, 1, carried);
  for (const auto& parts : carried) operands.insert(operands.end(), parts.begin(), parts.end());
  const std::vector<ValueForm> forms = body.forms;
  for (size_t i = 1 + carried.size(); i < forms.size(); i++)
    if (forms[i].parts() > 1) c.unsupported("a sequence or optional to stack");
  const auto results = static_cast<int>(body.graph->outputs.size()) - 1;
  const LoopAttrs attrs{.carried = static_cast<int64_t>(operands.size()) - 2};
  bind_results(c,
               c.control(Op::Loop, operands, std::make_unique<TypedAttrs<LoopAttrs>>(attrs),
                         one(std::move(body.graph)), results),
               forms, 1);
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
                          std::vector<ValueForm>& forms) {
  std::vector<RegionInput> inputs;
  std::vector<std::vector<ValueId>> carried;
  for (size_t i = 0; i < states.size(); i++) {
    inputs.push_back({{elems[i]}, {c.type_of(states[i])}});
    carried.push_back({states[i]});
  }
  for (size_t i = 0; i < sequences.size(); i++) {
    Type t = c.type_of(sequences[i]);
    if (t.known_rank) {
      if (t.rank() < 1) c.invalid("a sequence without axes");
      t.dims.erase(t.dims.begin());
    }
    inputs.push_back({{elems[states.size() + i]}, {t}});
  }
  Region body = body_of(c, inputs, states.size(), 0, 0, carried);
  forms = body.forms;
  for (const ValueForm& form : forms)
    if (form.parts() > 1) c.unsupported("sequences or optionals");
  std::vector<ValueId> operands = states;
  operands.insert(operands.end(), sequences.begin(), sequences.end());
  const auto results = static_cast<int>(body.graph->outputs.size());
  const ScanAttrs attrs{.carried = static_cast<int64_t>(states.size())};
  return c.control(Op::Scan, operands, std::make_unique<TypedAttrs<ScanAttrs>>(attrs),
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
  std::vector<Elem> elems;
  std::vector<ValueForm> forms;
  for (size_t i = 0; i < n; i++) elems.push_back(c.elem(static_cast<int>(i) + 1));
  for (int64_t b = 0; b < t.dims[0].number(); b++) {
    std::vector<ValueId> states, scanned;
    for (size_t i = 0; i < n; i++) {
      ValueId x = c.squeeze(c.slice(c.in(static_cast<int>(i) + 1), 0, b, b + 1), {0});
      if (i >= carried && in[i - carried].backward) x = reversed(c, x, 0);
      (i < carried ? states : scanned).push_back(x);
    }
    const auto results = scan(c, states, scanned, elems, forms);
    parts.resize(results.size());
    for (size_t i = 0; i < results.size(); i++) parts[i].push_back(c.unsqueeze(results[i], {0}));
  }
  for (int i = 0; i < c.outputs(); i++)
    if (c.has_output(i))
      c.out(i, c.concat(parts.at(static_cast<size_t>(i)), 0), forms[static_cast<size_t>(i)].elem);
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
  std::vector<Elem> elems;
  std::vector<ValueForm> forms;
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
  const auto results = scan(c, states, scanned, elems, forms);
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
    c.out(i, y, forms[k].elem);
  }
}

}  // namespace

void add_control_converters(Registry& r) {
  r.add("If", convert_if);
  r.add("Loop", convert_loop);
  r.add("Scan", convert_scan);
}

}  // namespace cyb::onnx
