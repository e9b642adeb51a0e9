// See report.h.
#include "repl/notebook/report.h"
#include <math.h>
#include <string.h>
#include <time.h>
#include "engine/base/memory.h"
#include "engine/tensor/probe.h"
#include "repl/language/core.h"
#include "repl/language/watch.h"
#include "repl/notebook/commands.h"

double td_report_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- values ----

void td_report_tensor(const td_tensor *t, int elements, td_text *text) {
  if (t->flags & TD_TENSOR_BATCHED) return;
  bool floating = td_dtype_is_float(t->dtype), list = t->rank > 0;
  if (list) td_text_add_char(text, '[');
  for (int64_t i = 0; i < t->size && i < elements; i++) {
    if (i) td_text_add(text, ", ");
    if (floating) td_text_print(text, "%.4g", td_tensor_get_float(t, i));
    else td_tensor_print_element(t, i, text);
  }
  if (t->size > elements) td_text_add(text, ", ...");
  if (list) td_text_add_char(text, ']');
}

static void add_bytes(td_text *text, const char *bytes, size_t length, size_t most) { // whole characters on one line
  for (size_t i = 0, size; i < length; i += size) {
    size = (size_t)td_utf8_size((unsigned char)bytes[i]);
    if (i + size > most || i + size > length) {
      td_text_add(text, "...");
      return;
    }
    if ((unsigned char)bytes[i] < ' ' || bytes[i] == 0x7f) td_text_add_char(text, ' ');
    else td_text_add_bytes(text, bytes + i, size);
  }
}

static void add_items(td_interpreter *I, const td_value *items, int64_t count, const char *brackets, size_t most,
                      td_text *text) {
  size_t start = text->length;
  td_text_add_char(text, brackets[0]);
  for (int64_t i = 0; i < count; i++) {
    if (i) td_text_add(text, ", ");
    if (text->length - start > most / 2) {
      td_text_print(text, "... %lld items", (long long)count);
      break;
    }
    td_report_value(I, items[i], most / 4, text);
  }
  td_text_add_char(text, brackets[1]);
}

void td_report_value(td_interpreter *I, td_value v, size_t most, td_text *text) {
  td_text whole = {0};
  const td_tensor *t = td_tensor_of(v);
  if (t) td_report_tensor(t, most > 40 ? 6 : 2, text);
  else if (td_is(v, &td_list_type)) add_items(I, td_as_list(v)->items, td_as_list(v)->count, "[]", most, text);
  else if (td_is(v, &td_tuple_type)) add_items(I, td_as_tuple(v)->items, td_as_tuple(v)->count, "()", most, text);
  else if (td_is(v, &td_dict_type)) td_text_print(text, "dict of %lld", (long long)td_length(I, v));
  else if (td_is(v, &td_set_type)) td_text_print(text, "set of %lld", (long long)td_length(I, v));
  else if (td_is_instance(v)) td_text_print(text, "<%s>", td_type_name(I, v));
  else if (td_repr(I, v, &whole) && whole.data) add_bytes(text, whole.data, whole.length, most);
  else td_clear_raised(I);
  td_text_clear(&whole);
}

// ---- histograms ----

void td_report_histogram(const td_tensor *t, int64_t limit, td_histogram *h) {
  *h = (td_histogram){0};
  if (t->flags & TD_TENSOR_BATCHED) return;
  td_probe s;
  td_probe_take(t, limit, &s);
  int64_t finite = s.count - s.nans - s.infinities;
  h->elements = s.count;
  h->nans = s.nans;
  h->infinities = s.infinities;
  h->zeros = s.zeros;
  h->sampled = s.step > 1;
  double *values = finite ? td_memory_new((size_t)s.count * sizeof *values) : NULL;
  if (!values) return;
  h->least = s.least;
  h->most = s.most;
  h->mean = s.sum / (double)finite;
  td_probe_values(t, s.step, s.count, values);
  double width = (s.most - s.least) / TD_HISTOGRAM_BINS;
  for (int64_t i = 0; i < s.count; i++) {
    if (!isfinite(values[i])) continue;
    int bin = width > 0 ? (int)((values[i] - s.least) / width) : 0;
    h->count[bin < TD_HISTOGRAM_BINS ? bin : TD_HISTOGRAM_BINS - 1]++;
  }
  td_memory_free(values);
}

td_payload *td_report_watch(td_interpreter *I, const char *argument) {
  (void)argument;
  td_watch_ask_tapes(I);
  return NULL;
}

// ---- texts ----

static void release_text(td_payload *payload) {
  td_memory_free(((td_report_text *)payload)->text);
  td_memory_free(payload);
}

td_payload *td_report_help(td_interpreter *I, const char *argument) {
  td_text text = {0};
  td_report_text *report = td_help_page(I, argument, &text) ? td_memory_new(sizeof *report) : NULL;
  size_t length = text.length;
  char *page = report ? td_text_take(&text) : NULL;
  td_text_clear(&text);
  if (page) {
    *report = (td_report_text){{release_text, TD_REPORT_TEXT}, page, length};
    return &report->payload;
  }
  td_memory_free(report);
  if (td_is_nil(I->raised)) td_raise_memory(I);
  return NULL;
}
