// SPDX-License-Identifier: Apache-2.0
// PNG through libpng. Rows are taken one by one, those of interlaced pictures straight to their places.
#include <png.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "media/picture/decode.h"

namespace cyb {
namespace {

constexpr png_alloc_size_t kMaxChunk = 8 << 20;

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes bytes;
  size_t at = 0;
  char message[160] = "";
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void fail(png_structp png, png_const_charp text) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof reader->message, "%s", text);
  png_longjmp(png, 1);
}
void ignore(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->bytes.size() - reader->at) png_error(png, "the file ends too early");
  std::memcpy(out, reader->bytes.data() + reader->at, count);
  reader->at += count;
}

// Nothing with a destructor lives in these two: errors jump back.
bool read_header(Reader* reader) {
  png_structp png = reader->png;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, reader, read_bytes);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours come with a better message
  png_set_chunk_malloc_max(png, kMaxChunk);
  // Texts and profiles change no pixel, and may be bombs.
  static const png_byte kKnown[] = "tRNS\0";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, kKnown, 1);
  png_read_info(png, reader->info);
  return true;
}

bool read_rows(Reader* reader, PictureBuilder* builder, uint8_t* row) {
  png_structp png = reader->png;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_read_update_info(png, reader->info);
  const bool alpha = png_get_channels(png, reader->info) == 4;
  const png_uint_32 width = png_get_image_width(png, reader->info),
                    height = png_get_image_height(png, reader->info);
  if (png_get_interlace_type(png, reader->info) == PNG_INTERLACE_NONE) {
    for (png_uint_32 y = 0; y < height; y++) {
      png_read_row(png, row, nullptr);
      alpha ? builder->set_rgba_row(y, row) : builder->set_row(y, row);
    }
    return true;
  }
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
    const png_uint_32 columns = PNG_PASS_COLS(width, pass), rows = PNG_PASS_ROWS(height, pass);
    if (columns == 0) continue;
    for (png_uint_32 r = 0; r < rows; r++) {
      png_read_row(png, row, nullptr);
      for (png_uint_32 c = 0; c < columns; c++) {
        uint8_t rgb[3];
        const uint8_t* pixel = row + size_t{c} * (alpha ? 4 : 3);
        if (alpha)
          over_white(pixel, rgb);
        else
          std::memcpy(rgb, pixel, 3);
        builder->set_pixel(PNG_COL_FROM_PASS_COL(c, pass), PNG_ROW_FROM_PASS_ROW(r, pass), rgb);
      }
    }
  }
  return true;
}

}  // namespace

Picture decode_png(Bytes bytes) {
  const auto reader = std::make_unique<Reader>();
  reader->bytes = bytes;
  reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader.get(), fail, ignore);
  if (reader->png) reader->info = png_create_info_struct(reader->png);
  if (!reader->info) throw error(ErrorKind::OutOfMemory, "PNG: no memory for the reader");
  if (!read_header(reader.get())) throw damaged_picture("PNG", reader->message);
  const int64_t width = png_get_image_width(reader->png, reader->info),
                height = png_get_image_height(reader->png, reader->info);
  check_picture_size("PNG", width, height);
  PictureBuilder builder("PNG", width, height, png_orientation(bytes));
  // libpng expands in place: up to 8 bytes a pixel.
  std::vector<uint8_t> row(static_cast<size_t>(width * 8));
  if (!read_rows(reader.get(), &builder, row.data())) throw damaged_picture("PNG", reader->message);
  return builder.take();
}

}  // namespace cyb
