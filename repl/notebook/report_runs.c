// See report_runs.h.
#include "repl/notebook/report_runs.h"
#include <stdlib.h>
#include <string.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"

enum { DEPTH = 8 }; // folders within folders that are looked into

typedef struct folder {
  char **names;
  int64_t count, capacity;
  bool has_events;
} folder;

static int add_name(void *owner, const char *name) {
  folder *f = owner;
  f->has_events |= strstr(name, "tfevents") != NULL;
  if (f->count == f->capacity) {
    int64_t capacity = f->capacity ? f->capacity * 2 : 16;
    char **names = td_memory_resize(f->names, (size_t)capacity * sizeof *names);
    if (!names) return TD_ERROR_MEMORY;
    f->names = names;
    f->capacity = capacity;
  }
  f->names[f->count] = td_memory_text(name);
  return f->names[f->count] ? (f->count++, TD_OK) : TD_ERROR_MEMORY;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool add_run(td_interpreter *I, td_report_runs *report, const char *path) {
  if (report->count == report->capacity) {
    int64_t capacity = report->capacity ? 2 * report->capacity : 16;
    td_run_row *grown = td_memory_resize(report->rows, (size_t)capacity * sizeof *grown);
    if (!grown) return td_raise_memory(I), false;
    report->rows = grown;
    report->capacity = capacity;
  }
  td_run_row *row = &report->rows[report->count];
  *row = (td_run_row){.path = td_memory_text(path)};
  if (!row->path) return td_raise_memory(I), false;
  report->count++;
  if (td_event_curves_load(I->context, path, &row->curves) == TD_OK) return true;
  row->curves = (td_event_curves){0};
  row->problem = td_memory_text(I->context->error.message);
  td_error_clear(I->context);
  return row->problem ? true : (td_raise_memory(I), false);
}

static bool add_runs(td_interpreter *I, td_report_runs *report, const char *path, int depth) {
  folder f = {0};
  int code = td_file_list(I->context, path, add_name, &f);
  bool ok = code == TD_OK;
  if (code == TD_ERROR_MEMORY) td_raise_memory(I);
  else if (!ok) td_raise_engine(I);
  if (ok && f.has_events) ok = add_run(I, report, path);
  if (f.count) qsort(f.names, (size_t)f.count, sizeof *f.names, by_name);
  for (int64_t i = 0; i < f.count; i++) {
    td_text inner = {0};
    td_text_print(&inner, "%s/%s", path, f.names[i]);
    if (ok && depth && inner.data && td_file_is_folder(inner.data)) ok = add_runs(I, report, inner.data, depth - 1);
    td_text_clear(&inner);
    td_memory_free(f.names[i]);
    ok = ok && !td_interrupted(I);
  }
  td_memory_free(f.names);
  return ok;
}

static void release(td_payload *payload) {
  td_report_runs *report = (td_report_runs *)payload;
  for (int64_t i = 0; i < report->count; i++) {
    td_memory_free(report->rows[i].path);
    td_memory_free(report->rows[i].problem);
    td_event_curves_clear(&report->rows[i].curves);
  }
  td_memory_free(report->rows);
  td_memory_free(report);
}

td_payload *td_report_runs_make(td_interpreter *I, const char *argument) {
  td_report_runs *report = td_memory_new_zero(sizeof *report);
  if (!report) return td_raise_memory(I), NULL;
  report->payload = (td_payload){release, TD_REPORT_RUNS};
  if (!*argument) argument = "runs";
  if (!td_file_is_folder(argument) || add_runs(I, report, argument, DEPTH)) return &report->payload;
  release(&report->payload);
  return NULL;
}
