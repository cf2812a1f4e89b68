// SPDX-License-Identifier: Apache-2.0
// Which files of a repository make up the model.
#include <algorithm>
#include <cctype>
#include <set>

#include "hub/fetch_error.h"
#include "hub/huggingface.h"

namespace cyb {
namespace {

using Files = std::vector<HubFile>;

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

const HubFile* find(const Files& files, const std::string& path) {
  for (const HubFile& file : files)
    if (file.path == path) return &file;
  return nullptr;
}

bool has_any_suffix(const std::string& text, std::initializer_list<const char*> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](const char* s) { return text.ends_with(s); });
}

// Configuration, tokenizer, template, front end: small files beside the weights.
bool is_side_file(const std::string& path) {
  const std::string name = name_of(path);
  static const std::set<std::string> kTexts = {"merges.txt", "vocab.txt", "labels.txt", "dict.txt",
                                               "special_tokens_map.json"};
  static const std::set<std::string> kNot = {"trainer_state.json", "all_results.json", "train_results.json",
                                             "eval_results.json"};
  if (kNot.count(name) || name.ends_with(".index.json")) return false;
  if (path == "README.md") return true;  // its header names the licence
  return kTexts.count(name) > 0 || has_any_suffix(name, {".json", ".jinja", ".model", ".spm", ".tiktoken"});
}

// "model.fp16.safetensors", "model.fp16-00001-of-00002.safetensors", "pytorch_model.non_ema.bin"
bool is_variant(const std::string& name) {
  for (const char* word : {".fp16", ".bf16", ".non_ema", ".ema", ".int8", ".int4", ".8bit", ".4bit"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

FetchError undecided(const std::string& repo, const std::string& found, const Files& choices) {
  std::string list;
  for (size_t i = 0; i < choices.size() && i < 40; ++i) {
    list += (i ? ", " : "") + choices[i].path;
    if (choices[i].size) list += fmt::format(" ({:.0f} MB)", static_cast<double>(*choices[i].size) / 1e6);
  }
  if (choices.size() > 40) list += fmt::format(" and {} more", choices.size() - 40);
  return FetchError(FetchFailure::refused, fmt::format("hf:{}: {}", repo, found),
                    fmt::format("name one, hf:{}:FILE: {}", repo, list));
}

Files with_suffix(const Files& files, std::initializer_list<const char*> suffixes) {
  Files out;
  for (const HubFile& file : files)
    if (has_any_suffix(file.path, suffixes)) out.push_back(file);
  return out;
}

// First shards only, so that a split file counts once; without projectors, which belong to another model
// file.
Files gguf_models(const Files& files) {
  Files out;
  for (const HubFile& file : with_suffix(files, {".gguf"})) {
    const std::string name = lower(name_of(file.path));
    if (name.rfind("mmproj", 0) == 0 || name.find("imatrix") != std::string::npos) continue;
    if (shard_names(file.path).front() == file.path) out.push_back(file);
  }
  return out;
}

void add_shards(const Files& files, const std::string& path, const std::string& repo, Files& out) {
  std::string missing;
  for (const std::string& shard : shard_names(path)) {
    if (const HubFile* file = find(files, shard))
      out.push_back(*file);
    else
      missing += (missing.empty() ? "" : ", ") + shard;
  }
  if (!missing.empty())
    throw FetchError(FetchFailure::refused, fmt::format("hf:{}: the repository lacks {}", repo, missing),
                     "its upload is not complete: choose another file or repository");
}

// The weights of one folder in the form that imports best: safetensors, else PyTorch.
Files folder_weights(const Files& files, const std::string& folder) {
  Files here;
  for (const HubFile& file : files)
    if (folder_of(file.path) == folder) here.push_back(file);
  for (const auto suffixes : {std::initializer_list<const char*>{".safetensors"},
                              std::initializer_list<const char*>{".bin", ".pt", ".pth"}}) {
    Files found;
    for (const HubFile& file : with_suffix(here, suffixes)) {
      const std::string name = name_of(file.path);
      // Training leftovers and a second copy under another scheme of names.
      if (name == "training_args.bin" || name == "optimizer.pt" || name == "scheduler.pt" ||
          name.rfind("rng_state", 0) == 0 || name.rfind("consolidated", 0) == 0)
        continue;
      found.push_back(file);
    }
    const bool plain = std::any_of(found.begin(), found.end(),
                                   [](const HubFile& f) { return !is_variant(name_of(f.path)); });
    if (plain) std::erase_if(found, [](const HubFile& f) { return is_variant(name_of(f.path)); });
    // Beside the standard names others are extra copies.
    const auto standard = [](const HubFile& f) {
      const std::string name = name_of(f.path);
      return name.rfind("model.", 0) == 0 || name.rfind("model-", 0) == 0 ||
             name.rfind("pytorch_model", 0) == 0 || name.rfind("diffusion_pytorch_model", 0) == 0;
    };
    if (std::any_of(found.begin(), found.end(), standard))
      std::erase_if(found, [&](const HubFile& f) { return !standard(f); });
    // A whole file beside shards of it.
    const auto whole = [](const HubFile& f) { return shard_names(f.path).size() == 1; };
    if (std::any_of(found.begin(), found.end(), whole) && !std::all_of(found.begin(), found.end(), whole))
      std::erase_if(found, [&](const HubFile& f) { return !whole(f); });
    if (found.empty()) continue;
    for (const HubFile& file : with_suffix(here, {".index.json"}))
      if (!is_variant(name_of(file.path)) &&
          (name_of(file.path).find(".safetensors.") != std::string::npos) ==
              (*suffixes.begin() == std::string(".safetensors")))
        found.insert(found.begin(), file);
    return found;
  }
  return {};
}

// Folders of an image or sound pipeline, each a part with its own configuration.
Files pipeline_files(const Files& files) {
  Files out;
  std::set<std::string> folders;
  for (const HubFile& file : files) {
    const std::string folder = folder_of(file.path);
    if (folder.find('/') != std::string::npos || folder == "safety_checker") continue;
    if (is_side_file(file.path)) out.push_back(file);
    if (!folder.empty() && (name_of(file.path) == "config.json")) folders.insert(folder);
  }
  for (const std::string& folder : folders)
    for (const HubFile& file : folder_weights(files, folder)) out.push_back(file);
  return out;
}

}  // namespace

std::vector<std::string> shard_names(const std::string& path) {
  // …-NNNNN-of-NNNNN.suffix
  const auto dot = path.rfind('.');
  const size_t tail = std::string("-00001-of-00001").size();
  if (dot == std::string::npos || dot < tail) return {path};
  const std::string mark = path.substr(dot - tail, tail);
  if (mark[0] != '-' || mark.substr(6, 4) != "-of-") return {path};
  for (const size_t at : {1, 2, 3, 4, 5, 10, 11, 12, 13, 14})
    if (!std::isdigit(static_cast<unsigned char>(mark[at]))) return {path};
  const int count = std::stoi(mark.substr(10));
  if (count < 1 || count > 1000) return {path};
  std::vector<std::string> out;
  for (int i = 1; i <= count; ++i)
    out.push_back(fmt::format("{}-{:05}-of-{:05}{}", path.substr(0, dot - tail), i, count, path.substr(dot)));
  return out;
}

Files choose_hub_files(const Files& files, const std::string& wanted, const std::string& repo) {
  Files out;
  const auto add_side_files = [&](const std::string& folder) {
    for (const HubFile& file : files)
      if (folder_of(file.path) == folder && is_side_file(file.path)) out.push_back(file);
  };
  if (!wanted.empty()) {
    std::string path = wanted;
    if (!find(files, path)) {
      Files fitting;
      for (const HubFile& file : gguf_models(files))
        if (lower(name_of(file.path)).find(lower(wanted)) != std::string::npos) fitting.push_back(file);
      // Q4_K is a part of Q4_K_M too: the one that ends with the wanted word goes first.
      if (fitting.size() > 1) {
        Files exact;
        for (const HubFile& file : fitting) {
          const std::string stem = lower(file.path.substr(0, file.path.size() - 5));
          if (stem.ends_with(lower(wanted))) exact.push_back(file);
        }
        if (exact.size() == 1) fitting = exact;
      }
      if (fitting.size() > 1) throw undecided(repo, fmt::format("several files fit '{}'", wanted), fitting);
      if (fitting.empty()) {
        Files weights =
            with_suffix(files, {".gguf", ".safetensors", ".onnx", ".bin", ".pt", ".pth", ".ckpt"});
        throw undecided(repo, fmt::format("there is no file '{}'", wanted),
                        weights.empty() ? files : weights);
      }
      path = fitting.front().path;
    }
    if (!path.ends_with(".gguf") && !path.ends_with(".onnx")) add_side_files(folder_of(path));
    std::erase_if(out, [&](const HubFile& f) { return f.path == path; });
    add_shards(files, path, repo, out);
    if (path.ends_with(".onnx"))  // weights that an ONNX file keeps outside
      for (const HubFile& file : files)
        if (file.path.rfind(path, 0) == 0 && file.path != path) out.push_back(file);
    return out;
  }
  if (find(files, "model_index.json")) {
    out = pipeline_files(files);
    if (!out.empty()) return out;
  }
  if (Files weights = folder_weights(files, ""); !weights.empty() && find(files, "config.json")) {
    add_side_files("");
    // Sentence embeddings keep their pooling and dense layers in folders.
    std::set<std::string> dense;
    for (const HubFile& file : files) {
      const std::string folder = folder_of(file.path);
      if (folder.ends_with("_Dense")) dense.insert(folder);
      if (folder.ends_with("_Pooling")) out.push_back(file);
    }
    for (const std::string& folder : dense) {
      add_side_files(folder);
      for (HubFile& file : folder_weights(files, folder)) out.push_back(std::move(file));
    }
    for (HubFile& file : weights) out.push_back(std::move(file));
    return out;
  }
  const Files ggufs = gguf_models(files);
  if (ggufs.size() > 1)
    throw undecided(repo, fmt::format("the repository holds {} GGUF models", ggufs.size()), ggufs);
  if (ggufs.size() == 1) {
    add_shards(files, ggufs.front().path, repo, out);
    return out;
  }
  const Files others = with_suffix(files, {".onnx", ".safetensors", ".pt", ".pth", ".bin", ".ckpt"});
  if (others.size() == 1) return choose_hub_files(files, others.front().path, repo);
  if (others.empty())
    throw undecided(
        repo, "the repository holds no weights of a known kind (safetensors, GGUF, PyTorch, ONNX)", files);
  throw undecided(repo,
                  fmt::format("the repository holds {} files of weights and no config.json", others.size()),
                  others);
}

}  // namespace cyb
