// Text as strokes (raster.h). A letter is a row of the table: its width, and its strokes. A point is a digit, how far
// right, and a letter, how far down: a the top of a capital, d that of a small letter, j the base line, m the lowest. A
// stroke joins its points by lines; one that begins with ~ is bent by them (a quadratic B-spline, which passes halfway
// between two points, and through a point that is given twice), one with @ is such a bend that ends where it began, and
// one with . is a dot.
#include "repl/notebook/raster.h"
#include <string.h>
#include "repl/language/source.h"

enum { BETWEEN = 2, BENDS = 12, POINTS_MOST = 16 }; // units between letters; lines that make up a bend

typedef struct letter {
  int width;
  const char *strokes;
} letter;

static const letter letters[] = {
    // from ' ' to '~'
    {2, ""},
    {2, "1a1g .1j"},
    {3, "0a0c 3a3c"},
    {6, "2a1j 5a4j 0d6d 0g6g"},
    {5, "~5c5b0b0e5f5i0i0h 3a3k"},
    {8, "@0a3a3d0d 7a1j @5g8g8j5j"},
    {7, "~7j1d1a5a5d0f0j5j7e"},
    {2, "1a1c"},
    {3, "~3a1d1i3l"},
    {3, "~0a2d2i0l"},
    {4, "2a2e 0b4d 4b0d"},
    {6, "3c3i 0f6f"},
    {2, ".1j 1j0l"},
    {3, "0f3f"},
    {2, ".1j"},
    {4, "4a0k"},
    {5, "@0a5a5j0j"},
    {5, "1c3a3j"},
    {5, "~0c0a5a5e0j0j5j"},
    {5, "~0c0a5a5e2e2e5e5j0j0h"},
    {5, "4j4a0g5g"},
    {5, "5a1a0e ~0e1d5d5j0j0h"},
    {5, "@0e5e5j0j ~4a0b0g"},
    {5, "0a5a2j"},
    {5, "@0a5a5e0e @0e5e5j0j"},
    {5, "@0a5a5f0f ~5d5i1j"},
    {2, ".1e .1j"},
    {2, ".1e .1j 1j0l"},
    {5, "5c0f5i"},
    {5, "0d5d 0g5g"},
    {5, "0c5f0i"},
    {5, "~0c0a5a5d2e2g .2j"},
    {8, "~7j0k0a8a8h6h6d @2d6d6h2h"},
    {6, "0j3a6j 1g5g"},
    {6, "0a0j ~0a3a3a5a5e3e3e0e ~0e3e3e6e6j3j3j0j"},
    {6, "~6c6a0a0j6j6h"},
    {6, "0a0j ~0a2a2a6a6j2j2j0j"},
    {5, "5a0a0j5j 0e4e"},
    {5, "5a0a0j 0e4e"},
    {6, "~6c6a0a0j6j6f 6f4f"},
    {6, "0a0j 6a6j 0e6e"},
    {2, "1a1j"},
    {4, "~4a4f4f4j0j0h"},
    {5, "0a0j 5a0f 2d5j"},
    {5, "0a0j5j"},
    {8, "0j0a4g8a8j"},
    {6, "0j0a6j6a"},
    {7, "@0a7a7j0j"},
    {6, "0a0j ~0a3a3a6a6f3f3f0f"},
    {7, "@0a7a7j0j 4g7j"},
    {6, "0a0j ~0a3a3a6a6e3e3e0e 3e6j"},
    {6, "~6c6a0a0e6f6j0j0h"},
    {6, "0a6a 3a3j"},
    {6, "~0a0f0f0j6j6f6f6a"},
    {6, "0a3j6a"},
    {8, "0a2j4a6j8a"},
    {6, "0a6j 6a0j"},
    {6, "0a3e6a 3e3j"},
    {6, "0a6a0j6j"},
    {2, "2a0a0l2l"},
    {4, "0a4k"},
    {2, "0a2a2l0l"},
    {4, "0c2a4c"},
    {6, "0k6k"},
    {2, "0a1b"},
    {5, "~0e0d5d5f5f5j ~5f0f0j5j5g"},
    {5, "0a0j @0d5d5j0j"},
    {5, "~5f5d0d0j5j5h"},
    {5, "5a5j @0d5d5j0j"},
    {5, "~0g5g5g5d0d0j5j5h"},
    {3, "~3a1a1d1d1j 0d3d"},
    {5, "@0d5d5j0j ~5d5j5j5m0m0l"},
    {5, "0a0j ~0g0d5d5g5g5j"},
    {2, "1d1j .1b"},
    {2, "~1d1j1j1m0m .1b"},
    {4, "0a0j 4d0h 1g4j"},
    {2, "~1a1h1h1j2j"},
    {8, "0d0j ~0f0d4d4f4f4j ~4f4d8d8f8f8j"},
    {5, "0d0j ~0g0d5d5g5g5j"},
    {5, "@0d5d5j0j"},
    {5, "0d0m @0d5d5j0j"},
    {5, "5d5m @0d5d5j0j"},
    {3, "0d0j ~0g0d3d"},
    {4, "~4e4d0d0g4g4j0j0i"},
    {3, "~1b1h1h1j3j 0d3d"},
    {5, "~0d0g0g0j5j5g 5d5j"},
    {4, "0d2j4d"},
    {8, "0d2j4d6j8d"},
    {5, "0d5j 5d0j"},
    {4, "0d2j 4d1m"},
    {5, "0d5d0j5j"},
    {3, "~3a1a1f0f ~0f1f1l3l"},
    {2, "1a1l"},
    {3, "~0a2a2f3f ~3f2f2l0l"},
    {6, "~0g0e3e3g6g6e"},
};
static const letter box = {6, "0a6a6j0j0a"};

static const letter *letter_of(uint32_t character) {
  return character >= ' ' && character <= '~' ? &letters[character - ' '] : &box;
}

// The next character of a text that may hold broken bytes; 0: it has ended.
static uint32_t next_character(const char **text) {
  uint32_t character;
  if (!**text) return 0;
  int bytes = td_source_decode(*text, strlen(*text), &character);
  *text += bytes ? bytes : 1;
  return bytes ? character : 0xFFFD;
}

double td_text_width(const char *text, const td_font *font) {
  int units = 0;
  for (uint32_t c; (c = next_character(&text));) units += letter_of(c)->width + BETWEEN;
  return units ? (units - BETWEEN) * font->unit : 0;
}

// ---- strokes ----

typedef struct pen { // where a letter stands, and how it lies
  td_raster *raster;
  const td_font *font;
  td_point at;
  bool upwards;
} pen;

static td_point put(const pen *p, td_point units) {
  double x = units.x * p->font->unit, y = (units.y - 9) * p->font->unit;
  return p->upwards ? (td_point){p->at.x + y, p->at.y - x} : (td_point){p->at.x + x, p->at.y + y};
}

static td_point between(td_point a, td_point b, double share) {
  return (td_point){a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share};
}

static void bend(const pen *p, td_point from, td_point over, td_point to) {
  td_point points[BENDS + 1];
  for (int i = 0; i <= BENDS; i++) {
    double t = (double)i / BENDS;
    points[i] = put(p, between(between(from, over, t), between(over, to, t), t));
  }
  td_raster_stroke(p->raster, points, BENDS + 1, p->font->weight);
}

static void draw_open(const pen *p, const td_point *points, int count) {
  td_point from = points[0];
  for (int i = 1; i + 1 < count; i++) {
    td_point to = i + 2 == count ? points[i + 1] : between(points[i], points[i + 1], 0.5);
    bend(p, from, points[i], to);
    from = to;
  }
}

static void draw_closed(const pen *p, const td_point *points, int count) {
  for (int i = 0; i < count; i++) {
    td_point over = points[i];
    bend(p, between(points[(i + count - 1) % count], over, 0.5), over, between(over, points[(i + 1) % count], 0.5));
  }
}

static void draw_lines(const pen *p, const td_point *points, int count) {
  td_point put_points[POINTS_MOST];
  for (int i = 0; i < count; i++) put_points[i] = put(p, points[i]);
  td_raster_stroke(p->raster, put_points, (size_t)count, p->font->weight);
}

static void draw_stroke(const pen *p, char kind, const td_point *points, int count) {
  if (kind == '~') draw_open(p, points, count);
  else if (kind == '@') draw_closed(p, points, count);
  else if (kind == '.') td_raster_disc(p->raster, put(p, points[0]), p->font->weight * 0.7);
  else draw_lines(p, points, count);
}

static void draw_letter(const pen *p, const letter *l) {
  for (const char *at = l->strokes; *at; at += *at == ' ') {
    td_point points[POINTS_MOST];
    int count = 0;
    char kind = *at;
    at += kind == '~' || kind == '@' || kind == '.';
    for (; *at && *at != ' '; at += 2)
      if (count < POINTS_MOST) points[count++] = (td_point){at[0] - '0', at[1] - 'a'};
    draw_stroke(p, kind, points, count);
  }
}

void td_raster_text(td_raster *r, td_point at, td_align align, bool upwards, const char *text, const td_font *font) {
  double width = td_text_width(text, font);
  double shift = align == TD_ALIGN_LEFT ? 0 : align == TD_ALIGN_CENTRE ? width / 2 : width;
  pen p = {r, font, upwards ? (td_point){at.x, at.y + shift} : (td_point){at.x - shift, at.y}, upwards};
  double *along = upwards ? &p.at.y : &p.at.x;
  p.at = (td_point){(double)(long)p.at.x + 0.5, (double)(long)p.at.y + 0.5}; // stems on whole pixels are sharp
  for (uint32_t c; (c = next_character(&text));) {
    const letter *l = letter_of(c);
    draw_letter(&p, l);
    *along += (upwards ? -1 : 1) * (l->width + BETWEEN) * font->unit;
  }
}
