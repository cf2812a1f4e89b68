// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals. Where the conversion knows a sequence's elements one by one, nothing is left of it
// in the graph; else it is its data and its shapes (sequences.h).
#include <limits>

#include "import/onnx/onnx.pb.h"
#include "import/onnx/ops.h"
#include "import/onnx/ops_util.h"
#include "import/onnx/sequences.h"

namespace cyb::onnx {

using namespace ir;

namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostListed = 4096;

const Binding& sequence(NodeContext& c, int i) {
  const Binding& b = c.binding(i);
  if (!b.sequence) c.invalid(fmt::format("operand {} is no sequence", i));
  return b;
}

Binding listed(Elem elem, std::vector<ValueId> elements) {
  Binding b;
  b.elem = elem;
  b.sequence = b.listed = true;
  b.elements = std::move(elements);
  return b;
}

Binding in_rows(Elem elem, const Rows& rows) {
  Binding b;
  b.elem = elem;
  b.sequence = true;
  b.id = rows.data;
  b.shapes = rows.shapes;
  return b;
}

// A known position from 0, or nothing. Positions up to `end` are allowed.
std::optional<size_t> known_position(NodeContext& c, int operand, size_t length, size_t end) {
  const auto given = c.ints_in(operand);
  if (!given || given->size() != 1) return std::nullopt;
  int64_t p = (*given)[0];
  if (p < 0) p += static_cast<int64_t>(length);
  if (p < 0 || p > static_cast<int64_t>(end))
    c.invalid(fmt::format("position {} of {} elements", (*given)[0], length));
  return static_cast<size_t>(p);
}

// The position as i64[1], from 0.
ValueId position(NodeContext& c, int operand, ValueId length) {
  const ValueId p = c.reshape(c.cast(c.in(operand), DType::i64), {1});
  return where(c, c.op(Op::Less, {p, c.i64s({0})}), c.add(p, length), p);
}

ValueId rows_part(NodeContext& c, ValueId x, ValueId from, ValueId to) {
  return c.op(Op::Slice, {x, from, to, c.i64s({0})});
}

// Where element `index` begins in the data, i64[1].
ValueId begin_of(NodeContext& c, const Rows& rows, ValueId index) {
  const ValueId sizes = reduce(c, Op::ReduceProd, c.slice(rows.shapes, 1, 1, kEnd), {1}, false);
  return reduce(c, Op::ReduceSum, rows_part(c, sizes, c.i64s({0}), index), {0});
}

// The sequence before `index`, `with`, and the sequence from `then` on.
Rows spliced(NodeContext& c, const Rows& rows, ValueId index, const std::vector<Rows>& with, ValueId then) {
  const ValueId end = c.i64s({kEnd});
  std::vector<ValueId> data = {rows_part(c, rows.data, c.i64s({0}), begin_of(c, rows, index))};
  std::vector<ValueId> shapes = {rows_part(c, rows.shapes, c.i64s({0}), index)};
  for (const Rows& w : with) {
    data.push_back(w.data);
    shapes.push_back(w.shapes);
  }
  data.push_back(rows_part(c, rows.data, begin_of(c, rows, then), end));
  shapes.push_back(rows_part(c, rows.shapes, then, end));
  return {c.concat(data, 0), c.concat(shapes, 0)};
}

void convert_sequence_empty(NodeContext& c) { c.bind(0, listed(elem_attr(c, "dtype", Elem::f32), {})); }

void convert_sequence_construct(NodeContext& c) {
  if (c.inputs() < 1) c.invalid("no elements");
  std::vector<ValueId> elements;
  for (int i = 0; i < c.inputs(); i++) elements.push_back(c.in(i));
  c.bind(0, listed(c.elem(0), elements));
}

void convert_sequence_insert(NodeContext& c) {
  const Binding s = sequence(c, 0);
  const ValueId x = c.in(1);
  if (s.listed) {
    const auto p = c.has(2) ? known_position(c, 2, s.elements.size(), s.elements.size())
                            : std::optional<size_t>(s.elements.size());
    if (p) {
      std::vector<ValueId> elements = s.elements;
      elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(*p), x);
      return c.bind(0, listed(s.elem, elements));
    }
  }
  const Rows rows = rows_of(c, s);
  const Rows added = rows_of(c, {x}, c.type_of(x).dtype);
  if (!c.has(2))
    return c.bind(
        0, in_rows(s.elem, {c.concat({rows.data, added.data}, 0), c.concat({rows.shapes, added.shapes}, 0)}));
  const ValueId p = position(c, 2, c.dim_of(rows.shapes, 0));
  c.bind(0, in_rows(s.elem, spliced(c, rows, p, {added}, p)));
}

void convert_sequence_erase(NodeContext& c) {
  const Binding s = sequence(c, 0);
  if (s.listed) {
    if (s.elements.empty()) c.invalid("the sequence is empty");
    const size_t last = s.elements.size() - 1;
    const auto p = c.has(1) ? known_position(c, 1, s.elements.size(), last) : std::optional<size_t>(last);
    if (p) {
      std::vector<ValueId> elements = s.elements;
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(*p));
      return c.bind(0, listed(s.elem, elements));
    }
  }
  const Rows rows = rows_of(c, s);
  const ValueId length = c.dim_of(rows.shapes, 0), one = c.i64s({1});
  const ValueId p = c.has(1) ? position(c, 1, length) : c.sub(length, one);
  c.bind(0, in_rows(s.elem, spliced(c, rows, p, {}, c.add(p, one))));
}

void convert_sequence_at(NodeContext& c) {
  const Binding s = sequence(c, 0);
  if (s.listed) {
    if (s.elements.empty()) c.invalid("the sequence is empty");
    if (const auto p = known_position(c, 1, s.elements.size(), s.elements.size() - 1))
      return c.out(0, s.elements[*p], s.elem);
  }
  const Rows rows = rows_of(c, s);
  c.out(0, element_of(c, rows, position(c, 1, c.dim_of(rows.shapes, 0))), s.elem);
}

void convert_sequence_length(NodeContext& c) {
  const Binding s = sequence(c, 0);
  if (s.listed) return c.out(0, c.i64(static_cast<int64_t>(s.elements.size())));
  c.out(0, scalar_of(c, c.dim_of(s.shapes, 0)));
}

// A loop over `trips`, i64[1], whose body is made by a function: it gets a context inside, the number of the
// round as i64[1] and the carried values, and gives the carried values.
template <class F>
std::vector<ValueId> loop(NodeContext& c, ValueId trips, const std::vector<ValueId>& carried,
                          const std::vector<Type>& types, F&& body) {
  ModelState& state = c.graph().state();
  auto region = std::make_unique<Graph>();
  GraphConverter inside(state, *region, &c.graph(), c.graph().depth() + 1);
  NodeContext r(inside, c.proto(), c.opset());
  const ValueId i = region->add_input(state.unique_name(""), {DType::i64, {}});
  const ValueId condition = region->add_input(state.unique_name(""), {DType::boolean, {}});
  std::vector<ValueId> in;
  for (const Type& t : types) in.push_back(region->add_input(state.unique_name(""), t));
  const std::vector<ValueId> out = body(r, inside, r.reshape(i, {1}), in);
  region->add_output(state.unique_name(""), condition);
  for (const ValueId id : out) region->add_output(state.unique_name(""), id);
  std::vector<ValueId> operands = {scalar_of(c, trips), kNone};
  operands.insert(operands.end(), carried.begin(), carried.end());
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(region));
  const LoopAttrs attrs{.carried = static_cast<int64_t>(carried.size())};
  return c.control(Op::Loop, operands, std::make_unique<TypedAttrs<LoopAttrs>>(attrs), std::move(regions),
                   static_cast<int>(carried.size()));
}

// A sequence with one more element, as carried values.
std::vector<ValueId> grown(NodeContext& c, const Rows& rows, ValueId x) {
  const Rows added = rows_of(c, {x}, c.type_of(x).dtype);
  return {c.concat({rows.data, added.data}, 0), c.concat({rows.shapes, added.shapes}, 0)};
}

// Types of carried data and shapes, whose lengths change.
std::vector<Type> row_types(DType dtype) {
  return {{dtype, {Dim()}}, {DType::i64, {Dim(), Dim(kMaxRank + 1)}}};
}

void convert_concat_from_sequence(NodeContext& c) {
  const Binding s = sequence(c, 0);
  const int64_t axis = c.attr_int("axis", 0);
  const bool new_axis = c.attr_int("new_axis", 0) != 0;
  if (s.listed) {
    std::vector<ValueId> parts;
    for (const ValueId x : s.elements) parts.push_back(new_axis ? c.unsqueeze(x, {axis}) : x);
    if (parts.empty()) c.invalid("the sequence is empty");
    return c.out(0, c.concat(parts, axis), s.elem);
  }
  const Rows rows{s.id, s.shapes};
  const auto element = [&](NodeContext& r, const Rows& from, ValueId i) {
    const ValueId x = element_of(r, from, i);
    return new_axis ? r.unsqueeze(x, {axis}) : x;
  };
  Type open{held_as(s.elem), {}};
  open.known_rank = false;
  const ValueId rounds = c.sub(c.dim_of(rows.shapes, 0), c.i64s({1}));
  const auto y =
      loop(c, rounds, {element(c, rows, c.i64s({0}))}, {open},
           [&](NodeContext& r, GraphConverter& inside, ValueId i, const std::vector<ValueId>& in) {
             const Rows outside{inside.outer_value(rows.data), inside.outer_value(rows.shapes)};
             return std::vector<ValueId>{r.concat({in[0], element(r, outside, r.add(i, r.i64s({1})))}, axis)};
           });
  c.out(0, y[0], s.elem);
}

// Where the parts of an axis begin and end.
struct Cuts {
  ValueId begins, ends;  // i64[n]
};

Cuts cuts_of(NodeContext& c, ValueId length) {
  if (!c.has(1)) {
    const ValueId i = counting(c, length);
    return {i, c.add(i, c.i64s({1}))};
  }
  const ValueId split = c.cast(c.in(1), DType::i64);
  const Type& t = c.type_of(split);
  if (!t.known_rank) c.unsupported("a split whose rank only a run can tell");
  if (t.rank() == 1) {
    const ValueId ends = c.op(Op::CumSum, {split}, CumSumAttrs{.axis = 0});
    return {c.sub(ends, split), ends};
  }
  const ValueId size = c.reshape(split, {1});
  const ValueId count = c.div(c.add(length, c.sub(size, c.i64s({1}))), size);
  const ValueId begins = c.mul(counting(c, count), size);
  return {begins, c.op(Op::Min, {c.add(begins, size), length})};
}

void convert_split_to_sequence(NodeContext& c) {
  const ValueId x = c.in(0);
  const Elem elem = c.elem(0);
  const int64_t axis = axis_from(c, c.attr_int("axis", 0), c.rank(0));
  const bool squeezed = !c.has(1) && c.attr_int("keepdims", 1) == 0;
  const Cuts cuts = cuts_of(c, c.dim_of(x, axis));
  const Tensor* begins = c.constant(cuts.begins);
  const Tensor* ends = c.constant(cuts.ends);
  if (begins && ends && begins->elements() <= kMostListed) {
    std::vector<ValueId> parts;
    const Tensor from = *begins, to = *ends;
    for (size_t i = 0; i < static_cast<size_t>(from.elements()); i++) {
      const ValueId part = c.slice(x, axis, from.integer(i), to.integer(i));
      parts.push_back(squeezed ? c.squeeze(part, {axis}) : part);
    }
    return c.bind(0, listed(elem, parts));
  }
  const Rows none = rows_of(c, std::vector<ValueId>(), c.dtype(0));
  const auto y =
      loop(c, c.dim_of(cuts.begins, 0), {none.data, none.shapes}, row_types(c.dtype(0)),
           [&](NodeContext& r, GraphConverter& inside, ValueId i, const std::vector<ValueId>& in) {
             const auto cut = [&](ValueId at) {
               return r.op(Op::Gather, {inside.outer_value(at), i}, AxisAttrs{.axis = 0});
             };
             ValueId part =
                 r.op(Op::Slice, {inside.outer_value(x), cut(cuts.begins), cut(cuts.ends), r.i64s({axis})});
             if (squeezed) part = r.squeeze(part, {axis});
             return grown(r, {in[0], in[1]}, part);
           });
  c.bind(0, in_rows(elem, {y[0], y[1]}));
}

// The body once for each element; further operands are sequences too, or tensors that all rounds get.
void convert_sequence_map(NodeContext& c) {
  const AttributeProto* body = c.attr("body");
  if (!body || !body->has_g()) c.invalid("attribute 'body' must be a graph");
  const auto outputs = static_cast<size_t>(body->g().output_size());
  if (static_cast<size_t>(c.outputs()) > outputs)
    c.invalid("the body gives fewer values than there are results");
  std::vector<Binding> in;
  bool all_listed = true;
  for (int i = 0; i < c.inputs(); i++) {
    in.push_back(c.binding(i));
    if (in.back().sequence) all_listed = all_listed && in.back().listed;
  }
  if (in.empty() || !in[0].sequence) c.invalid("operand 0 is no sequence");
  if (all_listed) {
    std::vector<std::vector<ValueId>> results(outputs);
    std::vector<Elem> elems(outputs, Elem::f32);
    for (size_t i = 0; i < in[0].elements.size(); i++) {
      std::vector<Binding> given = in;
      for (Binding& b : given) {
        if (!b.sequence) continue;
        if (b.elements.size() != in[0].elements.size()) c.invalid("sequences differ in length");
        b = {b.elements[i], b.elem};
      }
      const std::vector<Binding> made = c.graph().inline_graph(body->g(), given);
      for (size_t k = 0; k < outputs; k++) {
        if (made[k].sequence) c.invalid("the body gives a sequence");
        results[k].push_back(made[k].id);
        elems[k] = made[k].elem;
      }
    }
    if (!in[0].elements.empty()) {
      for (int k = 0; k < c.outputs(); k++)
        c.bind(k, listed(elems[static_cast<size_t>(k)], results[static_cast<size_t>(k)]));
      return;
    }
  }
  // What the results hold is known when the body is converted; until then they are what the file says.
  std::vector<ValueForm> forms(outputs);
  std::vector<Type> types;
  std::vector<ValueId> carried;
  ModelState& state = c.graph().state();
  for (size_t k = 0; k < outputs; k++) {
    read_type(body->g().output(static_cast<int>(k)).type(), body->g().output(static_cast<int>(k)).name(),
              state, &forms[k].elem);
    const DType dtype = held_as(forms[k].elem);
    const Rows none = rows_of(c, std::vector<ValueId>(), dtype);
    for (const Type& t : row_types(dtype)) types.push_back(t);
    carried.push_back(none.data);
    carried.push_back(none.shapes);
  }
  std::vector<ValueForm> given;
  std::vector<std::vector<ValueId>> parts;
  for (const Binding& b : in) {
    given.push_back(form_of(b));
    parts.push_back(parts_of(c, b));
  }
  const auto y =
      loop(c, c.dim_of(parts[0][1], 0), carried, types,
           [&](NodeContext& r, GraphConverter& inside, ValueId i, const std::vector<ValueId>& values) {
             std::vector<Binding> bound;
             for (size_t k = 0; k < given.size(); k++) {
               std::vector<ValueId> here;
               for (const ValueId id : parts[k]) here.push_back(inside.outer_value(id));
               Binding b = binding_of(given[k], here);
               if (given[k].sequence) b = {element_of(r, {here[0], here[1]}, i), given[k].elem};
               bound.push_back(b);
             }
             const std::vector<Binding> made = inside.inline_graph(body->g(), bound);
             std::vector<ValueId> next;
             for (size_t k = 0; k < outputs; k++) {
               if (made[k].sequence) r.invalid("the body gives a sequence");
               const auto rows = grown(r, {values[2 * k], values[2 * k + 1]}, made[k].id);
               next.insert(next.end(), rows.begin(), rows.end());
             }
             return next;
           });
  for (int k = 0; k < c.outputs(); k++) {
    const auto n = static_cast<size_t>(k);
    c.bind(k, in_rows(forms[n].elem, {y[2 * n], y[2 * n + 1]}));
  }
}

ValueId truth(NodeContext& c, bool value) {
  Tensor t(DType::boolean, {});
  t.at<uint8_t>(0) = value;
  return c.constant(std::move(t));
}

void convert_optional(NodeContext& c) {
  Binding b;
  const bool given = c.has(0);
  if (given) {
    b = c.binding(0);
  } else {
    const AttributeProto* type = c.attr("type");
    if (!type || !type->has_tp()) c.invalid("it has neither a value nor a type");
    const TypeProto* tp = &type->tp();
    if (tp->has_optional_type()) tp = &tp->optional_type().elem_type();
    if (tp->has_sequence_type()) {
      read_type(tp->sequence_type().elem_type(), "", c.graph().state(), &b.elem);
      b.sequence = b.listed = true;
    } else {
      read_type(*tp, "", c.graph().state(), &b.elem);
      b.id = c.constant(Tensor(held_as(b.elem), {0}));
    }
  }
  if (b.present == kNone) b.present = truth(c, given);
  c.bind(0, b);
}

void convert_optional_has_element(NodeContext& c) {
  if (!c.has(0)) return c.out(0, truth(c, false));
  const ValueId present = c.binding(0).present;
  c.out(0, present == kNone ? truth(c, true) : present);
}

void convert_optional_get_element(NodeContext& c) {
  Binding b = c.binding(0);
  if (const Tensor* present = c.constant(b.present); present && !present->integer(0))
    c.invalid("the optional has no value");
  b.present = kNone;
  c.bind(0, b);
}

void convert_identity(NodeContext& c) { c.bind(0, c.binding(0)); }

}  // namespace

void add_sequence_converters(Registry& r) {
  r.add("SequenceEmpty", convert_sequence_empty);
  r.add("SequenceConstruct", convert_sequence_construct);
  r.add("SequenceInsert", convert_sequence_insert);
  r.add("SequenceErase", convert_sequence_erase);
  r.add("SequenceAt", convert_sequence_at);
  r.add("SequenceLength", convert_sequence_length);
  r.add("ConcatFromSequence", convert_concat_from_sequence);
  r.add("SplitToSequence", convert_split_to_sequence);
  r.add("SequenceMap", convert_sequence_map);
  r.add("Optional", convert_optional);
  r.add("OptionalHasElement", convert_optional_has_element);
  r.add("OptionalGetElement", convert_optional_get_element);
  r.add("Identity", convert_identity);
}

}  // namespace cyb::onnx
