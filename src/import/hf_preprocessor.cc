// SPDX-License-Identifier: Apache-2.0
#include "import/hf_preprocessor.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/json_file.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

enum class Values { half, clip, imagenet };  // mean and deviation: 0.5; CLIP's; ImageNet's

// The reference's classes with their defaults.
struct Processor {
  const char* name;  // without "ImageProcessor"
  int resample;
  Values values;
  int64_t size;  // 0: patches in the picture's own proportions
  bool square;   // a size that is one number is height and width, not the shortest edge
  int64_t crop;  // 0: none
  bool crop_percent = false;
};
constexpr Processor kProcessors[] = {
    {"ViT", 2, Values::half, 224, true, 0},
    {"DeiT", 3, Values::half, 256, true, 224},
    {"Beit", 3, Values::half, 224, true, 0},
    {"CLIP", 3, Values::clip, 224, false, 224},
    {"Siglip", 3, Values::half, 224, true, 0},
    {"Siglip2", 2, Values::half, 0, true, 0},
    {"Bit", 3, Values::clip, 224, false, 224},
    {"ConvNext", 3, Values::half, 384, false, 0, true},
    {"ChineseCLIP", 3, Values::clip, 224, false, 224},
};

constexpr std::pair<const char*, const char*> kOfModelType[] = {
    {"vit", "ViT"},
    {"deit", "DeiT"},
    {"beit", "Beit"},
    {"clip", "CLIP"},
    {"siglip", "Siglip"},
    {"siglip2", "Siglip2"},
    {"dinov2", "Bit"},
    {"dinov2_with_registers", "Bit"},
    {"convnext", "ConvNext"},
    {"convnextv2", "ConvNext"},
    {"swin", "ViT"},
    {"swinv2", "ViT"},
    {"data2vec-vision", "Beit"},
};

constexpr double kMean[3][3] = {{0.5, 0.5, 0.5}, {0.48145466, 0.4578275, 0.40821073}, {0.485, 0.456, 0.406}};
constexpr double kDeviation[3][3] = {
    {0.5, 0.5, 0.5}, {0.26862954, 0.26130258, 0.27577711}, {0.229, 0.224, 0.225}};

class SettingsReader {
 public:
  SettingsReader(ordered_json json, std::string where) : json_(std::move(json)), where_(std::move(where)) {}

  std::string text(const char* key) const {
    const auto it = json_.find(key);
    return it != json_.end() && it->is_string() ? it->get<std::string>() : "";
  }
  bool has(const char* key) const {
    const auto it = json_.find(key);
    return it != json_.end() && !it->is_null();
  }
  const ordered_json& at(const char* key) const { return json_.at(key); }
  bool boolean(const char* key, bool value) const {
    if (!has(key)) return value;
    if (!at(key).is_boolean()) throw invalid(key);
    return at(key).get<bool>();
  }
  double real(const char* key, double value) const {
    if (!has(key)) return value;
    if (!at(key).is_number()) throw invalid(key);
    return at(key).get<double>();
  }
  int64_t integer(const char* key, int64_t value) const {
    if (!has(key)) return value;
    if (!at(key).is_number_integer()) throw invalid(key);
    return at(key).get<int64_t>();
  }
  // One number for each channel; a single one stands for all.
  ConfigValue triple(const char* key, const double (&value)[3]) const {
    ConfigArray out;
    for (size_t i = 0; i < 3; i++) {
      double v = value[i];
      if (has(key)) {
        const ordered_json& found = at(key);
        const bool list = found.is_array() && found.size() == 3 && found[i].is_number();
        if (!list && !found.is_number()) throw invalid(key);
        v = list ? found[i].get<double>() : found.get<double>();
      }
      out.push_back(ConfigValue::from_real(v));
    }
    return out;
  }
  Error invalid(const std::string& key) const {
    const auto it = json_.find(key);
    return error(ErrorKind::InvalidConfig, "{}: '{}' is {}", where_, key,
                 it == json_.end() ? "missing" : it->dump().substr(0, 100));
  }

 private:
  ordered_json json_;
  std::string where_;
};

// size or crop_size: a number, [height, width], or an object of edges.
void put_size(const SettingsReader& json, const char* key, int64_t value, bool square, Config* out) {
  const std::string at = std::string(key) + ".";
  const auto set_all = [&](int64_t n) {
    if (square)
      out->set(at + "height", n), out->set(at + "width", n);
    else
      out->set(at + "shortest_edge", n);
  };
  if (!json.has(key)) return set_all(value);
  const ordered_json& size = json.at(key);
  if (size.is_number_integer()) return set_all(size.get<int64_t>());
  if (size.is_array() && size.size() == 2 && size[0].is_number_integer() && size[1].is_number_integer()) {
    out->set(at + "height", size[0].get<int64_t>());
    out->set(at + "width", size[1].get<int64_t>());
    return;
  }
  if (!size.is_object()) throw json.invalid(key);
  for (const char* edge : {"shortest_edge", "longest_edge", "height", "width", "max_height", "max_width"}) {
    const auto it = size.find(edge);
    if (it == size.end() || it->is_null()) continue;
    if (!it->is_number_integer()) throw json.invalid(key);
    out->set(at + edge, it->get<int64_t>());
  }
  const bool known = out->has(at + "shortest_edge") || (out->has(at + "height") && out->has(at + "width")) ||
                     (out->has(at + "max_height") && out->has(at + "max_width"));
  if (!known) throw json.invalid(key);
}

// ConvNeXT: below 384 pixels the shortest edge is scaled to size / crop_pct and the middle is cut out, above
// the picture is squeezed into the square.
void put_crop_percent(const SettingsReader& json, Config* out) {
  const ConfigValue* edge = out->find("size.shortest_edge");
  if (!edge || !edge->integer()) throw json.invalid("size");
  const int64_t size = *edge->integer();
  const double percent = json.real("crop_pct", 224.0 / 256);
  if (!(percent > 0.01 && percent <= 1)) throw json.invalid("crop_pct");
  const auto square = [&](const std::string& key) {
    out->set(key + ".height", size);
    out->set(key + ".width", size);
  };
  if (size < 384) {
    out->set("size.shortest_edge", static_cast<int64_t>(static_cast<double>(size) / percent));
    out->set("do_center_crop", true);
    square("crop_size");
  } else {
    out->erase("size");
    square("size");
  }
}

void put_values(const SettingsReader& json, Values values, Config* out) {
  const auto kind = static_cast<size_t>(values);
  out->set("do_rescale", json.boolean("do_rescale", true));
  out->set("rescale_factor", ConfigValue::from_real(json.real("rescale_factor", 1.0 / 255)));
  out->set("do_normalize", json.boolean("do_normalize", true));
  out->set("image_mean", json.triple("image_mean", kMean[kind]));
  out->set("image_std", json.triple("image_std", kDeviation[kind]));
}

Config from_transformers(const SettingsReader& json, const Processor& processor) {
  Config out;
  out.set("kind", "picture");
  // What AutoImageProcessor takes where torchvision is installed.
  out.set("arithmetic", "torchvision");
  out.set("do_resize", json.boolean("do_resize", true));
  out.set("resample", json.integer("resample", processor.resample));
  if (processor.size == 0) {
    out.set("patch_size", json.integer("patch_size", 16));
    out.set("max_num_patches", json.integer("max_num_patches", 256));
  } else {
    put_size(json, "size", processor.size, processor.square, &out);
    out.set("do_center_crop", json.boolean("do_center_crop", processor.crop > 0));
    if (*out.find("do_center_crop")->boolean())
      put_size(json, "crop_size", processor.crop ? processor.crop : 224, true, &out);
    if (processor.crop_percent && json.boolean("do_resize", true)) put_crop_percent(json, &out);
  }
  put_values(json, processor.values, &out);
  return out;
}

int filter_number(const std::string& name, const SettingsReader& json, const char* key) {
  constexpr const char* kNames[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  for (int i = 0; i < 6; i++)
    if (name == kNames[i]) return i;
  throw json.invalid(key);
}

// timm and OpenCLIP: torchvision's transforms on Pillow's pictures.
Config from_transforms(int filter, int64_t height, int64_t width, double percent, bool squash) {
  Config out;
  out.set("kind", "picture");
  out.set("arithmetic", "pillow");
  out.set("do_resize", true);
  out.set("resample", filter);
  const auto scaled = [&](int64_t n) {
    return static_cast<int64_t>(std::floor(static_cast<double>(n) / percent));
  };
  if (height == width && !squash) {
    out.set("size.shortest_edge", scaled(height));
  } else {
    out.set("size.height", scaled(height));
    out.set("size.width", scaled(width));
  }
  out.set("do_center_crop", true);
  out.set("crop_size.height", height);
  out.set("crop_size.width", width);
  return out;
}

Config from_timm(const SettingsReader& json) {
  const ordered_json shape = json.has("input_size") ? json.at("input_size") : ordered_json({3, 224, 224});
  if (!shape.is_array() || shape.size() != 3 || !shape[1].is_number_integer() ||
      !shape[2].is_number_integer() || shape[0] != 3)
    throw json.invalid("input_size");
  const std::string mode = json.has("crop_mode") ? json.text("crop_mode") : "center";
  if (mode != "center" && mode != "squash") throw json.invalid("crop_mode");
  const double percent = json.real("crop_pct", 0.875);
  if (!(percent > 0.01 && percent <= 1)) throw json.invalid("crop_pct");
  const std::string filter = json.has("interpolation") ? json.text("interpolation") : "bilinear";
  Config out = from_transforms(filter_number(filter, json, "interpolation"), shape[1].get<int64_t>(),
                               shape[2].get<int64_t>(), percent, mode == "squash");
  put_values(json, Values::imagenet, &out);
  out.set("image_mean", json.triple("mean", kMean[2]));
  out.set("image_std", json.triple("std", kDeviation[2]));
  return out;
}

Config from_open_clip(const SettingsReader& json, int64_t height, int64_t width) {
  const std::string mode = json.has("resize_mode") ? json.text("resize_mode") : "shortest";
  if (mode != "shortest" && mode != "squash") throw json.invalid("resize_mode");
  const std::string filter = json.has("interpolation") ? json.text("interpolation") : "bicubic";
  Config out =
      from_transforms(filter_number(filter, json, "interpolation"), height, width, 1.0, mode == "squash");
  put_values(json, Values::clip, &out);
  out.set("image_mean", json.triple("mean", kMean[1]));
  out.set("image_std", json.triple("std", kDeviation[1]));
  return out;
}

const Processor* find_processor(const std::string& name) {
  for (const Processor& p : kProcessors)
    if (name == p.name) return &p;
  return nullptr;
}

// "CLIPFeatureExtractor", "ViTImageProcessorFast" → "CLIP", "ViT"; "WhisperFeatureExtractor" is for sound.
std::string processor_name(const SettingsReader& json, const std::string& model_type) {
  std::string type = json.text("image_processor_type");
  if (type.empty()) type = json.text("feature_extractor_type");
  for (const char* end : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"})
    if (type.ends_with(end)) type.resize(type.size() - std::string_view(end).size());
  if (!type.empty()) return type;
  for (const auto& [model, name] : kOfModelType)
    if (model_type == model) return name;
  return "";
}

}  // namespace

std::optional<Config> read_picture_preprocessor(const std::string& folder_name,
                                                const std::string& model_type) {
  const fs::path folder(folder_name);
  std::error_code ignored;
  const auto exists = [&](const char* name) { return fs::is_regular_file(folder / name, ignored); };
  ordered_json json;
  std::string where;
  if (exists("processor_config.json")) {
    where = (folder / "processor_config.json").string();
    const ordered_json all = read_json_object(where);
    if (const auto it = all.find("image_processor"); it != all.end() && it->is_object()) json = *it;
  }
  if (json.is_null() && exists("preprocessor_config.json")) {
    where = (folder / "preprocessor_config.json").string();
    json = read_json_object(where);
  }
  if (!json.is_null()) {
    const SettingsReader reader(json, where);
    const std::string name = processor_name(reader, model_type);
    if (const Processor* processor = find_processor(name)) return from_transformers(reader, *processor);
    bool vision = false;
    for (const auto& [model, processor] : kOfModelType) vision = vision || model_type == model;
    if (!vision) return std::nullopt;  // sound, or a model whose pictures have another reader
    throw error(ErrorKind::UnsupportedModel, "{}: the picture processor '{}' is not known", where, name)
        .advise("docs/pictures.md lists those that are");
  }
  if (exists("open_clip_config.json")) {
    where = (folder / "open_clip_config.json").string();
    const ordered_json all = read_json_object(where);
    const auto number = [&](const ordered_json& v) -> int64_t {
      return v.is_number_integer()                                    ? v.get<int64_t>()
             : v.is_array() && !v.empty() && v[0].is_number_integer() ? v[0].get<int64_t>()
                                                                      : 0;
    };
    const auto object = [&](const ordered_json& from, const char* key) {
      const auto it = from.find(key);
      return it != from.end() && it->is_object() ? *it : ordered_json::object();
    };
    const ordered_json vision = object(object(all, "model_cfg"), "vision_cfg");
    const SettingsReader reader(object(all, "preprocess_cfg"), where);
    const int64_t size = vision.contains("image_size") ? number(vision["image_size"]) : 224;
    if (size < 1) throw error(ErrorKind::InvalidConfig, "{}: vision_cfg has no valid image_size", where);
    return from_open_clip(reader, size, size);
  }
  if (exists("config.json")) {
    where = (folder / "config.json").string();
    const ordered_json all = read_json_object(where);
    if (const auto it = all.find("pretrained_cfg"); it != all.end() && it->is_object())
      return from_timm(SettingsReader(*it, where));
  }
  return std::nullopt;
}

}  // namespace cyb
