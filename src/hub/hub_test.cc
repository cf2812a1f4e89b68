// SPDX-License-Identifier: Apache-2.0
// The smaller parts: addresses, manifests, settings, pip's configuration, archives, the store.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "hub/archive.h"
#include "hub/fetch_error.h"
#include "hub/ollama.h"
#include "hub/pip_config.h"
#include "hub/settings.h"
#include "hub/store.h"
#include "hub/url.h"

namespace cyb {
namespace {

TEST(Url, origin_resolution_and_what_may_be_printed) {
  EXPECT_EQ(url_origin("HTTPS://User:pw@Host/x"), "https://host:443");
  EXPECT_EQ(url_origin("http://h:8080"), "http://h:8080");
  EXPECT_EQ(url_origin("file:///etc/passwd"), "");
  EXPECT_EQ(url_origin("nonsense"), "");
  EXPECT_EQ(resolve_url("https://h/a/b/", "../c?x#f"), "https://h/a/c?x#f");
  EXPECT_EQ(resolve_url("https://h/a", "//other/b"), "https://other/b");
  EXPECT_EQ(printable_url("https://user:pw@h/a?signature=1#x"), "https://h/a");
  EXPECT_EQ(escape_path("a b/ü#?.gguf"), "a%20b/%C3%BC%23%3F.gguf");
  EXPECT_EQ(url_path("https://h/a%20b"), "/a b");
}

TEST(Url, paths_that_leave_their_folder_are_unsafe) {
  for (const char* path : {"a", "a/b.json", "a..b/c", "ü/x"}) EXPECT_TRUE(safe_relative_path(path)) << path;
  for (const char* path : {"", "/a", "a/", "../a", "a/../b", "a//b", "./a", "a\\b", "c:/x", "a\nb", "a/.."})
    EXPECT_FALSE(safe_relative_path(path)) << path;
  EXPECT_FALSE(safe_relative_path(std::string(2000, 'a')));
}

TEST(Ollama, manifest) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  const auto manifest = [&](const std::string& type) {
    return R"({"schemaVersion": 2, "config": {}, "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": ")" +
           digest + R"(", "size": 5}, {"mediaType": ")" + type + R"(", "digest": ")" + digest +
           R"(", "size": 6}]})";
  };
  const auto layers = parse_ollama_manifest(manifest("application/vnd.ollama.image.params"), "x");
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].kind, "model");
  EXPECT_EQ(layers[1].size, 6u);
  EXPECT_EQ(ollama_file_name(layers[1]), "params.json");
  EXPECT_THROW(parse_ollama_manifest(manifest("text/plain"), "x"), FetchError);
  EXPECT_THROW(parse_ollama_manifest(manifest("application/vnd.ollama.image.model"), "x"), FetchError);
  try {
    parse_ollama_manifest(manifest("application/vnd.ollama.image.adapter"), "x");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::UnsupportedModel);
  }
  for (const char* text : {"", "{}", R"({"schemaVersion": 1, "layers": []})",
                           R"({"schemaVersion": 2, "layers": []})", R"({"schemaVersion": 2, "layers": [3]})"})
    EXPECT_THROW(parse_ollama_manifest(text, "x"), FetchError) << text;
}

TEST(Ollama, places) {
  Settings settings;
  EXPECT_EQ(ollama_place(settings, parse_source("ollama:a")).path, "library/a");
  EXPECT_EQ(ollama_place(settings, parse_source("ollama:u/a")).path, "u/a");
  const OllamaPlace other = ollama_place(settings, parse_source("ollama:host:5000/u/a"));
  EXPECT_EQ(other.registry, "https://host:5000");
  EXPECT_EQ(other.path, "u/a");
}

TEST(PipConfig, files_are_read_as_pip_reads_them) {
  PipSettings settings;
  apply_pip_config(settings, parse_pip_config("; comment\n[global]\nIndex_URL = https://a/simple  \n"
                                              "extra-index-url =\n    https://b\n    https://c\n"
                                              "[download]\ntrusted-host: h1 h2\nno-index = true\n"
                                              "[install]\nindex-url = https://never\nnonsense\n"));
  EXPECT_EQ(settings.index_url, "https://a/simple");
  EXPECT_EQ(settings.extra_index_urls, (std::vector<std::string>{"https://b", "https://c"}));
  EXPECT_EQ(settings.trusted_hosts, (std::vector<std::string>{"h1", "h2"}));
  EXPECT_TRUE(settings.no_index);
}

TEST(Config, settings_are_taken_and_mistakes_named) {
  Settings settings;
  apply_config(settings,
               "[huggingface]\nendpoint = \"https://mirror\"\n[network]\nretries = "
               "9\n[pypi]\nextra_index_urls = [\"a\"]\n"
               "[serve]\nport = 1\n",
               "c");
  EXPECT_EQ(settings.hf_endpoint, "https://mirror");
  EXPECT_EQ(settings.network.retries, 9);
  EXPECT_EQ(settings.pip.extra_index_urls, std::vector<std::string>{"a"});
  for (const char* text :
       {"[network]\nretries = \"9\"\n", "[network]\nretries = -1\n", "[network]\nretrys = 1\n",
        "network = 3\n", "[pypi]\nextra_index_urls = \"a\"\n", "[huggingface]\ntoken = 3\n", "[x"})
    EXPECT_THROW(apply_config(settings, text, "c"), Error) << text;
}

struct Home {
  Settings settings;
  Home() {
    std::string name = (std::filesystem::temp_directory_path() / "cyb-hub-XXXXXX").string();
    settings.home = ::mkdtemp(name.data());
  }
  ~Home() { std::filesystem::remove_all(settings.home); }
  void add(const std::string& name, const std::string& text = "x") {
    std::filesystem::create_directories(settings.models_dir());
    std::ofstream(settings.models_dir() + "/" + name) << text;
  }
};

template <class F>
std::string failure(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message() + " / " + e.advice();
  }
  return "no error";
}

TEST(Store, names_paths_and_errors_of_resolution) {
  Home home;
  const Catalog catalog = load_catalog("");
  const auto resolve = [&](const std::string& text) { return resolve_model(text, home.settings, catalog); };
  EXPECT_NE(failure([&] { resolve("smollm2"); }).find("/ cyb-llm fetch smollm2"), std::string::npos);
  home.add("my-llama.model");
  home.add("other.model.123.partial");
  EXPECT_EQ(resolve("my-llama"), home.settings.models_dir() + "/my-llama.model");
  EXPECT_EQ(resolve(home.settings.models_dir() + "/my-llama.model"),
            home.settings.models_dir() + "/my-llama.model");
  EXPECT_EQ(list_stored(home.settings).size(), 1u);
  EXPECT_NE(failure([&] { resolve("my-lama"); }).find("did you mean my-llama"), std::string::npos);
  EXPECT_NE(failure([&] { resolve("gemma"); }).find("did you mean gemma3-270m"), std::string::npos);
  EXPECT_NE(failure([&] { resolve("zzzzzz"); }).find("fetch one with cyb-llm fetch NAME"), std::string::npos);
  EXPECT_NE(failure([&] { resolve("./absent.model"); }).find("there is no file"), std::string::npos);
  EXPECT_NE(failure([&] { resolve(home.settings.home); }).find("cyb-llm import"), std::string::npos);
  EXPECT_NE(failure([&] { stored_path(home.settings, "../x"); }).find("names are made of"),
            std::string::npos);
}

TEST(Store, removal_checks_all_names_first) {
  Home home;
  home.add("a.model");
  EXPECT_THROW(remove_stored(home.settings, {"a", "b"}), Error);
  EXPECT_EQ(list_stored(home.settings).size(), 1u);
  remove_stored(home.settings, {"a"});
  EXPECT_TRUE(list_stored(home.settings).empty());
}

TEST(Store, near_names) {
  const std::vector<std::string> names = {"smollm2", "gemma3-270m", "qwen2.5-coder-0.5b"};
  EXPECT_EQ(near_names("SmolLM", names), std::vector<std::string>{"smollm2"});
  EXPECT_EQ(near_names("qwen", names), std::vector<std::string>{"qwen2.5-coder-0.5b"});
  EXPECT_TRUE(near_names("whisper", names).empty());
}

TEST(Archive, what_is_no_archive_and_what_may_be_a_model) {
  Home home;
  home.add("x.model", "no archive");
  EXPECT_THROW(Archive(home.settings.models_dir() + "/x.model"), Error);
  const auto files = model_files({{"p/__init__.py", 1},
                                  {"p/m.gguf", 2},
                                  {"p-1.dist-info/METADATA", 3},
                                  {"p/README.md", 4},
                                  {"p/empty.bin", 0},
                                  {"p/LICENSE", 5},
                                  {"p/config.json", 6}});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "p/m.gguf");
  EXPECT_EQ(files[1].path, "p/config.json");
}

}  // namespace
}  // namespace cyb
