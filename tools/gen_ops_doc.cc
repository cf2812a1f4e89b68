// SPDX-License-Identifier: Apache-2.0
// Writes docs/ops.md from the operator table and the CPU kernel table.
//   gen_ops_doc docs/ops.md           writes it
//   gen_ops_doc --check docs/ops.md   exit status 1 if it is not what would be written
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "ir/op.h"
#include "ops/cpu.h"

namespace cyb {
namespace {

using ir::Effect;
using ir::OpInfo;
using ir::Tolerance;

std::string real(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return fmt::format("{}", v);
}

// "eps=1e-05, offset=0"; the values of an enum are listed, its default first.
class Defaults final : public ir::FieldVisitor {
 public:
  void field(const char* name, bool& v) override { add(name, v ? "true" : "false"); }
  void field(const char* name, int64_t& v) override { add(name, std::to_string(v)); }
  void field(const char* name, double& v) override { add(name, real(v)); }
  void field(const char* name, std::string& v) override { add(name, "\"" + v + "\""); }
  void field(const char* name, DType& v) override { add(name, to_string(v)); }
  void field(const char* name, std::vector<int64_t>& v) override { add(name, v.empty() ? "[]" : "[…]"); }
  void field(const char* name, std::vector<double>& v) override { add(name, v.empty() ? "[]" : "[…]"); }
  void choice(const char* name, int& index, std::span<const char* const> names) override {
    std::string all = names[static_cast<size_t>(index)];
    for (size_t i = 0; i < names.size(); i++)
      if (static_cast<int>(i) != index) all += std::string("\\|") + names[i];
    add(name, all);
  }
  std::string text;

 private:
  void add(const char* name, const std::string& value) {
    text += (text.empty() ? "`" : "<br>`") + std::string(name) + "=" + value + "`";
  }
};

std::string attributes(const OpInfo& row) {
  if (!row.shape) return "";  // those of reserved operators are not settled
  Defaults defaults;
  row.make_attrs()->visit(defaults);
  return defaults.text;
}

const char* name_of(Effect effect) {
  switch (effect) {
    case Effect::pure:
      return "";
    case Effect::state:
      return "state";
    case Effect::random:
      return "random";
    case Effect::data:
      return "data";
    case Effect::control:
      return "control";
  }
  return "";
}

const char* name_of(Tolerance tolerance) {
  switch (tolerance) {
    case Tolerance::exact:
      return "exact";
    case Tolerance::rounded:
      return "rounded";
    case Tolerance::sum:
      return "sum";
    case Tolerance::transcendental:
      return "transcendental";
  }
  return "";
}

std::string results(const OpInfo& row) {
  if (row.min_results == row.max_results) return std::to_string(row.min_results);
  return row.max_results < 0 ? fmt::format("{}…", row.min_results)
                             : fmt::format("{}–{}", row.min_results, row.max_results);
}

// Control operators are run by the executor and need no kernel.
const char* status(const OpInfo& row) {
  if (!row.shape) return "reserved";
  if (row.effect == Effect::control || !cpu_kernel_table().rows(row.op).empty()) return "runs";
  return "typed";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

struct Role {
  const char *name, *inputs, *outputs, *task;
};

// How tasks find the graphs of a program: by these names.
constexpr Role kRoles[] = {
    {"decode",
     "`tokens: i32[B, T]` or `embeds: f32[B, T, D]`, `positions: i32[B, T]` (`[3, B, T]` with sections), "
     "`lengths: i32[B]`, `rows: i32[R]`",
     "`logits: f32[R, V]`",
     "one step of a decoder over its states: the new tokens of each slot in, logits of the wanted rows (b·T "
     "+ t) out"},
    {"embed_tokens", "`tokens: i32[B, T]`", "`embeds: f32[B, T, D]`",
     "looks tokens up, to be mixed with embeddings from elsewhere"},
    {"encode",
     "`tokens: i32[B, T]` and `types: i32[B, T]`, or the features of a front end, and `lengths: i32[B]`",
     "`hidden: f32[B, T, D]`", "an encoder"},
    {"classify", "as `encode`", "`logits: f32[B, L]`", "classes of whole inputs, or one score"},
    {"tag", "as `encode`", "`logits: f32[B, T, L]`", "classes of tokens"},
    {"fill", "as `encode`, and `rows: i32[R]`", "`logits: f32[R, V]`",
     "the words that may stand at the wanted positions (b·T + t)"},
    {"cross", "`hidden: f32[B, S, D]`, `lengths: i32[B]`", "none",
     "fills the states that the decoder's cross attention reads"},
    {"align", "as `decode`, and `hidden: f32[B, S, D]`", "`logits: f32[R, V]`, `weights: f32[B, H, T, S]`",
     "`decode` that also tells how tokens look at the encoder's positions, in chosen heads: when words are "
     "said"},
    {"vision.encode", "`pixels: f32[B, 3, H, W]`",
     "`hidden: f32[B, N, D]`, and where the model has them `pooled: f32[B, D]`, `embedding: f32[B, E]`",
     "a picture's features; `embedding` has the length 1 and lies in the space of texts. A tower alone has "
     "the "
     "graph `encode`"},
    {"text.encode", "`tokens: i32[B, T]`", "as `vision.encode`", "the text beside it"},
    {"similarity", "`pictures: f32[N, E]`, `texts: f32[M, E]`", "`logits: f32[N, M]`",
     "how well embeddings fit each other"},
    {"projector", "`hidden: f32[B, N, D]`", "`embeds: f32[B, M, E]`",
     "features as embeddings of the decoder"},
    {"denoise", "`latent`, `timestep: f32[B]`, then what conditions it", "`prediction`, shaped as `latent`",
     "one evaluation of a diffusion or flow model; the loop over steps is the task's"},
    {"vae.encode", "`pixels`", "`latent`", "from pictures to latents"},
    {"vae.decode", "`latent`", "`pixels`", "from latents to pictures"},
    {"vocoder", "`features: f32[B, C, T]`", "`samples: f32[B, S]`", "from acoustic features to sound"},
    {"main", "any", "any", "everything else: research graphs, imported graphs"},
};

constexpr const char* kIntroduction = R"(# Operators

Made by `tools/gen_ops_doc.cc` from `src/ir/ops.inc`, the attribute structs in `src/ir/ops/` and the CPU kernel table. Do not edit: change the table, then run

    cmake --build --preset release --target ops_doc

How operators are written in a program, and what values and attributes are: [ir.md](ir.md). Which kernels each backend has: `cyb-llm status --ops`.

**Tag**: stable, never used again for something else. **Operands**: `?` may be absent (written `_`), `…` any number. **Attributes** with their defaults; of several words the first is the default. **Effect**: empty where results depend on operands and attributes only; *state*: reads or writes the program's states; *random*: depends on the seed; *data*: result shapes depend on the operands' content, computed on the host; *control*: runs its regions. **Tolerance**: by what a fast kernel may differ from the reference kernel; the formulas are in `tests/README.md`. **Status**: *runs*; *typed*: has a shape rule, but no kernel yet; *reserved*: the tag is kept for the operator's first user, and a program that uses it is refused.

)";

std::string document() {
  std::string out = kIntroduction;
  std::vector<std::string> groups;
  int runs = 0, all = 0;
  for (const OpInfo& row : ir::all_ops()) {
    all++;
    runs += std::string_view(status(row)) == "runs";
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.emplace_back(row.group);
  }
  out += fmt::format("{} operators, of which {} run.\n", all, runs);
  for (const std::string& group : groups) {
    out += fmt::format("\n## {}\n\n", group);
    out += "| tag | operator | operands | attributes | results | meaning | effect | tolerance | status |\n";
    out += "|---|---|---|---|---|---|---|---|---|\n";
    for (const OpInfo& row : ir::all_ops())
      if (row.group == group)
        out +=
            fmt::format("| {} | {}<br>`{}` | {} | {} | {} | {} | {} | {} | {} |\n", static_cast<int>(row.op),
                        row.name, row.text_name, escaped(row.operand_names), attributes(row), results(row),
                        escaped(row.meaning), name_of(row.effect), name_of(row.tolerance), status(row));
  }
  out +=
      "\n## Roles of graphs\n\nA task finds the graphs of a program by name. A part of a model that has a "
      "name of its "
      "own (`vision`, `vae`, `text_encoder`) stands before the role: `PART.encode`.\n\n";
  out += "| graph | inputs | outputs | what it is |\n|---|---|---|---|\n";
  for (const Role& role : kRoles)
    out += fmt::format("| `{}` | {} | {} | {} |\n", role.name, role.inputs, role.outputs, role.task);
  return out;
}

int run(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check) {
    fmt::print(stderr, "usage: gen_ops_doc [--check] docs/ops.md\n");
    return 2;
  }
  const std::string path = argv[argc - 1], text = document();
  if (!check) {
    AtomicFile file(path);
    file.write(text.data(), text.size());
    file.commit();
    return 0;
  }
  if (read_file(path) == text) return 0;
  fmt::print(stderr,
             "{} is not what the operator table says; run: cmake --build --preset release --target ops_doc\n",
             path);
  return 1;
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) {
  try {
    return cyb::run(argc, argv);
  } catch (const cyb::Error& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
}
