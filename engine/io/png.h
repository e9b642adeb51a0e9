// PNG pictures, by libpng. A build without it refuses all of them, saying so.
#ifndef TD_IO_PNG_H
#define TD_IO_PNG_H
#include "engine/io/input.h"

// *out is a new tensor: [H, W] for grey pictures, [H, W, C] for others, C = 2 (grey, alpha), 3 (RGB), 4 (RGBA).
// Palettes become colours, transparency an alpha channel. uint8 with values up to 255, whatever the depth (1, 2, 4 and
// 8 bits); of 16 bits int32 with values up to 65535. Gamma and colour profiles are left aside. Errors: TD_ERROR_FILE
// with path, byte and reason, also for a picture that is far larger than its file; TD_ERROR_MEMORY.
int td_png_load(td_context *context, const char *path, td_tensor **out);
// The same of a picture's bytes; who and path: for messages.
int td_png_decode(td_context *context, const char *who, const char *path, const void *bytes, size_t size,
                  td_tensor **out);
// The picture of a tensor of shape [H, W] or [H, W, C], C = 1 to 4, as the bytes of a file. uint8 as they are; bool: 0
// and 255; int32 and int64: 16 bits, 0 to 65535; floats: 8 bits, 0 to 1, cut to that, NaN as 0. who: for messages.
int td_png_encode(td_context *context, const char *who, const td_tensor *t, td_text *out);
int td_png_save(td_context *context, const char *path, td_tensor *t); // atomic
#endif
