// See deck_write.h.
//  1. What a cell of a deck has besides its text stays with it: its divider, and as its tail the line ends under it.
//  2. Where a cell is new, or stands where it did not, what separates it is written as usual: one blank line.
//  3. Prose is written as comments, unless that would make a divider of a line.
#include "repl/notebook/deck_write.h"
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/deck.h"

static const char mark[] = " [markdown]";
enum { SIGN = 4, MARK = sizeof mark - 1 }; // "# %%"

size_t td_cell_name_length(const char *text, size_t length) {
  size_t count = 0;
  while (count < length && (text[count] == '-' || text[count] == '_' || (text[count] >= '0' && text[count] <= '9') ||
                            (text[count] >= 'a' && text[count] <= 'z') || (text[count] >= 'A' && text[count] <= 'Z')))
    count++;
  return count <= TD_CELL_NAME ? count : 0;
}

static const char *after_line(const char *line, const char *end) {
  const char *newline = memchr(line, '\n', (size_t)(end - line));
  return newline ? newline + 1 : end;
}

// ---- reading ----

// All lines are "#" or "# " and something, the last one the latter: taking the signs away and putting them back changes
// nothing.
static bool is_commented(const char *text, const char *end) {
  if (text == end || (end[-1] == '#' && (end - text == 1 || end[-2] == '\n'))) return false;
  for (const char *line = text, *next; line < end; line = next) {
    next = after_line(line, end);
    const char *stop = next[-1] == '\n' ? next - 1 : next;
    if (*line != '#' || (stop - line > 1 && line[1] != ' ') || stop - line == 2) return false;
  }
  return true;
}

static void add_uncommented(td_text *out, const char *text, const char *end) {
  for (const char *line = text, *next; line < end; line = next) {
    next = after_line(line, end);
    const char *from = line + 1 < next && line[1] == ' ' ? line + 2 : line + 1;
    td_text_add_bytes(out, from, (size_t)(next - from));
  }
}

static const char *without_line_ends(const char *text, const char *end) {
  const char *stop = end;
  while (stop > text && (stop[-1] == '\n' || (stop[-1] == '\r' && stop < end && *stop == '\n'))) stop--;
  return stop;
}

static void read_name(td_notebook_cell *cell, const char *divider, const char *end) {
  for (const char *at = divider + SIGN; at + 4 < end; at++) {
    if (memcmp(at, " id=", 4)) continue;
    at += 4;
    if (*at == '"') at++;
    size_t length = td_cell_name_length(at, (size_t)(end - at));
    memcpy(cell->name, at, length);
    cell->name[length] = 0;
    return;
  }
}

static char *copy(const char *text, const char *end) {
  char *bytes = td_memory_new((size_t)(end - text) + 1);
  if (!bytes) return NULL;
  memcpy(bytes, text, (size_t)(end - text));
  bytes[end - text] = 0;
  return bytes;
}

static bool add_cell(td_notebook *n, const char *divider, const char *text, const char *end) {
  bool markdown = divider < text && td_deck_is_markdown(divider, text);
  const char *stop = without_line_ends(text, end);
  td_text plain = {0};
  bool commented = markdown && is_commented(text, stop);
  if (commented) add_uncommented(&plain, text, stop);
  else td_text_add_bytes(&plain, text, (size_t)(stop - text));
  td_notebook_cell *cell = plain.failed ? NULL : td_notebook_append(n, markdown, plain.data, plain.length);
  td_text_clear(&plain);
  if (!cell) return false;
  cell->commented = commented;
  cell->divider = copy(divider, text);
  cell->divider_length = (size_t)(text - divider);
  cell->tail = copy(stop, end);
  if (divider < text) read_name(cell, divider, text);
  return cell->divider && cell->tail;
}

int td_deck_to_notebook(td_context *context, const char *text, size_t length, td_notebook *n) {
  const char *end = text + length, *divider = text, *begin = text;
  bool ok = true;
  for (const char *line = text, *next; ok && line < end; line = next) {
    next = after_line(line, end);
    if (!td_deck_is_divider(line, next)) continue;
    if (line > text) ok = add_cell(n, divider, begin, line);
    divider = line;
    begin = next;
  }
  if (ok && length) ok = add_cell(n, divider, begin, end);
  td_notebook_saved(n);
  return ok ? TD_OK : td_error_memory(context, "a deck's cells", td_memory_failed());
}

// ---- titles ----

static bool is_title(const char *word, size_t length) { // and not what else stands in a divider
  return strncmp(word, "id=", 3) && (length != MARK - 1 || memcmp(word, mark + 1, length));
}

void td_deck_title(const td_notebook_cell *cell, td_text *out) {
  size_t begin = out->length;
  if (!cell->divider || cell->divider_length < SIGN) return;
  for (const char *word = cell->divider + SIGN; *word;) {
    word += strspn(word, " \t\r\n");
    size_t length = strcspn(word, " \t\r\n");
    if (length && is_title(word, length)) {
      if (out->length > begin) td_text_add_char(out, ' ');
      td_text_add_bytes(out, word, length);
    }
    word += length;
  }
}

bool td_deck_set_title(td_notebook_cell *cell, const char *title) {
  td_text divider = {0};
  if (!*title || td_deck_is_markdown(title, title + strlen(title))) return true; // it would be another cell's divider
  td_text_add(&divider, "# %% ");
  for (; *title; title++) td_text_add_char(&divider, (unsigned char)*title < ' ' ? ' ' : *title);
  td_text_add(&divider, cell->markdown ? mark : "");
  td_text_add_char(&divider, '\n');
  if (divider.failed) return td_text_clear(&divider), false;
  td_memory_free(cell->divider);
  cell->divider_length = divider.length;
  cell->divider = td_text_take(&divider);
  return true;
}

// ---- writing ----

static bool ends_line(const td_text *out) { return !out->length || out->data[out->length - 1] == '\n'; }

static void end_line(td_text *out) {
  if (!ends_line(out)) td_text_add_char(out, '\n');
}

static void print_divider(const td_notebook_cell *cell, bool first, td_text *out) {
  if (cell->divider && !cell->divider_length && first && !cell->markdown) return; // a deck that begins without one
  end_line(out);
  if (!cell->divider || !cell->divider_length) {
    td_text_add(out, cell->markdown ? "# %% [markdown]\n" : "# %%\n");
    return;
  }
  const char *divider = cell->divider, *end = divider + cell->divider_length;
  const char *is = memmem(divider, (size_t)(end - divider), mark + 1, MARK - 1);
  if (cell->markdown == (is != NULL)) {
    td_text_add_bytes(out, divider, (size_t)(end - divider));
    return;
  }
  const char *from = is ? is + MARK - 1 : divider + SIGN; // what stands behind the mark, or will
  if (is && is[-1] == ' ') is--;
  td_text_add_bytes(out, divider, (size_t)((is ? is : from) - divider));
  if (!is) td_text_add(out, mark);
  td_text_add_bytes(out, from, (size_t)(end - from));
}

static bool has_line(const td_text *text, const char *sign) { // one that begins with it
  const char *end = text->data + text->length;
  size_t length = strlen(sign);
  for (const char *line = text->data; line < end; line = after_line(line, end))
    if ((size_t)(end - line) >= length && memcmp(line, sign, length) == 0) return true;
  return false;
}

static void print_prose(const td_notebook_cell *cell, td_text *out) {
  const td_text *text = &cell->text;
  const char *end = text->data + text->length;
  bool plain = !cell->commented && !is_commented(text->data, end) && !has_line(text, "# %%");
  if (plain || has_line(text, "%%")) { // "# %%" would be a divider
    td_text_add_bytes(out, text->data, text->length);
    return;
  }
  for (const char *line = text->data, *next; line < end; line = next) {
    next = after_line(line, end);
    td_text_add(out, *line == '\n' ? "#" : "# ");
    td_text_add_bytes(out, line, (size_t)(next - line));
  }
}

static void print_tail(const td_notebook *n, int index, td_text *out) {
  const td_notebook_cell *cell = n->cells[index], *next = index + 1 < n->count ? n->cells[index + 1] : NULL;
  const char *tail = cell->tail;
  if (tail && (!next || next->divider || strlen(tail) > 1)) td_text_add(out, tail);
  else if (next) td_text_add(out, "\n\n");
  else if (cell->text.length) td_text_add(out, "\n");
}

void td_deck_print(const td_notebook *n, td_text *out) {
  td_text_add(out, "");
  for (int i = 0; i < n->count; i++) {
    const td_notebook_cell *cell = n->cells[i];
    print_divider(cell, i == 0, out);
    if (cell->text.length) end_line(out); // of a divider that was the file's last line
    if (cell->markdown) print_prose(cell, out);
    else td_text_add_bytes(out, cell->text.data, cell->text.length);
    print_tail(n, i, out);
  }
}
