// SPDX-License-Identifier: Apache-2.0
// A package index's page about one project (simple repository API, JSON or HTML), and the choice of a wheel
// from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cyb {

struct IndexFile {
  std::string filename, url;
  std::string sha256;  // empty: the index names none
  std::optional<uint64_t> size;
  bool yanked = false;
};

// `page_url` is where the page came from: addresses in it may be relative. Throws FetchError for what is no
// such page.
std::vector<IndexFile> parse_index_json(const std::string& text, const std::string& page_url);
std::vector<IndexFile> parse_index_html(const std::string& text, const std::string& page_url);

// "Foo.Bar_baz" → "foo-bar-baz", as the index names projects.
std::string normal_project_name(const std::string& name);

// Order of versions as packages number them (1.0.dev1 < 1.0a1 < 1.0 < 1.0.post1 < 2!0.1); <0, 0, >0.
int compare_versions(const std::string& a, const std::string& b);
bool is_prerelease(const std::string& version);

struct Wheel {
  std::string project, version, tags;
};
// Parts of a wheel's file name; nothing if it is no wheel.
std::optional<Wheel> parse_wheel_name(const std::string& filename);

// The wheel of the wanted version, or of the newest that is neither withdrawn nor a pre-release; one for any
// platform goes first, since only the data in it is used. Throws FetchError that says what there is.
IndexFile choose_wheel(const std::vector<IndexFile>& files, const std::string& project,
                       const std::string& version);

}  // namespace cyb
