// Past runs under runs/, each with its curves' last values; Space lays a run over the curves pane, and takes it away.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/notebook/report_runs.h"
#include "repl/screen/finder.h"
#include "repl/screen/numbers.h"
#include "repl/screen/panes.h"

enum { OVERLAID_MOST = 64 };

typedef struct state {
  const td_pane_host *host;
  int32_t id;
  td_list_view list;
  td_finder finder;
  td_report_runs *report;  // owned; NULL: none came yet
  char *overlaid[OVERLAID_MOST]; // paths of the runs that are in curves; owned
  int overlaid_count;
  char *folder;            // NULL: runs
  bool waiting, visible;
} state;

static bool holds(const void *self, int64_t row, const char *text) {
  const state *s = self;
  return s->report && row < s->report->count && strstr(s->report->rows[row].path, text);
}

static void open_runs(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  s->host = host;
  s->id = first_id;
  s->finder = (td_finder){.host = host, .pane = s, .list = &s->list, .holds = holds};
}

static void drop_report(state *s) {
  if (s->report) s->report->payload.release(&s->report->payload);
  s->report = NULL;
}

static void close_runs(void *self) {
  state *s = self;
  drop_report(s);
  for (int i = 0; i < s->overlaid_count; i++) td_memory_free(s->overlaid[i]);
  td_memory_free(s->folder);
  td_finder_clear(&s->finder);
}

static void ask(state *s) {
  s->waiting = s->host->inquire(s->host->owner, td_report_runs_make, s->folder ? s->folder : "", s->id);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind == TD_EVENT_CELL_FINISHED && s->visible) ask(s); // it may have written one
  if (event->kind != TD_EVENT_ANSWER || (int32_t)event->id != s->id) return;
  s->waiting = false;
  if (!event->payload || event->payload->kind != TD_REPORT_RUNS) return;
  drop_report(s);
  s->report = (td_report_runs *)s->host->take_payload(s->host->owner);
}

static void shown(void *self, bool visible) {
  state *s = self;
  s->visible = visible;
  if (visible) ask(s);
}

// ---- overlays ----

static int find_overlaid(const state *s, const char *path) {
  for (int i = 0; i < s->overlaid_count; i++)
    if (strcmp(s->overlaid[i], path) == 0) return i;
  return -1;
}

static void send_curve(const state *s, const td_run_row *run, const td_event_curve *curve, bool away) {
  td_text name = {0};
  td_text_print(&name, "%s:%s", run->path, curve->name);
  td_curve_point *points = td_memory_new((size_t)(curve->count + 1) * sizeof *points);
  for (int64_t i = 0; points && i < curve->count; i++)
    points[i] = (td_curve_point){curve->points[i].step, curve->points[i].value};
  td_event event = {.kind = TD_EVENT_METRIC, .text = name.data, .length = name.length, .points = points,
                    .done = curve->count, .final = away};
  if (name.data && points) s->host->emit(s->host->owner, &event);
  td_memory_free(points);
  td_text_clear(&name);
}

static void overlay(state *s) {
  if (!s->report || s->list.selected >= s->report->count) return;
  const td_run_row *run = &s->report->rows[s->list.selected];
  int at = find_overlaid(s, run->path);
  if (at < 0 && (run->problem || s->overlaid_count == OVERLAID_MOST)) {
    s->host->say(s->host->owner, run->problem ? run->problem : "no more runs at once");
    return;
  }
  for (int64_t i = 0; i < run->curves.count; i++) send_curve(s, run, &run->curves.curves[i], at >= 0);
  if (at >= 0) {
    td_memory_free(s->overlaid[at]);
    s->overlaid[at] = s->overlaid[--s->overlaid_count];
    s->host->say(s->host->owner, "taken out of curves");
  } else if ((s->overlaid[s->overlaid_count] = td_memory_text(run->path))) {
    s->overlaid_count++;
    s->host->say(s->host->owner, "in curves: F2 shows it beside the others");
  }
}

static void named(void *self, const char *line) {
  state *s = self;
  if (!line) return;
  td_memory_free(s->folder);
  s->folder = *line ? td_memory_text(line) : NULL;
  ask(s);
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_RUNS_OVERLAY: case TD_REQUEST_PANE_OPEN: overlay(s); return true;
  case TD_REQUEST_RUNS_FOLDER: s->host->ask(s->host->owner, "folder (empty: runs): ", named, s); return true;
  case TD_REQUEST_RUNS_AGAIN: ask(s); return true;
  default: return td_finder_request(&s->finder, request);
  }
}

static void take_click(void *self, const td_key *key) {
  state *s = self;
  td_list_view_go(&s->list, s->list.top + key->row);
}

// ---- drawing ----

static void write_title(void *self, td_text *title) {
  const state *s = self;
  td_text_print(title, "runs in %s: %lld", s->folder ? s->folder : "runs",
                s->report ? (long long)s->report->count : 0LL);
}

static void draw_scalars(const state *s, td_surface *surface, td_rect area, const td_run_row *run) {
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  if (run->problem) {
    td_surface_print(surface, area.row, area.column, area.columns, td_theme_style(s->host->theme, TD_LOOK_ERROR), "%s",
                     run->problem);
    return;
  }
  for (int64_t i = 0; i < run->curves.count && i < area.rows; i++) {
    const td_event_curve *curve = &run->curves.curves[i];
    const td_event_point *last = curve->count ? &curve->points[curve->count - 1] : NULL;
    td_surface_print(surface, area.row + (int)i, area.column, area.columns / 2 - 1, faint, "  %s  %lld points",
                     curve->name, (long long)curve->count);
    if (last)
      td_surface_print(surface, area.row + (int)i, area.column + area.columns / 2, area.columns / 2, faint,
                       "last %.6g at %lld", last->value, (long long)last->step);
  }
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  if (!s->report || !s->report->count) {
    static const char none[] = "none: summary_writer(\"runs/NAME\") and the callback TensorBoard write there";
    td_words_draw(surface, area, 1, s->waiting ? "looking" : none, td_theme_style(s->host->theme, TD_LOOK_FAINT));
    return;
  }
  int rows = area.rows > 8 ? area.rows / 2 : area.rows;
  td_list_view_fit(&s->list, s->report->count, rows);
  for (int i = 0; i < rows && s->list.top + i < s->report->count; i++) {
    int64_t index = s->list.top + i;
    const td_run_row *run = &s->report->rows[index];
    bool on = find_overlaid(s, run->path) >= 0;
    td_surface_print(surface, area.row + i, area.column, area.columns,
                     td_theme_style(s->host->theme, run->problem ? TD_LOOK_ERROR : on ? TD_LOOK_PROMPT : TD_LOOK_TEXT),
                     "%c %s", on ? '*' : ' ', run->path);
    if (index == s->list.selected && focus)
      td_surface_restyle(surface, (td_rect){area.row + i, area.column, 1, area.columns},
                         (td_style){-1, -1, TD_REVERSE});
  }
  if (rows < area.rows)
    draw_scalars(s, surface, (td_rect){area.row + rows, area.column, area.rows - rows, area.columns},
                 &s->report->rows[s->list.selected]);
}

const td_pane_type td_pane_runs = {.name = "runs", .context = TD_IN_RUNS, .toggle = TD_REQUEST_SHOW_RUNS,
  .state_size = sizeof(state), .open = open_runs, .close = close_runs, .event = take_event, .shown = shown,
  .request = take_request, .click = take_click, .title = write_title, .draw = draw};
