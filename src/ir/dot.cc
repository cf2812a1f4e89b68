// SPDX-License-Identifier: Apache-2.0
#include "ir/dot.h"

#include <map>

#include "ir/text.h"

namespace cyb::ir {
namespace {

constexpr size_t kLine = 36;         // characters of a line in a box
constexpr size_t kAttributes = 200;  // of all attributes; the rest is in the program's text
constexpr size_t kManyNodes = 300;   // above, edges are drawn straight, which takes much less time

std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t cut = most;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) cut--;  // whole characters
  return text.substr(0, cut) + "…";
}

// Names are anybody's bytes: quotes, backslashes and control characters must not end the string.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 32)
      out += '?';
    else
      out += c;
  }
  return out + "\"";
}

// Words into lines.
std::string wrapped(const std::string& text) {
  std::string out, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > kLine) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out + line;
}

// "x", "weight", "bias" of a row's "x, weight, bias?".
std::vector<std::string> operand_names(const OpInfo& row) {
  std::vector<std::string> out;
  std::string name;
  for (const char* c = row.operand_names;; c++) {
    if (*c == ',' || !*c) {
      out.push_back(name);
      name.clear();
      if (!*c) break;
    } else if (*c != ' ' && *c != '?' && *c != '.' && static_cast<unsigned char>(*c) < 128) {
      name += *c;
    }
  }
  return out;
}

const char* fill(const OpInfo& row) {
  const std::string group = row.group;
  if (row.effect == Effect::control) return "lightyellow";
  if (group == "matmul" || group == "conv" || group == "attention") return "lightblue";
  if (group == "norm" || group == "pool") return "honeydew";
  return "white";
}

class Drawer {
 public:
  explicit Drawer(const Program& program) : program_(program) {}

  std::string run(const Graph& graph) {
    out_ = "digraph " + quoted(graph.name) + " {\n";
    out_ += "  graph [rankdir=TB, ranksep=0.3, nodesep=0.2, fontname=Helvetica";
    many_ = count(graph) > kManyNodes;
    if (many_) out_ += ", splines=line, nslimit=1, nslimit1=1, mclimit=0.3, maxiter=20";
    out_ +=
        "];\n  node [shape=box, style=filled, fillcolor=white, fontname=Helvetica, fontsize=10, "
        "height=0.2];\n";
    out_ += "  edge [fontname=Helvetica, fontsize=8, arrowsize=0.6];\n";
    draw(graph, "g", "  ", nullptr);
    return out_ + edges_ + "}\n";
  }

 private:
  // Who makes a value: a box of this graph or of one around it.
  struct Scope {
    const Graph& graph;
    std::string prefix;
    const Scope* outer;
  };

  static size_t count(const Graph& graph) {
    size_t n = graph.nodes.size();
    for (const Node& node : graph.nodes)
      for (const auto& region : node.regions) n += count(*region);
    return n;
  }

  void line(const std::string& indent, const std::string& text) { out_ += indent + text + ";\n"; }

  void draw(const Graph& graph, const std::string& prefix, const std::string& indent, const Scope* outer) {
    const Scope scope{graph, prefix, outer};
    for (ValueId id : graph.inputs)
      line(indent, fmt::format("{} [shape=ellipse, fillcolor=lightgrey, label={}]", box_of_value(prefix, id),
                               quoted(shortened(graph.value(id).name, kLine) + "\n" +
                                      to_string(graph.value(id).type, program_.symbols))));
    for (size_t i = 0; i < graph.nodes.size(); i++) node(scope, i, indent);
    for (size_t i = 0; i < graph.outputs.size(); i++) {
      const std::string box = fmt::format("{}_out{}", prefix, i);
      const Value& v = maker(scope, graph.outputs[i]).value();
      std::string label = shortened(graph.output_names[i], kLine);
      if (v.kind == Value::Kind::constant || v.kind == Value::Kind::weight) label += "\n" + inline_text(v);
      line(indent, fmt::format("{} [shape=ellipse, fillcolor=lightgrey, label={}]", box, quoted(label)));
      edge(scope, graph.outputs[i], box);
    }
  }

  static std::string box_of_value(const std::string& prefix, ValueId id) {
    return fmt::format("{}_v{}", prefix, id);
  }
  static std::string box_of_node(const std::string& prefix, int node) {
    return fmt::format("{}_n{}", prefix, node);
  }

  // What stands in the box of its reader: a weight's type, a constant's value or type.
  std::string inline_text(const Value& v) const {
    const std::string type = to_string(v.type, program_.symbols);
    if (v.kind == Value::Kind::weight) return type;
    const Tensor& t = *v.constant;
    if (t.elements() > 4 || t.elements() == 0) return "const " + type;
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(t.elements()); i++) {
      if (i) text += ", ";
      if (t.type() == DType::string)
        text += shortened(t.strings()[i], kLine);
      else if (is_float(t.type()))
        text += fmt::format("{:.6g}", t.real(i));
      else
        text += std::to_string(t.integer(i));
    }
    return t.shape().rank() == 0 ? text : "[" + text + "]";
  }

  void node(const Scope& scope, size_t index, const std::string& indent) {
    const Node& n = scope.graph.nodes[index];
    const OpInfo& row = info(n.op);
    const std::string box = box_of_node(scope.prefix, static_cast<int>(index));
    std::string label = row.text_name;
    const std::string attributes = print_attributes(n);
    if (!attributes.empty()) label += "\n" + wrapped(shortened(attributes, kAttributes));
    const std::vector<std::string> names = operand_names(row);
    for (size_t i = 0; i < n.operands.size(); i++) {
      if (n.operands[i] == kNone) continue;
      const Value& v = maker(scope, n.operands[i]).value();
      if (v.kind != Value::Kind::weight && v.kind != Value::Kind::constant) continue;
      const std::string name = i < names.size() ? names[i] : names.back();
      label += "\n" + name + " " + inline_text(v);
    }
    for (int s : n.states)
      label += "\nstate " + shortened(program_.states[static_cast<size_t>(s)].name, kLine);
    if (many_ && !n.results.empty()) {
      label += "\n→";
      for (ValueId id : n.results) label += " " + to_string(scope.graph.value(id).type, program_.symbols);
    }
    const std::string tooltip = n.results.empty() ? "" : scope.graph.value(n.results[0]).name;
    line(indent, fmt::format("{} [label={}, fillcolor={}, tooltip={}]", box, quoted(label), fill(row),
                             quoted(shortened(tooltip, 200))));
    for (ValueId id : n.operands)
      if (id != kNone) edge(scope, id, box);
    for (size_t r = 0; r < n.regions.size(); r++) {
      const std::string prefix = fmt::format("{}r{}", box, r);
      out_ += indent + "subgraph cluster_" + prefix + " {\n";
      const char* what = n.op == Op::If ? (r == 0 ? "then" : "else") : row.text_name;
      line(indent + "  ", fmt::format("label={}; style=dashed; fontsize=9", quoted(what)));
      draw(*n.regions[r], prefix, indent + "  ", &scope);
      out_ += indent + "}\n";
      // The frame hangs below the node that runs it.
      const Graph& region = *n.regions[r];
      if (!region.nodes.empty())
        edges_ += fmt::format("  {} -> {} [style=dashed, arrowhead=none];\n", box, box_of_node(prefix, 0));
    }
  }

  // The value that `id` stands for, in the graph that makes it.
  struct Maker {
    const Scope* scope;
    ValueId id;
    const Value& value() const { return scope->graph.value(id); }
  };
  static Maker maker(const Scope& scope, ValueId id) {
    Maker m{&scope, id};
    while (m.value().kind == Value::Kind::outer && m.scope->outer) m = {m.scope->outer, m.value().outer};
    return m;
  }

  // Edges stand behind all frames: one inside a frame would draw its ends into it.
  void edge(const Scope& scope, ValueId id, const std::string& to) {
    const Maker from = maker(scope, id);
    const Value& v = from.value();
    if (v.kind != Value::Kind::input && v.kind != Value::Kind::result) return;
    const std::string& prefix = from.scope->prefix;
    edges_ += fmt::format(
        "  {} -> {} [{}={}];\n",
        v.kind == Value::Kind::input ? box_of_value(prefix, from.id) : box_of_node(prefix, v.node), to,
        many_ ? "tooltip" : "label",
        quoted(shortened(to_string(scope.graph.value(id).type, program_.symbols), 2 * kLine)));
  }

  const Program& program_;
  bool many_ = false;
  std::string out_, edges_;
};

}  // namespace

std::string print_dot(const Program& program, const Graph& graph) { return Drawer(program).run(graph); }

}  // namespace cyb::ir
