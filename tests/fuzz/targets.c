// See targets.h. A timer's thread raises the interrupt flag while code runs, so that an endless loop ends; code that
// catches KeyboardInterrupt is interrupted again.
#include "tests/fuzz/targets.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "engine/io/csv.h"
#include "engine/io/event_file.h"
#include "engine/io/idx.h"
#include "engine/io/npy.h"
#include "engine/io/npz.h"
#include "engine/io/png.h"
#include "engine/io/safetensors.h"
#include "repl/library/library.h"
#include "repl/language/builtins.h"
#include "repl/language/interpreter.h"
#include "repl/notebook/deck.h"
#include "repl/notebook/deck_write.h"
#include "repl/notebook/ipynb.h"
#include "repl/notebook/journal_record.h"

enum { MILLISECONDS = 40, RUNS_KEPT = 64 };

// An input may ask for more memory than there is: it gets an error, as from the C library.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=512:detect_leaks=0";
}

static void fail(const char *what) {
  fprintf(stderr, "fuzz: %s\n", what);
  abort();
}

// ---- the watch ----

static _Atomic(td_interpreter *) watched;
static atomic_uint running; // number of the run that goes on; 0: none

static void nap(long milliseconds) {
  struct timespec time = {.tv_nsec = milliseconds * 1000000};
  nanosleep(&time, NULL);
}

static void *watch(void *unused) {
  (void)unused;
  for (unsigned last = 0, ticks = 0;; nap(MILLISECONDS / 2)) {
    unsigned now = atomic_load(&running);
    ticks = now && now == last ? ticks + 1 : 0;
    last = now;
    if (ticks >= 2) atomic_store(&atomic_load(&watched)->context->interrupt, 1);
  }
  return NULL;
}

static void drop(void *owner, const td_event *event) {
  (void)owner;
  if (event->payload) event->payload->release(event->payload);
}

// ---- an interpreter that is used for some runs ----

static td_interpreter *session;
static int64_t live_before;
static int runs;

static void close_session(void) {
  if (!session) return;
  td_interpreter_free(session);
  session = NULL;
  if (td_memory_live() != live_before) fail("memory is left when the interpreter is gone");
}

static void open_session(void) {
  static const td_event_sink sink = {.emit = drop};
  static pthread_t thread;
  if (session && ++runs % RUNS_KEPT == 0) close_session();
  if (session) return;
  live_before = td_memory_live();
  session = td_interpreter_new(1);
  if (!session) fail("no interpreter");
  session->sink = &sink;
  session->library = td_library_decks;
  atomic_store(&watched, session);
  if (!thread && pthread_create(&thread, NULL, watch, NULL)) fail("no thread");
  if (runs == 0) atexit(close_session);
}

static void run(const char *text, size_t length) {
  static unsigned number;
  td_run_options options = {.name = "fuzz.deck", .folder = "", .echo_all = true};
  atomic_store(&running, ++number ? number : ++number);
  td_run(session, session->main, text, length, &options);
  atomic_store(&running, 0);
  atomic_store(&session->context->interrupt, 0);
  if (!td_is_nil(session->raised)) fail("an exception is still in flight");
  if (session->depth || session->stack_top != session->stack) fail("the stack is not empty");
}

void fuzz_language(const uint8_t *bytes, size_t size) {
  static const char check[] = "assert 1 + 1 == 2 and [x for x in 'ab'] == ['a', 'b']";
  td_run_options options = {.name = "check", .folder = ""};
  open_session();
  td_check_complete(session, (const char *)bytes, size);
  run((const char *)bytes, size);
  td_run_result result = td_run(session, session->builtins, check, sizeof check - 1, &options);
  if (result != TD_RUN_DONE) fail("1 + 1 is not 2 any more");
}

// ---- formats ----

static void call_format(const char *spec, td_value value) { // spec.format(value), spec % value
  td_value text = td_from(td_str_from(session, spec)), values[] = {value, value};
  if (td_is_nil(text)) return;
  td_value formatted = td_call_method(session, text, "format", 2, values);
  td_unref(formatted);
  td_clear_raised(session);
  formatted = td_binary(session, TD_BINARY_REMAINDER, text, value);
  td_unref(formatted);
  td_clear_raised(session);
  td_unref(text);
}

static td_value sample(int which) {
  static const char *const codes[] = {
      "12345", "-7", "0.1", "-1e300", "float('nan')", "'text \\xe9'", "True", "None", "(1, 'a', 2.5)", "[1]",
      "{'k': 3}", "tensor([1.5, 2.0])", "tensor(2.5)", "-9223372036854775807 - 1", "''", "1e22"};
  char code[64];
  snprintf(code, sizeof code, "value = %s", codes[which & 15]);
  td_run_options options = {.name = "sample", .folder = ""};
  td_run(session, session->main, code, strlen(code), &options);
  td_str *name = td_str_intern(session, "value", 5);
  td_value value = td_ref(td_module_get(session->main, name));
  td_unref(td_from(name));
  return value;
}

void fuzz_format(const uint8_t *bytes, size_t size) {
  if (!size) return;
  char *spec = malloc(size + 16);
  if (!spec) return;
  memcpy(spec, bytes + 1, size - 1);
  spec[size - 1] = 0;
  open_session();
  td_value value = sample(bytes[0]);
  td_text text = {0};
  switch (bytes[0] >> 4 & 3) {
  case 0: td_format(session, value, spec, &text); break;
  case 1: call_format(spec, value); break;
  default: // f'''{value:...}''' with the bytes as they are
    td_text_add(&text, bytes[0] & 64 ? "f'''{value:" : "f'''");
    td_text_add_bytes(&text, spec, size - 1);
    td_text_add(&text, bytes[0] & 64 ? "}'''" : "'''");
    if (text.data) run(text.data, text.length);
  }
  td_clear_raised(session);
  td_text_clear(&text);
  td_unref(value);
  free(spec);
}

// ---- numbers ----

static td_value read_number(int how, td_str *text) { // 0: a float, else an int with base how - 1
  return how ? td_int_parse(session, text, how == 1 ? 0 : how) : td_float_parse(session, text);
}

// What is read, printed and read again is the same number.
void fuzz_number(const uint8_t *bytes, size_t size) {
  if (!size) return;
  open_session();
  int how = bytes[0] % 37;
  td_str *text = td_str_new(session, (const char *)bytes + 1, size - 1), *again = NULL;
  if (!text) fail("no memory for a text");
  td_value number = read_number(how, text), same = TD_NIL;
  td_text printed = {0};
  if (!td_is_nil(number) && td_repr(session, number, &printed)) again = td_str_take(session, &printed);
  if (again) same = read_number(how ? 10 : 0, again);
  if (again && (same.tag != number.tag || (same.i != number.i && number.f == number.f))) fail("another number is read");
  if (td_is_nil(number) == td_is_nil(session->raised)) fail("neither a number nor an error");
  td_clear_raised(session);
  td_unref(td_from(text));
  td_unref(td_from(again));
}

// ---- files ----

static void check_cells(const td_deck *deck) {
  const char *at = deck->text, *end = deck->text + deck->length;
  int line = 0;
  for (const td_cell_text *cell = deck->cells; cell < deck->cells + deck->count; cell++) {
    if (!cell->length || cell->text < at || cell->length > (size_t)(end - cell->text)) fail("a cell is out of place");
    for (; at < cell->text; at++) line += *at == '\n';
    if (line != cell->line) fail("a cell's line is wrong");
  }
}

void fuzz_cells(const uint8_t *bytes, size_t size) {
  static td_context *context;
  if (!context) context = td_context_new(1);
  if (!context) fail("no context");
  int64_t before = td_memory_live();
  td_deck deck;
  if (td_deck_parse(context, (const char *)bytes, size, &deck) == TD_OK) check_cells(&deck);
  td_error_clear(context);
  td_deck_clear(&deck);
  td_notebook *notebook = td_notebook_new();
  td_text text = {0};
  if (!notebook || td_deck_to_notebook(context, (const char *)bytes, size, notebook) != TD_OK)
    fail("any text is a deck");
  td_deck_print(notebook, &text);
  if (text.length != size || (size && memcmp(text.data, bytes, size))) fail("a deck is not written as it was");
  td_text_clear(&text);
  td_notebook_free(notebook);
  if (td_memory_live() != before) fail("a deck: memory is left");
}

static td_notebook *read_ipynb(td_context *context, const char *bytes, size_t size) { // NULL: refused
  td_notebook *notebook = td_notebook_new();
  if (notebook && td_ipynb_read(context, "x", bytes, size, notebook) == TD_OK) return notebook;
  if (!context->error.message[0]) fail("a notebook: refused without a reason");
  td_notebook_free(notebook);
  return NULL;
}

void fuzz_ipynb(const uint8_t *bytes, size_t size) {
  static td_context *context;
  if (!context) context = td_context_new(1);
  if (!context) fail("no context");
  int64_t before = td_memory_live();
  td_notebook *notebook = read_ipynb(context, (const char *)bytes, size), *again;
  td_text text = {0};
  if (notebook) {
    td_ipynb_print(context, notebook, &text);
    if (text.length != size || memcmp(text.data, bytes, size)) fail("a notebook is not written as it was");
    text.length = 0;
    for (int i = 0; i < notebook->count; i++) td_notebook_set_text(notebook, i, "other", 5);
    td_notebook_insert(notebook, notebook->count / 2, true, "new", 3);
    td_ipynb_print(context, notebook, &text);
    again = read_ipynb(context, text.data, text.length);
    if (!again || again->count != notebook->count) fail("a changed notebook is not read again");
    td_notebook_free(again);
  }
  td_text_clear(&text);
  td_notebook_free(notebook);
  td_error_clear(context);
  if (td_memory_live() != before) fail("a notebook: memory is left");
}

// Checksums are put right, so that what the records hold is read: a length of two bytes, then so many bytes of content.
void fuzz_journal(const uint8_t *bytes, size_t size) {
  static td_context *context;
  if (!context) context = td_context_new(1);
  if (!context) fail("no context");
  int64_t before = td_memory_live();
  td_text journal = {0}, again = {0};
  td_text_add(&journal, TD_JOURNAL_MAGIC);
  for (size_t at = 0; at + 2 <= size;) {
    size_t length = bytes[at] | (size_t)bytes[at + 1] << 8;
    at += 2;
    if (length > size - at) length = size - at;
    td_journal_add_record(&journal, bytes + at, length);
    at += length;
  }
  td_notebook *notebook = td_notebook_new();
  td_journal_content content;
  if (!notebook || journal.failed) fail("no memory");
  if (td_journal_replay(context, journal.data, journal.length, notebook, &content) == TD_OK) {
    if (content.good != journal.length) fail("a journal is not read to its end");
    td_ipynb_print(context, notebook, &again);
  }
  td_text_clear(&journal);
  td_text_clear(&again);
  td_notebook_free(notebook);
  td_error_clear(context);
  if (td_memory_live() != before) fail("a journal: memory is left");
}

static td_context *files; // what files are read in
static int64_t files_before;

static const char *file_of(const uint8_t *bytes, size_t size) { // a file that holds them
  static int file = -1;
  static char path[64];
  if (file < 0) file = memfd_create("fuzz", 0);
  if (!files) files = td_context_new(1);
  if (file < 0 || !files || ftruncate(file, 0) || pwrite(file, bytes, size, 0) != (ssize_t)size) fail("no file");
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  files_before = td_memory_live();
  return path;
}

static void file_done(int code) {
  if ((code == TD_OK) != (files->error.code == TD_OK)) fail("neither a result nor an error");
  td_error_clear(files);
  if (td_memory_live() != files_before) fail("memory is left");
}

static void tensor_done(int code, td_tensor *t) {
  if ((code == TD_OK) != (t != NULL)) fail("neither a tensor nor an error");
  td_tensor_unref(t);
  file_done(code);
}

void fuzz_idx(const uint8_t *bytes, size_t size) {
  td_tensor *t = NULL;
  const char *path = file_of(bytes, size);
  int code = td_idx_load(files, path, &t);
  tensor_done(code, t);
}

void fuzz_npy(const uint8_t *bytes, size_t size) {
  td_tensor *t = NULL;
  const char *path = file_of(bytes, size);
  int code = td_npy_load(files, path, &(td_npy_options){.map = true}, &t);
  tensor_done(code, t);
  code = td_npy_load(files, path, &(td_npy_options){.part = true, .start = 1, .stop = 3}, &t);
  tensor_done(code, t);
}

static int drop_array(void *owner, const char *name, td_tensor *t) {
  (void)owner;
  (void)name;
  td_tensor_unref(t);
  return TD_OK;
}

void fuzz_npz(const uint8_t *bytes, size_t size) {
  const char *path = file_of(bytes, size);
  file_done(td_npz_load(files, path, NULL, drop_array, NULL));
}

void fuzz_safetensors(const uint8_t *bytes, size_t size) {
  const char *path = file_of(bytes, size);
  td_tensor_file all;
  int code = td_safetensors_load(files, path, false, &all);
  td_tensor_file_clear(&all);
  file_done(code);
}

// The same file, three rows at a time, is as good or as bad.
static void csv_in_blocks(const char *path, int whole) {
  td_csv csv;
  uint64_t at = 0;
  int code = td_csv_begin(files, "fuzz", path, ',', &csv);
  do {
    if (code == TD_OK) code = td_csv_next(&csv, &at, 3);
  } while (code == TD_OK && csv.rows);
  td_csv_close(&csv);
  if ((code == TD_OK) != (whole == TD_OK)) fail("a table read in blocks is another");
}

void fuzz_csv(const uint8_t *bytes, size_t size) {
  const char *path = file_of(bytes, size);
  td_csv csv;
  int code = td_csv_open(files, path, ',', &csv);
  int64_t first = code == TD_OK && td_csv_has_header(&csv);
  for (int64_t column = 0; code == TD_OK && column < csv.columns; column++) {
    td_text text = {0};
    td_tensor *t = NULL;
    for (int64_t row = 0; row < csv.rows; row++) td_csv_text(&csv, row, column, &text);
    enum td_csv_kind kind = td_csv_kind_of(&csv, column, first, false);
    int numbers = td_csv_numbers(&csv, &column, 1, first, kind == TD_CSV_INTEGERS ? TD_INT64 : TD_FLOAT32, NULL, &t);
    if (kind != TD_CSV_TEXTS && numbers != TD_OK) fail("a column's kind is wrong");
    td_error_clear(files);
    td_tensor_unref(t);
    td_text_clear(&text);
  }
  if (code == TD_OK) td_csv_close(&csv);
  csv_in_blocks(path, code);
  file_done(code);
}

void fuzz_png(const uint8_t *bytes, size_t size) {
  td_tensor *t = NULL;
  const char *path = file_of(bytes, size);
  int code = td_png_load(files, path, &t);
  tensor_done(code, t);
}

void fuzz_events(const uint8_t *bytes, size_t size) {
  const char *path = file_of(bytes, size);
  td_event_curves all;
  int code = td_event_curves_load(files, path, &all);
  td_event_curves_clear(&all);
  file_done(code);
}

void fuzz_json(const uint8_t *bytes, size_t size) {
  static const char code[] = "import json\ntry:\n    value = json.loads(text)\nexcept (ValueError, OverflowError, "
                             "RecursionError):\n    value = None\n"
                             "assert repr(json.loads(json.dumps(value))) == repr(value)\n";
  open_session();
  td_str *text = td_str_new(session, (const char *)bytes, size);
  if (!text || !td_module_set(session, session->main, "text", td_from(text))) fail("no memory for a text");
  td_run_options options = {.name = "json", .folder = ""};
  atomic_store(&running, 1);
  td_run_result result = td_run(session, session->main, code, sizeof code - 1, &options);
  atomic_store(&running, 0);
  if (result == TD_RUN_FAILED) fail("what was read is not what is written");
  atomic_store(&session->context->interrupt, 0);
}

// A file that is damaged is a ValueError or an OSError, whatever it holds.
void fuzz_checkpoint(const uint8_t *bytes, size_t size) {
  static const char code[] =
      "def opened(f):\n    try:\n        f()\n    except (ValueError, OSError, RecursionError, OverflowError, "
      "MemoryError):\n        pass\n"
      "def restored():\n    Checkpoint(step=0, w=Variable(zeros(2)), "
      "d=iter(Dataset(arange(3)).shuffle(3))).restore(path, strict=False, verbose=False)\n"
      "opened(restored)\nopened(lambda: load_model(path))\nopened(lambda: load_weights(Dense(2), path))\n"
      "opened(lambda: Dataset.load(path))\n";
  const char *file = file_of(bytes, size); // its context outlives the session
  open_session();
  td_str *path = td_str_from(session, file);
  if (!path || !td_module_set(session, session->main, "path", td_from(path))) fail("no memory for a path");
  td_run_options options = {.name = "checkpoint", .folder = ""};
  atomic_store(&running, 1);
  td_run_result result = td_run(session, session->main, code, sizeof code - 1, &options);
  atomic_store(&running, 0);
  if (result == TD_RUN_FAILED) fail("a damaged file is another error");
  atomic_store(&session->context->interrupt, 0);
}
