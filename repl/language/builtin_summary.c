// Event files in the language: the writer that summary.deck uses, and load_events. Private to that deck: event_writer.
#include <string.h>

#include "engine/io/event_file.h"
#include "repl/language/files.h"

typedef struct writer_value {
  td_object object;
  td_event_writer *writer;
} writer_value;

static td_event_writer *writer_of(td_value v) { return ((writer_value *)v.o)->writer; }

static void release(td_object *object) { td_event_writer_close(((writer_value *)object)->writer); }

static const char *name_argument(td_interpreter *I, td_value v, const char *who) {
  if (!td_str_argument(I, v, who, "the name")) return NULL;
  if (strlen(td_as_str(v)->data) == td_as_str(v)->length && td_as_str(v)->length) return td_as_str(v)->data;
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: the name is empty or holds a NUL character", who);
  return NULL;
}

static bool step_argument(td_interpreter *I, td_value v, const char *who, int64_t *step) {
  bool ok = true;
  *step = td_to_int(I, v, &ok);
  if (ok) return true;
  td_clear_raised(I);
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s: step must be an int, not %s", who, td_type_name(I, v));
  return false;
}

static td_value write_scalar(td_interpreter *I, td_value self, td_value *arguments) { // name, value, step
  int64_t step;
  bool ok = true;
  const char *name = name_argument(I, arguments[0], "summary.scalar");
  if (!name || !step_argument(I, arguments[2], "summary.scalar", &step)) return TD_NIL;
  double value = td_to_double(I, arguments[1], &ok);
  return ok ? td_done(I, td_event_scalar(I->context, writer_of(self), name, step, value)) : TD_NIL;
}

static td_value write_text(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t step;
  const char *name = name_argument(I, arguments[0], "summary.text");
  if (!name || !step_argument(I, arguments[2], "summary.text", &step) ||
      !td_str_argument(I, arguments[1], "summary.text", "the text"))
    return TD_NIL;
  const td_str *text = td_as_str(arguments[1]);
  return td_done(I, td_event_text(I->context, writer_of(self), name, step, text->data, text->length));
}

static td_value write_histogram(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t step;
  const char *name = name_argument(I, arguments[0], "summary.histogram");
  td_tensor *t = name && step_argument(I, arguments[2], "summary.histogram", &step)
                     ? td_saved_tensor(I, arguments[1], "summary.histogram")
                     : NULL;
  if (!t) return TD_NIL;
  int code = td_event_histogram(I->context, writer_of(self), name, step, t);
  td_tensor_unref(t);
  return td_done(I, code);
}

static td_value write_image(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t step;
  const char *name = name_argument(I, arguments[0], "summary.image");
  td_tensor *t = name && step_argument(I, arguments[2], "summary.image", &step)
                     ? td_saved_tensor(I, arguments[1], "summary.image")
                     : NULL;
  if (!t) return TD_NIL;
  int code = td_event_image(I->context, writer_of(self), name, step, t);
  td_tensor_unref(t);
  return td_done(I, code);
}

static td_value writer_path(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_from(td_str_from(I, td_event_writer_path(writer_of(self))));
}

static const td_method methods[] = {
    {"scalar", "(name, value, step)", write_scalar, "Writes a number as a float32."},
    {"text", "(name, text, step)", write_text, "Writes a text, which TensorBoard reads as Markdown."},
    {"histogram", "(name, x, step)", write_histogram,
     "Writes how a tensor's finite elements are spread over 30 buckets of one width."},
    {"image", "(name, x, step)", write_image, "Writes a picture [H, W] or [H, W, C], or several [N, H, W, C]."},
    {"path", "()", writer_path, "The event file; it is there from the first record on."},
    {NULL, NULL, NULL, NULL}};

static const td_type event_writer_type = {.name = "event_writer",
                                          .size = sizeof(writer_value),
                                          .release = release,
                                          .methods = methods,
                                          .doc = "Writes one of TensorBoard's event files; summary_writer makes them."};

static td_value builtin_event_writer(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *folder = td_path_argument(I, arguments[0], "summary_writer");
  writer_value *v = folder ? td_object_new(I, &event_writer_type, sizeof *v) : NULL;
  if (!v) return TD_NIL;
  if (td_event_writer_open(I->context, folder, &v->writer) == TD_OK) return td_from(v);
  td_unref(td_from(v));
  return td_raise_engine(I);
}

// ---- load_events ----

static td_value columns_of(td_interpreter *I, const td_event_curve *curve) { // (steps, values)
  td_tensor *steps = td_tensor_new(I->context, TD_INT64, 1, &curve->count);
  td_tensor *values = steps ? td_tensor_new(I->context, TD_FLOAT64, 1, &curve->count) : NULL;
  for (int64_t i = 0; values && i < curve->count; i++) {
    ((int64_t *)steps->data)[i] = curve->points[i].step;
    ((double *)values->data)[i] = curve->points[i].value;
  }
  if (!values) td_tensor_unref(steps);
  td_value first = values ? td_tensor_box(I, steps) : td_raise_engine(I),
           second = values ? td_tensor_box(I, values) : TD_NIL;
  if (!td_is_nil(first) && !td_is_nil(second)) return td_tuple_pack(I, 2, first, second);
  td_unref(first);
  td_unref(second);
  return TD_NIL;
}

static td_value builtin_load_events(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_event_curves curves;
  const char *path = td_existing_path(I, arguments[0], "load_events");
  if (!path) return TD_NIL;
  if (td_event_curves_load(I->context, path, &curves) != TD_OK) return td_raise_engine(I);
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (int64_t i = 0; ok && i < curves.count; i++) {
    td_value name = td_from(td_str_from(I, curves.curves[i].name)),
             columns = td_is_nil(name) ? TD_NIL : columns_of(I, &curves.curves[i]);
    ok = !td_is_nil(columns) && td_dict_set(I, dict, name, columns);
    td_unref(name);
    td_unref(columns);
  }
  td_event_curves_clear(&curves);
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

const td_method td_summary_builtins[] = {
    {"event_writer", "(folder)", builtin_event_writer, "What summary_writer writes with."},
    {"load_events", "(path)", builtin_load_events,
     "The scalars of one of TensorBoard's event files, or of all in a folder: a dict of (steps, values) by name.\n\n"
     "Where a training was resumed from an older step, the newer values stand alone from there on. A last record that "
     "is "
     "being written is left out."},
    {NULL, NULL, NULL, NULL}};
