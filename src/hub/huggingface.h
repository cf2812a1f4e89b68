// SPDX-License-Identifier: Apache-2.0
// The Hugging Face Hub: what a repository holds, and which of its files make up the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hub/answer.h"
#include "hub/settings.h"
#include "hub/source.h"

namespace cyb {

struct HubFile {
  std::string path;
  std::optional<uint64_t> size;
  std::string sha256;    // of large files
  std::string git_sha1;  // of the others
};

struct HubRepo {
  std::string commit;   // what the revision stands for
  std::string license;  // empty: not stated
  std::vector<HubFile> files;
};

// /api/models/REPO: commit, licence, names of files. Throws FetchError.
HubRepo parse_hub_repo(const std::string& json, const std::string& repo);
// /api/models/REPO/tree/REVISION: files with sizes and digests.
std::vector<HubFile> parse_hub_tree(const std::string& json, const std::string& repo);
// The address of rel="next" in a Link header; empty if there is none.
std::string next_link(const std::string& link_header);

// The files to fetch, settings first. `wanted` (may be empty) is a path, or a part of one GGUF's name such as
// Q4_K_M. Throws FetchError that lists what there is when nothing fits or too much does.
std::vector<HubFile> choose_hub_files(const std::vector<HubFile>& files, const std::string& wanted,
                                      const std::string& repo);

// All shards of a file named x-00001-of-00003.gguf; the file itself if it is not such a shard.
std::vector<std::string> shard_names(const std::string& path);

// Asks the Hub. `source` is an hf: source.
HubRepo list_hub_repo(HttpClient& client, const Settings& settings, const Source& source,
                      FetchObserver& observer);

// Where one file of a repository is found.
std::string hub_file_url(const Settings& settings, const Source& source, const HubRepo& repo,
                         const std::string& path);
ServerAdvice hub_advice(const Settings& settings, const Source& source);

}  // namespace cyb
