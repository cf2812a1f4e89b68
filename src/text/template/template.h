// SPDX-License-Identifier: Apache-2.0
// Chat templates: the Jinja of transformers (jinja2 with trim_blocks, lstrip_blocks, loop controls,
// generation blocks and an immutable sandbox), byte for byte. Templates and contexts are untrusted: work,
// memory, depth and output are bounded, and nothing outside the context can be reached.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace cyb {

namespace jinja {
struct Tree;
}

struct TemplateLimits {
  uint64_t work = 50'000'000;      // evaluated nodes, steps of loops, and texts copied by the 512 bytes
  uint64_t memory = 512ull << 20;  // bytes of values alive at once
  uint64_t text = 64ull << 20;     // bytes of the output and of every text on the way
  uint32_t depth = 1200;           // levels of recursion, all kinds together
};

struct RenderOptions {
  TemplateLimits limits;
  std::optional<std::tm> now;  // for strftime_now in place of the clock
};

// A parsed template. Immutable, so it may be rendered by several threads at once.
class ChatTemplate {
 public:
  // `name` stands before line and column in errors. Throws InvalidConfig with them.
  static ChatTemplate parse(std::string_view source, std::string name = "chat template");

  // The context is an object: the template's variables. A template's own raise_exception ends in a Usage
  // error whose message is the template's; any other failure in InvalidConfig with line and column; what is
  // not supported, in UnsupportedModel.
  std::string render(const nlohmann::ordered_json& context, const RenderOptions& options = {}) const;

  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }

 private:
  std::shared_ptr<const jinja::Tree> tree_;
  std::string name_;
  std::string source_;
};

}  // namespace cyb
