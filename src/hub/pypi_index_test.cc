// SPDX-License-Identifier: Apache-2.0
#include "hub/pypi_index.h"

#include <gtest/gtest.h>

#include "hub/fetch_error.h"

namespace cyb {
namespace {

const std::string kDigest(64, 'b');

TEST(PackageIndex, json_page) {
  const auto files = parse_index_json(R"({"meta": {"api-version": "1.1"}, "files": [
    {"filename": "a-1-py3-none-any.whl", "url": "../../f/a.whl#x", "hashes": {"sha256": ")" +
                                          kDigest +
                                          R"("}, "size": 7, "yanked": false},
    {"filename": "a-2-py3-none-any.whl", "url": "https://other/a.whl", "hashes": {}, "yanked": "broken"}]})",
                                      "https://index/simple/a/");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].url, "https://index/f/a.whl");
  EXPECT_EQ(files[0].sha256, kDigest);
  EXPECT_EQ(files[0].size, 7u);
  EXPECT_FALSE(files[0].yanked);
  EXPECT_EQ(files[1].url, "https://other/a.whl");
  EXPECT_TRUE(files[1].yanked);
}

TEST(PackageIndex, html_page_with_relative_links_entities_and_base) {
  const auto files = parse_index_html(
      "<!DOCTYPE html><html><head><!-- <a href='no'> --></head><body>\n<a\n"
      "  href=\"../../p/a-1-py3-none-any.whl?x=1&amp;y=2#sha256=" +
          kDigest +
          "\" data-requires-python=\"&gt;=3.9\">a</a>"
          "<A HREF='b%2B1-2-py3-none-any.whl' data-yanked>b</A><a name=x>no</a></body>",
      "http://h:8080/simple/a/");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].url, "http://h:8080/p/a-1-py3-none-any.whl?x=1&y=2");
  EXPECT_EQ(files[0].filename, "a-1-py3-none-any.whl");
  EXPECT_EQ(files[0].sha256, kDigest);
  EXPECT_EQ(files[1].filename, "b+1-2-py3-none-any.whl");
  EXPECT_TRUE(files[1].yanked);
  const auto based =
      parse_index_html("<html><base href='https://cdn/x/'><a href='a.whl'>", "http://h/simple/a/");
  EXPECT_EQ(based.at(0).url, "https://cdn/x/a.whl");
}

TEST(PackageIndex, what_is_no_page_is_corrupt) {
  for (const char* text :
       {"", "{}", "[]", "{\"files\": 3}", "{\"files\": [{}]}", "{\"files\": [3]}",
        "{\"meta\": {\"api-version\": \"2.0\"}, \"files\": []}",
        "{\"files\": [{\"filename\": \"a\", \"url\": \"b\", \"hashes\": {\"sha256\": \"12\"}}]}"})
    EXPECT_THROW(parse_index_json(text, "http://h/"), FetchError) << text;
  EXPECT_THROW(parse_index_html("{\"message\": \"no\"}", "http://h/"), FetchError);
  for (const char* text : {"<a", "<a href", "<a href=", "<a href=\"", "<a href='x", "<!--", "<"}) {
    try {
      parse_index_html(text, "http://h/");
    } catch (const FetchError&) {
    }
  }
}

TEST(PackageIndex, versions_have_the_order_of_the_packaging_rules) {
  const char* const kRising[] = {"1.0.dev1", "1.0a1",      "1.0a2.dev1", "1.0a2", "1.0b1",
                                 "1.0rc1",   "1.0",        "1.0.post1",  "1.0.1", "1.2",
                                 "1.10",     "2.0-alpha3", "2.0",        "1!0.5"};
  for (size_t i = 0; i < std::size(kRising); ++i)
    for (size_t j = 0; j < std::size(kRising); ++j)
      EXPECT_EQ(compare_versions(kRising[i], kRising[j]) < 0, i < j) << kRising[i] << " " << kRising[j];
  EXPECT_EQ(compare_versions("1.0", "1"), 0);
  EXPECT_EQ(compare_versions("v1.0.0", "1.0+local"), 0);
  EXPECT_EQ(compare_versions("1.0-1", "1.0.post1"), 0);
  EXPECT_LT(compare_versions("odd", "0.1"), 0);
  EXPECT_TRUE(is_prerelease("1.0rc1"));
  EXPECT_TRUE(is_prerelease("1.0.post1.dev2"));
  EXPECT_FALSE(is_prerelease("1.0.post1"));
}

IndexFile wheel(const std::string& name, bool yanked = false) {
  return {.filename = name, .url = "http://h/" + name, .sha256 = "", .size = {}, .yanked = yanked};
}

TEST(PackageIndex, the_newest_wheel_for_any_platform_is_chosen) {
  const std::vector<IndexFile> files = {wheel("my_pkg-1.9-py3-none-any.whl"),
                                        wheel("my_pkg-1.10-cp311-cp311-manylinux_2_28_x86_64.whl"),
                                        wheel("my_pkg-1.10-1-py3-none-any.whl"),
                                        wheel("my_pkg-1.11-py3-none-any.whl", true),
                                        wheel("my_pkg-2.0a1-py3-none-any.whl"),
                                        wheel("other-9-py3-none-any.whl"),
                                        wheel("my_pkg-3.0.tar.gz")};
  EXPECT_EQ(choose_wheel(files, "My.Pkg", "").filename, "my_pkg-1.10-1-py3-none-any.whl");
  EXPECT_EQ(choose_wheel(files, "my-pkg", "1.9").filename, "my_pkg-1.9-py3-none-any.whl");
  EXPECT_EQ(choose_wheel(files, "my-pkg", "1.11").filename,
            "my_pkg-1.11-py3-none-any.whl");  // asked for by number
  EXPECT_EQ(choose_wheel({wheel("p-1.0rc1-py3-none-any.whl")}, "p", "").filename,
            "p-1.0rc1-py3-none-any.whl");
  EXPECT_THROW(choose_wheel(files, "my-pkg", "7"), FetchError);
  EXPECT_THROW(choose_wheel({wheel("p-1.tar.gz")}, "p", ""), FetchError);
}

}  // namespace
}  // namespace cyb
