// Images that show() made, the newest first in sight: in cells here, and where the terminal can draw pixels, as pixels
// (graphics.c). A part of one can be looked at closer: large ones, and grids of many.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/screen/panes.h"
#include "repl/screen/picture.h"

enum { KEPT = 64, CLOSER_MOST = 64 };

typedef struct image {
  char *text;
  td_pixels pixels;        // rgb NULL: the picture came as text
  char *drawing;
  int cell;
  uint64_t serial;
} image;

typedef struct state {
  const td_pane_host *host;
  image images[KEPT];
  int count, at;
  uint64_t last_serial;
  bool follow;
  int closer;              // times that it is enlarged; 1: all of it is in sight
  double x, y;             // what part is: its middle, from 0 to 1
  td_pixels part;          // that part, once it was drawn; owned
  uint64_t part_serial;
  td_pictures pictures;    // as they were scaled
} state;

static void open_images(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  (void)first_id;
  s->host = host;
  s->follow = true;
  s->closer = 1;
}

static void clear(image *i) {
  td_memory_free(i->text);
  td_pixels_clear(&i->pixels);
  td_memory_free(i->drawing);
  *i = (image){0};
}

static void close_images(void *self) {
  state *s = self;
  for (int i = 0; i < s->count; i++) clear(&s->images[i]);
  td_pixels_clear(&s->part);
  td_pictures_clear(&s->pictures);
}

static void go(state *s, int at) {
  s->at = at < 0 ? 0 : at >= s->count ? s->count - 1 : at;
  s->follow = s->at == s->count - 1;
  s->closer = 1;
  td_pixels_clear(&s->part);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind != TD_EVENT_IMAGE) return;
  if (s->count == KEPT) {
    clear(&s->images[0]);
    memmove(s->images, s->images + 1, (KEPT - 1) * sizeof *s->images);
    s->count--;
    go(s, s->at - 1);
  }
  image *i = &s->images[s->count++];
  size_t bytes = event->pixels ? (size_t)event->width * (size_t)event->height * 3 : 0;
  *i = (image){.text = td_memory_text(event->text ? event->text : ""), .cell = event->cell, .serial = ++s->last_serial,
               .pixels = {event->width, event->height, bytes ? td_memory_new(bytes) : NULL},
               .drawing = event->detail ? td_memory_text(event->detail) : NULL};
  if (i->pixels.rgb) memcpy(i->pixels.rgb, event->pixels, bytes);
  if (s->follow || s->at >= s->count) go(s, s->count - 1);
}

static void saved(void *self, const char *line) {
  state *s = self;
  if (!line || !*line || !s->count) return;
  const td_pixels *pixels = &s->images[s->at].pixels;
  td_text message = {0};
  if (pixels->rgb) td_pixels_save(pixels, line, &message);
  else td_text_add(&message, "not saved: this image came as text, it has no pixels");
  if (message.data) s->host->say(s->host->owner, message.data);
  td_text_clear(&message);
}

// ---- closer ----

static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

static void move_by(state *s, double across, double down) { // in what is in sight
  double half = 0.5 / s->closer;
  s->x = clamp(clamp(s->x, half, 1 - half) + across / s->closer, half, 1 - half);
  s->y = clamp(clamp(s->y, half, 1 - half) + down / s->closer, half, 1 - half);
  td_pixels_clear(&s->part);
}

static void look_closer(state *s, int closer) {
  const image *i = s->count ? &s->images[s->at] : NULL;
  int side = i && i->pixels.width > i->pixels.height ? i->pixels.width : i ? i->pixels.height : 0;
  if (!i || !i->pixels.rgb || closer > CLOSER_MOST || (closer > 1 && side / closer < 4)) return;
  if (s->closer == 1) s->x = s->y = 0; // the first of a grid
  s->closer = closer < 1 ? 1 : closer;
  move_by(s, 0, 0);
}

static bool cut(state *s, const image *i, int left, int top, int width, int height) {
  s->part = (td_pixels){width, height, td_memory_new((size_t)width * (size_t)height * 3)};
  for (int y = 0; s->part.rgb && y < height; y++)
    memcpy(s->part.rgb + (size_t)y * (size_t)width * 3,
           i->pixels.rgb + ((size_t)(top + y) * (size_t)i->pixels.width + (size_t)left) * 3, (size_t)width * 3);
  return s->part.rgb;
}

// What of the image is in sight; it has a serial of its own.
static const td_pixels *part_of(state *s, const image *i, uint64_t *serial) {
  *serial = s->closer == 1 ? i->serial : s->part_serial;
  if (s->closer == 1) return &i->pixels;
  if (s->part.rgb) return &s->part;
  int width = (i->pixels.width + s->closer - 1) / s->closer, height = (i->pixels.height + s->closer - 1) / s->closer;
  int left = (int)(s->x * i->pixels.width - width / 2.0), top = (int)(s->y * i->pixels.height - height / 2.0);
  left = (int)clamp(left, 0, i->pixels.width - width);
  top = (int)clamp(top, 0, i->pixels.height - height);
  s->part_serial = *serial = ++s->last_serial;
  return cut(s, i, left, top, width, height) ? &s->part : &i->pixels;
}

// ---- keys ----

static bool move_request(state *s, enum td_request request) { // closer: about in it; else from image to image
  bool closer = s->closer > 1;
  switch (request) {
  case TD_REQUEST_PANE_RIGHT: closer ? move_by(s, 0.5, 0) : go(s, s->at + 1); return true;
  case TD_REQUEST_PANE_LEFT: closer ? move_by(s, -0.5, 0) : go(s, s->at - 1); return true;
  case TD_REQUEST_PANE_DOWN: closer ? move_by(s, 0, 0.5) : go(s, s->at + 1); return true;
  case TD_REQUEST_PANE_UP: closer ? move_by(s, 0, -0.5) : go(s, s->at - 1); return true;
  default: return false;
  }
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_IMAGES_NEXT: go(s, s->at + 1); return true;
  case TD_REQUEST_IMAGES_BACK: go(s, s->at - 1); return true;
  case TD_REQUEST_PANE_FIRST: go(s, 0); return true;
  case TD_REQUEST_PANE_LAST: go(s, s->count - 1); return true;
  case TD_REQUEST_IMAGES_IN: look_closer(s, 2 * s->closer); return true;
  case TD_REQUEST_IMAGES_OUT: look_closer(s, s->closer / 2); return true;
  case TD_REQUEST_IMAGES_SAVE: s->host->ask(s->host->owner, "save as: ", saved, s); return true;
  default: return move_request(s, request);
  }
}

static void write_title(void *self, td_text *title) {
  const state *s = self;
  if (!s->count) td_text_add(title, "images");
  else td_text_print(title, "image %d/%d from [%d]", s->at + 1, s->count, s->images[s->at].cell);
  if (s->closer > 1) td_text_print(title, ", a part of it, x%d", s->closer);
}

static void draw_pixels(state *s, const image *i, td_surface *surface, td_rect area) {
  uint64_t serial;
  const td_pixels *pixels = part_of(s, i, &serial);
  td_room room = {area.columns, area.rows, area.rows};
  if (s->host->place(s->host->owner, pixels, serial, area)) return;
  int rows = td_picture_rows(pixels->width, pixels->height, s->host->theme, room);
  for (int n = 0; n < rows; n++)
    td_picture_draw_row(&s->pictures, serial, pixels, s->host->theme, room, surface, area.row + n, area.column, n);
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
  int text_rows = td_wrap_count(i->text, strlen(i->text), area.columns, TD_WRAP_LETTERS), rows = area.rows - text_rows;
  td_wrapped row = {0};
  for (int n = 0; n < area.rows && td_wrap_next(i->text, strlen(i->text), area.columns, &row); n++)
    td_surface_text(surface, area.row + n, area.column, area.columns, i->text + row.begin, row.end - row.begin, faint);
  if (rows < 1) return;
  if (i->pixels.rgb) {
    draw_pixels(s, i, surface, (td_rect){area.row + text_rows, area.column, rows, area.columns});
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
