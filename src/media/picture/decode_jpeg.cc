// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg with its default settings (accurate integer DCT, smooth upsampling), as Pillow has it.
#include <csetjmp>
#include <cstdio>
#include <cstring>
// After cstdio, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <memory>

#include "media/picture/decode.h"

namespace cyb {
namespace {

// Coefficients of progressive pictures, and the library's own buffers.
constexpr int64_t kMaxMemory = int64_t{270} << 20;
// Scans over the whole picture, in pixels: a small file can ask for thousands.
constexpr int64_t kMaxScanned = int64_t{1} << 29;

struct Reader {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  jmp_buf failed;
  char message[JMSG_LENGTH_MAX + 1] = "";
  bool ended = false;  // the data ended before the end marker
  bool gap = false;    // pixels were missing

  static Reader& of(void* common) {
    return *static_cast<Reader*>(static_cast<j_common_ptr>(common)->client_data);
  }
};

[[noreturn]] void fail(j_common_ptr common) {
  Reader& reader = Reader::of(common);
  (*common->err->format_message)(common, reader.message);
  longjmp(reader.failed, 1);
}
[[noreturn]] void fail_with(j_common_ptr common, const char* text) {
  Reader& reader = Reader::of(common);
  std::snprintf(reader.message, sizeof reader.message, "%s", text);
  longjmp(reader.failed, 1);
}
void take_message(j_common_ptr common, int level) {
  if (level >= 0 || common->err->msg_code != JWRN_HIT_MARKER) return;
  // A lost restart marker costs a few pixels; any other one where pixels should be means that they end there.
  const int marker = reinterpret_cast<j_decompress_ptr>(common)->unread_marker;
  if (marker < JPEG_RST0 || marker > JPEG_RST0 + 7) Reader::of(common).gap = true;
}
void no_output(j_common_ptr) {}

void start(j_decompress_ptr) {}
boolean refill(j_decompress_ptr info) {
  static const JOCTET kEnd[] = {0xff, JPEG_EOI};
  Reader::of(info).ended = true;
  info->src->next_input_byte = kEnd;
  info->src->bytes_in_buffer = sizeof kEnd;
  return TRUE;
}
void skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer)
    fail_with(reinterpret_cast<j_common_ptr>(info), "the file ends too early");
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<size_t>(count);
}

void watch(j_common_ptr common) {
  const auto* info = reinterpret_cast<j_decompress_ptr>(common);
  if (int64_t{info->input_scan_number} * info->image_width * info->image_height > kMaxScanned)
    fail_with(common, "too many scans for a picture of this size");
}

// Pillow's conversion, of values that Adobe's programs store inverted.
void cmyk_row(const uint8_t* in, int64_t n, uint8_t* out) noexcept {
  for (int64_t x = 0; x < n; x++) {
    const int nk = in[x * 4 + 3];  // 255 − k
    for (int c = 0; c < 3; c++) {
      const int t = (255 - in[x * 4 + c]) * nk + 128;
      out[x * 3 + c] = static_cast<uint8_t>(std::clamp(nk - (((t >> 8) + t) >> 8), 0, 255));
    }
  }
}

// Nothing with a destructor lives here: errors jump back.
bool read_header(Reader* reader, Bytes bytes) {
  reader->info.err = jpeg_std_error(&reader->errors);
  reader->errors.error_exit = fail;
  reader->errors.emit_message = take_message;
  reader->errors.output_message = no_output;
  reader->info.client_data = reader;
  if (setjmp(reader->failed)) return false;
  jpeg_create_decompress(&reader->info);
  reader->info.mem->max_memory_to_use = kMaxMemory;
  reader->source = {bytes.data(), bytes.size(), start, refill, skip, jpeg_resync_to_restart, start};
  reader->info.src = &reader->source;
  jpeg_read_header(&reader->info, TRUE);
  return true;
}

bool read_rows(Reader* reader, PictureBuilder* builder, uint8_t* row, uint8_t* rgb) {
  jpeg_decompress_struct& info = reader->info;
  if (setjmp(reader->failed)) return false;
  reader->progress.progress_monitor = watch;
  if (jpeg_has_multiple_scans(&info)) info.progress = &reader->progress;
  jpeg_start_decompress(&info);
  // A picture in several scans that ends early would be a blurred one.
  if (info.progress && reader->ended)
    fail_with(reinterpret_cast<j_common_ptr>(&info), "the file ends too early");
  info.progress = nullptr;
  while (info.output_scanline < info.output_height) {
    const int64_t y = info.output_scanline, n = info.output_width;
    jpeg_read_scanlines(&info, &row, 1);
    if (info.out_color_components == 3) {
      builder->set_row(y, row);
    } else if (info.out_color_components == 1) {
      for (int64_t x = 0; x < n; x++) rgb[x * 3] = rgb[x * 3 + 1] = rgb[x * 3 + 2] = row[x];
      builder->set_row(y, rgb);
    } else {
      cmyk_row(row, n, rgb);
      builder->set_row(y, rgb);
    }
  }
  if (reader->gap) {
    std::strcpy(reader->message, "the file ends too early");
    return false;
  }
  return true;
}

}  // namespace

Picture decode_jpeg(Bytes bytes) {
  const auto destroy = [](Reader* r) {
    jpeg_destroy_decompress(&r->info);
    delete r;
  };
  const std::unique_ptr<Reader, decltype(destroy)> reader(new Reader, destroy);
  if (!read_header(reader.get(), bytes)) throw damaged_picture("JPEG", reader->message);
  jpeg_decompress_struct& info = reader->info;
  const int64_t width = info.image_width, height = info.image_height;
  check_picture_size("JPEG", width, height);
  if (info.num_components == 2)
    throw error(ErrorKind::InvalidFile, "JPEG: a picture of 2 colour components")
        .advise("save it as RGB or grey");
  if (jpeg_has_multiple_scans(&info)) {
    int64_t memory = width * height * 3;
    for (int c = 0; c < info.num_components; c++)
      memory += int64_t{info.comp_info[c].width_in_blocks} * info.comp_info[c].height_in_blocks * 128;
    if (memory > kMaxMemory)
      throw error(ErrorKind::InvalidFile,
                  "JPEG: a progressive picture of {} × {} pixels takes {} MB, more than {} MB", width, height,
                  memory >> 20, kMaxMemory >> 20)
          .advise("make the picture smaller, or save it as a baseline JPEG");
  }
  info.out_color_space = info.num_components == 1   ? JCS_GRAYSCALE
                         : info.num_components == 4 ? JCS_CMYK
                                                    : JCS_RGB;
  PictureBuilder builder("JPEG", width, height, jpeg_orientation(bytes));
  std::vector<uint8_t> row(static_cast<size_t>(width * 4)), rgb(static_cast<size_t>(width * 3));
  if (!read_rows(reader.get(), &builder, row.data(), rgb.data()))
    throw damaged_picture("JPEG", reader->message);
  return builder.take();
}

}  // namespace cyb
