// SPDX-License-Identifier: Apache-2.0
// Which files an ONNX model wants beside it, before they are there.
#include <algorithm>
#include <climits>

#include "base/file.h"
#include "import/file_kind.h"
#include "import/import.h"
#include "import/onnx/onnx.pb.h"

namespace cyb {
namespace {

constexpr size_t kMost = 1000;

class Collector {
 public:
  void graph(const onnx::GraphProto& g) {
    for (const onnx::TensorProto& t : g.initializer()) tensor(t);
    for (const onnx::SparseTensorProto& t : g.sparse_initializer()) sparse(t);
    for (const onnx::NodeProto& n : g.node()) node(n);
  }
  void node(const onnx::NodeProto& n) {
    for (const onnx::AttributeProto& a : n.attribute()) {
      if (a.has_t()) tensor(a.t());
      for (const onnx::TensorProto& t : a.tensors()) tensor(t);
      if (a.has_sparse_tensor()) sparse(a.sparse_tensor());
      if (a.has_g()) graph(a.g());
      for (const onnx::GraphProto& g : a.graphs()) graph(g);
    }
  }

  std::vector<std::string> files;

 private:
  void tensor(const onnx::TensorProto& t) {
    if (t.data_location() != 1) return;
    for (const onnx::StringStringEntryProto& entry : t.external_data())
      if (entry.key() == "location" && files.size() < kMost &&
          std::find(files.begin(), files.end(), entry.value()) == files.end())
        files.push_back(entry.value());
  }
  void sparse(const onnx::SparseTensorProto& t) {
    tensor(t.values());
    tensor(t.indices());
  }
};

}  // namespace

std::vector<std::string> external_files(const std::string& path) {
  const MappedFile file(path);
  if (file.size() > INT_MAX || sniff_file(file.bytes(), file.size()) != FileKind::onnx) return {};
  onnx::ModelProto model;
  // What is damaged is the import's to report.
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size()))) return {};
  Collector collector;
  collector.graph(model.graph());
  for (const onnx::FunctionProto& f : model.functions())
    for (const onnx::NodeProto& n : f.node()) collector.node(n);
  return collector.files;
}

}  // namespace cyb
