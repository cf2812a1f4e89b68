// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/model.h"

#include <climits>

#include "base/error.h"
#include "base/file.h"
#include "compile/passes.h"
#include "import/onnx/graph_converter.h"
#include "import/onnx/onnx.pb.h"
#include "ir/text.h"

namespace cyb::onnx {
namespace {

std::unique_ptr<ModelProto> parse_model(const MappedFile& file) {
  if (file.size() > INT_MAX)
    throw error(ErrorKind::InvalidFile, "the file has {} bytes; protobuf messages end at 2 GB", file.size())
        .advise("export the model with its weights as external data beside it");
  auto model = std::make_unique<ModelProto>();
  if (!model->ParseFromArray(file.data(), static_cast<int>(file.size())))
    throw error(ErrorKind::InvalidFile,
                "this is no ONNX model: its protobuf is damaged, cut off or nested too deeply")
        .advise("fetch or export the model again");
  return model;
}

Opsets read_opsets(const ModelProto& model) {
  Opsets opsets;
  for (const OperatorSetIdProto& o : model.opset_import()) opsets[domain_of(o.domain())] = o.version();
  const int64_t version = opsets.try_emplace("", 1).first->second;  // ONNX's default
  if (version < kOldestOpset)
    throw error(ErrorKind::UnsupportedModel, "found operator set {}", version)
        .advise("export the model with operator set {} to {}", kOldestOpset, kNewestOpset);
  if (version > kNewestOpset)
    throw error(ErrorKind::UnsupportedModel, "found operator set {}, the newest that is known is {}", version,
                kNewestOpset)
        .advise("export the model with operator set {} or below", kNewestOpset);
  return opsets;
}

size_t count_nodes(const GraphProto& graph) {
  size_t n = static_cast<size_t>(graph.node_size());
  for (const NodeProto& node : graph.node())
    for (const AttributeProto& a : node.attribute()) {
      if (a.has_g()) n += count_nodes(a.g());
      for (const GraphProto& g : a.graphs()) n += count_nodes(g);
    }
  return n;
}

// "Conv: there is no such operator here ('/a', '/b' and 62 more); …", each operator and reason once.
std::string list_unsupported(const std::vector<ModelState::Unsupported>& all) {
  constexpr size_t kMostKinds = 40, kMostNames = 3;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> kinds;
  for (const auto& u : all) kinds[{u.op, u.why}].push_back(u.node);
  std::string out;
  size_t n = 0;
  for (const auto& [kind, nodes] : kinds) {
    if (n == kMostKinds) return out + fmt::format("; and {} more kinds", kinds.size() - n);
    out += fmt::format("{}{}: {} (", n++ ? "; " : "", kind.first, kind.second);
    for (size_t i = 0; i < nodes.size() && i < kMostNames; i++)
      out += (i ? ", '" : "'") + nodes[i].substr(0, 80) + "'";
    if (nodes.size() > kMostNames) out += fmt::format(" and {} more", nodes.size() - kMostNames);
    out += ")";
  }
  return out;
}

void convert_into(const ModelProto& model, const Opsets& opsets, ModelState& state) {
  for (const FunctionProto& f : model.functions())
    if (!state.functions.emplace(function_key(f.domain(), f.name(), f.overload()), &f).second)
      throw error(ErrorKind::InvalidFile, "the function '{}' is defined twice", clean_name(f.name()));
  state.program.graphs.emplace_back();
  ir::Graph& graph = state.program.graphs.back();
  graph.name = "main";
  GraphConverter converter(state, graph, nullptr, 0);
  try {
    converter.convert_main(model.graph(), opsets);
  } catch (const UnknownOperand&) {
    // The list says why.
  } catch (const Error&) {
    if (state.unsupported.empty()) throw;
  }
  if (state.unsupported.empty()) return;
  throw error(ErrorKind::UnsupportedOp, "{} node{} not supported: {}", state.unsupported.size(),
              state.unsupported.size() == 1 ? " is" : "s are", list_unsupported(state.unsupported))
      .advise("docs/importing.md lists what can be imported; export the model without these operators");
}

}  // namespace

ConvertedModel convert_model(const ModelProto& model, const std::string& path, const Registry& table) {
  if (!model.has_graph())
    throw error(ErrorKind::InvalidFile, "the file holds no graph").advise("fetch or export the model again");
  const Opsets opsets = read_opsets(model);
  ModelState state(table, path);
  size_t bytes = 0;
  state.most_nodes = 4 * count_nodes(model.graph()) + 100'000;
  bytes = model.ByteSizeLong();
  state.fold_budget = 4 * static_cast<uint64_t>(bytes) + (32u << 20);
  convert_into(model, opsets, state);

  ConvertedModel out;
  out.program = std::move(state.program);
  compile::FusionLog folded;
  compile::fold_weights(out.program, out.program.graphs.back(), folded);
  out.weights = place_constants(out.program, &out.warnings);
  ir::verify(out.program);
  out.operators = std::move(state.operators);
  out.producer = clean_name(model.producer_name());
  if (!model.producer_version().empty()) out.producer += " " + clean_name(model.producer_version());
  for (const auto& [domain, version] : opsets)
    out.opsets += (out.opsets.empty() ? "" : ", ") + (domain.empty() ? "" : clean_name(domain) + " ") +
                  std::to_string(version);
  for (const StringStringEntryProto& m : model.metadata_props())
    out.metadata.emplace_back(clean_name(m.key()), clean_name(m.value()));
  return out;
}

ConvertedModel convert_model(const std::string& path, const Registry& table) {
  std::unique_ptr<ModelProto> model;
  {
    const MappedFile file(path);
    model = parse_model(file);
  }
  return convert_model(*model, path, table);
}

}  // namespace cyb::onnx
