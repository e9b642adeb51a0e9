// TensorBoard's event files: TFRecord frames with masked CRC32C around the protocol buffers Event and Summary
// (tensorflow/core/util/event.proto, framework/summary.proto), which are written and read by hand here.
#ifndef TD_IO_EVENT_FILE_H
#define TD_IO_EVENT_FILE_H
#include "engine/io/input.h"

uint32_t td_crc32c(const void *bytes, size_t size);
static inline uint32_t td_crc_mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

// A writer into a folder, which is made when it is absent; its file is made by the first record. A record is one append
// to the file, so that what was written outlives the process. When the first value of a name has a step that older
// files of the folder have already, training was resumed: a record tells readers to drop what was written from that
// step on.
typedef struct td_event_writer td_event_writer;
int td_event_writer_open(td_context *context, const char *folder, td_event_writer **out);
void td_event_writer_close(td_event_writer *writer);
const char *td_event_writer_path(const td_event_writer *writer); // of its file

int td_event_scalar(td_context *context, td_event_writer *writer, const char *name, int64_t step,
                    double value); // as a float32
// Finite elements in 30 buckets of one width.
int td_event_histogram(td_context *context, td_event_writer *writer, const char *name, int64_t step,
                       const td_tensor *t);
// [H, W], [H, W, C] or several [N, H, W, C], as td_png_encode takes them; several are called NAME/0, NAME/1, ...
int td_event_image(td_context *context, td_event_writer *writer, const char *name, int64_t step, td_tensor *t);
int td_event_text(td_context *context, td_event_writer *writer, const char *name, int64_t step, const char *text,
                  size_t length);

// The scalars of a file, or of all event files of a folder in the order of their names.
typedef struct td_event_point {
  int64_t step;
  double seconds, value;
} td_event_point;
typedef struct td_event_curve {
  char *name;
  int64_t count, capacity;
  td_event_point *points;
} td_event_curve;
typedef struct td_event_curves {
  td_event_curve *curves;
  int64_t count, capacity;
} td_event_curves;
// Curves in the order in which their names appear, points in the order of the records, less those that a resumed
// training replaced. A last record that is not whole is left out: the file may be being written. Errors: TD_ERROR_FILE
// with path, byte and reason, for a checksum that is wrong and for a record that is none; TD_ERROR_MEMORY.
int td_event_curves_load(td_context *context, const char *path, td_event_curves *curves);
void td_event_curves_clear(td_event_curves *curves);
#endif
