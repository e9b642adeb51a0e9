// Reading and writing by libpng. It leaves a call that fails by longjmp, to the one setjmp around all of a picture's
// work; what that work makes is kept in its struct, so that it can be dropped. libpng's memory is td_memory's.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "engine/io/png.h"

#include <math.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"

#ifdef HAVE_PNG
#include <png.h>
#include <setjmp.h>

enum { RATIO_MAX = 200, SIDE_MAX = 1 << 24 };
static const uint64_t UNPACKED_FREE = (uint64_t)64 << 20; // a picture may always have this size

typedef struct work {
  td_input in;
  size_t at; // bytes that libpng has taken
  const char *who;
  const td_tensor *source; // of what is written
  td_tensor *tensor; // what was read
  td_text *out;
  char *row;
  char error[160];
  bool no_memory;
} work;

static void fail(png_structp png, png_const_charp message) {
  work *w = png_get_error_ptr(png);
  snprintf(w->error, sizeof w->error, "%s", message);
  png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {
  (void)png;
  (void)message;
}

static png_voidp memory_new(png_structp png, png_alloc_size_t size) {
  work *w = png_get_mem_ptr(png);
  void *block = td_memory_new(size);
  if (!block) w->no_memory = true;
  return block;
}

static void memory_free(png_structp png, png_voidp block) {
  (void)png;
  td_memory_free(block);
}

// ---- reading ----

static void take(png_structp png, png_bytep bytes, size_t size) {
  work *w = png_get_io_ptr(png);
  if (size > w->in.size - w->at) png_error(png, "the file is truncated");
  memcpy(bytes, w->in.bytes + w->at, size);
  w->at += size;
}

static void set_up(png_structp png) { // all depths and kinds become 8 or 16 bits of grey, grey and alpha, RGB or RGBA
  png_set_expand(png);
  if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(png);
}

static void check_size(png_structp png, work *w, uint64_t width, uint64_t height, int channels) {
  uint64_t bytes = width * height * (uint64_t)channels;
  if (bytes <= UNPACKED_FREE || bytes / RATIO_MAX <= w->in.size) return;
  snprintf(w->error, sizeof w->error, "a picture of %llu x %llu is too large for a file of %zu bytes",
           (unsigned long long)width, (unsigned long long)height, w->in.size);
  png_longjmp(png, 1);
}

static void make_tensor(png_structp png, png_infop info, work *w) {
  int channels = png_get_channels(png, info);
  bool deep = png_get_bit_depth(png, info) == 16;
  int64_t shape[3] = {png_get_image_height(png, info), png_get_image_width(png, info), channels};
  check_size(png, w, (uint64_t)shape[1], (uint64_t)shape[0], channels);
  w->tensor = td_tensor_new(w->in.context, deep ? TD_INT32 : TD_UINT8, channels > 1 ? 3 : 2, shape);
  if (!w->tensor) png_longjmp(png, 1);
}

static void read_rows(png_structp png, work *w, int passes) {
  int64_t stride = w->tensor->strides[0] * td_dtype_bytes(w->tensor->dtype);
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < w->tensor->shape[0]; y++) {
      png_read_row(png, (png_bytep)w->tensor->data + y * stride, NULL);
      if (atomic_load_explicit(&w->in.context->interrupt, memory_order_relaxed)) png_longjmp(png, 1);
    }
}

static void widen_rows(td_tensor *t) { // 16 bits to 32, from the end of each row
  int64_t count = t->shape[0] ? t->size / t->shape[0] : 0;
  for (int64_t y = 0; y < t->shape[0]; y++) {
    int32_t *row = (int32_t *)t->data + y * count;
    for (int64_t i = count; i-- > 0;) {
      uint16_t value;
      memcpy(&value, (char *)row + i * 2, 2);
      row[i] = value;
    }
  }
}

static void read_picture(png_structp png, png_infop info, work *w) {
  png_set_read_fn(png, w, take);
  png_set_user_limits(png, SIDE_MAX, SIDE_MAX);
  png_set_chunk_malloc_max(png, 1 << 20);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png, info);
  set_up(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  make_tensor(png, info, w);
  read_rows(png, w, passes);
  png_read_end(png, NULL);
  if (w->tensor->dtype == TD_INT32) widen_rows(w->tensor);
}

// Runs a step under libpng's setjmp; true: it went through.
static bool guarded(png_structp png, png_infop info, work *w, void (*step)(png_structp, png_infop, work *)) {
  if (setjmp(png_jmpbuf(png))) return false;
  step(png, info, w);
  return true;
}

static int explain_read(const work *w) {
  td_context *context = w->in.context;
  if (atomic_load(&context->interrupt))
    return td_error_set(context, TD_ERROR_INTERRUPT, "load_png: '%s': interrupted", w->in.path);
  if (w->no_memory || !*w->error)
    return context->error.code ? context->error.code : td_error_memory(context, "load_png", td_memory_failed());
  return td_input_refuse(&w->in, w->at, "%s", w->error);
}

static int decode(work *w) {
  png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, w, fail, ignore, w, memory_new, memory_free);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  td_error_clear(w->in.context);
  bool done = info && guarded(png, info, w, read_picture);
  png_destroy_read_struct(&png, &info, NULL);
  if (!info && !done && !w->no_memory && !*w->error) w->no_memory = true;
  return done ? TD_OK : explain_read(w);
}

static int decode_input(work *w, td_tensor **out) { // closes it
  int code = TD_OK;
  if (w->in.size < 8 || png_sig_cmp(w->in.bytes, 0, 8))
    code = td_input_refuse(&w->in, 0, "not a PNG file: it doesn't begin with \\x89PNG");
  if (!code) code = decode(w);
  if (!code) code = td_input_check(&w->in);
  td_input_close(&w->in);
  if (!code) *out = w->tensor;
  else td_tensor_unref(w->tensor);
  return code;
}

int td_png_load(td_context *context, const char *path, td_tensor **out) {
  work w = {.who = "load_png"};
  *out = NULL;
  int code = td_input_open(&w.in, context, w.who, path);
  return code ? code : decode_input(&w, out);
}

int td_png_decode(td_context *context, const char *who, const char *path, const void *bytes, size_t size,
                  td_tensor **out) {
  work w = {.who = who,
            .in = {.context = context, .who = who, .path = path, .bytes = (const uint8_t *)bytes, .size = size}};
  *out = NULL;
  return decode_input(&w, out);
}

// ---- writing ----

static void give(png_structp png, png_bytep bytes, size_t size) {
  td_text_add_bytes(((work *)png_get_io_ptr(png))->out, (const char *)bytes, size);
}

static void flush(png_structp png) { (void)png; }

static bool is_deep(const td_tensor *t) { return t->dtype == TD_INT32 || t->dtype == TD_INT64; }

static uint8_t shade(double value) { return value > 0 ? value < 1 ? (uint8_t)lrint(value * 255) : 255 : 0; }

static void fill_row(const work *w, int64_t y, int64_t count) {
  const td_tensor *t = w->source;
  for (int64_t i = 0; i < count; i++) {
    int64_t index = y * count + i;
    if (is_deep(t)) {
      int64_t value = td_tensor_get_int(t, index);
      w->row[2 * i] = (char)(value >> 8);
      w->row[2 * i + 1] = (char)value;
    } else if (t->dtype == TD_UINT8) {
      w->row[i] = (char)td_tensor_get_int(t, index);
    } else {
      w->row[i] = (char)shade(td_tensor_get_float(t, index));
    }
  }
}

static void write_picture(png_structp png, png_infop info, work *w) {
  static const int kinds[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA};
  const td_tensor *t = w->source;
  int64_t channels = t->rank == 3 ? t->shape[2] : 1;
  png_set_write_fn(png, w, give, flush);
  png_set_user_limits(png, SIDE_MAX, SIDE_MAX);
  png_set_IHDR(png, info, (png_uint_32)t->shape[1], (png_uint_32)t->shape[0], is_deep(t) ? 16 : 8, kinds[channels],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  w->row = png_malloc(png, (size_t)(t->shape[1] * channels) * 2);
  for (int64_t y = 0; y < t->shape[0]; y++) {
    fill_row(w, y, t->shape[1] * channels);
    png_write_row(png, (png_bytep)w->row);
  }
  png_write_end(png, NULL);
}

static int encode(work *w) {
  td_context *context = w->in.context;
  png_structp png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, w, fail, ignore, w, memory_new, memory_free);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  bool done = info && guarded(png, info, w, write_picture);
  td_memory_free(w->row);
  png_destroy_write_struct(&png, &info);
  if (done && !w->out->failed) return TD_OK;
  if (done || w->no_memory || !*w->error) return td_error_memory(context, w->who, td_memory_failed());
  return td_error_set(context, TD_ERROR_VALUE, "%s: %s", w->who, w->error);
}

static int check_tensor(td_context *context, const char *who, const td_tensor *t) {
  td_meta meta = td_tensor_meta(t);
  int code = TD_OK;
  if ((t->rank != 2 && t->rank != 3) || (t->rank == 3 && (t->shape[2] < 1 || t->shape[2] > 4)))
    code =
        td_error_set(context, TD_ERROR_SHAPE, "%s: a picture's shape is [H, W] or [H, W, C] with 1 to 4 channels", who);
  else if (!t->size || t->shape[0] > SIDE_MAX || t->shape[1] > SIDE_MAX)
    code = td_error_set(context, TD_ERROR_SHAPE, "%s: a picture's sides are 1 to %d", who, SIDE_MAX);
  for (int64_t i = 0; !code && is_deep(t) && i < t->size; i++) {
    int64_t value = td_tensor_get_int(t, i);
    if (value < 0 || value > 65535)
      code =
          td_error_set(context, TD_ERROR_VALUE, "%s: element %lld is %lld: a picture of %s has values from 0 to 65535",
                       who, (long long)i, (long long)value, td_dtype_name(t->dtype));
  }
  if (code) td_error_operand(context, "x", -1, &meta);
  return code;
}

int td_png_encode(td_context *context, const char *who, const td_tensor *t, td_text *out) {
  work w = {.who = who, .in = {.context = context}, .source = t, .out = out};
  int code = check_tensor(context, who, t);
  return code ? code : encode(&w);
}

#else

static int refuse_all(td_context *context, const char *who) {
  td_error_set(context, TD_ERROR_STATE, "%s: this build has no libpng", who);
  td_error_hint(context, "install libpng with its headers, then configure and build again");
  return TD_ERROR_STATE;
}

int td_png_load(td_context *context, const char *path, td_tensor **out) {
  (void)path;
  *out = NULL;
  return refuse_all(context, "load_png");
}

int td_png_decode(td_context *context, const char *who, const char *path, const void *bytes, size_t size,
                  td_tensor **out) {
  (void)path, (void)bytes, (void)size;
  *out = NULL;
  return refuse_all(context, who);
}

int td_png_encode(td_context *context, const char *who, const td_tensor *t, td_text *out) {
  (void)t, (void)out;
  return refuse_all(context, who);
}
#endif

int td_png_save(td_context *context, const char *path, td_tensor *t) {
  td_text bytes = {0};
  int code = td_png_encode(context, "save_png", t, &bytes);
  if (!code) code = td_file_save(context, path, bytes.data, bytes.length);
  td_text_clear(&bytes);
  return code;
}
