// See show_tiles.h.
#include "repl/notebook/show_tiles.h"
#include <math.h>

typedef struct layout { // of a tensor, as axes
  int count, height, width, channel; // -1: none, as if of size 1
  int rows; // axis of which each index is a row of the grid; -1: none
} layout;

static bool is_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

static double oblong(int64_t height, int64_t width) { // 0: a square
  return fabs(log((double)height) - log((double)width));
}

static layout layout_of_four(const int64_t *shape) {
  bool back = is_channels(shape[3]) && oblong(shape[1], shape[2]) < oblong(shape[2], shape[3]);
  if (back) return (layout){0, 1, 2, 3, -1};
  if (shape[1] == 3) return (layout){0, 2, 3, 1, -1};
  return (layout){1, 2, 3, -1, 0};
}

static layout layout_of(const td_tensor *t, enum td_show_kind kind) {
  if (t->rank == 1) return (layout){-1, -1, 0, -1, -1};
  if (t->rank == 2) return (layout){-1, 0, 1, -1, -1};
  if (t->rank == 4) return layout_of_four(t->shape);
  if (kind != TD_SHOW_GRID && is_channels(t->shape[2])) return (layout){-1, 0, 1, 2, -1};
  if (kind != TD_SHOW_GRID && t->shape[0] == 3) return (layout){-1, 1, 2, 0, -1};
  return (layout){0, 1, 2, -1, -1};
}

static bool refuse(td_interpreter *I, const td_tensor *t, const char *what) {
  td_text shape = {0};
  td_meta_print(&shape, t->dtype, t->rank, t->shape);
  td_raise(I, TD_CLASS_VALUE_ERROR, "show: %s, not %s", what, shape.data ? shape.data : "");
  td_text_clear(&shape);
  return false;
}

static bool check(td_interpreter *I, const td_tensor *t, enum td_show_kind kind) {
  bool ok = kind == TD_SHOW_HEAT   ? t->rank == 1 || t->rank == 2
            : kind == TD_SHOW_GRID ? t->rank == 3 || t->rank == 4
                                   : t->rank >= 2 && t->rank <= 4;
  if (ok && t->size) return true;
  if (ok) return refuse(I, t, "a picture needs elements");
  if (kind == TD_SHOW_HEAT) return refuse(I, t, "a heat map is of [H, W]");
  if (kind == TD_SHOW_GRID) return refuse(I, t, "a grid is of [N, H, W], [N, H, W, C] or [N, C, H, W]");
  bool added = refuse(I, t, "a picture is of [H, W], [H, W, C], [C, H, W], [N, H, W], [N, H, W, C] or [N, C, H, W]");
  td_raise_hint(I, "kind=\"hist\" shows a tensor of any shape");
  return added;
}

static int64_t size_at(const td_tensor *t, int axis) { return axis < 0 ? 1 : t->shape[axis]; }

static td_tensor *arrange(td_interpreter *I, td_tensor *t, const layout *l) { // [rows, count, height, width, channels]
  const int axes[5] = {l->rows, l->count, l->height, l->width, l->channel};
  int64_t shape[5], strides[5];
  for (int i = 0; i < 5; i++) {
    shape[i] = size_at(t, axes[i]);
    strides[i] = axes[i] < 0 ? 0 : t->strides[axes[i]];
  }
  td_tensor *view = td_tensor_view(I->context, t, 5, shape, strides, 0);
  if (!view) td_raise_engine(I);
  return view;
}

bool td_show_add(td_interpreter *I, td_tiles *tiles, td_tensor *t, enum td_show_kind kind) {
  if (!check(I, t, kind)) return false;
  layout l = layout_of(t, kind);
  td_tensor *view = arrange(I, t, &l);
  if (!view) return false;
  int64_t height = view->shape[2], width = view->shape[3], channels = view->shape[4];
  int64_t count = view->shape[0] * view->shape[1];
  if (l.rows >= 0 && !tiles->columns && view->shape[1] > 1) tiles->columns = view->shape[1];
  tiles->total += count;
  for (int64_t i = 0; i < count && tiles->count < TD_TILES_MAX; i++)
    tiles->at[tiles->count++] = (td_tile){td_tensor_ref(view), i * height * width * channels, height, width, channels};
  td_tensor_unref(view);
  return true;
}
