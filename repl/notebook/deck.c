// See deck.h. Cells are cut by lines alone: a divider inside a triple-quoted string divides too, as in every editor
// that knows the format.
#include "repl/notebook/deck.h"
#include <string.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"

bool td_deck_is_divider(const char *line, const char *end) { return end - line >= 4 && memcmp(line, "# %%", 4) == 0; }

bool td_deck_is_markdown(const char *line, const char *end) {
  static const char mark[] = "[markdown]";
  for (; end - line >= (long)sizeof mark - 1; line++)
    if (memcmp(line, mark, sizeof mark - 1) == 0) return true;
  return false;
}

static const char *line_end(const char *line, const char *end) {
  const char *newline = memchr(line, '\n', (size_t)(end - line));
  return newline ? newline : end;
}

// Counts the cells (cells NULL) or fills them.
static int cut(const char *text, size_t length, td_cell_text *cells) {
  const char *end = text + length, *line = text;
  td_cell_text cell = {.text = text};
  int count = 0, number = 0;
  while (line < end) {
    const char *stop = line_end(line, end), *next = stop < end ? stop + 1 : end;
    number++;
    if (td_deck_is_divider(line, stop)) {
      cell.length = (size_t)(line - cell.text);
      if (cell.length) {
        if (cells) cells[count] = cell;
        count++;
      }
      cell = (td_cell_text){.text = next, .line = number, .markdown = td_deck_is_markdown(line, stop)};
    }
    line = next;
  }
  cell.length = (size_t)(end - cell.text);
  if (cell.length) {
    if (cells) cells[count] = cell;
    count++;
  }
  return count;
}

int td_deck_parse(td_context *context, const char *text, size_t length, td_deck *deck) {
  *deck = (td_deck){.length = length};
  deck->text = td_memory_new(length + 1);
  deck->folder = td_memory_text("");
  int count = cut(text, length, NULL);
  deck->cells = td_memory_new_zero(((size_t)count + 1) * sizeof *deck->cells);
  if (!deck->text || !deck->folder || !deck->cells) {
    td_deck_clear(deck);
    return td_error_memory(context, "a deck", (int64_t)length);
  }
  memcpy(deck->text, text, length);
  deck->text[length] = 0;
  deck->count = cut(deck->text, length, deck->cells);
  return TD_OK;
}

int td_deck_read(td_context *context, const char *path, td_deck *deck) {
  char *bytes;
  size_t size;
  *deck = (td_deck){0};
  int code = td_file_read(context, path, TD_DECK_LIMIT, &bytes, &size);
  if (code) return code;
  code = td_deck_parse(context, bytes, size, deck);
  td_memory_free(bytes);
  if (code) return code;
  const char *slash = strrchr(path, '/');
  if (slash) {
    td_memory_free(deck->folder);
    deck->folder = td_memory_text(path);
    if (deck->folder) deck->folder[slash == path ? 1 : slash - path] = 0;
    else code = td_error_memory(context, "a path", (int64_t)strlen(path));
  }
  if (code) td_deck_clear(deck);
  return code;
}

void td_deck_clear(td_deck *deck) {
  td_memory_free(deck->text);
  td_memory_free(deck->folder);
  td_memory_free(deck->cells);
  *deck = (td_deck){0};
}
