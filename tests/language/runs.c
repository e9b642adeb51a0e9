// See runs.h.
#include "tests/language/runs.h"

#include <string.h>

#include "repl/library/library.h"

static size_t keep(char *kept, size_t at, const char *text, size_t length) {
  if (length > RUNS_TEXT - 1 - at) length = RUNS_TEXT - 1 - at;
  memcpy(kept + at, text, length);
  kept[at + length] = 0;
  return at + length;
}

static void emit(void *owner, const td_event *event) {
  runs *r = owner;
  if (event->payload) event->payload->release(event->payload);
  if (event->kind == TD_EVENT_OUTPUT || event->kind == TD_EVENT_VALUE)
    r->printed_length = keep(r->printed, r->printed_length, event->text, event->length);
  if (event->kind == TD_EVENT_VALUE) r->printed_length = keep(r->printed, r->printed_length, "\n", 1);
  if (event->kind != TD_EVENT_ERROR) return;
  r->errors++;
  keep(r->error, 0, event->text, event->length);
}

bool runs_open(runs *r, int threads) {
  r->interpreter = td_interpreter_new(threads);
  if (!r->interpreter) return false;
  r->sink = (td_event_sink){.emit = emit, .owner = r};
  r->interpreter->sink = &r->sink;
  r->interpreter->library = td_library_decks;
  return true;
}

void runs_close(runs *r) {
  td_interpreter_free(r->interpreter);
  r->interpreter = NULL;
}

td_run_result runs_text(runs *r, const char *code, size_t length) {
  td_run_options options = {.name = "test.deck", .folder = "", .echo_all = true};
  r->printed[0] = r->error[0] = 0;
  r->printed_length = 0;
  r->errors = 0;
  return td_run(r->interpreter, r->interpreter->main, code, length, &options);
}

td_run_result runs_code(runs *r, const char *code) { return runs_text(r, code, strlen(code)); }
