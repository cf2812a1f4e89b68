// SPDX-License-Identifier: Apache-2.0
// From a source to files on this machine that the importer can read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hub/catalog.h"
#include "hub/observer.h"
#include "hub/settings.h"

namespace cyb {

struct FetchOptions {
  std::string directory;  // where the files go; empty: the cache
  // Files that a fetched one wants beside it, by names relative to it. Called for what an address gave.
  std::function<std::vector<std::string>(const std::string& path)> companions;
};

struct Fetched {
  std::string path;                // the file, or the folder, to import
  std::vector<std::string> files;  // all that were fetched; empty for a local path
  std::string name;                // proposed for the store
  std::string source;              // where it came from, exactly: "hf:org/repo@COMMIT:file"
  std::string license;             // empty: not stated
  bool cached = false;             // the files lie in the cache and may go once they are imported
};

// Fetches `what`: a catalog name (its sources in turn, saying so), or any source of parse_source.
// Throws Usage for what cannot be understood, FetchError or Io otherwise. What arrived is kept and resumed.
Fetched fetch_model(const std::string& what, const Settings& settings, const Catalog& catalog,
                    const FetchOptions& options, FetchObserver& observer);

// Removes the cached files of a fetch, and folders that get empty by that.
void discard_cached(const Fetched& fetched, const Settings& settings);

}  // namespace cyb
