// A growable text. Appending after a failed allocation does nothing and sets failed, so callers check once at the end.
#ifndef TD_BASE_TEXT_H
#define TD_BASE_TEXT_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct td_text {
  char *data;      // NUL-terminated once anything was added; NULL when empty and never touched
  size_t length;   // bytes, without the NUL
  size_t capacity;
  bool failed;     // an allocation failed: content is incomplete
} td_text;

void td_text_add(td_text *text, const char *bytes);
void td_text_add_bytes(td_text *text, const char *bytes, size_t length);
void td_text_add_char(td_text *text, char c);
void td_text_print(td_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void td_text_print_list(td_text *text, const char *format, va_list list);
void td_text_pad(td_text *text, size_t column, char fill); // appends fill until length reaches column
char *td_text_take(td_text *text);   // the owned text (never NULL unless out of memory); text becomes empty
void td_text_clear(td_text *text);   // frees the data

// Shortest decimal texts that read back as the same number, Python's repr style ("0.1", "1e-05", "1.0", "inf", "nan").
#define TD_NUMBER_TEXT 32
int td_number_print(char buffer[TD_NUMBER_TEXT], double value);        // shortest for a double; returns length
int td_number_print_float(char buffer[TD_NUMBER_TEXT], float value);   // shortest for a float
// Digits and decimal exponent of the shortest form: value = 0.d1d2d3... * 10^point. digits is NUL-terminated.
int td_number_digits(double value, bool single, char digits[24], int *point);
// The same for a number of a format with so many significant bits: 53 double, 24 float, 11 float16, 8 bfloat16.
int td_number_print_bits(char buffer[TD_NUMBER_TEXT], double value, int significant);
int td_number_digits_bits(double value, int significant, char digits[24], int *point);
#endif
