// Charts and pictures, from the curves on: glyph sets that decode to one picture, axes, smoothing, marks of what has no
// place, pixels. Random curves draw nothing outside their frames.
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/picture_curves.h"
#include "repl/notebook/picture_text.h"
#include "repl/notebook/pictures.h"
#include "tests/language/runs.h"

static td_curve *curves[TD_CHART_CURVES];
static int curve_count;

static td_curve *add_curve(const char *name) {
  ck_assert_int_lt(curve_count, TD_CHART_CURVES);
  curves[curve_count] = td_curve_new(name);
  ck_assert_ptr_nonnull(curves[curve_count]);
  return curves[curve_count++];
}

static void add(td_curve *curve, int64_t step, double value) { ck_assert(td_curve_add(curve, step, value)); }

static void drop_curves(void) {
  while (curve_count) td_curve_free(curves[--curve_count]);
}

static void finish(void) {
  drop_curves();
  ck_assert_int_eq(td_memory_live(), 0);
}

static td_chart_view draw(td_chart_cells *cells, int columns, int rows, const td_chart_options *options) {
  td_chart_view view;
  ck_assert(td_chart_cells_start(cells, columns, rows));
  ck_assert(td_chart_draw(cells, (const td_curve *const *)curves, curve_count, options, &view));
  return view;
}

static void check_chart(int columns, int rows, const td_chart_options *options, const char *wanted) {
  td_chart_cells cells;
  td_text text = {0};
  draw(&cells, columns, rows, options);
  td_chart_cells_print(&text, &cells);
  ck_assert_str_eq(text.data, wanted);
  td_text_clear(&text);
  td_chart_cells_clear(&cells);
}

// ---- numbers without a library of random ones: the same on every machine ----

static uint64_t state;

static uint32_t random_bits(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

static int below(int count) { return (int)(random_bits() % (uint32_t)count); }

static double random_value(void) {
  static const double odd[] = {0,       -0.0,     1,       NAN,    INFINITY, -INFINITY,
                               DBL_MAX, -DBL_MAX, DBL_MIN, 5e-324, 1e300,    -1e-300};
  if (below(8) == 0) return odd[below(sizeof odd / sizeof *odd)];
  double value = (random_bits() / 1073741824.0 - 1) * pow(10, below(9) - 4);
  return below(3) ? value : fabs(value);
}

static void add_random_curves(void) {
  static const int64_t starts[] = {0, 0, 0, -5, 1000000, INT64_MAX - 100, INT64_MIN};
  int count = below(4);
  for (int i = 0; i < count; i++) {
    td_curve *curve = add_curve(i ? "val_loss" : "loss");
    int64_t step = starts[below(7)];
    double value = 0;
    bool calm = below(2);
    for (int n = below(4) ? below(60) : below(3); n > 0; n--) {
      value = calm ? value + random_value() * 1e-3 : random_value();
      add(curve, step, value);
      step += step < INT64_MAX - 1000 ? 1 + below(5) : 0;
    }
  }
}

static td_chart_options random_options(enum td_chart_glyphs glyphs) {
  td_chart_options o = {.glyphs = glyphs, .logarithmic = below(3) == 0, .mean = below(3) == 0, .guides = below(2)};
  if (below(3) == 0) o.smoothing = random_bits() / 2147483648.0 * 0.999;
  if (below(3) == 0) o.is_cut = true, o.first = below(50) - 5, o.last = o.first + below(40) - 3;
  if (below(3) == 0) o.is_clipped = true, o.low = below(2) ? random_value() : (double)NAN, o.high = random_value();
  if (below(3) == 0) o.has_cursor = true, o.cursor = below(70);
  return o;
}

// ---- glyph sets ----

static const uint32_t quarters[16] = {' ',    0x2598, 0x259D, 0x2580, 0x2596, 0x258C, 0x259E, 0x259B,
                                      0x2597, 0x259A, 0x2590, 0x259C, 0x2584, 0x2599, 0x259F, 0x2588};

static int quarters_of(enum td_chart_glyphs glyphs,
                       uint32_t glyph) { // bits: upper left, upper right, lower left, lower right
  static const uint8_t braille[4] = {0x01 | 0x02, 0x08 | 0x10, 0x04 | 0x40, 0x20 | 0x80};
  int bits = 0;
  if (glyph == ' ') return 0;
  if (glyphs == TD_GLYPHS_ASCII) return 15;
  for (int i = 0; i < 16 && glyphs != TD_GLYPHS_BRAILLE; i++)
    if (quarters[i] == glyph) return i;
  ck_assert_uint_eq(glyph & ~0xFFu, 0x2800);
  for (int i = 0; i < 4; i++) bits |= (glyph & braille[i]) != 0 ? 1 << i : 0;
  return bits;
}

static int coarser(enum td_chart_glyphs glyphs, int bits) { // what a coarser set shows of quarters
  if (glyphs == TD_GLYPHS_ASCII) return bits ? 15 : 0;
  if (glyphs == TD_GLYPHS_HALF) return (bits & 3 ? 3 : 0) | (bits & 12 ? 12 : 0);
  return bits;
}

static bool is_mark(const td_chart_cell *cell) { return cell->attributes & TD_CELL_BOLD; }

static void compare_sets(enum td_chart_glyphs glyphs, int columns, int rows, td_chart_options o) {
  td_chart_cells fine, coarse;
  o.glyphs = TD_GLYPHS_BRAILLE;
  td_chart_view view = draw(&fine, columns, rows, &o);
  o.glyphs = glyphs;
  draw(&coarse, columns, rows, &o);
  for (int row = view.top; row < view.top + view.rows && view.columns; row++)
    for (int column = view.left; column < view.left + view.columns; column++) {
      const td_chart_cell *a = td_chart_cell_at(&fine, column, row), *b = td_chart_cell_at(&coarse, column, row);
      if (is_mark(a) || is_mark(b) || a->colour == TD_CELL_PLAIN) continue;
      ck_assert_int_eq(b->colour, a->colour);
      ck_assert_int_eq(coarser(glyphs, quarters_of(TD_GLYPHS_BRAILLE, a->glyph)), quarters_of(glyphs, b->glyph));
    }
  td_chart_cells_clear(&fine);
  td_chart_cells_clear(&coarse);
}

START_TEST(glyph_sets_decode_to_one_picture) {
  state = (uint64_t)_i;
  for (int i = 0; i < 40; i++) {
    add_random_curves();
    int columns = 20 + below(60), rows = 6 + below(20);
    td_chart_options options = random_options(TD_GLYPHS_BRAILLE);
    for (int glyphs = TD_GLYPHS_ASCII; glyphs <= TD_GLYPHS_BLOCK; glyphs++)
      compare_sets((enum td_chart_glyphs)glyphs, columns, rows, options);
    drop_curves();
  }
}
END_TEST

START_TEST(one_curve_in_every_glyph_set) {
  td_curve *curve = add_curve("loss");
  for (int i = 0; i < 13; i++) add(curve, i, (i - 6) * (i - 6));
  check_chart(20, 7, &(td_chart_options){.glyphs = TD_GLYPHS_ASCII},
              "   |**             *\n"
              "   | *            *\n"
              "20 +  *          *\n"
              "   |   **      **\n"
              " 0 +    ********\n"
              "   ++------------+--\n"
              "    0           10\n");
  check_chart(20, 7, &(td_chart_options){.glyphs = TD_GLYPHS_HALF},
              "   │█▄             █\n"
              "   │ █            █\n"
              "20 ┤  █          █\n"
              "   │   ▀▄      ▄▀\n"
              " 0 ┤    ▀▀▄▄▄▄▀▀\n"
              "   └┬────────────┬──\n"
              "    0           10\n");
  check_chart(20, 7, &(td_chart_options){.glyphs = TD_GLYPHS_BLOCK},
              "   │▜▖             ▞\n"
              "   │ ▜            ▞\n"
              "20 ┤  ▚          ▞\n"
              "   │   ▀▄      ▄▀\n"
              " 0 ┤    ▝▀▄▄▄▄▀▘\n"
              "   └┬────────────┬──\n"
              "    0           10\n");
  check_chart(20, 7, &(td_chart_options){.glyphs = TD_GLYPHS_BRAILLE},
              "   │⠱⡀             ⡜\n"
              "   │ ⢱            ⡜\n"
              "20 ┤  ⢣          ⡜\n"
              "   │   ⠑⢄      ⡠⠊\n"
              " 0 ┤    ⠈⠒⠤⢄⡠⠤⠒⠁\n"
              "   └┬────────────┬──\n"
              "    0           10\n");
}
END_TEST

// ---- any curve, any size ----

static bool is_shown(uint32_t glyph, bool ascii) {
  return ascii ? glyph >= ' ' && glyph <= '~' : glyph >= ' ' && glyph < 0x2900;
}

START_TEST(random_curves_stay_in_their_frame) {
  state = (uint64_t)_i + 1000;
  for (int i = 0; i < 150; i++) {
    add_random_curves();
    td_chart_cells cells;
    bool ascii = below(2);
    td_chart_options options = random_options(ascii ? TD_GLYPHS_ASCII : (enum td_chart_glyphs)(1 + below(3)));
    int columns = below(90), rows = below(30);
    td_chart_view view = draw(&cells, columns, rows, &options);
    for (int cell = 0; cell < cells.columns * cells.rows; cell++) ck_assert(is_shown(cells.cells[cell].glyph, ascii));
    if (view.columns) {
      ck_assert(isfinite(view.values.low) && isfinite(view.values.high) && view.values.low < view.values.high);
      ck_assert(isfinite(view.steps.low) && isfinite(view.steps.high) && view.steps.low < view.steps.high);
      ck_assert(!options.logarithmic || view.values.low > 0);
      ck_assert_int_le(view.left + view.columns, columns);
      ck_assert_int_le(view.top + view.rows, rows);
    }
    for (int row = 0; row < rows && view.columns; row++) // colours of curves are inside only
      for (int column = 0; column < columns; column++) {
        int colour = td_chart_cell_at(&cells, column, row)->colour;
        bool inside = column >= view.left && row >= view.top && row < view.top + view.rows;
        ck_assert(inside || colour == TD_CELL_PLAIN || colour == TD_CELL_MARK);
      }
    td_text notes = {0};
    td_chart_notes(&notes, &view, &options);
    td_text_clear(&notes);
    td_chart_cells_clear(&cells);
    drop_curves();
  }
}
END_TEST

START_TEST(ticks_are_round_and_few) {
  state = (uint64_t)_i + 2000;
  for (int i = 0; i < 2000; i++) {
    td_tick ticks[TD_TICKS_MAX];
    double low = random_value(), high = random_value();
    if (!isfinite(low) || !isfinite(high)) continue;
    bool logarithmic = below(3) == 0, whole = !logarithmic && below(3) == 0;
    td_axis axis = td_axis_cover(fmin(low, high), fmax(low, high), logarithmic, below(2) * 0.05);
    ck_assert(axis.low < axis.high && isfinite(axis.low) && isfinite(axis.high));
    int most = 2 + below(9), count = td_axis_ticks(&axis, most, whole, ticks), labels = 0;
    ck_assert_int_le(count, TD_TICKS_MAX);
    for (int k = 0; k < count; k++) {
      labels += *ticks[k].label != 0;
      ck_assert(ticks[k].place > -1e-6 && ticks[k].place < 1 + 1e-6);
      ck_assert(!k || ticks[k].value > ticks[k - 1].value);
      ck_assert(!whole || ticks[k].value == floor(ticks[k].value));
    }
    ck_assert_int_le(labels, most + 12);
    ck_assert(fabs(td_axis_place(&axis, axis.low)) < 1e-9 && fabs(td_axis_place(&axis, axis.high) - 1) < 1e-9);
  }
}
END_TEST

static void check_ticks(double low, double high, bool logarithmic, bool whole, int most, const char *wanted) {
  td_tick ticks[TD_TICKS_MAX];
  td_axis axis = {low, high, logarithmic};
  td_text text = {0};
  int count = td_axis_ticks(&axis, most, whole, ticks);
  for (int i = 0; i < count; i++)
    if (*ticks[i].label) td_text_print(&text, "%s%s", text.length ? " " : "", ticks[i].label);
  ck_assert_str_eq(text.data, wanted);
  td_text_clear(&text);
}

START_TEST(ticks_by_examples) {
  check_ticks(0, 1, false, false, 6, "0 0.2 0.4 0.6 0.8 1.0");
  check_ticks(-0.03, 0.11, false, false, 4, "0 0.05 0.10");
  check_ticks(0, 299999, false, true, 7, "0 50k 100k 150k 200k 250k");
  check_ticks(0, 39, false, true, 8, "0 5 10 15 20 25 30 35");
  check_ticks(6.5, 7.5, false, true, 8, "7");
  check_ticks(1e-9, 9e-9, false, false, 5, "2e-9 4e-9 6e-9 8e-9");
  check_ticks(-2.5e7, 2.5e7, false, false, 5, "-2e7 -1e7 0 1e7 2e7");
  check_ticks(1000000.1, 1000000.9, false, false, 4, "1.0000002e6 1.0000004e6 1.0000006e6 1.0000008e6");
  check_ticks(0.0005, 2000, true, false, 9, "0.001 0.01 0.1 1 10 100 1000");
  check_ticks(0.0005, 2000, true, false, 4, "0.001 0.1 10 1000");
  check_ticks(3, 40, true, false, 6, "5 10 20");
  check_ticks(3, 3.9, true, false, 5, "3.0 3.2 3.4 3.6 3.8");
  check_ticks(-1.7e308, 1.7e308, false, false, 4, "-1e308 0 1e308");
}
END_TEST

// ---- smoothing ----

START_TEST(a_smoothed_constant_stays_the_same) { // U44: 200 times 200 at 0.8
  td_curve *curve = add_curve("loss");
  td_series series;
  td_axis steps = {.low = 0, .high = 199};
  for (int i = 0; i < 200; i++) add(curve, i, 200.0);
  ck_assert(td_series_start(&series, curve, &steps, 200, 0.8));
  for (int i = 0; i < 200; i++) ck_assert(series.at[i].smooth == 200.0);
  td_series_clear(&series);
}
END_TEST

START_TEST(smoothing_is_bias_corrected) {
  td_curve *curve = add_curve("loss");
  td_series series;
  td_axis steps = {.low = 0, .high = 4};
  double mean = 0, kept = 1;
  for (int i = 0; i < 5; i++) add(curve, i, i == 2 ? (double)NAN : i * i + 1);
  ck_assert(td_series_start(&series, curve, &steps, 5, 0.6));
  for (int i = 0; i < 5; i++) { // the plain recursion, divided by what its start lacks
    if (i == 2) {
      ck_assert_int_eq(series.at[i].finite, 0);
      continue;
    }
    mean = 0.6 * mean + 0.4 * (i * i + 1);
    kept *= 0.6;
    ck_assert_double_eq_tol(series.at[i].smooth, mean / (1 - kept), 1e-12);
  }
  td_series_clear(&series);
  steps = (td_axis){.low = 3, .high = 4}; // zoomed in, it is the same
  ck_assert(td_series_start(&series, curve, &steps, 2, 0.6));
  ck_assert_double_eq_tol(series.at[1].smooth, mean / (1 - kept), 1e-12);
  td_series_clear(&series);
}
END_TEST

// ---- what has no place ----

START_TEST(nothing_finite_and_nothing_at_all) { // L1, L2
  td_curve *curve = add_curve("loss");
  check_chart(16, 5, &(td_chart_options){0}, " |\n |  no points\n |\n +--------------\n\n");
  for (int i = 0; i < 3; i++) add(curve, i, NAN);
  check_chart(26, 5, &(td_chart_options){0},
              " |\n |  no finite value\n |\n +!-----------!----------!\n  0                      2\n");
}
END_TEST

START_TEST(flat_curves_and_single_points) { // L1
  td_curve *curve = add_curve("loss");
  add(curve, 7, 2.5);
  check_chart(21, 7, &(td_chart_options){0},
              "    |\n2.6 +\n    |        *\n2.4 +\n    |\n    +--------+-------\n             7\n");
  add(curve, 8, 2.5);
  check_chart(21, 7, &(td_chart_options){0},
              "    |\n2.6 +\n    |****************\n2.4 +\n    |\n    ++--------------+\n     7              8\n");
  drop_curves();
  curve = add_curve("zeros");
  for (int i = 0; i < 20; i++) add(curve, i, 0);
  check_chart(21, 7, &(td_chart_options){0},
              " 1 +\n   |\n 0 +*****************\n   |\n-1 +\n   ++-------+--------\n    0      10\n");
}
END_TEST

START_TEST(a_gap_at_the_start_keeps_the_axis) { // L2
  td_curve *curve = add_curve("late");
  for (int i = 0; i <= 200; i++) add(curve, i, i < 40 ? (double)NAN : i == 120 ? (double)INFINITY : 1);
  td_chart_cells cells;
  td_chart_view view = draw(&cells, 50, 8, &(td_chart_options){0});
  ck_assert(view.steps.low == 0 && view.steps.high == 200);
  ck_assert(view.values.low > 0 && view.values.high < 2);
  ck_assert_int_eq(view.nans, 40);
  ck_assert_int_eq(view.nan_step, 0);
  ck_assert_int_eq(view.rises, 1);
  int row = view.top + view.rows / 2, first = view.left;
  while (td_chart_cell_at(&cells, first, row)->glyph == ' ') first++;
  ck_assert_int_eq(first - view.left, view.columns / 5);
  for (int column = view.left; column < first - 1; column++)
    ck_assert_uint_eq(td_chart_cell_at(&cells, column, view.top + view.rows)->glyph, '!');
  int top = view.left;
  while (td_chart_cell_at(&cells, top, view.top)->glyph == ' ') top++;
  ck_assert_uint_eq(td_chart_cell_at(&cells, top, view.top)->glyph, '^');
  ck_assert_int_le(llabs(td_chart_step_at(&view, top) - 120), 2);
  td_chart_cells_clear(&cells);
}
END_TEST

START_TEST(points_outside_are_marked_and_counted) { // C32
  td_curve *curve = add_curve("loss");
  td_text notes = {0};
  td_chart_view view;
  td_chart_cells cells;
  for (int i = 0; i < 20; i++) add(curve, i, i == 3 ? 50 : i == 9 || i == 10 ? -50 : i % 2);
  td_chart_options options = {.is_clipped = true, .low = -1, .high = 2};
  view = draw(&cells, 30, 9, &options);
  ck_assert_int_eq(view.above, 1);
  ck_assert_int_eq(view.below, 2);
  int above = 0, below_count = 0;
  for (int column = 0; column < 30; column++) {
    above += td_chart_cell_at(&cells, column, 0)->glyph == '\'';
    below_count += td_chart_cell_at(&cells, column, view.rows - 1)->glyph == ',';
  }
  ck_assert_int_eq(above, 1);
  ck_assert_int_eq(below_count, 2);
  td_chart_notes(&notes, &view, &options);
  ck_assert_str_eq(notes.data, "' 1 above  , 2 below");
  td_text_clear(&notes);
  td_chart_cells_clear(&cells);
  for (int i = 20; i < 2 * TD_CURVE_BINS; i++) add(curve, i, i % 3 ? 1 : 3); // bins of several points
  view = draw(&cells, 30, 9, &options);
  td_chart_notes(&notes, &view, &options);
  ck_assert_ptr_nonnull(strstr(notes.data, "' >="));
  ck_assert_int_ge(view.above, 40000);
  td_text_clear(&notes);
  td_chart_cells_clear(&cells);
}
END_TEST

START_TEST(zoom_keeps_lines_to_the_edge) {
  td_curve *curve = add_curve("loss");
  add(curve, 0, 0);
  add(curve, 100, 100);
  td_chart_cells cells;
  td_chart_options options = {.is_cut = true, .first = 40, .last = 60, .is_clipped = true, .low = 0, .high = 100};
  td_chart_view view = draw(&cells, 40, 12, &options); // no point is inside, the line between two is
  ck_assert_int_eq(view.nans + view.above + view.below, 0);
  ck_assert(view.empty);
  td_chart_cells_clear(&cells);
  for (int i = 1; i < 100; i++) add(curve, 100 + i, 100 + i);
  options.first = 120;
  options.last = 140;
  options.high = NAN;
  view = draw(&cells, 40, 12, &options);
  ck_assert(view.steps.low == 120 && view.steps.high == 140 && view.values.high == 140);
  td_chart_cells_clear(&cells);
}
END_TEST

START_TEST(a_cursor_shows_the_values_of_its_step) {
  td_curve *train = add_curve("loss"), *validation = add_curve("val_loss");
  for (int i = 0; i <= 10; i++) add(train, 2 * i, i * 0.25);
  add(validation, 10, 7);
  td_chart_options options = {.has_cursor = true, .cursor = 9};
  td_chart_cells cells;
  td_curve_point point;
  td_text text = {0};
  td_chart_view view = draw(&cells, 50, 10, &options);
  int columns = 0;
  for (int column = view.left; column < view.left + view.columns; column++)
    columns += td_chart_cell_at(&cells, column, view.rows - 1)->glyph == '|';
  ck_assert_int_eq(columns, 1);
  for (int column = view.left; column < view.left + view.columns; column++) {
    int64_t step = td_chart_step_at(&view, column);
    ck_assert(step >= 0 && step <= 20);
  }
  ck_assert(td_chart_value_at(train, 9, &point) && point.step == 8 && point.value == 1);
  ck_assert(!td_chart_value_at(validation, 9, &point));
  td_chart_legend(&text, train, &options, 0);
  td_text_add(&text, "; ");
  td_chart_legend(&text, validation, &options, 0);
  ck_assert_str_eq(text.data, "loss: 1 at 8; val_loss: nothing yet");
  td_text_clear(&text);
  td_chart_cells_clear(&cells);
}
END_TEST

START_TEST(curves_differ_without_colour) {
  td_curve *train = add_curve("loss"), *validation = add_curve("val_loss");
  for (int i = 0; i < 200; i++) add(train, i, i), add(validation, i, 200 - i);
  for (int glyphs = TD_GLYPHS_ASCII; glyphs <= TD_GLYPHS_BRAILLE; glyphs++) {
    td_chart_cells cells;
    int found = 0;
    td_chart_view view = draw(&cells, 60, 14, &(td_chart_options){.glyphs = (enum td_chart_glyphs)glyphs});
    for (int i = 0; i < 60 * view.rows; i++)
      found += cells.cells[i].glyph == (uint32_t)td_chart_mark((enum td_chart_glyphs)glyphs, 1) &&
               cells.cells[i].colour == TD_CELL_CURVE + 1;
    ck_assert_int_ge(found, 8);
    td_chart_cells_clear(&cells);
  }
}
END_TEST

START_TEST(no_memory_is_no_crash) {
  td_curve *curve = add_curve("loss");
  for (int i = 0; i < 50; i++) add(curve, i, i);
  td_chart_cells cells;
  ck_assert(td_chart_cells_start(&cells, 60, 12));
  const td_picture_options options = {.width = 64,
                                      .height = 48,
                                      .scale = 1,
                                      .theme = td_picture_theme_find("dark"),
                                      .steps_label = "step",
                                      .legend = true,
                                      .range = {.low = NAN, .high = NAN}};
  bool chart = false, picture = false;
  for (int n = 1; !chart || !picture; n++) {
    td_raster raster = {0};
    td_memory_fail(n, true);
    chart = td_chart_draw(&cells, (const td_curve *const *)curves, 1, &(td_chart_options){.smoothing = 0.5}, NULL);
    td_memory_fail(n, true);
    picture = td_picture_curves(&raster, (const td_curve *const *)curves, 1, &options);
    td_memory_fail(0, false);
    td_raster_clear(&raster);
    ck_assert_int_lt(n, 100);
  }
  td_chart_cells_clear(&cells);
}
END_TEST

// ---- bars ----

static void check_cells(td_chart_cells *cells, const char *wanted) {
  td_text text = {0};
  td_chart_cells_print(&text, cells);
  ck_assert_str_eq(text.data, wanted);
  td_text_clear(&text);
  td_chart_cells_clear(cells);
}

START_TEST(sparklines) {
  const double numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, NAN, INFINITY, -INFINITY};
  const double flat[] = {3, 3}, huge[] = {-DBL_MAX, 0, DBL_MAX};
  td_chart_cells cells;
  ck_assert(td_chart_cells_start(&cells, 14, 2));
  td_sparkline(&cells, 0, 0, 14, numbers, 11, TD_GLYPHS_BRAILLE, TD_CELL_CURVE);
  td_sparkline(&cells, 0, 1, 14, numbers, 11, TD_GLYPHS_ASCII, TD_CELL_CURVE);
  check_cells(&cells, "▁▂▃▄▅▆▇█!^v\n..--==##!^v\n");
  ck_assert(td_chart_cells_start(&cells, 6, 3));
  td_sparkline(&cells, 1, 0, 5, flat, 2, TD_GLYPHS_BLOCK, TD_CELL_CURVE);
  td_sparkline(&cells, 2, 1, 4, huge, 3, TD_GLYPHS_BLOCK, TD_CELL_CURVE);
  td_sparkline(&cells, 0, 2, 3, numbers, 8, TD_GLYPHS_BLOCK, TD_CELL_CURVE); // the last ones
  check_cells(&cells, " ▅▅\n  ▁▅█\n▁▅█\n");
}
END_TEST

START_TEST(histograms_as_cells) {
  const int64_t bins[] = {1, 4, 8, 0, 2};
  td_chart_histogram h = {.low = -1, .high = 1.5, .count = 5, .bins = bins, .nans = 3, .falls = 1};
  td_chart_cells cells;
  ck_assert(td_chart_cells_start(&cells, 22, 5));
  td_histogram_cells(&cells, &h, TD_GLYPHS_BRAILLE, false, TD_CELL_CURVE);
  check_cells(&cells, "8    ! 3 NaN  v 1 -inf\n"
                      "          ████\n"
                      "      ████████\n"
                      "  ▄▄▄▄████████    ████\n"
                      "  -1               1.5\n");
}
END_TEST

START_TEST(histograms_of_any_size) {
  const int64_t bins[] = {0, INT64_MAX / 2, 1};
  for (int columns = 0; columns < 40; columns++)
    for (int rows = 0; rows < 6; rows++)
      for (int count = 0; count <= 3; count++) {
        td_chart_cells cells;
        td_chart_histogram h = {
            .low = -1e300, .high = 1e300, .count = count, .bins = bins, .nans = INT64_MAX, .rises = 1, .falls = 1};
        ck_assert(td_chart_cells_start(&cells, columns, rows));
        td_histogram_cells(&cells, &h, TD_GLYPHS_ASCII, rows % 2, TD_CELL_CURVE);
        td_chart_cells_clear(&cells);
      }
}
END_TEST

// ---- pixels ----

static uint8_t *bytes_of(td_raster *r) { // and ends the raster
  uint8_t *rgb = td_memory_new((size_t)r->width * (size_t)r->height * 3);
  ck_assert_ptr_nonnull(rgb);
  td_raster_bytes(r, rgb);
  td_raster_clear(r);
  return rgb;
}

START_TEST(areas_cover_exactly) {
  td_raster r;
  ck_assert(td_raster_start(&r, 8, 8, 0x000000));
  td_raster_box(&r, 1.25, 2, 4.5, 4.75);
  double sum = 0;
  for (int i = 0; i < 64; i++) sum += (double)r.mask[i];
  ck_assert_double_eq_tol(sum, 3.25 * 2.75, 1e-5);
  ck_assert_double_eq_tol((double)r.mask[2 * 8 + 1], 0.75, 1e-6);
  ck_assert_double_eq_tol((double)r.mask[4 * 8 + 2], 0.75, 1e-6);
  ck_assert_double_eq_tol((double)r.mask[3 * 8 + 4], 0.5, 1e-6);
  td_raster_paint(&r, (td_ink){0xFFFFFF, 1});
  for (int i = 0; i < 64; i++) ck_assert(r.mask[i] == 0);
  td_raster_fill(&r, (td_point[]){{0, 0}, {8, 8}, {0, 8}}, 3); // half of it
  sum = 0;
  for (int i = 0; i < 64; i++) sum += (double)r.mask[i];
  ck_assert_double_eq_tol(sum, 32, 1e-4);
  td_raster_clear(&r);
}
END_TEST

START_TEST(strokes_have_their_width) {
  td_raster r;
  ck_assert(td_raster_start(&r, 40, 40, 0xFFFFFF));
  for (int i = 0; i <= 20; i++) {
    td_raster_stroke(&r, (td_point[]){{10.5, 8 + i * 0.05}, {30.5, 8 + i * 0.05}}, 2, 3);
    double sum = 0;
    for (int y = 0; y < 40; y++) sum += (double)r.mask[y * 40 + 20];
    ck_assert_double_eq_tol(sum, 3, 1e-5);
    td_raster_paint(&r, (td_ink){0, 0});
  }
  td_raster_clear(&r);
}
END_TEST

START_TEST(nothing_is_drawn_outside) {
  state = (uint64_t)_i + 3000;
  td_raster r;
  ck_assert(td_raster_start(&r, 30, 20, 0));
  td_raster_clip(&r, (td_box){5, 4, 25, 16});
  for (int i = 0; i < 200; i++) {
    td_point points[4];
    for (int k = 0; k < 4; k++)
      points[k] = (td_point){below(200) - 80 + below(10) * 0.1, below(200) - 90 + below(10) * 0.1};
    if (i % 2) td_raster_stroke(&r, points, 4, 0.5 + below(8));
    else td_raster_fill(&r, points, 4);
    td_raster_text(&r, points[0], TD_ALIGN_CENTRE, i % 3 == 0, "any text é\xff", &(td_font){1 + below(3), 1.3});
    td_raster_paint(&r, (td_ink){0xFFFFFF, 1});
  }
  uint8_t *rgb = bytes_of(&r);
  for (int y = 0; y < 20; y++)
    for (int x = 0; x < 30; x++)
      if (x < 5 || x >= 25 || y < 4 || y >= 16) ck_assert_int_eq(rgb[(y * 30 + x) * 3], 0);
  td_memory_free(rgb);
}
END_TEST

static bool is_coloured(const uint8_t *rgb) { // beyond the greys of frame and text
  int low = rgb[0] < rgb[1] ? rgb[0] : rgb[1], high = rgb[0] > rgb[1] ? rgb[0] : rgb[1];
  low = rgb[2] < low ? rgb[2] : low;
  high = rgb[2] > high ? rgb[2] : high;
  return high - low > 24;
}

START_TEST(random_pictures_stay_in_their_frame) {
  state = (uint64_t)_i + 4000;
  static const char *const themes[] = {"light", "dark"};
  for (int i = 0; i < 12; i++) {
    add_random_curves();
    td_chart_options o = random_options(TD_GLYPHS_ASCII);
    int width = 16 + below(300), height = 16 + below(200);
    td_picture_options options = {
        .width = width,
        .height = height,
        .scale = 1,
        .theme = td_picture_theme_find(themes[i % 2]),
        .title = i % 3 ? "a title" : NULL,
        .steps_label = "",
        .logarithmic = o.logarithmic,
        .smoothing = o.smoothing,
        .range = {o.is_cut, o.first, o.last, o.is_clipped ? o.low : (double)NAN, o.is_clipped ? o.high : (double)NAN}};
    td_raster raster;
    uint8_t *pictures[2];
    for (int k = 0; k < 2; k++) {
      ck_assert(td_picture_curves(&raster, (const td_curve *const *)curves, curve_count, &options));
      for (int n = 0; n < width * height * 3; n++) ck_assert(isfinite((double)raster.pixels[n]));
      pictures[k] = bytes_of(&raster);
    }
    ck_assert(!memcmp(pictures[0], pictures[1], (size_t)(width * height * 3))); // the same bytes
    for (int y = 0; y < 13 && height > 100 && width > 150; y++)
      for (int x = 0; x < width; x++) ck_assert(!is_coloured(pictures[0] + (y * width + x) * 3));
    for (int y = 0; y < height - 30 && height > 100 && width > 150; y++)
      for (int x = width - 14; x < width; x++) ck_assert(!is_coloured(pictures[0] + (y * width + x) * 3));
    td_memory_free(pictures[0]);
    td_memory_free(pictures[1]);
    drop_curves();
  }
}
END_TEST

START_TEST(pixels_as_text) { // U50: the same picture in the modes of a terminal
  uint8_t rgb[] = {0, 0, 0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255, 0};
  td_pixels pixels = {.width = 3, .height = 2, .rgb = rgb};
  td_text text = {0};
  ck_assert(td_pixels_ascii(&text, &pixels, 6));
  ck_assert_str_eq(text.data, "  @@!!\n@@  ^^");
  td_text_clear(&text);
  ck_assert(td_pixels_blocks(&text, &pixels, 3, 1, true));
  ck_assert_str_eq(text.data, "\033[38;2;0;0;0m\033[48;2;255;255;255m▀\033[38;2;255;255;255m\033[48;2;0;0;0m▀"
                              "\033[38;2;255;0;255m\033[48;2;0;255;0m▀\033[0m");
  td_text_clear(&text);
  ck_assert(td_pixels_blocks(&text, &pixels, 3, 1, false));
  ck_assert_str_eq(text.data,
                   "\033[38;5;16m\033[48;5;231m▀\033[38;5;231m\033[48;5;16m▀\033[38;5;201m\033[48;5;46m▀\033[0m");
  td_text_clear(&text);
}
END_TEST

START_TEST(marks_survive_shrinking) {
  enum { SIDE = 64 };
  td_pixels from = {.width = SIDE, .height = SIDE, .rgb = td_memory_new_zero(SIDE * SIDE * 3)}, to;
  ck_assert_ptr_nonnull(from.rgb);
  memcpy(from.rgb + (17 * SIDE + 40) * 3, (uint8_t[]){255, 0, 255}, 3);
  for (int side = 1; side < 2 * SIDE; side += 5) {
    int found = 0;
    ck_assert(td_pixels_resize(&to, &from, side, side));
    for (int i = 0; i < side * side; i++)
      found += to.rgb[3 * i] == 255 && to.rgb[3 * i + 1] == 0 && to.rgb[3 * i + 2] == 255;
    ck_assert_int_ge(found, 1);
    td_pixels_clear(&to);
  }
  td_pixels_clear(&from);
}
END_TEST

START_TEST(colour_maps_are_even) {
  static const char *const names[] = {"viridis", "magma", "grey"};
  for (int i = 0; i < 3; i++) { // brightness rises all along
    const td_colour_map *map = td_colour_map_find(names[i]);
    double before = -1;
    for (int k = 0; k <= 100; k++) {
      uint32_t rgb = td_colour_map_at(map, k / 100.0);
      double light = 0.299 * (rgb >> 16) + 0.587 * (rgb >> 8 & 255) + 0.114 * (rgb & 255);
      ck_assert_msg(light > before - 0.5, "%s at %d", names[i], k);
      before = light;
    }
  }
  ck_assert_uint_eq(td_colour_map_at(td_colour_map_find("coolwarm"), 0.5), 0xDDDDDD);
  ck_assert_uint_eq(td_colour_map_at(td_colour_map_find("viridis"), NAN), TD_COLOUR_NAN);
  ck_assert_ptr_null(td_colour_map_find("rainbow"));
}
END_TEST

// ---- the functions of the language, when an allocation fails ----

static runs session;
static const char *const codes[] = {
    "show(x, title='x', ascii=True)",
    "show([x, ones((2, 2))], save='memory.png')",
    "show(x, save='memory.png')",
    "show(x, kind='hist', save='memory.png')",
    "show(x, kind='line', save='memory.png')",
    "plot_save('memory.png', 'loss', 'val_loss', width=60, height=40, title='t', smooth=0.5)"};
enum { CODES = sizeof codes / sizeof *codes };

START_TEST(each_allocation_fails) {
  const char *code = codes[_i / 2];
  bool forever = _i % 2;
  ck_assert(runs_open(&session, 1));
  ck_assert(td_pictures_register(session.interpreter));
  ck_assert_int_eq(runs_code(&session, "x = tensor([[1., nan], [inf, -2.]])\nplot('loss', 1)\nplot('loss', 2)\n"
                                       "plot('val_loss', 2)"),
                   TD_RUN_DONE);
  if (runs_code(&session, code) != TD_RUN_DONE && strstr(session.error, "no libpng")) return runs_close(&session);
  ck_assert_msg(runs_code(&session, code) == TD_RUN_DONE, "%s: %s", code, session.error);
  int64_t before = td_memory_count();
  ck_assert_int_eq(runs_code(&session, code), TD_RUN_DONE);
  int64_t count = td_memory_count() - before;
  for (int64_t nth = 1; nth <= count; nth++) {
    td_memory_fail(nth, forever);
    td_run_result result = runs_code(&session, code);
    td_memory_fail(0, false);
    ck_assert_msg(result == TD_RUN_DONE || strstr(session.error, "emory"), "%s, allocation %lld: %s", code,
                  (long long)nth, session.error);
    ck_assert_int_eq(runs_code(&session, "print(x.shape)"), TD_RUN_DONE);
  }
  ck_assert_int_eq(runs_code(&session, "remove_file('memory.png')") == TD_RUN_DONE, strstr(code, "memory.png") != NULL);
  runs_close(&session);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("charts");
  TCase *text = tcase_create("text"), *pixel = tcase_create("pixels");
  tcase_add_checked_fixture(text, NULL, finish);
  tcase_add_checked_fixture(pixel, NULL, finish);
  tcase_set_timeout(text, 120);
  tcase_set_timeout(pixel, 120);
  tcase_add_loop_test(text, glyph_sets_decode_to_one_picture, 0, 4);
  tcase_add_test(text, one_curve_in_every_glyph_set);
  tcase_add_loop_test(text, random_curves_stay_in_their_frame, 0, 8);
  tcase_add_loop_test(text, ticks_are_round_and_few, 0, 4);
  tcase_add_test(text, ticks_by_examples);
  tcase_add_test(text, a_smoothed_constant_stays_the_same);
  tcase_add_test(text, smoothing_is_bias_corrected);
  tcase_add_test(text, nothing_finite_and_nothing_at_all);
  tcase_add_test(text, flat_curves_and_single_points);
  tcase_add_test(text, a_gap_at_the_start_keeps_the_axis);
  tcase_add_test(text, points_outside_are_marked_and_counted);
  tcase_add_test(text, zoom_keeps_lines_to_the_edge);
  tcase_add_test(text, a_cursor_shows_the_values_of_its_step);
  tcase_add_test(text, curves_differ_without_colour);
  tcase_add_test(text, no_memory_is_no_crash);
  tcase_add_test(text, sparklines);
  tcase_add_test(text, histograms_as_cells);
  tcase_add_test(text, histograms_of_any_size);
  tcase_add_test(pixel, areas_cover_exactly);
  tcase_add_test(pixel, strokes_have_their_width);
  tcase_add_loop_test(pixel, nothing_is_drawn_outside, 0, 4);
  tcase_add_loop_test(pixel, random_pictures_stay_in_their_frame, 0, 6);
  tcase_add_test(pixel, pixels_as_text);
  tcase_add_test(pixel, marks_survive_shrinking);
  tcase_add_test(pixel, colour_maps_are_even);
  TCase *memory = tcase_create("memory");
  tcase_add_checked_fixture(memory, NULL, finish);
  tcase_set_timeout(memory, 120);
  tcase_add_loop_test(memory, each_allocation_fails, 0, 2 * CODES);
  suite_add_tcase(suite, memory);
  suite_add_tcase(suite, text);
  suite_add_tcase(suite, pixel);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
