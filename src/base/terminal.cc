// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/file.h"

namespace cyb {
namespace {

void end_cleanly(int signal_number) {
  remove_open_temporary_files();
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

int terminal_columns(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool wants_color(std::FILE* stream) {
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if ((none && *none) || (term && std::strcmp(term, "dumb") == 0)) return false;
  return is_terminal(stream);
}

void clean_up_on_signals() {
  struct sigaction action {};
  action.sa_handler = end_cleanly;
  action.sa_flags = SA_NODEFER;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // nohup stays
  }
}

}  // namespace cyb
