// Images that show() made, the newest first in sight: in cells here, and where the terminal can draw pixels, as pixels
// (graphics.c).
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/io/png.h"
#include "repl/screen/panes.h"
#include "repl/screen/picture.h"

enum { KEPT = 64 };

typedef struct image {
  char *text;
  uint8_t *pixels;         // NULL: the picture came as text
  char *drawing;
  int width, height, cell;
  uint64_t serial;
} image;

typedef struct state {
  const td_pane_host *host;
  image images[KEPT];
  int count, at;
  uint64_t last_serial;
  bool follow;
} state;

static void open_images(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  (void)first_id;
  s->host = host;
  s->follow = true;
}

static void clear(image *i) {
  td_memory_free(i->text);
  td_memory_free(i->pixels);
  td_memory_free(i->drawing);
  *i = (image){0};
}

static void close_images(void *self) {
  state *s = self;
  for (int i = 0; i < s->count; i++) clear(&s->images[i]);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind != TD_EVENT_IMAGE) return;
  if (s->count == KEPT) {
    clear(&s->images[0]);
    memmove(s->images, s->images + 1, (KEPT - 1) * sizeof *s->images);
    s->count--;
  }
  image *i = &s->images[s->count++];
  size_t bytes = event->pixels ? (size_t)event->width * (size_t)event->height * 3 : 0;
  *i = (image){.text = td_memory_text(event->text ? event->text : ""), .width = event->width, .height = event->height,
               .cell = event->cell, .serial = ++s->last_serial, .drawing = event->detail ? td_memory_text(event->detail) : NULL};
  i->pixels = bytes ? td_memory_new(bytes) : NULL;
  if (i->pixels) memcpy(i->pixels, event->pixels, bytes);
  if (s->follow || s->at >= s->count) s->at = s->count - 1;
}

static int write_png(td_context *context, const char *path, const image *i) {
  if (!i->pixels) return td_error_set(context, TD_ERROR_VALUE, "this image came as text, it has no pixels");
  td_tensor *t = td_tensor_new(context, TD_UINT8, 3, (int64_t[]){i->height, i->width, 3});
  if (!t) return TD_ERROR_MEMORY;
  memcpy(t->data, i->pixels, (size_t)i->width * (size_t)i->height * 3);
  int code = td_png_save(context, path, t);
  td_tensor_unref(t);
  return code;
}

static void saved(void *self, const char *line) {
  state *s = self;
  if (!line || !*line || !s->count) return;
  td_context *context = td_context_new(1);
  const image *i = &s->images[s->at];
  td_text message = {0};
  int code = context ? write_png(context, line, i) : TD_ERROR_MEMORY;
  td_text_print(&message, "%s%s", code == TD_OK ? "saved " : "not saved: ",
                code == TD_OK ? line : context ? context->error.message : "no memory");
  if (message.data) s->host->say(s->host->owner, message.data);
  td_text_clear(&message);
  td_context_free(context);
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_IMAGES_NEXT: case TD_REQUEST_PANE_DOWN: if (s->at + 1 < s->count) s->at++; break;
  case TD_REQUEST_IMAGES_BACK: case TD_REQUEST_PANE_UP: if (s->at > 0) s->at--; break;
  case TD_REQUEST_PANE_FIRST: s->at = 0; break;
  case TD_REQUEST_PANE_LAST: s->at = s->count ? s->count - 1 : 0; break;
  case TD_REQUEST_IMAGES_SAVE: s->host->ask(s->host->owner, "save as: ", saved, s); break;
  default: return false;
  }
  s->follow = s->at == s->count - 1;
  return true;
}

static void write_title(void *self, td_text *title) {
  const state *s = self;
  if (!s->count) td_text_add(title, "images");
  else td_text_print(title, "image %d/%d from [%d]", s->at + 1, s->count, s->images[s->at].cell);
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  (void)focus;
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  if (!s->count) {
    td_surface_print(surface, area.row + 1, area.column, area.columns, faint, "no image yet: show(tensor) draws one");
    return;
  }
  const image *i = &s->images[s->at];
  int text_rows = td_wrap_count(i->text, strlen(i->text), area.columns, false), rows = area.rows - text_rows;
  td_wrapped row = {0};
  for (int n = 0; n < area.rows && td_wrap_next(i->text, strlen(i->text), area.columns, &row); n++)
    td_surface_text(surface, area.row + n, area.column, area.columns, i->text + row.begin, row.end - row.begin, faint);
  if (rows < 1) return;
  if (i->pixels) {
    td_picture picture = {i->pixels, i->width, i->height};
    td_rect place = {area.row + text_rows, area.column, rows, area.columns};
    if (s->host->place(s->host->owner, &picture, i->serial, place)) return;
    int tall = td_picture_rows(i->width, i->height, area.columns, rows);
    for (int n = 0; n < tall; n++)
      td_picture_draw_row(&picture, s->host->theme, surface, area.row + text_rows + n, area.column, area.columns, tall, n);
  } else if (i->drawing) {
    row = (td_wrapped){0};
    for (int n = 0; n < rows && td_wrap_next(i->drawing, strlen(i->drawing), area.columns, &row); n++)
      td_surface_text(surface, area.row + text_rows + n, area.column, area.columns, i->drawing + row.begin,
                      row.end - row.begin, td_theme_style(s->host->theme, TD_LOOK_TEXT));
  }
}

const td_pane_type td_pane_images = {.name = "images", .context = TD_IN_IMAGES, .toggle = TD_REQUEST_SHOW_IMAGES,
  .state_size = sizeof(state), .open = open_images, .close = close_images, .event = take_event,
  .request = take_request, .title = write_title, .draw = draw};
