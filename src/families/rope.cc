// SPDX-License-Identifier: Apache-2.0
#include "families/rope.h"

#include <array>
#include <cmath>

namespace cyb {
namespace {

constexpr const char* kParameters = "architecture.rope_parameters";
constexpr std::array kTypes = {"default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"};

void check_type(const Config& config, const std::string& path) {
  const std::string type = config.text(path);
  for (const char* known : kTypes)
    if (type == known) return;
  throw config.invalid(path, "unknown rope type '{}'", type)
      .advise("supported: default, linear, dynamic, llama3, yarn, longrope, proportional");
}

// Fills one table of rope settings.
void complete_table(Config& config, const std::string& path, double default_theta) {
  if (config.has(path + ".type") && !config.has(path + ".rope_type"))
    config.set(path + ".rope_type", config.text(path + ".type"));
  config.erase(path + ".type");
  if (!config.has(path + ".rope_type")) config.set(path + ".rope_type", "default");
  if (config.text(path + ".rope_type") == "su") config.set(path + ".rope_type", "longrope");
  check_type(config, path + ".rope_type");
  if (!config.has(path + ".rope_theta"))
    config.set(path + ".rope_theta", ConfigValue::from_theta(default_theta));
}

}  // namespace

void complete_rope(Config& config, double default_theta) {
  const std::string parameters = kParameters;
  if (!config.has(parameters)) {
    if (config.has("architecture.rope_scaling"))
      config.set(parameters, *config.find("architecture.rope_scaling"));
    if (config.has("architecture.rope_theta"))
      config.set(parameters + ".rope_theta", *config.find("architecture.rope_theta"));
  }
  if (config.has("architecture.partial_rotary_factor") && !config.has(parameters + ".partial_rotary_factor"))
    config.set(parameters + ".partial_rotary_factor", *config.find("architecture.partial_rotary_factor"));
  config.erase("architecture.rope_scaling");
  config.erase("architecture.rope_theta");
  config.erase("architecture.partial_rotary_factor");
  // One table for each kind of layer, or one for all.
  bool nested = false;
  for (const std::string& key : config.keys(parameters))
    if (const ConfigValue* value = config.find(parameters + "." + key); value && value->is_table()) {
      nested = true;
      complete_table(config, parameters + "." + key, default_theta);
    }
  if (!nested) complete_table(config, parameters, default_theta);
}

ir::RopeAttrs rope_attrs(const Config& config, const std::string& path, int64_t head_dim) {
  ir::RopeAttrs a;
  const std::string type = config.text(path + ".rope_type");
  check_type(config, path + ".rope_type");
  for (size_t i = 0; i < kTypes.size(); i++)
    if (type == kTypes[i]) a.scaling = static_cast<ir::RopeScaling>(i);
  a.theta = config.real(path + ".rope_theta");
  if (!(a.theta > 0) || !std::isfinite(a.theta))
    throw config.invalid(path + ".rope_theta", "{} is not positive", a.theta);
  const double partial = config.real_or(path + ".partial_rotary_factor", 1.0);
  const auto dims = static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  if (dims <= 0 || dims % 2 != 0 || dims > head_dim)
    throw config.invalid(path, "{} rotated channels of {}", dims, head_dim);
  if (dims != head_dim) a.dims = dims;
  const int64_t context = config.integer("architecture.max_position_embeddings");
  if (a.scaling == ir::RopeScaling::none) return a;
  const bool needs_factor =
      a.scaling != ir::RopeScaling::longrope && a.scaling != ir::RopeScaling::proportional;
  a.factor = needs_factor ? config.real(path + ".factor") : config.real_or(path + ".factor", 1.0);
  if (!(a.factor > 0) || !std::isfinite(a.factor))
    throw config.invalid(path + ".factor", "{} is not positive", a.factor);
  a.low_freq_factor = config.real_or(path + ".low_freq_factor", 1.0);
  a.high_freq_factor = config.real_or(path + ".high_freq_factor", 4.0);
  a.beta_fast = config.real_or(path + ".beta_fast", 32.0);
  a.beta_slow = config.real_or(path + ".beta_slow", 1.0);
  a.attention_factor = config.real_or(path + ".attention_factor", 0.0);
  a.mscale = config.real_or(path + ".mscale", 0.0);
  a.mscale_all_dim = config.real_or(path + ".mscale_all_dim", 0.0);
  a.truncate = config.boolean_or(path + ".truncate", true);
  a.original_context =
      config.integer_or(path + ".original_max_position_embeddings",
                        config.integer_or("architecture.original_max_position_embeddings", context));
  a.max_context = context;
  if (a.scaling == ir::RopeScaling::longrope) {
    a.short_factor = config.reals(path + ".short_factor");
    a.long_factor = config.reals(path + ".long_factor");
    for (const auto* list : {&a.short_factor, &a.long_factor})
      if (static_cast<int64_t>(list->size()) * 2 != dims)
        throw config.invalid(path, "longrope needs {} factors, found {}", dims / 2, list->size());
    if (!config.has(path + ".factor"))
      a.factor = static_cast<double>(context) / static_cast<double>(a.original_context);
  }
  return a;
}

}  // namespace cyb
