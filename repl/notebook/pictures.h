// Functions of the language that make pictures, and what they share.
#ifndef TD_NOTEBOOK_PICTURES_H
#define TD_NOTEBOOK_PICTURES_H
#include "repl/language/interpreter.h"
#include "repl/notebook/raster.h"

extern const td_method td_plot_save_builtins[], td_show_builtins[]; // builtin_plot_save.c, builtin_show.c

bool td_pictures_register(td_interpreter *I); // false: no memory
// Writes a picture as a PNG file. who: the function, for messages. false: exception.
bool td_picture_save_pixels(td_interpreter *I, const char *who, const char *path, const uint8_t *rgb, int width,
                            int height);
bool td_picture_save(td_interpreter *I, const char *who, const char *path, const td_raster *raster);
#endif
