// SPDX-License-Identifier: Apache-2.0
// Runs a template's tree.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "text/template/ast.h"
#include "text/template/value.h"

namespace cyb::jinja {

// The variables of a scope; functions made in it keep it.
struct Frame : Cyclic {
  Frame(Ref<Frame> outer, uint32_t size) : parent(std::move(outer)), slots(size) {}
  void clear() override {
    slots.clear();
    parent = {};
  }
  Ref<Frame> parent;
  std::vector<Value> slots;
};

class Renderer {
 public:
  // `at` follows the place in the source.
  Renderer(const Tree& tree, Ref<Dict> context, const std::optional<std::tm>& now, size_t& at);
  std::string run();

 private:
  friend struct Macro;
  enum class Flow { Next, Break, Continue };

  // Collects output until it is taken.
  class Capture {
   public:
    explicit Capture(Renderer& r) : renderer_(r), before_(r.out_) { renderer_.out_ = &text_; }
    ~Capture() { renderer_.out_ = before_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    Value take() { return Value::string(std::move(text_)); }

   private:
    Renderer& renderer_;
    std::string* before_;
    std::string text_;
  };

  void write(std::string_view text);
  Value resolve(const std::string& name);
  Ref<Frame> make_frame(const FrameLayout& layout, Ref<Frame> outer);
  void enter(const FrameLayout& layout, Frame& frame);
  static Value& slot(Frame& frame, Place place);

  Flow run(const Body& body, Ref<Frame> frame);
  Flow run(const Stmt& s, const Ref<Frame>& frame);
  Flow run_if(const Stmt& s, const Ref<Frame>& frame);
  Flow run_for(const Stmt& s, const Ref<Frame>& frame);
  Flow loop(const Stmt& s, const Ref<Frame>& outer, const Value& iterable, bool recursive, int64_t depth0);
  Value recursive_loop(const Stmt& s, const Ref<Frame>& outer, const Value& iterable, int64_t depth0);
  Value filtered(const Stmt& s, const Ref<Frame>& outer, const Value& iterable);
  Flow run_with(const Stmt& s, const Ref<Frame>& frame);
  Flow run_assign(const Stmt& s, const Ref<Frame>& frame);
  Flow run_assign_block(const Stmt& s, const Ref<Frame>& frame);
  Flow run_filter_block(const Stmt& s, const Ref<Frame>& frame);
  void run_call_block(const Stmt& s, const Ref<Frame>& frame);
  void run_block(const Stmt& s);
  Value make_macro(const Stmt& s, const Ref<Frame>& frame);

  void assign(const Expr& target, Value value, Frame& frame);
  void unpack(const Expr& target, const Value& value, Frame& frame);
  void check_namespaces(const Expr& target, Frame& frame);
  void publish(const Expr& target, Frame& frame);

  Value eval(const Expr& e, Frame& frame);
  Value eval_sequence(const Expr& e, Frame& frame);
  Value eval_dict(const Expr& e, Frame& frame);
  Value eval_item(const Expr& e, Frame& frame);
  Value eval_binary(const Expr& e, Frame& frame);
  Value eval_compare(const Expr& e, Frame& frame);
  Value eval_concat(const Expr& e, Frame& frame);
  Value eval_cond(const Expr& e, Frame& frame);
  Value eval_call(const Expr& e, Frame& frame, const Value* caller);
  Value eval_filter(const Expr& e, Frame& frame);
  Value eval_test(const Expr& e, Frame& frame);
  Args eval_args(const Expr& e, Frame& frame);

  const Tree& tree_;
  Ref<Dict> context_;
  std::map<std::string, Value> globals_, published_;
  size_t& at_;
  std::string* out_ = nullptr;
  Value filter_input_;  // what the innermost filter of a block is applied to
};

}  // namespace cyb::jinja
