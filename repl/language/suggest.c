// The name that was probably meant. Distance counts inserted, dropped, changed and swapped characters (optimal string
// alignment); a name that differs in case and underscores alone is nearer than any other.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "repl/language/diagnose.h"

enum { WORD_MAX = 64 };

static const struct {
  const char *word, *name;
} foreign[] = {
    {"true", "True"}, {"TRUE", "True"}, {"false", "False"},    {"FALSE", "False"},  {"null", "None"}, {"NULL", "None"},
    {"nil", "None"},  {"none", "None"}, {"undefined", "None"}, {"nullptr", "None"}, {"this", "self"},
};

// What other systems call it: suggested where the candidates have it.
static const struct {
  const char *word, *name;
} synonyms[] = {
    {"array", "tensor"},    {"asarray", "tensor"},   {"constant", "tensor"},   {"ndarray", "tensor"},
    {"jacfwd", "jacobian"}, {"jacrev", "jacobian"},  {"Parameter", "Variable"},
};

static const char *synonym(const char *word, const td_list *candidates) {
  for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
    if (strcmp(synonyms[i].word, word) != 0) continue;
    for (int64_t k = 0; k < candidates->count; k++) {
      const td_value name = candidates->items[k];
      if (td_is(name, &td_str_type) && strcmp(td_as_str(name)->data, synonyms[i].name) == 0) return synonyms[i].name;
    }
  }
  return NULL;
}

static int fold(const char *word, char folded[WORD_MAX]) { // lower case without underscores; returns its length
  int length = 0;
  for (; *word && length < WORD_MAX - 1; word++) {
    if (*word != '_') folded[length++] = (char)tolower((unsigned char)*word);
  }
  folded[length] = 0;
  return length;
}

static int least(int a, int b) { return a < b ? a : b; }

static int distance(const char *a, int a_length, const char *b, int b_length) {
  int rows[3][WORD_MAX + 1];
  int *before = rows[0], *last = rows[1], *row = rows[2];
  for (int j = 0; j <= b_length; j++) last[j] = j;
  for (int i = 1; i <= a_length; i++) {
    row[0] = i;
    for (int j = 1; j <= b_length; j++) {
      int change = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = least(change, least(last[j], row[j - 1]) + 1);
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = least(row[j], before[j - 2] + 1);
    }
    int *oldest = before;
    before = last;
    last = row;
    row = oldest;
  }
  return last[b_length];
}

const char *td_suggest(const char *word, td_list *candidates) {
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    if (strcmp(foreign[i].word, word) == 0) return foreign[i].name;
  }
  const char *nearest = synonym(word, candidates);
  if (nearest) return nearest;
  char folded[WORD_MAX], other[WORD_MAX];
  int length = fold(word, folded), best = length < 3 ? 1 : least(length / 3 + 1, 4); // a distance below this is near
  for (int64_t i = 0; i < candidates->count; i++) {
    if (!td_is(candidates->items[i], &td_str_type)) continue;
    const char *name = td_as_str(candidates->items[i])->data;
    if (name[0] == '_' && word[0] != '_') continue; // nobody's but its own file's
    int other_length = fold(name, other);
    if (abs(other_length - length) >= best || strcmp(name, word) == 0) continue;
    int found = distance(folded, length, other, other_length);
    if (found >= best) continue;
    best = found;
    nearest = name;
  }
  return nearest;
}
