// SPDX-License-Identifier: Apache-2.0
// libzip, loaded when an archive is first opened or written: with libcrypto, which it brings, it would take a
// third of the time of every start.
#pragma once

#include <zip.h>

namespace cyb {

#define CYB_ZIP_FUNCTIONS(X) \
  X(close)                   \
  X(discard)                 \
  X(error_fini)              \
  X(error_init)              \
  X(error_init_with_code)    \
  X(error_strerror)          \
  X(fclose)                  \
  X(file_add)                \
  X(file_strerror)           \
  X(fopen)                   \
  X(fopen_index)             \
  X(fread)                   \
  X(get_num_entries)         \
  X(open)                    \
  X(open_from_source)        \
  X(set_file_compression)    \
  X(source_buffer)           \
  X(source_buffer_create)    \
  X(source_close)            \
  X(source_free)             \
  X(source_keep)             \
  X(source_open)             \
  X(source_read)             \
  X(stat_index)              \
  X(strerror)

// Its functions, by their names without `zip_`.
struct ZipLibrary {
#define CYB_ZIP_POINTER(name) decltype(&::zip_##name) name = nullptr;
  CYB_ZIP_FUNCTIONS(CYB_ZIP_POINTER)
#undef CYB_ZIP_POINTER
};

// Throws Io where it is not installed.
const ZipLibrary& zip_library();

}  // namespace cyb
