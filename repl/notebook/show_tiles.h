// What show() is given, as tiles: which axes of a tensor are rows, columns, channels, and which count pictures.
#ifndef TD_NOTEBOOK_SHOW_TILES_H
#define TD_NOTEBOOK_SHOW_TILES_H
#include "repl/notebook/picture_tensor.h"

enum td_show_kind {
  TD_SHOW_AUTO,
  TD_SHOW_IMAGE,
  TD_SHOW_HEAT,
  TD_SHOW_GRID,
  TD_SHOW_HIST,
  TD_SHOW_LINE,
  TD_SHOW_KINDS
};

// Adds the pictures of a tensor, which it borrows:
//   [H, W]                one; [N] as [1, N] for kind HEAT
//   [H, W, 1 | 3 | 4]     one; [3, H, W] too
//   [N, H, W]             N; all of rank 3 for kind GRID
//   [N, H, W, 1 | 3 | 4]  N, when height and width are nearer to each other so than as
//   [N, C, H, W]          N for C = 3, else N * C, a row each
// false: ValueError.
bool td_show_add(td_interpreter *I, td_tiles *tiles, td_tensor *t, enum td_show_kind kind);
#endif
