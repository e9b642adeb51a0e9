// See tip.h. A signature is the first line of a help page.
#include "repl/screen/tip.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "repl/notebook/complete.h"
#include "repl/notebook/report.h"

// Which argument the end of the text is in.
static void find_argument(td_tip *tip, const char *text, const td_open_call *call, size_t cursor) {
  size_t begin = call->argument;
  tip->argument = call->before;
  while (begin < cursor && text[begin] == ' ') begin++;
  size_t length = 0;
  while (begin + length < cursor && (isalnum((unsigned char)text[begin + length]) || text[begin + length] == '_'))
    length++;
  bool named = length && length < sizeof tip->keyword && begin + length < cursor && text[begin + length] == '=';
  snprintf(tip->keyword, sizeof tip->keyword, "%.*s", named ? (int)length : 0, text + begin);
}

void td_tip_look(td_tip *tip, td_session *session, const char *text, size_t cursor) {
  td_open_call call = td_find_open_call(text, cursor);
  if (!call.length || call.length >= sizeof tip->callee) {
    tip->callee[0] = 0;
    return;
  }
  find_argument(tip, text, &call, cursor);
  if (strlen(tip->callee) == call.length && strncmp(tip->callee, text + call.callee, call.length) == 0) return;
  snprintf(tip->callee, sizeof tip->callee, "%.*s", (int)call.length, text + call.callee);
  tip->signature[0] = 0;
  td_session_inquire(session, td_report_help, tip->callee, TD_TIP_ID);
}

void td_tip_answer(td_tip *tip, const td_event *event) {
  const td_report_text *report = (const td_report_text *)event->payload;
  if (!report || report->payload.kind != TD_REPORT_TEXT) return;
  size_t length = strcspn(report->text, "\n");
  if (memchr(report->text, '(', length))
    snprintf(tip->signature, sizeof tip->signature, "%.*s", (int)length, report->text);
}

static size_t parameter_end(const char *at) { // up to its comma, or the bracket that closes
  int depth = 0;
  size_t i = 0;
  for (; at[i]; i++) {
    if (strchr("([{", at[i])) depth++;
    else if (strchr(")]}", at[i]) && depth-- == 0) break;
    else if (at[i] == ',' && !depth) break;
  }
  return i;
}

static bool is_at_cursor(const td_tip *tip, const char *parameter, size_t length, int number) {
  size_t name = strlen(tip->keyword);
  if (!name) return number == tip->argument;
  return length >= name && strncmp(parameter, tip->keyword, name) == 0 &&
         (length == name || strchr("=:", parameter[name]));
}

bool td_tip_draw(const td_tip *tip, const td_theme *theme, td_surface *surface, td_rect area) {
  if (!tip->callee[0] || !tip->signature[0]) return false;
  td_style plain = td_theme_style(theme, TD_LOOK_BAR), marked = td_theme_style(theme, TD_LOOK_BAR_KEY);
  const char *at = strchr(tip->signature, '(') + 1;
  int column = 1 + td_surface_text(surface, area.row, area.column + 1, area.columns - 1, tip->signature,
                                   (size_t)(at - tip->signature), plain);
  for (int number = 0; *at && column < area.columns; number++) {
    size_t length = parameter_end(at), blank = strspn(at, " ");
    column += td_surface_text(surface, area.row, area.column + column, area.columns - column, at, blank, plain);
    bool mark = is_at_cursor(tip, at + blank, length - blank, number);
    column += td_surface_text(surface, area.row, area.column + column, area.columns - column, at + blank,
                              length - blank, mark ? marked : plain);
    if (at[length] != ',') {
      column += td_surface_text(surface, area.row, area.column + column, area.columns - column, at + length,
                                strlen(at + length), plain);
      break;
    }
    column += td_surface_text(surface, area.row, area.column + column, area.columns - column, ",", 1, plain);
    at += length + 1;
  }
  return true;
}
