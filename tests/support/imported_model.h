// SPDX-License-Identifier: Apache-2.0
// A base of fixtures: a tiny model, written as a checkpoint of the reference's form and taken through the
// importer.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "import/import.h"
#include "support/golden.h"
#include "tasks/language_model.h"

namespace cyb::test {

class ImportedModel {
 protected:
  ~ImportedModel() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // `golden` must stay where it is. Sets path_, with weights in u32.
  void import_model_of(const TinyCheckpoint& golden, const std::string& name) {
    checkpoint_ = &golden;
    folder_ = std::filesystem::temp_directory_path() / ("cyb-" + name + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = import(EncodingPolicy::u32);
  }

  std::string import(EncodingPolicy encoding) {
    const std::string source = (folder_ / "source").string();
    write_checkpoint(*checkpoint_, source);
    ImportOptions o;
    o.encoding = encoding;
    o.out = source + to_string(encoding) + ".model";
    o.threads = 2;
    return import_model(source, o).path;
  }

  static OpenOptions exact(int slots = 1) {
    OpenOptions o;
    o.exact = true;
    o.threads = 2;
    o.slots = slots;
    return o;
  }

  // expect(options, what) for the family's graphs, those in the file, and the family's without fusion.
  template <class F>
  static void on_all_paths(F&& expect) {
    expect(exact(), "curated");
    OpenOptions o = exact();
    o.graph_path = true;
    expect(o, "graph");
    o = exact();
    o.fusion = false;
    expect(o, "unfused");
  }

  std::filesystem::path folder_;
  std::string path_;

 private:
  const TinyCheckpoint* checkpoint_ = nullptr;
};

}  // namespace cyb::test
