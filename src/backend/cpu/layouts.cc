// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/layouts.h"

#include <map>
#include <set>

namespace cyb::cpu {
namespace {

bool has_blocks(const Arg& a) {
  if (a.dtype != DType::f32 || a.shape.rank() != 4) return false;
  return a.shape[1] > 0 && a.shape[1] % 16 == 0 && a.shape[2] * a.shape[3] > 1 && a.shape[0] > 0;
}

struct Use {
  Arg* arg;
  size_t node;
};

// Calls f(name, arg) for each operand and result that has a name.
template <class F>
void each_inner(const NodeCall& node, Call& call, F&& f) {
  for (size_t k = 0; k < node.operands.size(); k++)
    if (node.operands[k].inner >= 0) f(node.operands[k].inner, call.in[k]);
  for (size_t k = 0; k < node.results.size(); k++)
    if (node.results[k].inner >= 0) f(node.results[k].inner, call.out[k]);
}

}  // namespace

std::vector<bool> choose_layouts(std::span<const NodeCall> nodes, std::span<Call> calls,
                                 const std::function<const KernelRow*(size_t)>& row) {
  std::vector<bool> taken(nodes.size(), false);
  std::map<int, std::vector<Use>> uses;
  for (size_t i = 0; i < nodes.size(); i++)
    each_inner(nodes[i], calls[i], [&](int name, Arg& arg) { uses[name].push_back({&arg, i}); });
  std::vector<const KernelRow*> rows(nodes.size());
  std::vector<bool> asked(nodes.size(), false);
  std::set<int> blocked;
  for (auto& [name, list] : uses) {
    bool all = true;
    for (const Use& u : list) {
      all = all && has_blocks(*u.arg) && u.arg->shape == list[0].arg->shape;
      if (!all) break;
      if (!asked[u.node]) rows[u.node] = row(u.node);
      asked[u.node] = true;
      all = rows[u.node] != nullptr;
    }
    if (!all) continue;
    blocked.insert(name);
    for (const Use& u : list) u.arg->layout = Layout::nchw16c;
  }
  // What one call makes plain is plain for all; its other calls are asked again.
  std::vector<size_t> ask;
  std::vector<bool> waits(nodes.size(), true);
  for (size_t i = nodes.size(); i-- > 0;) ask.push_back(i);
  while (!ask.empty()) {
    const size_t i = ask.back();
    ask.pop_back();
    waits[i] = false;
    if (!rows[i]) continue;
    rows[i]->layouts(calls[i]);
    each_inner(nodes[i], calls[i], [&](int name, const Arg& arg) {
      if (arg.layout != Layout::plain || !blocked.erase(name)) return;
      for (const Use& u : uses[name]) {
        u.arg->layout = Layout::plain;
        if (!waits[u.node]) ask.push_back(u.node);
        waits[u.node] = true;
      }
    });
  }
  for (const auto& [name, list] : uses)
    for (const Use& u : list)
      if (u.arg->layout != Layout::plain) taken[u.node] = true;
  return taken;
}

void layouts_alike(Call& c) {
  const auto each = [&](auto&& f) {
    for (Arg& a : c.in)
      if (a.present() && a.elements() != 1) f(a);
    for (Arg& a : c.out) f(a);
  };
  bool all = true;
  each([&](const Arg& a) { all = all && a.layout == Layout::nchw16c && a.shape == c.out[0].shape; });
  if (!all) each([](Arg& a) { a.layout = Layout::plain; });
}

}  // namespace cyb::cpu
