// SPDX-License-Identifier: Apache-2.0
#include "import/pytorch/unpickler.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "import/pytorch/pickle_globals.h"

namespace cyb {
namespace {

// A pickle of the largest checkpoints has a tenth of these. They bound the memory, whatever the stream says.
constexpr uint64_t kMostSteps = 8'000'000;
constexpr size_t kMostNodes = 1'500'000;
constexpr size_t kMostMarks = 10'000;
constexpr uint64_t kMostMemo = 4'000'000;

class Machine {
 public:
  explicit Machine(std::span<const uint8_t> bytes) : bytes_(bytes) {
    none_ = add({});
    for (const bool value : {false, true}) {
      PickleNode node;
      node.kind = PickleKind::boolean;
      node.integer = value;
      booleans_[value] = add(std::move(node));
    }
  }

  PickleValues run(uint64_t* length) {
    for (uint64_t step = 0;; step++) {
      if (step >= kMostSteps) throw pickle_error("more steps than any checkpoint has");
      const uint8_t code = byte();
      if (code == '.') break;
      execute(code);
    }
    values_.root = pop();
    if (length) *length = at_;
    return std::move(values_);
  }

 private:
  // --- The stream.
  uint8_t byte() {
    if (at_ >= bytes_.size()) throw ends();
    return bytes_[at_++];
  }
  static Error ends() { return pickle_error("the pickle ends in the middle"); }
  uint64_t number(int size) {
    uint64_t v = 0;
    for (int i = 0; i < size; i++) v |= uint64_t{byte()} << 8 * i;
    return v;
  }
  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) throw ends();
    const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return out;
  }
  std::string_view line() {
    const size_t from = at_;
    while (byte() != '\n') {
    }
    return {reinterpret_cast<const char*>(bytes_.data()) + from, at_ - 1 - from};
  }

  // --- Stack, marks, memo.
  uint32_t add(PickleNode node) {
    if (values_.nodes.size() >= kMostNodes) throw pickle_error("more values than any checkpoint has");
    values_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(values_.nodes.size() - 1);
  }
  void push(uint32_t node) { stack_.push_back(node); }
  void push_new(PickleNode node) { push(add(std::move(node))); }
  void push_kind(PickleKind kind) {
    PickleNode node;
    node.kind = kind;
    push_new(std::move(node));
  }
  void push_text(PickleKind kind, std::string_view text) {
    PickleNode node;
    node.kind = kind;
    node.text = text;
    push_new(std::move(node));
  }
  void push_integer(int64_t value) {
    PickleNode node;
    node.kind = PickleKind::integer;
    node.integer = value;
    push_new(std::move(node));
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t pop() {
    if (stack_.size() <= floor()) throw pickle_error("the pickle takes more than it has");
    const uint32_t out = stack_.back();
    stack_.pop_back();
    return out;
  }
  uint32_t top() const {
    if (stack_.size() <= floor()) throw pickle_error("the pickle takes more than it has");
    return stack_.back();
  }
  // What was pushed since the last mark.
  std::vector<uint32_t> pop_marked() {
    if (marks_.empty()) throw pickle_error("the pickle takes more than it has");
    const size_t from = marks_.back();
    marks_.pop_back();
    std::vector<uint32_t> out(stack_.begin() + static_cast<int64_t>(from), stack_.end());
    stack_.resize(from);
    return out;
  }
  void put(uint64_t index) {
    if (index >= kMostMemo) throw pickle_error(fmt::format("the memo number {}", index));
    if (memo_.size() <= index) memo_.resize(index + 1, kNothing);
    memo_[index] = top();
  }
  void get(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kNothing)
      throw pickle_error(fmt::format("the memo number {}, which was never set", index));
    push(memo_[index]);
  }
  uint64_t line_number() {
    const std::string_view text = line();
    uint64_t v = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (code != std::errc() || end != text.data() + text.size())
      throw pickle_error("a memo number that is none");
    return v;
  }

  // --- Values.
  void push_line_integer(std::string_view text) {
    if (text.ends_with('L')) text.remove_suffix(1);
    if (text == "00" || text == "01") return push(booleans_[text == "01"]);
    int64_t v = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (end != text.data() + text.size() || (code != std::errc() && code != std::errc::result_out_of_range))
      throw pickle_error("a number that is none");
    code == std::errc() ? push_integer(v) : push_text(PickleKind::big_integer, text);
  }
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return push_text(PickleKind::big_integer, bytes);
    uint64_t v = 0;
    std::memcpy(&v, bytes.data(), bytes.size());
    const int unused = 64 - 8 * static_cast<int>(bytes.size());
    push_integer(bytes.empty() ? 0 : static_cast<int64_t>(v << unused) >> unused);
  }
  void push_real(double value) {
    PickleNode node;
    node.kind = PickleKind::real;
    node.real = value;
    push_new(std::move(node));
  }
  void push_line_real() {
    const std::string_view text = line();
    double v = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (code != std::errc() || end != text.data() + text.size()) throw pickle_error("a number that is none");
    push_real(v);
  }
  // 'text' with quotes; what is escaped in it no checkpoint needs.
  void push_quoted() {
    const std::string_view text = line();
    if (text.size() < 2 || text.front() != text.back() || (text[0] != '\'' && text[0] != '"') ||
        text.find('\\') != std::string_view::npos)
      throw pickle_error("a text of the oldest form with escapes");
    push_text(PickleKind::text, text.substr(1, text.size() - 2));
  }

  PickleNode& container(uint32_t node, PickleKind kind) {
    PickleNode& out = values_.nodes[node];
    if (out.kind != kind) throw pickle_error(fmt::format("items for {}", describe(out)));
    return out;
  }
  void append(uint32_t to, PickleKind kind, const std::vector<uint32_t>& items) {
    std::vector<uint32_t>& all = container(to, kind).items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void set_items(uint32_t to, const std::vector<uint32_t>& items) {
    if (items.size() % 2 != 0) throw pickle_error("a key without a value");
    append(to, PickleKind::dict, items);
  }
  void push_items(PickleKind kind, std::vector<uint32_t> items) {
    PickleNode node;
    node.kind = kind;
    node.items = std::move(items);
    push_new(std::move(node));
  }
  void push_tuple(size_t count) {
    std::vector<uint32_t> items(count);
    while (count-- > 0) items[count] = pop();
    push_items(PickleKind::tuple, std::move(items));
  }
  void push_global(std::string_view module, std::string_view name) {
    push_new(pickle_global(std::string(module) + ' ' + std::string(name)));
  }
  void reduce() {
    const uint32_t args = pop(), callable = pop();
    push_new(pickle_reduce(values_, values_[callable], values_[args]));
  }

  void execute(uint8_t code) {
    switch (code) {
      case '(':
        if (marks_.size() >= kMostMarks) throw pickle_error("lists in lists, deeper than any checkpoint has");
        return marks_.push_back(stack_.size());
      case '0':
        if (stack_.size() == floor() && !marks_.empty()) return marks_.pop_back();
        return static_cast<void>(pop());
      case '1':
        return static_cast<void>(pop_marked());
      case '2':
        return push(top());
      case 0x80: {
        const uint8_t protocol = byte();
        if (protocol > 5) throw pickle_error(fmt::format("a pickle of the protocol {}", protocol));
        return;
      }
      case 0x95:
        return static_cast<void>(number(8));  // frame
      // Plain values.
      case 'N':
        return push(none_);
      case 0x88:
        return push(booleans_[1]);
      case 0x89:
        return push(booleans_[0]);
      case 'I':
        return push_line_integer(line());
      case 'L':
        return push_line_integer(line());
      case 'J':
        return push_integer(static_cast<int32_t>(number(4)));
      case 'K':
        return push_integer(static_cast<int64_t>(number(1)));
      case 'M':
        return push_integer(static_cast<int64_t>(number(2)));
      case 0x8a:
        return push_long(take(number(1)));
      case 0x8b:
        return push_long(take(number(4)));
      case 'F':
        return push_line_real();
      case 'G': {
        uint64_t bits = 0;
        for (int i = 0; i < 8; i++) bits = bits << 8 | byte();
        return push_real(std::bit_cast<double>(bits));
      }
      case 'S':
        return push_quoted();
      case 'V':
        return push_text(PickleKind::text, line());
      case 'T':
        return push_text(PickleKind::text, take(number(4)));
      case 'U':
        return push_text(PickleKind::text, take(number(1)));
      case 0x8c:
        return push_text(PickleKind::text, take(number(1)));
      case 'X':
        return push_text(PickleKind::text, take(number(4)));
      case 0x8d:
        return push_text(PickleKind::text, take(number(8)));
      case 'C':
        return push_text(PickleKind::bytes, take(number(1)));
      case 'B':
        return push_text(PickleKind::bytes, take(number(4)));
      case 0x8e:
        return push_text(PickleKind::bytes, take(number(8)));
      case 0x96:
        return push_text(PickleKind::bytes, take(number(8)));
      // Containers.
      case ')':
        return push_kind(PickleKind::tuple);
      case 't':
        return push_items(PickleKind::tuple, pop_marked());
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case ']':
        return push_kind(PickleKind::list);
      case 'l':
        return push_items(PickleKind::list, pop_marked());
      case 'a': {
        const uint32_t item = pop();
        return append(top(), PickleKind::list, {item});
      }
      case 'e': {
        const std::vector<uint32_t> items = pop_marked();
        return append(top(), PickleKind::list, items);
      }
      case '}':
        return push_kind(PickleKind::dict);
      case 'd': {
        std::vector<uint32_t> items = pop_marked();
        push_kind(PickleKind::dict);
        return set_items(top(), items);
      }
      case 's': {
        const uint32_t value = pop(), key = pop();
        return set_items(top(), {key, value});
      }
      case 'u': {
        const std::vector<uint32_t> items = pop_marked();
        return set_items(top(), items);
      }
      case 0x8f:
        return push_kind(PickleKind::set);
      case 0x91:
        return push_items(PickleKind::set, pop_marked());
      case 0x90: {
        const std::vector<uint32_t> items = pop_marked();
        return append(top(), PickleKind::set, items);
      }
      // The memo.
      case 'p':
        return put(line_number());
      case 'q':
        return put(number(1));
      case 'r':
        return put(number(4));
      case 0x94:
        return put(memo_.size());
      case 'g':
        return get(line_number());
      case 'h':
        return get(number(1));
      case 'j':
        return get(number(4));
      // Names, and what they build.
      case 'c': {
        const std::string_view module = line(), name = line();
        return push_global(module, name);
      }
      case 0x93: {
        const PickleNode &name = values_[pop()], &module = values_[pop()];
        if (name.kind != PickleKind::text || module.kind != PickleKind::text)
          throw pickle_error(fmt::format("{} as a name", describe(name)));
        return push_global(module.text, name.text);
      }
      case 'R':
        return reduce();
      case 0x81:
        return reduce();  // cls.__new__(cls, *args)
      case 0x92: {
        const PickleNode& keywords = values_[pop()];
        if (!keywords.items.empty()) throw pickle_error("an object made with keywords");
        return reduce();
      }
      case 'b': {
        const uint32_t state = pop();
        return pickle_build(values_, values_.nodes[top()], values_[state]);
      }
      case 'Q': {
        const uint32_t id = pop();
        return push_new(pickle_persistent(values_, values_[id]));
      }
      case 'i': {
        const std::string_view module = line(), name = line();
        push_global(module, name);
        throw pickle_error(fmt::format("an object of the class '{}.{}'", module, name));
      }
      case 'o':
        throw pickle_error("an object of the oldest form");
      case 'P':
        throw pickle_error("a storage of the oldest form");
      case 0x82:
      case 0x83:
      case 0x84:
        throw pickle_error("a name by number (copyreg's extensions)");
      case 0x97:
      case 0x98:
        throw pickle_error("a buffer that is not in the file");
      default:
        throw pickle_error(fmt::format("the unknown operation 0x{:02x}", code));
    }
  }

  static constexpr uint32_t kNothing = UINT32_MAX;
  std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
  PickleValues values_;
  uint32_t none_ = 0, booleans_[2] = {};
  std::vector<uint32_t> stack_, memo_;
  std::vector<size_t> marks_;
};

}  // namespace

PickleValues unpickle(std::span<const uint8_t> bytes, uint64_t* length) { return Machine(bytes).run(length); }

const PickleNode* PickleValues::find(const PickleNode& dict, std::string_view key) const {
  if (dict.kind != PickleKind::dict) return nullptr;
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {
    const PickleNode& k = nodes[dict.items[i - 2]];
    if (k.kind == PickleKind::text && k.text == key) return &nodes[dict.items[i - 1]];
  }
  return nullptr;
}

std::string describe(const PickleNode& node) {
  switch (node.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return node.integer ? "True" : "False";
    case PickleKind::integer:
      return fmt::format("the number {}", node.integer);
    case PickleKind::big_integer:
      return "a huge number";
    case PickleKind::real:
      return fmt::format("the number {}", node.real);
    case PickleKind::text:
      return fmt::format("the text '{}'", node.text.substr(0, 60));
    case PickleKind::bytes:
      return fmt::format("{} bytes", node.text.size());
    case PickleKind::tuple:
      return fmt::format("a tuple of {}", node.items.size());
    case PickleKind::list:
      return fmt::format("a list of {}", node.items.size());
    case PickleKind::set:
      return "a set";
    case PickleKind::dict:
      return fmt::format("a dictionary of {}", node.items.size() / 2);
    case PickleKind::global: {
      std::string name(node.text);
      if (const size_t space = name.rfind(' '); space != std::string::npos) name[space] = '.';
      return "'" + name + "'";
    }
    case PickleKind::type:
      return "an element type";
    case PickleKind::storage:
      return "a storage";
    case PickleKind::tensor:
      return "a tensor";
    case PickleKind::array:
      return "a numpy array";
    case PickleKind::opaque:
      return "an object";
  }
  return "a value";
}

}  // namespace cyb
