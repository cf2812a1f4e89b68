// SPDX-License-Identifier: Apache-2.0
// Statements, frames and macros of a template's tree. Expressions: evaluate.cc.
#include "text/template/renderer.h"

#include "text/template/library.h"
#include "text/template/loop.h"
#include "text/template/python_text.h"

namespace cyb::jinja {

// A macro, or the body of a call block.
struct Macro : NamedCallable {
  Macro(Renderer& r, const Stmt& s, Ref<Frame> frame)
      : NamedCallable(s.name), renderer(r), statement(s), closure(std::move(frame)) {}

  void clear() override { closure = {}; }

  Value attribute(std::string_view which) const override {
    if (which == "name") return statement.kind == StmtKind::Macro ? Value::string(name) : Value::none();
    if (which == "arguments") {
      std::vector<Value> names;
      for (const auto& p : statement.items) names.push_back(Value::string(p->text));
      return Value::tuple(std::move(names));
    }
    if (which == "catch_kwargs") return Value::boolean(statement.takes_kwargs);
    if (which == "catch_varargs") return Value::boolean(statement.takes_varargs);
    if (which == "caller") return Value::boolean(statement.takes_caller);
    return {};
  }

  Value invoke(Args& args) override {
    if (!closure) fail(kRuntimeError, "a macro outlived its rendering");
    Ref<Frame> frame = renderer.make_frame(statement.frame, closure);
    bind(args, *frame);
    Renderer::Capture capture(renderer);
    renderer.enter(statement.frame, *frame);
    defaults(*frame);
    renderer.run(statement.body, frame);
    return capture.take();
  }

  void bind(Args& args, Frame& frame) {
    const auto& parameters = statement.items;
    bool explicit_caller = false;
    for (size_t i = 0; i < parameters.size(); ++i) {
      Value& slot = frame.slots[parameters[i]->place.slot];
      explicit_caller = explicit_caller || parameters[i]->text == "caller";
      slot = i < args.positional.size() ? args.positional[i] : take(args, parameters[i]->text);
    }
    if (statement.takes_caller && !explicit_caller) {
      Value caller = take(args, "caller");
      if (caller.is(Kind::Missing) || caller.is(Kind::None))
        caller = undefined_hint("No caller defined", "caller");
      frame.slots[statement.caller_slot] = std::move(caller);
    }
    std::string label = statement.kind == StmtKind::Macro ? quoted(name) : "None";
    if (statement.takes_kwargs) {
      Ref<Dict> rest(new Dict);
      for (auto& [key, value] : args.named) rest->set(key, value);
      frame.slots[statement.kwargs_slot] = Value::dict(rest);
    } else if (!args.named.empty()) {
      for (const auto& [key, value] : args.named) {
        if (key == "caller")
          fail(kTypeError,
               "macro {} was invoked with two values for the special caller argument. This is most likely a "
               "bug.",
               label);
      }
      fail(kTypeError, "macro {} takes no keyword argument {}", label, quoted(args.named[0].first));
    }
    size_t used = std::min(args.positional.size(), parameters.size());
    if (statement.takes_varargs) {
      frame.slots[statement.varargs_slot] = Value::tuple(std::vector<Value>(
          args.positional.begin() + static_cast<std::ptrdiff_t>(used), args.positional.end()));
    } else if (args.positional.size() > parameters.size()) {
      fail(kTypeError, "macro {} takes not more than {} argument(s)", label, parameters.size());
    }
  }

  static Value take(Args& args, std::string_view key) {
    for (auto it = args.named.begin(); it != args.named.end(); ++it) {
      if (it->first != key) continue;
      Value value = std::move(it->second);
      args.named.erase(it);
      return value;
    }
    return {};
  }

  void defaults(Frame& frame) {
    size_t without = statement.items.size() - statement.values.size();
    for (size_t i = 0; i < statement.items.size(); ++i) {
      const Expr& parameter = *statement.items[i];
      if (!frame.slots[parameter.place.slot].is(Kind::Missing)) continue;
      frame.slots[parameter.place.slot] =
          i < without ? undefined_hint(fmt::format("parameter {} was not provided", quoted(parameter.text)),
                                       parameter.text)
                      : renderer.eval(*statement.values[i - without], frame);
    }
  }

  Renderer& renderer;
  const Stmt& statement;
  Ref<Frame> closure;
};

Renderer::Renderer(const Tree& tree, Ref<Dict> context, const std::optional<std::tm>& now, size_t& at)
    : tree_(tree), context_(std::move(context)), at_(at) {
  for (auto& [name, value] : global_functions(now)) globals_.emplace(name, std::move(value));
}

std::string Renderer::run() {
  std::string out;
  out_ = &out;
  Ref<Frame> root = make_frame(tree_.frame, {});
  enter(tree_.frame, *root);
  run(tree_.body, root);
  Meter::current().string(out.size());
  return out;
}

void Renderer::write(std::string_view text) {
  if ((out_->size() ^ (out_->size() + text.size())) >> 14)
    Meter::current().string(out_->size() + text.size());
  *out_ += text;
}

Value Renderer::resolve(const std::string& name) {
  if (auto it = published_.find(name); it != published_.end()) return it->second;
  if (const Value* found = context_->find(std::string_view(name))) return *found;
  auto it = globals_.find(name);
  return it == globals_.end() ? Value() : it->second;
}

Ref<Frame> Renderer::make_frame(const FrameLayout& layout, Ref<Frame> outer) {
  return Ref<Frame>(new Frame(std::move(outer), layout.slots));
}

void Renderer::enter(const FrameLayout& layout, Frame& frame) {
  Meter::current().work(1 + layout.loads.size());
  for (const Load& load : layout.loads) {
    switch (load.how) {
      case Load::Resolve:
        frame.slots[load.slot] = resolve(load.name);
        break;
      case Load::Alias:
        frame.slots[load.slot] = slot(frame, load.from);
        break;
      case Load::Unset:
        frame.slots[load.slot] = Value();
        break;
    }
  }
}

Value& Renderer::slot(Frame& frame, Place place) {
  Frame* f = &frame;
  for (uint32_t i = 0; i < place.hops; ++i) f = f->parent.get();
  if (!f || place.slot >= f->slots.size()) fail(kRuntimeError, "a function outlived its rendering");
  return f->slots[place.slot];
}

// ---------------------------------------------------------------------------------------------- statements

Renderer::Flow Renderer::run(const Body& body, Ref<Frame> frame) {
  Depth depth;
  for (const auto& s : body) {
    Flow flow = run(*s, frame);
    if (flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Renderer::Flow Renderer::run(const Stmt& s, const Ref<Frame>& frame) {
  Meter::current().work(1);
  at_ = s.at;
  switch (s.kind) {
    case StmtKind::Output:
      for (const auto& e : s.items) {
        if (e->kind == ExprKind::Text) {
          write(e->text);
          continue;
        }
        Value v = eval(*e, *frame);
        at_ = e->at;
        if (v.is(Kind::Str)) {
          write(v.text());
        } else {
          write(str(v));
        }
      }
      return Flow::Next;
    case StmtKind::If:
      return run_if(s, frame);
    case StmtKind::For:
      return run_for(s, frame);
    case StmtKind::Assign:
      return run_assign(s, frame);
    case StmtKind::AssignBlock:
      return run_assign_block(s, frame);
    case StmtKind::Macro: {
      Value macro = make_macro(s, frame);
      if (s.toplevel && !tree_.blocks.empty()) published_[s.name] = macro;
      slot(*frame, s.place) = std::move(macro);
      return Flow::Next;
    }
    case StmtKind::CallBlock:
      run_call_block(s, frame);
      return Flow::Next;
    case StmtKind::Generation: {
      Args none;
      write(call_value(make_macro(s, frame), none).text());
      return Flow::Next;
    }
    case StmtKind::FilterBlock:
      return run_filter_block(s, frame);
    case StmtKind::With:
      return run_with(s, frame);
    case StmtKind::Block:
      run_block(s);
      return Flow::Next;
    case StmtKind::Break:
      return Flow::Break;
    case StmtKind::Continue:
      return Flow::Continue;
    case StmtKind::Loader:
      eval(*s.node, *frame);
      at_ = s.at;
      fail(kTypeError, "no loader for this environment specified");
  }
  return Flow::Next;
}

Renderer::Flow Renderer::run_if(const Stmt& s, const Ref<Frame>& frame) {
  if (truth(eval(*s.node, *frame))) return run(s.body, frame);
  for (const auto& branch : s.elifs) {
    at_ = branch->at;
    if (truth(eval(*branch->node, *frame))) return run(branch->body, frame);
  }
  return run(s.otherwise, frame);
}

Renderer::Flow Renderer::run_for(const Stmt& s, const Ref<Frame>& frame) {
  Value iterable = eval(*s.node, *frame);
  at_ = s.node->at;
  if (!s.recursive) return loop(s, frame, iterable, false, 0);
  write(recursive_loop(s, frame, iterable, 0).text());
  return Flow::Next;
}

Value Renderer::recursive_loop(const Stmt& s, const Ref<Frame>& outer, const Value& iterable,
                               int64_t depth0) {
  Depth depth;
  Capture capture(*this);
  loop(s, outer, iterable, true, depth0);
  return capture.take();
}

// The items that pass the loop's own test, one at a time, in the test's frame.
Value Renderer::filtered(const Stmt& s, const Ref<Frame>& outer, const Value& iterable) {
  return iterator("generator",
                  [this, &s, outer, iterable, source = Value(), frame = Ref<Frame>()](Value& out) mutable {
                    if (!frame) {
                      frame = make_frame(s.test_frame, outer);
                      enter(s.test_frame, *frame);
                      source = iterate(iterable);
                    }
                    Value item;
                    while (source.as<Iterator>().step(item)) {
                      assign(*s.test_target, item, *frame);
                      if (!truth(eval(*s.test, *frame))) continue;
                      out = eval(*s.test_target, *frame);
                      return true;
                    }
                    return false;
                  });
}

Renderer::Flow Renderer::loop(const Stmt& s, const Ref<Frame>& outer, const Value& iterable, bool recursive,
                              int64_t depth0) {
  Value items = s.test ? filtered(s, outer, iterable) : iterable;
  Value context, source;
  if (s.uses_loop) {
    Loop::Recurse recurse;
    if (recursive) {
      recurse = [this, &s, outer](const Value& inner, int64_t depth) {
        return recursive_loop(s, outer, inner, depth);
      };
    }
    context = Value(Kind::Loop, new Loop(items, std::move(recurse), depth0));
  } else {
    source = iterate(items);
  }
  Ref<Frame> frame = make_frame(s.frame, outer);
  bool finished_one = false;
  Value item;
  while (s.uses_loop ? context.as<Loop>().step(item) : source.as<Iterator>().step(item)) {
    at_ = s.at;
    assign(*s.target, std::move(item), *frame);
    if (s.uses_loop) frame->slots[s.loop_slot] = context;
    enter(s.frame, *frame);
    Flow flow = run(s.body, frame);
    if (flow == Flow::Break) break;
    // Python's loop marks an iteration at its end, so one that `continue` leaves does not count for the else.
    if (flow == Flow::Next) finished_one = true;
    at_ = s.at;
  }
  for (Value& v : frame->slots) v = Value();
  if (finished_one || s.otherwise.empty()) return Flow::Next;
  Ref<Frame> other = make_frame(s.else_frame, outer);
  enter(s.else_frame, *other);
  return run(s.otherwise, other);
}

Renderer::Flow Renderer::run_with(const Stmt& s, const Ref<Frame>& frame) {
  Ref<Frame> inner = make_frame(s.frame, frame);
  enter(s.frame, *inner);
  for (size_t i = 0; i < s.items.size(); ++i) assign(*s.items[i], eval(*s.values[i], *frame), *inner);
  return run(s.body, inner);
}

Renderer::Flow Renderer::run_assign(const Stmt& s, const Ref<Frame>& frame) {
  check_namespaces(*s.target, *frame);
  Value v = eval(*s.node, *frame);
  at_ = s.at;
  assign(*s.target, std::move(v), *frame);
  if (s.toplevel && !tree_.blocks.empty()) publish(*s.target, *frame);
  return Flow::Next;
}

Renderer::Flow Renderer::run_assign_block(const Stmt& s, const Ref<Frame>& frame) {
  Ref<Frame> inner = make_frame(s.frame, frame);
  enter(s.frame, *inner);
  Value text;
  {
    Capture capture(*this);
    Flow flow = run(s.body, inner);
    if (flow != Flow::Next) return flow;
    text = capture.take();
  }
  if (s.node) {
    filter_input_ = text;
    text = eval(*s.node, *inner);
  }
  at_ = s.at;
  check_namespaces(*s.target, *frame);
  assign(*s.target, std::move(text), *frame);
  if (s.toplevel && !tree_.blocks.empty()) publish(*s.target, *frame);
  return Flow::Next;
}

Renderer::Flow Renderer::run_filter_block(const Stmt& s, const Ref<Frame>& frame) {
  Ref<Frame> inner = make_frame(s.frame, frame);
  enter(s.frame, *inner);
  {
    Capture capture(*this);
    Flow flow = run(s.body, inner);
    if (flow != Flow::Next) return flow;
    filter_input_ = capture.take();
  }
  write(str(eval(*s.node, *inner)));
  return Flow::Next;
}

void Renderer::run_call_block(const Stmt& s, const Ref<Frame>& frame) {
  Value caller = make_macro(s, frame);
  write(str(eval_call(*s.node, *frame, &caller)));
}

// A block stands alone: it sees the context and what the top level has published, not the scopes around it.
void Renderer::run_block(const Stmt& s) {
  Depth depth;
  Ref<Frame> frame = make_frame(s.frame, {});
  enter(s.frame, *frame);
  run(s.body, frame);
}

Value Renderer::make_macro(const Stmt& s, const Ref<Frame>& frame) {
  return Value(Kind::Macro, new Macro(*this, s, frame));
}

// ---------------------------------------------------------------------------------------------- assignment

void Renderer::check_namespaces(const Expr& target, Frame& frame) {
  if (target.kind == ExprKind::NsRef && !slot(frame, target.place).is(Kind::Namespace)) {
    at_ = target.at;
    fail(kRuntimeError, "cannot assign attribute on non-namespace object");
  }
  for (const auto& item : target.items) check_namespaces(*item, frame);
}

void Renderer::publish(const Expr& target, Frame& frame) {
  if (target.kind == ExprKind::Name) published_[target.text] = slot(frame, target.place);
  for (const auto& item : target.items) publish(*item, frame);
}

void Renderer::assign(const Expr& target, Value value, Frame& frame) {
  switch (target.kind) {
    case ExprKind::Name:
      slot(frame, target.place) = std::move(value);
      return;
    case ExprKind::NsRef: {
      Value owner = slot(frame, target.place);
      if (!owner.is(Kind::Namespace))
        fail(kTypeError, "'{}' object does not support item assignment", type_name(owner));
      if (target.attribute.starts_with("_")) {
        fail(kSecurityError,
             "Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. Please "
             "rename the attribute.",
             quoted(target.attribute));
      }
      owner.as<Namespace>().attributes->set(target.attribute, std::move(value));
      return;
    }
    default:
      unpack(target, value, frame);
  }
}

void Renderer::unpack(const Expr& target, const Value& value, Frame& frame) {
  if (!is_iterable(value)) fail(kTypeError, "cannot unpack non-iterable {} object", type_name(value));
  size_t expected = target.items.size();
  std::vector<Value> parts;
  Value source = iterate(value), item;
  while (source.as<Iterator>().step(item)) {
    if (parts.size() == expected) fail(kValueError, "too many values to unpack (expected {})", expected);
    parts.push_back(item);
  }
  if (parts.size() < expected)
    fail(kValueError, "not enough values to unpack (expected {}, got {})", expected, parts.size());
  for (size_t i = 0; i < expected; ++i) assign(*target.items[i], std::move(parts[i]), frame);
}

}  // namespace cyb::jinja
