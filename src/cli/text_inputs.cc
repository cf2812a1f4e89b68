// SPDX-License-Identifier: Apache-2.0
#include "cli/text_inputs.h"

#include <iostream>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr uint64_t kMaxTexts = uint64_t{1} << 30;

// Lines; an empty last one is no text.
std::vector<std::string> lines_of(const std::string& all) {
  std::vector<std::string> out;
  for (size_t at = 0; at < all.size();) {
    size_t end = std::min(all.find('\n', at), all.size());
    size_t length = end - at;
    if (length > 0 && all[at + length - 1] == '\r') length--;
    out.push_back(all.substr(at, length));
    at = end + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> read_texts(const std::vector<std::string>& given, const std::string& file) {
  if (!given.empty() && !file.empty())
    throw error(ErrorKind::Usage, "texts are given, and a file of texts too").advise("give one of them");
  std::vector<std::string> texts = given;
  if (!file.empty() && file != "-") {
    texts = lines_of(read_file(file, kMaxTexts));
  } else if (given.empty()) {
    if (file.empty() && is_terminal(stdin))
      throw error(ErrorKind::Usage, "no text was given")
          .advise("give texts as arguments, with -f FILE one a line, or through a pipe");
    texts = lines_of(std::string(std::istreambuf_iterator<char>(std::cin), {}));
  }
  if (texts.empty()) throw error(ErrorKind::Usage, "there is no text in the input").advise("give one a line");
  for (size_t i = 0; i < texts.size(); i++)
    for (size_t at = 0; at < texts[i].size();) {
      const Utf8Prefix p = utf8_prefix(std::string_view(texts[i]).substr(at));
      if (!p.valid)
        throw error(ErrorKind::Usage, "text {} is not valid UTF-8: byte {} is 0x{:02x}", i + 1, at + 1,
                    static_cast<unsigned char>(texts[i][at]))
            .advise("convert it, for example with iconv -t UTF-8");
      at += p.length;
    }
  return texts;
}

}  // namespace cyb
