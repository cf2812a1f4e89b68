// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/fold_lines.h"
#include "ir/infer.h"
#include "ir/text.h"

namespace cyb::ir {
namespace {

bool plain_name(std::string_view s) {
  if (s.empty() || !(std::isalpha(static_cast<unsigned char>(s[0])) || s[0] == '_')) return false;
  for (char c : s)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.')) return false;
  return true;
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (u < 32 || u == 127)
      out += fmt::format("\\x{:02x}", u);
    else
      out += c;
  }
  return out + "\"";
}

// `_` alone is the absent operand, and words of the grammar must not look like values.
std::string name_of(std::string_view s) {
  static constexpr std::string_view kWords[] = {"_", "graph", "state", "weight", "for", "else"};
  for (std::string_view w : kWords)
    if (s == w) return "%" + quote(s);
  return plain_name(s) ? std::string(s) : "%" + quote(s);
}

std::string real(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return fmt::format("{}", v);
}

std::string element(const Tensor& t, size_t i) {
  switch (t.type()) {
    case DType::boolean:
      return t.integer(i) ? "true" : "false";
    case DType::string:
      return quote(t.strings()[i]);
    case DType::f32:
    case DType::f16:
    case DType::bf16: {
      const auto v = static_cast<float>(t.real(i));
      return std::isfinite(v) ? fmt::format("{}", v) : real(v);
    }
    case DType::f64:
      return real(t.real(i));
    case DType::u64:
      return std::to_string(t.at<uint64_t>(i));
    default:
      return std::to_string(t.integer(i));
  }
}

class AttrPrinter final : public FieldVisitor {
 public:
  void field(const char* name, bool& v) override { add(name, v ? "" : "=false"); }
  void field(const char* name, int64_t& v) override { add(name, "=" + std::to_string(v)); }
  void field(const char* name, double& v) override { add(name, "=" + real(v)); }
  void field(const char* name, std::string& v) override { add(name, "=" + quote(v)); }
  void field(const char* name, DType& v) override { add(name, std::string("=") + to_string(v)); }
  void field(const char* name, std::vector<int64_t>& v) override {
    std::string s = "=[";
    for (size_t i = 0; i < v.size(); i++) s += (i ? ", " : "") + std::to_string(v[i]);
    add(name, s + "]");
  }
  void field(const char* name, std::vector<double>& v) override {
    std::string s = "=[";
    for (size_t i = 0; i < v.size(); i++) s += (i ? ", " : "") + real(v[i]);
    add(name, s + "]");
  }
  void choice(const char* name, int& index, std::span<const char* const> names) override {
    add(name, std::string("=") + names[static_cast<size_t>(index)]);
  }

  std::vector<std::pair<std::string, std::string>> fields;

 private:
  void add(const char* name, const std::string& value) { fields.emplace_back(name, value); }
};

std::string attributes(const Node& node) {
  auto defaults = info(node.op).make_attrs();
  auto copy = node.attrs->clone();
  AttrPrinter have, base;
  copy->visit(have);
  defaults->visit(base);
  std::string out;
  for (size_t i = 0; i < have.fields.size(); i++)
    if (have.fields[i] != base.fields[i]) out += " " + have.fields[i].first + have.fields[i].second;
  return out;
}

class Printer {
 public:
  Printer(const Program& p, const PrintOptions& o) : program(p), options(o) {}

  std::string run() {
    line("ir 1");
    for (const State& s : program.states) state(s);
    if (options.weight_types) {
      std::map<std::string, Type> types;
      std::vector<std::string> order;
      for (const Graph& g : program.graphs) weights(g, types, order);
      for (const std::string& name : order)
        line("weight " + weight_name(name) + ": " + to_string(types[name], program.symbols));
    }
    for (const Graph& g : program.graphs) {
      line("graph " + name_of(g.name) + signature(g));
      body(g, 0);
    }
    if (options.fold_loops) lines = fold_lines(lines);
    std::string out;
    for (const std::string& l : lines) out += l + "\n";
    return out;
  }

  static std::string weight_name(const std::string& name) {
    return "@" + (plain_name(name) ? name : quote(name));
  }

  std::string node_text(const Graph& g, const Node& n) {
    std::string out;
    for (size_t i = 0; i < n.results.size(); i++)
      out += (i ? ", " : "") + name_of(g.value(n.results[i]).name);
    if (!n.results.empty()) out += " = ";
    out += std::string(info(n.op).text_name) + "(";
    bool first = true;
    auto add = [&](const std::string& s) {
      out += (first ? "" : ", ") + s;
      first = false;
    };
    for (ValueId id : n.operands) {
      if (id == kNone)
        add("_");
      else if (g.value(id).kind == Value::Kind::weight)
        add(weight_name(g.value(id).name));
      else
        add(name_of(g.value(id).name));
    }
    for (int s : n.states) add(name_of(program.states[static_cast<size_t>(s)].name));
    out += ")" + attributes(n);
    if (!n.backend.empty()) out += " backend=" + quote(n.backend);
    // Types are written where inference cannot tell them: data symbols.
    bool data = false;
    for (ValueId id : n.results)
      for (Dim d : g.value(id).type.dims)
        data = data || (d.is_symbol() && program.symbols[static_cast<size_t>(d.symbol_index())].data);
    if (data && binds(g, n)) {
      out += " :";
      for (size_t i = 0; i < n.results.size(); i++)
        out += (i ? ", " : " ") + to_string(g.value(n.results[i]).type, program.symbols);
    }
    return out;
  }

 private:
  // Whether the results' symbols are this node's own, not passed on from operands.
  bool binds(const Graph& g, const Node& n) {
    const std::vector<Type> types = infer_types(program, g, n);
    for (size_t i = 0; i < types.size(); i++)
      if (!(types[i] == g.value(n.results[i]).type)) return true;
    return false;
  }

  void line(std::string text) { lines.push_back(std::move(text)); }

  void state(const State& s) {
    if (s.kind == State::Kind::kv) {
      std::string text = fmt::format("state {}: kv(heads={}, k_dim={}, v_dim={}", name_of(s.name), s.heads,
                                     s.k_dim, s.v_dim);
      if (s.window) text += fmt::format(", window={}", s.window);
      line(text + ")");
    } else {
      line(fmt::format("state {}: tensor({})", name_of(s.name), to_string(s.type, program.symbols)));
    }
  }

  void weights(const Graph& g, std::map<std::string, Type>& types, std::vector<std::string>& order) {
    for (const Value& v : g.values)
      if (v.kind == Value::Kind::weight && types.try_emplace(v.name, v.type).second) order.push_back(v.name);
    for (const Node& n : g.nodes)
      for (const auto& region : n.regions) weights(*region, types, order);
  }

  std::string signature(const Graph& g) {
    std::string out = "(";
    for (size_t i = 0; i < g.inputs.size(); i++) {
      const Value& v = g.value(g.inputs[i]);
      out += (i ? ", " : "") + name_of(v.name) + ": " + to_string(v.type, program.symbols);
    }
    out += ") -> (";
    for (size_t i = 0; i < g.outputs.size(); i++) {
      const Value& v = g.value(g.outputs[i]);
      const std::string value = v.kind == Value::Kind::weight ? weight_name(v.name) : name_of(v.name);
      const std::string output = name_of(g.output_names[i]);
      out += (i ? ", " : "") + output + (output == value ? "" : " = " + value) + ": " +
             to_string(v.type, program.symbols);
    }
    return out + ")";
  }

  void constant(const Value& v, const std::string& indent) {
    const Tensor& t = *v.constant;
    std::string text = indent + name_of(v.name) + " = const " + to_string(v.type, program.symbols) + " ";
    const auto n = static_cast<size_t>(t.elements());
    if (t.shape().rank() == 0) {
      text += element(t, 0);
    } else {
      text += "[";
      for (size_t i = 0; i < n; i++) text += (i ? ", " : "") + element(t, i);
      text += "]";
    }
    line(text);
  }

  void body(const Graph& g, int depth) {
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    for (const Value& v : g.values)
      if (v.kind == Value::Kind::constant) constant(v, indent);
    for (const Node& n : g.nodes) {
      std::string text = indent + node_text(g, n);
      for (size_t i = 0; i < n.regions.size(); i++) {
        line(text + " {");
        line(indent + "  " + signature(*n.regions[i]));
        body(*n.regions[i], depth + 1);
        text = indent + (i + 1 < n.regions.size() ? "} else" : "}");
      }
      line(text);
    }
  }

  const Program& program;
  const PrintOptions& options;
  std::vector<std::string> lines;
};

}  // namespace

std::string print(const Program& program, const PrintOptions& options) {
  return Printer(program, options).run();
}

std::string print_attributes(const Node& node) {
  const std::string text = attributes(node);
  return text.empty() ? text : text.substr(1);
}

std::string print_node(const Program& program, const Graph& graph, const Node& node) {
  const PrintOptions options;
  return Printer(program, options).node_text(graph, node);
}

}  // namespace cyb::ir
