// SPDX-License-Identifier: Apache-2.0
// One function for each kind of source; fetch.cc chooses among them.
#pragma once

#include <optional>
#include <string>

#include "hub/fetch.h"
#include "hub/http.h"

namespace cyb {

struct FetchContext {
  const Settings& settings;
  const FetchOptions& options;
  FetchObserver& observer;
  HttpClient& client;

  // Where files of this fetch go: options.directory, or `below` in the cache.
  std::string folder(const std::string& below) const {
    return options.directory.empty() ? settings.cache_dir() + "/" + below : options.directory;
  }
};

Fetched fetch_huggingface(const FetchContext& context, const CatalogSource& source);
Fetched fetch_ollama(const FetchContext& context, const CatalogSource& source);
Fetched fetch_pypi(const FetchContext& context, const CatalogSource& source);
Fetched fetch_url(const FetchContext& context, const CatalogSource& source);
Fetched fetch_path(const CatalogSource& source);

// Whether `path` already is the wanted file: a complete one of that size and digest, as far as they are
// known. Outside the cache a file that is there and is not proven the same is an error, since nothing of the
// user's is overwritten.
bool already_there(const FetchContext& context, const std::string& path, std::optional<uint64_t> size,
                   const std::string& sha256);

// The file's name without folders and the suffix of its format.
std::string model_stem(const std::string& path);

}  // namespace cyb
