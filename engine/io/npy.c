// Reading and writing .npy files (numpy.lib.format describes them): the magic text, a version, the length of a header,
// the header (a dict as Python writes it, with the keys descr, fortran_order and shape), the elements. Everything that
// the header says is checked against the file's size before a tensor is made.
#include "engine/io/npy.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/elements.h"

enum { HEADER_MAX = 64 << 10, ALIGNED = 64 };

typedef struct array { // what the header says
  enum td_element_kind kind;
  bool big_endian, by_columns;
  int rank;
  int64_t shape[TD_RANK_MAX], size;
  size_t begin; // of the elements
} array;

// ---- the header's text ----

typedef struct reader {
  const td_input *in;
  size_t at, end;
  array *array;
  unsigned seen; // keys, a bit each
} reader;

static void skip_space(reader *r) {
  while (r->at < r->end && r->in->bytes[r->at] && strchr(" \t\n\r\f", r->in->bytes[r->at])) r->at++;
}

static bool accept(reader *r, char c) {
  skip_space(r);
  if (r->at >= r->end || r->in->bytes[r->at] != (uint8_t)c) return false;
  r->at++;
  return true;
}

static int expect(reader *r, char c) {
  if (accept(r, c)) return TD_OK;
  return td_input_refuse(r->in, r->at, "the header needs '%c' here", c);
}

static int read_text(reader *r, char *text, size_t size, const char *what) { // 'x' or "x", without escapes
  skip_space(r);
  size_t begin = r->at;
  const uint8_t *bytes = r->in->bytes;
  if (begin >= r->end || (bytes[begin] != '\'' && bytes[begin] != '"'))
    return td_input_refuse(r->in, begin, "the header needs %s in quotes here", what);
  const uint8_t *last = memchr(bytes + begin + 1, bytes[begin], r->end - begin - 1);
  size_t length = last ? (size_t)(last - bytes) - begin - 1 : 0;
  if (!last || length >= size)
    return td_input_refuse(r->in, begin, last ? "%s is too long" : "%s has no closing quote", what);
  memcpy(text, bytes + begin + 1, length);
  text[length] = 0;
  if (strlen(text) != length) return td_input_refuse(r->in, begin, "%s holds a NUL byte", what);
  r->at = (size_t)(last - bytes) + 1;
  return TD_OK;
}

static int read_size(reader *r, int64_t *size) { // digits, and the L of Python 2
  skip_space(r);
  size_t begin = r->at;
  *size = 0;
  for (; r->at < r->end && r->in->bytes[r->at] >= '0' && r->in->bytes[r->at] <= '9'; r->at++)
    if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, r->in->bytes[r->at] - '0', size))
      return td_input_refuse(r->in, begin, "a size of the shape is larger than any array's");
  if (r->at == begin) return td_input_refuse(r->in, begin, "the shape needs a size of 0 or more here");
  if (r->at < r->end && r->in->bytes[r->at] == 'L') r->at++;
  return TD_OK;
}

static int read_shape(reader *r) {
  array *a = r->array;
  int code = expect(r, '(');
  while (!code && !accept(r, ')')) {
    size_t begin = r->at;
    int64_t size;
    code = read_size(r, &size);
    if (code) return code;
    if (a->rank == TD_RANK_MAX) return td_input_refuse(r->in, begin, "the shape has more than %d axes", TD_RANK_MAX);
    a->shape[a->rank++] = size;
    if (accept(r, ')')) return TD_OK;
    code = expect(r, ',');
  }
  return code;
}

static int read_order(reader *r) {
  skip_space(r);
  const uint8_t *at = r->in->bytes + r->at;
  size_t left = r->end - r->at;
  r->array->by_columns = left >= 4 && !memcmp(at, "True", 4);
  if (!r->array->by_columns && (left < 5 || memcmp(at, "False", 5)))
    return td_input_refuse(r->in, r->at, "fortran_order must be True or False");
  r->at += r->array->by_columns ? 4 : 5;
  return TD_OK;
}

static const char *reason_against(char letter) {
  switch (letter) {
  case 'O': return "Python objects, which are pickled: loading them would run code of whoever made the file";
  case 'c': return "complex numbers, which tensors can't hold";
  case 'S':
  case 'U':
  case 'a': return "texts: a .csv file or a list can hold them";
  case 'M':
  case 'm': return "dates: turn them into numbers first, by x.astype('int64')";
  case 'V': return "records or raw bytes";
  default: return NULL;
  }
}

static int find_kind(const reader *r, size_t at, const char *text) {
  static const struct {
    const char *text;
    enum td_element_kind kind;
  } kinds[] = {{"b1", TD_ELEMENT_BOOL}, {"?", TD_ELEMENT_BOOL}, {"u1", TD_ELEMENT_U8},  {"B", TD_ELEMENT_U8},
               {"i1", TD_ELEMENT_I8},   {"b", TD_ELEMENT_I8},   {"u2", TD_ELEMENT_U16}, {"i2", TD_ELEMENT_I16},
               {"u4", TD_ELEMENT_U32},  {"i4", TD_ELEMENT_I32}, {"u8", TD_ELEMENT_U64}, {"i8", TD_ELEMENT_I64},
               {"f2", TD_ELEMENT_F16},  {"f4", TD_ELEMENT_F32}, {"f8", TD_ELEMENT_F64}, {"V2", TD_ELEMENT_BF16}};
  const char *type = text + (*text && strchr("<>|=", *text) != NULL);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(type, kinds[i].text)) continue;
    r->array->kind = kinds[i].kind;
    r->array->big_endian = *text == '>';
    if (*text != '=') return TD_OK;
    return td_input_refuse(r->in, at, "dtype '%s' leaves the byte order to the reader's machine", text);
  }
  const char *reason = reason_against(*type);
  if (reason) return td_input_refuse(r->in, at, "dtype '%s': %s", text, reason);
  return td_input_refuse(r->in, at, "dtype '%s' is none that a tensor can hold", text);
}

static int read_descr(reader *r) {
  char text[24];
  skip_space(r);
  size_t begin = r->at;
  if (begin < r->end && r->in->bytes[begin] == '[')
    return td_input_refuse(r->in, begin, "an array of records: save each field as an array of its own");
  int code = read_text(r, text, sizeof text, "the dtype");
  return code ? code : find_kind(r, begin, text);
}

static int read_pair(reader *r) {
  static const struct {
    const char *key;
    int (*read)(reader *);
  } keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
  char key[24];
  skip_space(r);
  size_t begin = r->at;
  int code = read_text(r, key, sizeof key, "a key");
  if (!code) code = expect(r, ':');
  if (code) return code;
  for (unsigned i = 0; i < 3; i++) {
    if (strcmp(key, keys[i].key)) continue;
    if (r->seen & 1u << i) return td_input_refuse(r->in, begin, "the key '%s' comes twice", key);
    r->seen |= 1u << i;
    return keys[i].read(r);
  }
  return td_input_refuse(r->in, begin, "the key '%s' is none of descr, fortran_order, shape", key);
}

static int read_dict(reader *r) {
  size_t begin = r->at;
  int code = expect(r, '{');
  while (!code && !accept(r, '}')) {
    code = read_pair(r);
    if (code || accept(r, '}')) break;
    code = expect(r, ',');
  }
  if (code) return code;
  skip_space(r);
  if (r->at < r->end) return td_input_refuse(r->in, r->at, "text follows the header's dict");
  if (r->seen != 7) return td_input_refuse(r->in, begin, "the header lacks one of descr, fortran_order, shape");
  return TD_OK;
}

// ---- the file ----

static int read_start(const td_input *in, reader *r) { // magic, version, length of the header
  if (in->size < 10) return td_input_refuse(in, in->size, "the file ends within its first 10 bytes");
  if (memcmp(in->bytes, "\x93NUMPY", 6))
    return td_input_refuse(in, 0, "not a .npy file: it doesn't begin with \\x93NUMPY");
  int version = in->bytes[6];
  if (version < 1 || version > 3 || in->bytes[7])
    return td_input_refuse(in, 6, "version %d.%d of the format is none of 1.0, 2.0, 3.0", version, in->bytes[7]);
  int width = version == 1 ? 2 : 4;
  if (in->size < 8 + (size_t)width) return td_input_refuse(in, in->size, "the file ends within the header's length");
  uint64_t length = td_little_endian(in->bytes + 8, width);
  r->at = 8 + (size_t)width;
  if (length > HEADER_MAX)
    return td_input_refuse(in, 8, "the header is to be %llu bytes long; %d are accepted", (unsigned long long)length,
                           HEADER_MAX);
  if (length > in->size - r->at)
    return td_input_refuse(in, 8, "the header is to be %llu bytes long, %zu are there", (unsigned long long)length,
                           in->size - r->at);
  r->end = r->at + length;
  return TD_OK;
}

static int check_size(const td_input *in, array *a) {
  const td_element_row *row = &td_element_rows[a->kind];
  size_t there = in->size - a->begin;
  int64_t bytes = 0;
  a->size = td_shape_size(a->rank, a->shape);
  if (a->size < 0 || __builtin_mul_overflow(a->size, (int64_t)row->bytes, &bytes) || bytes < 0)
    return td_input_refuse(in, a->begin, "the product of the sizes is larger than any array's");
  if ((uint64_t)bytes > there)
    return td_input_refuse(in, in->size,
                           "the file is truncated: the elements need %lld bytes from byte %zu, %zu are there",
                           (long long)bytes, a->begin, there);
  if ((uint64_t)bytes < there)
    return td_input_refuse(in, a->begin + (size_t)bytes, "%zu bytes follow the last element", there - (size_t)bytes);
  return TD_OK;
}

static int read_header(const td_input *in, array *a) {
  *a = (array){0};
  reader r = {.in = in, .array = a};
  int code = read_start(in, &r);
  if (!code) code = read_dict(&r);
  a->begin = r.end;
  return code ? code : check_size(in, a);
}

static void tell(const td_input *in, const array *a) {
  td_elements_tell(in, in->member ? in->member : in->path, a->kind);
}

static int refuse_element(const td_input *in, const array *a, int64_t index) {
  uint64_t byte = a->begin + (uint64_t)index * td_element_rows[a->kind].bytes;
  if (a->kind == TD_ELEMENT_BOOL) return td_input_refuse(in, byte, "a bool is 0 or 1, not %d", in->bytes[byte]);
  return td_input_refuse(in, byte, "element %lld is past what int64 can hold", (long long)index);
}

// The elements in the file's own order: a tensor of the reversed shape where that is by columns. first: an element.
static td_tensor *decode(const td_input *in, const array *a, const int64_t *shape, int64_t first) {
  const td_element_row *row = &td_element_rows[a->kind];
  td_tensor *t = td_tensor_new(in->context, row->dtype, a->rank, shape);
  if (!t) return NULL;
  int64_t wrong =
      td_elements_decode(t->data, in->bytes + a->begin + first * row->bytes, a->kind, a->big_endian, t->size);
  if (wrong < 0) return t;
  td_tensor_unref(t);
  refuse_element(in, a, first + wrong);
  return NULL;
}

static td_tensor *turned(td_context *context, td_tensor *t) { // axes reversed; takes over t
  int64_t shape[TD_RANK_MAX], strides[TD_RANK_MAX];
  for (int i = 0; i < t->rank; i++) {
    shape[i] = t->shape[t->rank - 1 - i];
    strides[i] = t->strides[t->rank - 1 - i];
  }
  td_tensor *view = td_tensor_view(context, t, t->rank, shape, strides, 0);
  td_tensor_unref(t);
  return view;
}

static void reverse(int rank, const int64_t *shape, int64_t *reversed) {
  for (int i = 0; i < rank; i++) reversed[i] = shape[rank - 1 - i];
}

static td_tensor *make(const td_input *in, const array *a) {
  if (!a->by_columns || a->rank < 2) return decode(in, a, a->shape, 0);
  int64_t reversed[TD_RANK_MAX];
  reverse(a->rank, a->shape, reversed);
  td_tensor *t = decode(in, a, reversed, 0), *view = t ? turned(in->context, t) : NULL;
  td_tensor *result = view ? td_tensor_contiguous(in->context, view) : NULL;
  td_tensor_unref(view);
  return result;
}

int td_npy_parse(const td_input *in, td_tensor **out) {
  array a;
  *out = NULL;
  int code = read_header(in, &a);
  if (code) return code;
  *out = make(in, &a);
  if (!*out) return in->context->error.code;
  tell(in, &a);
  return TD_OK;
}

static bool can_be_mapped(const td_input *in, const array *a) { // bools would have to be looked through first
  const td_element_row *row = &td_element_rows[a->kind];
  bool native = row->bytes == 1 || a->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
  return in->mapped && row->same && native && a->kind != TD_ELEMENT_BOOL && a->begin % row->bytes == 0 && a->size;
}

static td_tensor *wrap(td_input *in, const array *a) {
  int64_t shape[TD_RANK_MAX];
  bool turn = a->by_columns && a->rank > 1;
  if (turn) reverse(a->rank, a->shape, shape);
  else memcpy(shape, a->shape, sizeof shape);
  td_storage *storage = td_input_storage(in);
  if (!storage) return NULL;
  td_tensor *t =
      td_tensor_wrap(in->context, td_element_rows[a->kind].dtype, a->rank, shape, storage, storage->data + a->begin);
  return t && turn ? turned(in->context, t) : t;
}

static td_tensor *rows_of(const td_input *in, const array *a, const td_npy_options *options) {
  if (!a->rank || a->by_columns) {
    td_input_refuse(in, a->begin,
                    a->rank ? "rows of a column-major array don't lie together" : "an array of rank 0 has no rows");
    return NULL;
  }
  int64_t count = a->shape[0], start = options->start, stop = options->stop < count ? options->stop : count;
  if (start > count) start = count;
  if (stop < start) stop = start;
  int64_t shape[TD_RANK_MAX];
  memcpy(shape, a->shape, sizeof shape);
  shape[0] = stop - start;
  return decode(in, a, shape, count ? start * (a->size / count) : 0);
}

int td_npy_load(td_context *context, const char *path, const td_npy_options *options, td_tensor **out) {
  td_input in;
  array a;
  *out = NULL;
  int code = td_input_open(&in, context, "load_npy", path);
  if (!code) code = read_header(&in, &a);
  if (!code) {
    if (options->part) *out = rows_of(&in, &a, options);
    else if (options->map && can_be_mapped(&in, &a)) *out = wrap(&in, &a);
    else *out = make(&in, &a);
    code = *out ? td_input_check(&in) : context->error.code;
  }
  if (!code) tell(&in, &a);
  td_input_close(&in);
  if (code) {
    td_tensor_unref(*out);
    *out = NULL;
  }
  return code;
}

// ---- writing ----

static const char *descr(uint8_t dtype) {
  static const char *const texts[TD_DTYPE_COUNT] = {
      [TD_BOOL] = "|b1",    [TD_UINT8] = "|u1",    [TD_INT32] = "<i4",   [TD_INT64] = "<i8",
      [TD_FLOAT16] = "<f2", [TD_BFLOAT16] = "<V2", [TD_FLOAT32] = "<f4", [TD_FLOAT64] = "<f8"};
  return texts[dtype];
}

void td_npy_header(const td_tensor *t, td_text *text) {
  td_text dict = {0};
  td_text_print(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr(t->dtype));
  for (int i = 0; i < t->rank; i++)
    td_text_print(&dict, "%lld%s", (long long)t->shape[i], t->rank == 1 ? "," : i + 1 < t->rank ? ", " : "");
  td_text_add(&dict, "), }");
  td_text_pad(&dict, (dict.length + 11 + ALIGNED - 1) / ALIGNED * ALIGNED - 11, ' ');
  td_text_add_char(&dict, '\n');
  const char start[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(dict.length & 255), (char)(dict.length >> 8)};
  td_text_add_bytes(text, start, sizeof start);
  if (dict.data) td_text_add_bytes(text, dict.data, dict.length);
  text->failed |= dict.failed;
  td_text_clear(&dict);
}

int td_npy_save(td_context *context, const char *path, td_tensor *t) {
  td_text header = {0};
  td_npy_header(t, &header);
  td_tensor *whole = td_tensor_contiguous(context, t);
  int code = header.failed ? td_error_memory(context, "save_npy", td_memory_failed())
             : whole       ? TD_OK
                           : context->error.code;
  if (!code) {
    size_t bytes = (size_t)whole->size * (size_t)td_dtype_bytes(whole->dtype);
    const td_file_part parts[] = {{header.data, header.length}, {whole->data, bytes}};
    code = td_file_save_parts(context, path, parts, 2);
  }
  td_tensor_unref(whole);
  td_text_clear(&header);
  return code;
}
