// SPDX-License-Identifier: Apache-2.0
#include "cli/graph_inputs.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/philox.h"
#include "base/system_memory.h"
#include "cli/graph_literal.h"
#include "cli/graph_model.h"
#include "format/npy.h"
#include "format/npz.h"

namespace cyb {
namespace {

using ir::Dim;
using ir::Value;

constexpr double kDefaultIntegers = 8;  // random integers are below: valid as ids and as small counts

std::string shell_word(const std::string& text) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=:,+@%";
  if (text.find_first_not_of(plain) == std::string::npos && !text.empty()) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// "random:1x3x4:0..1" taken apart.
struct Filler {
  enum class Kind { random, zeros, ones } kind = Kind::random;
  std::optional<Shape> shape;
  std::optional<std::pair<double, double>> range;
};

std::optional<Shape> parse_shape(const std::string& text) {
  Shape shape;
  if (text == "[]") return shape;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find_first_of("x,", at), text.size());
    if (end == at || end - at > 15 || shape.rank() == kMaxRank) return std::nullopt;
    int64_t n = 0;
    for (size_t i = at; i < end; i++) {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      n = n * 10 + (text[i] - '0');
    }
    shape.push_back(n);
    at = end + 1;
    if (at == text.size() && end < text.size()) return std::nullopt;  // ends with an x
  }
  if (shape.rank() == 0) return std::nullopt;
  return shape;
}

std::optional<double> parse_real(const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !std::isfinite(v)) return std::nullopt;
  return v;
}

std::optional<std::pair<double, double>> parse_range(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const auto low = parse_real(text.substr(0, dots)), high = parse_real(text.substr(dots + 2));
  if (!low || !high || *low > *high) return std::nullopt;
  return std::make_pair(*low, *high);
}

// Nothing where the text names no filler.
std::optional<Filler> parse_filler(const std::string& text, const std::string& option) {
  Filler out;
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string word = text.substr(0, colon);
  if (word == "random")
    out.kind = Filler::Kind::random;
  else if (word == "zeros")
    out.kind = Filler::Kind::zeros;
  else if (word == "ones")
    out.kind = Filler::Kind::ones;
  else
    return std::nullopt;
  for (size_t at = colon; at < text.size();) {
    const size_t end = std::min(text.find(':', at + 1), text.size());
    const std::string part = text.substr(at + 1, end - at - 1);
    if (!out.range && out.kind == Filler::Kind::random && (out.range = parse_range(part))) {
    } else if (out.shape || !(out.shape = parse_shape(part))) {
      throw error(ErrorKind::Usage, "--input {}: found '{}'", option, part)
          .advise("write random, random:1x3x320x320 or random:1x3x320x320:0..255");
    }
    at = end;
  }
  return out;
}

// Integers and bools without loss, floats rounded; what does not fit is refused.
Tensor converted(const Tensor& t, DType to, const std::string& name) {
  if (t.type() == to) return t;
  Tensor out(to, t.shape());
  const auto n = static_cast<size_t>(t.elements());
  const auto refuse = [&](const std::string& why) {
    return error(ErrorKind::Usage, "input '{}' is {}, {} was given{}", name, to_string(to),
                 to_string(t.type()), why);
  };
  if (is_float(to) && is_float(t.type())) {
    for (size_t i = 0; i < n; i++) out.set_real(i, t.real(i));
  } else if (is_integer(to) && is_integer(t.type())) {
    for (size_t i = 0; i < n; i++) {
      const int64_t v = t.integer(i);
      if (!put_integer(&out, i, v) || (v < 0 && (t.type() == DType::u64 || to == DType::u64)))
        throw refuse(fmt::format(", and its value {} does not fit", v));
    }
  } else {
    throw refuse("");
  }
  fmt::print(stderr, "input '{}': {} converted to {}\n", name, to_string(t.type()), to_string(to));
  return out;
}

class Maker {
 public:
  Maker(const ir::Program& program, const ir::Graph& graph, const GraphInputFlags& flags,
        const GraphInputRules& rules)
      : program_(program), graph_(graph), flags_(flags), rules_(rules) {
    texts_.resize(graph.inputs.size());
    tensors_.resize(graph.inputs.size());
    bound_.assign(program.symbols.size(), -1);
  }

  std::vector<Tensor> run() {
    read_dims();
    read_inputs();
    // Arrays that are given bind symbols, for those that are made.
    std::vector<std::optional<Filler>> fillers(texts_.size());
    for (size_t i = 0; i < texts_.size(); i++) {
      if (tensors_[i]) continue;
      if (!texts_[i] && !rules_.random_default) continue;
      const std::string text = texts_[i].value_or("random");
      fillers[i] = parse_filler(text, name(i) + "=" + text);
      if (!fillers[i])
        tensors_[i] = converted(read(i, text), type(i).dtype, name(i));
      else if (fillers[i]->shape)
        bind(i, *fillers[i]->shape);
    }
    for (size_t i = 0; i < tensors_.size(); i++)
      if (tensors_[i]) {
        fit(i);
        bind(i, tensors_[i]->shape());
      }
    std::string missing;
    for (size_t i = 0; i < tensors_.size(); i++)
      if (!tensors_[i] && !fillers[i]) missing += (missing.empty() ? "'" : ", '") + name(i) + "'";
    if (!missing.empty()) throw wrong(fmt::format("graph '{}' wants {}", graph_.name, missing));
    std::vector<Tensor> out;
    for (size_t i = 0; i < tensors_.size(); i++)
      out.push_back(tensors_[i] ? std::move(*tensors_[i]) : fill(i, *fillers[i]));
    return out;
  }

 private:
  const ir::Value& value(size_t i) const { return graph_.value(graph_.inputs[i]); }
  const ir::Type& type(size_t i) const { return value(i).type; }
  const std::string& name(size_t i) const { return value(i).name; }

  Error wrong(const std::string& what) const {
    std::string text = what;
    text += graph_.inputs.empty() ? "\nit has no inputs"
                                  : "\nits inputs are\n" + describe_inputs(program_, graph_);
    while (text.back() == '\n') text.pop_back();
    return error(ErrorKind::Usage, "{}", text)
        .advise("{}", example_command(program_, graph_, rules_.command));
  }

  void read_dims() {
    for (const std::string& item : flags_.dims) {
      const size_t equal = item.rfind('=');
      const auto n = equal == std::string::npos ? std::nullopt : parse_shape(item.substr(equal + 1));
      if (!n || n->rank() != 1)
        throw error(ErrorKind::Usage, "--dim '{}'", item).advise("write --dim NAME=NUMBER");
      const std::string symbol = item.substr(0, equal);
      bool found = false;
      std::string known;
      for (size_t s = 0; s < program_.symbols.size(); s++) {
        if (program_.symbols[s].data || !used(static_cast<int>(s))) continue;
        known += (known.empty() ? "" : ", ") + program_.symbols[s].name;
        if (program_.symbols[s].name != symbol) continue;
        bound_[s] = (*n)[0];
        found = true;
      }
      if (!found)
        throw error(ErrorKind::Usage, "graph '{}' has no dimension '{}'", graph_.name, symbol)
            .advise("{}",
                    known.empty() ? "all its dimensions are numbers: leave --dim out" : "it has " + known);
    }
  }

  bool used(int symbol) const {
    for (size_t i = 0; i < graph_.inputs.size(); i++)
      for (Dim d : type(i).dims)
        if (d.is_symbol() && d.symbol_index() == symbol) return true;
    return false;
  }

  void read_inputs() {
    for (const std::string& item : flags_.inputs) {
      // Names may hold '=' too: the longest that fits is meant.
      size_t best = graph_.inputs.size();
      for (size_t i = 0; i < graph_.inputs.size(); i++)
        if (item.size() > name(i).size() + 1 && item.starts_with(name(i) + "=") &&
            (best == graph_.inputs.size() || name(i).size() > name(best).size()))
          best = i;
      if (best < graph_.inputs.size()) {
        if (texts_[best] || tensors_[best])
          throw wrong(fmt::format("--input: '{}' is given twice", name(best)));
        texts_[best] = item.substr(name(best).size() + 1);
      } else if (item.ends_with(".npz") && item.find('=') == std::string::npos) {
        read_archive(item);
      } else if (item.find('=') == std::string::npos) {
        throw wrong(fmt::format("--input '{}': expected NAME=file.npy, or an .npz file", item));
      } else {
        throw wrong(fmt::format("graph '{}' has no input '{}'", graph_.name, item.substr(0, item.find('='))));
      }
    }
  }

  const std::map<std::string, Tensor>& archive(const std::string& path) {
    auto it = archives_.find(path);
    if (it == archives_.end()) it = archives_.emplace(path, read_npz(path)).first;
    return it->second;
  }

  void read_archive(const std::string& path) {
    size_t taken = 0;
    const auto& arrays = archive(path);
    for (size_t i = 0; i < graph_.inputs.size(); i++) {
      const auto it = arrays.find(name(i));
      if (it == arrays.end()) continue;
      if (texts_[i] || tensors_[i]) throw wrong(fmt::format("--input: '{}' is given twice", name(i)));
      tensors_[i] = converted(it->second, type(i).dtype, name(i));
      taken++;
    }
    if (taken == arrays.size()) return;
    for (const auto& [array, tensor] : arrays) {
      bool known = false;
      for (size_t i = 0; i < graph_.inputs.size(); i++) known = known || name(i) == array;
      if (!known) throw wrong(fmt::format("{}: graph '{}' has no input '{}'", path, graph_.name, array));
    }
  }

  Tensor read(size_t i, const std::string& text) {
    if (auto literal = parse_literal(text, type(i).dtype)) return *literal;
    if (text.ends_with(".npz")) {
      const auto& arrays = archive(text);
      const auto it = arrays.find(name(i));
      if (it != arrays.end()) return it->second;
      throw error(ErrorKind::Usage, "{} holds no array '{}'", text, name(i));
    }
    return read_npy(text);
  }

  // A literal or an array of one element may stand for a shape of one element.
  void fit(size_t i) {
    const ir::Type& t = type(i);
    if (!t.known_rank || t.rank() == tensors_[i]->shape().rank() || tensors_[i]->elements() != 1) return;
    Shape shape;
    for (Dim d : t.dims) {
      if (d.is_number() && d.number() != 1) return;
      shape.push_back(1);
    }
    if (texts_[i] && parse_literal(*texts_[i], t.dtype)) tensors_[i] = tensors_[i]->reshaped(shape);
  }

  // The shape against the input's type, and the numbers of its symbols.
  void bind(size_t i, const Shape& shape) {
    const ir::Type& t = type(i);
    const auto mismatch = [&] {
      return wrong(fmt::format("input '{}' is {}, {}{} was given", name(i),
                               ir::to_string(t, program_.symbols), to_string(t.dtype), to_string(shape)));
    };
    if (!t.known_rank) return;
    if (t.rank() != shape.rank()) throw mismatch();
    for (int a = 0; a < shape.rank(); a++) {
      const Dim d = t.dims[static_cast<size_t>(a)];
      if (d.is_number() && d.number() != shape[a]) throw mismatch();
      if (!d.is_symbol()) continue;
      int64_t& bound = bound_[static_cast<size_t>(d.symbol_index())];
      if (bound >= 0 && bound != shape[a])
        throw wrong(fmt::format("input '{}': '{}' is {} here and {} elsewhere", name(i),
                                program_.symbols[static_cast<size_t>(d.symbol_index())].name, shape[a],
                                bound));
      bound = shape[a];
    }
  }

  Shape shape_for(size_t i, const Filler& filler) const {
    if (filler.shape) return *filler.shape;
    const ir::Type& t = type(i);
    if (!t.known_rank)
      throw wrong(fmt::format("input '{}' may have any shape: name one, {}=random:1x3", name(i), name(i)));
    Shape shape;
    for (Dim d : t.dims) {
      if (d.is_number()) {
        shape.push_back(d.number());
        continue;
      }
      const int64_t n = d.is_symbol() ? bound_[static_cast<size_t>(d.symbol_index())] : -1;
      if (n < 0)
        throw wrong(fmt::format(
            "input '{}': {}", name(i),
            d.is_symbol() ? fmt::format("'{}' has no number yet (--dim {}=NUMBER, or a shape)",
                                        program_.symbols[static_cast<size_t>(d.symbol_index())].name,
                                        program_.symbols[static_cast<size_t>(d.symbol_index())].name)
                          : "a dimension has no name, so the shape is needed"));
      shape.push_back(n);
    }
    return shape;
  }

  Tensor fill(size_t i, const Filler& filler) const {
    const Shape shape = shape_for(i, filler);
    const DType dtype = type(i).dtype;
    uint64_t n = 1;
    for (int64_t d : shape)
      if (__builtin_mul_overflow(n, static_cast<uint64_t>(d), &n)) n = UINT64_MAX;
    if (const uint64_t memory = usable_memory(); memory && n > memory / size_of(dtype))
      throw error(ErrorKind::OutOfMemory, "input '{}' of shape {} does not fit {} MB of memory", name(i),
                  to_string(shape), memory >> 20);
    Tensor t(dtype, shape);
    if (dtype == DType::string || filler.kind == Filler::Kind::zeros) return t;
    if (filler.kind == Filler::Kind::ones) {
      for (size_t k = 0; k < n; k++) t.set_real(k, 1);
      return t;
    }
    const uint64_t key = philox(flags_.seed, i)[0] | uint64_t{philox(flags_.seed, i)[1]} << 32;
    const double high = dtype == DType::boolean ? 2 : is_integer(dtype) ? kDefaultIntegers : 1;
    const auto range = filler.range.value_or(std::make_pair(0.0, high));
    for (size_t k = 0; k < n; k++) {
      const double v = range.first + (range.second - range.first) * philox_uniform(key, k);
      if (is_float(dtype))
        t.set_real(k, v);
      else
        put_integer(&t, k, static_cast<int64_t>(std::floor(v)));
    }
    return t;
  }

  const ir::Program& program_;
  const ir::Graph& graph_;
  const GraphInputFlags& flags_;
  const GraphInputRules& rules_;
  std::vector<std::optional<std::string>> texts_;
  std::vector<std::optional<Tensor>> tensors_;
  std::vector<int64_t> bound_;  // by symbol, −1: not known
  std::map<std::string, std::map<std::string, Tensor>> archives_;
};

}  // namespace

void add_graph_input_flags(CLI::App& command, GraphInputFlags& flags) {
  command
      .add_option(
          "--input", flags.inputs,
          "For programs on arrays: NAME=file.npy, NAME=random[:SHAPE][:LOW..HIGH], NAME=zeros, NAME=ones, "
          "NAME=[1,2,3], or one file.npz for all")
      ->allow_extra_args(false);
  command.add_option("--dim", flags.dims, "NAME=NUMBER: a dimension that the program leaves open")
      ->allow_extra_args(false);
  command.add_option("--graph", flags.graph, "The program's graph to run (main)");
  command.add_flag("--no-fusion", flags.no_fusion, "Run the program's operators one by one, as written");
}

std::vector<Tensor> make_graph_inputs(const ir::Program& program, const ir::Graph& graph,
                                      const GraphInputFlags& flags, const GraphInputRules& rules) {
  return Maker(program, graph, flags, rules).run();
}

std::string example_command(const ir::Program& program, const ir::Graph& graph, const std::string& command) {
  std::string out = command;
  for (ir::ValueId id : graph.inputs) {
    const ir::Value& v = graph.value(id);
    std::string text = v.name + "=";
    if (v.type.dtype == DType::string || !v.type.known_rank) {
      text += v.name + ".npy";
    } else {
      text += v.type.is_concrete() ? "random" : "random:";
      if (!v.type.is_concrete())
        for (size_t a = 0; a < v.type.dims.size(); a++)
          text += fmt::format("{}{}", a ? "x" : "",
                              v.type.dims[a].is_number() ? v.type.dims[a].number()
                              : a == 0                   ? 1
                                                         : 64);
    }
    out += " --input " + shell_word(text);
  }
  return out;
}

}  // namespace cyb
