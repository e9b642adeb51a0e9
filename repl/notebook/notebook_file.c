// See notebook_file.h.
#include "repl/notebook/notebook_file.h"
#include <stdio.h>
#include <string.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/notebook/deck.h"
#include "repl/notebook/deck_write.h"
#include "repl/notebook/ipynb.h"
#include "repl/notebook/session.h"

#define IPYNB_LIMIT ((size_t)512 << 20) // bytes of an .ipynb file

bool td_notebook_path_is_ipynb(const char *path) {
  static const char ending[] = ".ipynb";
  size_t length = strlen(path);
  return length >= sizeof ending - 1 && strcmp(path + length - (sizeof ending - 1), ending) == 0;
}

static void know_file(td_notebook *n, const char *path, const char *bytes, size_t size) {
  n->has_file = td_file_look(path, &n->file);
  n->file.size = size; // what was read or written; another size there is another file
  n->file_hash = td_notebook_hash(bytes, size);
  n->overtaken = false;
}

int td_notebook_open(td_context *context, const char *path, td_notebook **out) {
  bool ipynb = td_notebook_path_is_ipynb(path);
  char *bytes;
  size_t size;
  *out = NULL;
  int code = td_file_read(context, path, ipynb ? IPYNB_LIMIT : TD_DECK_LIMIT, &bytes, &size);
  if (code) return code;
  td_notebook *n = td_notebook_new();
  if (!n) code = td_error_memory(context, "a notebook", td_memory_failed());
  else if (ipynb) code = td_ipynb_read(context, path, bytes, size, n);
  else code = td_deck_to_notebook(context, bytes, size, n);
  if (!code) know_file(n, path, bytes, size);
  td_memory_free(bytes);
  if (code) td_notebook_free(n);
  else *out = n;
  return code;
}

int td_notebook_write(td_context *context, td_notebook *n, const char *path) {
  td_text text = {0};
  int code = TD_OK;
  if (td_notebook_path_is_ipynb(path)) code = td_ipynb_print(context, n, &text);
  else td_deck_print(n, &text);
  if (!code && text.failed) code = td_error_memory(context, "a deck", td_memory_failed());
  if (!code) code = td_file_save(context, path, text.data, text.length);
  if (!code) td_notebook_saved(n);
  if (!code) know_file(n, path, text.data, text.length);
  td_text_clear(&text);
  return code;
}

// The file there holds what others wrote.
static bool is_overtaken(td_context *context, const td_notebook *n, const char *path) {
  td_file_stamp now;
  char *bytes;
  size_t size;
  if (!td_file_look(path, &now)) return false;
  if (!n->has_file) return true;
  if (memcmp(&now, &n->file, sizeof now) == 0) return false;
  if (now.size != n->file.size || td_file_read(context, path, IPYNB_LIMIT, &bytes, &size) != TD_OK) return true;
  bool same = size == n->file.size && td_notebook_hash(bytes, size) == n->file_hash; // written anew, but the same
  td_memory_free(bytes);
  return !same;
}

int td_notebook_save(td_context *context, td_notebook *n, const char *path) {
  if (n->overtaken || !is_overtaken(context, n, path)) return td_notebook_write(context, n, path);
  n->overtaken = true;
  td_error_set(context, TD_ERROR_FILE, "save: '%s': %s", path,
               n->has_file ? "the file there is not the one that was read here" : "a file is there already");
  td_error_hint(context, "save again to write over it, or under another name");
  return TD_ERROR_FILE;
}

// ---- running ----

static void set_seed(td_interpreter *I, void *seed) { I->context->seed = *(const uint64_t *)seed; }

static int exit_code_of(const td_event *finished) {
  switch (finished->status) {
  case TD_RUN_DONE: return 0;
  case TD_RUN_EXIT: return (int)(finished->total & 0xff);
  default: return 1;
  }
}

// Up to CELL_FINISHED, which comes back.
static td_event wait_cell(td_session *session, td_notebook *n) {
  td_event event;
  do {
    td_session_next(session, &event, -1);
    td_notebook_event(n, &event);
    if (event.kind == TD_EVENT_INPUT) td_session_reply(session, NULL);
  } while (event.kind != TD_EVENT_CELL_FINISHED);
  return event;
}

static int run_cells(td_session *session, td_notebook *n, const char *folder) {
  for (int i = 0; i < n->count; i++) {
    const td_text *text = &n->cells[i]->text;
    td_run_options options = {.folder = folder, .echo_last = true, .cell = td_notebook_queue(n, i)};
    char name[24];
    if (!options.cell) continue;
    snprintf(name, sizeof name, "cell %d", options.cell);
    options.name = name;
    if (!td_session_run(session, text->data, text->length, &options)) return -1;
    td_event finished = wait_cell(session, n);
    int code = exit_code_of(&finished);
    if (code || finished.status != TD_RUN_DONE) return code;
  }
  return 0;
}

int td_notebook_run_all(td_notebook *n, const char *path, const uint64_t *seed) {
  const char *slash = strrchr(path, '/');
  char *folder = td_memory_text(slash ? path : "");
  td_session *session = folder ? td_session_new() : NULL;
  int code = -1;
  if (slash && folder) folder[slash == path ? 1 : slash - path] = 0;
  if (session && (!seed || td_session_ask(session, set_seed, (void *)seed))) code = run_cells(session, n, folder);
  if (session) td_session_free(session);
  td_memory_free(folder);
  return code;
}
