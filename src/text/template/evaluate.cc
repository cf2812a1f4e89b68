// SPDX-License-Identifier: Apache-2.0
// Expressions of a template's tree.
#include "text/template/library.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace cyb::jinja {
namespace {

bool is_number(const Expr& e) { return e.kind == ExprKind::Integer || e.kind == ExprKind::Float; }

}  // namespace

Value Renderer::eval(const Expr& e, Frame& frame) {
  Depth depth;
  Meter::current().work(1);
  switch (e.kind) {
    case ExprKind::None:
      return Value::none();
    case ExprKind::True:
      return Value::boolean(true);
    case ExprKind::False:
      return Value::boolean(false);
    case ExprKind::Integer:
      return Value::integer(e.integer);
    case ExprKind::Float:
      return Value::real(e.real);
    case ExprKind::Text:
    case ExprKind::String:
      return Value::string(e.text);
    case ExprKind::Name:
    case ExprKind::NsRef: {
      const Value& v = slot(frame, e.place);
      return v.is(Kind::Missing) ? undefined_name(e.text) : v;
    }
    case ExprKind::Tuple:
    case ExprKind::List:
      return eval_sequence(e, frame);
    case ExprKind::Dict:
      return eval_dict(e, frame);
    case ExprKind::Getattr: {
      Value owner = eval(*e.node, frame);
      at_ = e.at;
      return get_attribute(owner, e.text);
    }
    case ExprKind::Getitem:
      return eval_item(e, frame);
    case ExprKind::Call:
      return eval_call(e, frame, nullptr);
    case ExprKind::Filter:
      return eval_filter(e, frame);
    case ExprKind::Test:
      return eval_test(e, frame);
    case ExprKind::Binary:
      return eval_binary(e, frame);
    case ExprKind::Unary: {
      Value v = eval(*e.node, frame);
      at_ = e.at;
      return unary(e.op, v);
    }
    case ExprKind::And: {
      Value left = eval(*e.node, frame);
      return truth(left) ? eval(*e.right, frame) : left;
    }
    case ExprKind::Or: {
      Value left = eval(*e.node, frame);
      return truth(left) ? left : eval(*e.right, frame);
    }
    case ExprKind::Not:
      return Value::boolean(!truth(eval(*e.node, frame)));
    case ExprKind::Compare:
      return eval_compare(e, frame);
    case ExprKind::Concat:
      return eval_concat(e, frame);
    case ExprKind::Cond:
      return eval_cond(e, frame);
    case ExprKind::Slice:
      break;
  }
  at_ = e.at;
  fail(kSyntaxError, "a slice outside of a subscript");
}

Value Renderer::eval_sequence(const Expr& e, Frame& frame) {
  std::vector<Value> items;
  items.reserve(e.items.size());
  for (const auto& item : e.items) items.push_back(eval(*item, frame));
  return e.kind == ExprKind::List ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value Renderer::eval_dict(const Expr& e, Frame& frame) {
  Ref<Dict> dict(new Dict);
  for (size_t i = 0; i < e.items.size(); i += 2) {
    Value key = eval(*e.items[i], frame);
    Value value = eval(*e.items[i + 1], frame);
    at_ = e.items[i]->at;
    dict->set(std::move(key), std::move(value));
  }
  return Value::dict(dict);
}

Value Renderer::eval_item(const Expr& e, Frame& frame) {
  Value owner = eval(*e.node, frame);
  if (e.right->kind != ExprKind::Slice) {
    Value key = eval(*e.right, frame);
    at_ = e.at;
    return get_item(owner, key);
  }
  Value bounds[3];
  const ExprPtr* parts[] = {&e.right->node, &e.right->right, &e.right->third};
  const Value* given[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (!*parts[i]) continue;
    bounds[i] = eval(**parts[i], frame);
    given[i] = &bounds[i];
  }
  at_ = e.at;
  return get_slice(owner, given[0], given[1], given[2]);
}

Value Renderer::eval_binary(const Expr& e, Frame& frame) {
  Value left = eval(*e.node, frame);
  Value right = eval(*e.right, frame);
  at_ = e.at;
  // jinja2 writes a constant base into Python's source, where -1 ** x means -(1 ** x).
  if (e.op == Op::Pow && e.node->kind == ExprKind::Unary && e.node->op == Op::Neg &&
      is_number(*e.node->node) && !is_number(*e.right) && e.right->kind != ExprKind::Unary) {
    return unary(Op::Neg, binary(e.op, unary(Op::Neg, left), right));
  }
  return binary(e.op, left, right);
}

Value Renderer::eval_compare(const Expr& e, Frame& frame) {
  Value left = eval(*e.node, frame);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Value right = eval(*e.items[i], frame);
    at_ = e.at;
    if (!compare_op(e.ops[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Renderer::eval_concat(const Expr& e, Frame& frame) {
  std::string out;
  for (const auto& item : e.items) {
    Value v = eval(*item, frame);
    at_ = item->at;
    if (v.is(Kind::Str)) {
      Meter::current().string(out.size() + v.text().size());
      out += v.text();
    } else {
      out += str(v);
    }
  }
  return Value::string(std::move(out));
}

Value Renderer::eval_cond(const Expr& e, Frame& frame) {
  if (truth(eval(*e.right, frame))) return eval(*e.node, frame);
  if (e.third) return eval(*e.third, frame);
  return undefined_hint(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.",
                  position_of(tree_, e.at).line));
}

Args Renderer::eval_args(const Expr& e, Frame& frame) {
  Args args;
  args.positional.reserve(e.items.size());
  for (const auto& item : e.items) args.positional.push_back(eval(*item, frame));
  for (const auto& [name, value] : e.named) args.named.emplace_back(name, eval(*value, frame));
  if (e.star) {
    Value more = eval(*e.star, frame);
    at_ = e.star->at;
    if (!is_iterable(more)) fail(kTypeError, "argument after * must be an iterable, not {}", type_name(more));
    for (Value& v : to_list(more)) args.positional.push_back(std::move(v));
  }
  if (e.star_star) {
    Value more = eval(*e.star_star, frame);
    at_ = e.star_star->at;
    if (more.is(Kind::Undefined)) fail_undefined(more);
    if (!more.is(Kind::Dict))
      fail(kTypeError, "argument after ** must be a mapping, not {}", type_name(more));
    for (const auto& [key, value] : more.as_dict().items) {
      if (!key.is(Kind::Str)) fail(kTypeError, "keywords must be strings");
      for (const auto& given : args.named) {
        if (given.first == key.text())
          fail(kTypeError, "got multiple values for keyword argument '{}'", key.text());
      }
      args.named.emplace_back(key.text(), value);
    }
  }
  return args;
}

Value Renderer::eval_call(const Expr& e, Frame& frame, const Value* caller) {
  Value callee = eval(*e.node, frame);
  Args args = eval_args(e, frame);
  if (caller) {
    for (const auto& given : args.named) {
      if (given.first == "caller") fail(kTypeError, "got multiple values for keyword argument 'caller'");
    }
    args.named.emplace_back("caller", *caller);
  }
  at_ = e.at;
  return call_value(callee, args);
}

Value Renderer::eval_filter(const Expr& e, Frame& frame) {
  Value input = e.node ? eval(*e.node, frame) : std::move(filter_input_);
  Args args = eval_args(e, frame);
  at_ = e.at;
  if (!e.filter) fail(kRuntimeError, "No filter named {} found.", quoted(e.text));
  return e.filter(input, args);
}

Value Renderer::eval_test(const Expr& e, Frame& frame) {
  Value input = eval(*e.node, frame);
  Args args = eval_args(e, frame);
  at_ = e.at;
  if (!e.test) fail(kRuntimeError, "No test named {} found.", quoted(e.text));
  return Value::boolean(e.test(input, args));
}

}  // namespace cyb::jinja
