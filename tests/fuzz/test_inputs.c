// Inputs from a stranger, in every "make check": all past finds, then mutations of the golden decks, format specs,
// numbers, deck files and data files, the same ones on every run. Each batch runs in a process of its own; when it
// dies, the input that was running is shown, to be made small and kept in tests/fuzz/finds.
#include <check.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "tests/fuzz/targets.h"

enum { INPUT_MAX = 1 << 16, SECONDS = 120 };
typedef void target(const uint8_t *, size_t);
typedef struct input { size_t size; uint8_t bytes[INPUT_MAX]; } input;
static input *current; // shared with the process that runs it

// ---- files that mutations begin with ----

static char **seeds;
static size_t *seed_sizes;
static size_t seed_count;

static const char *source_folder(void) {
  const char *folder = getenv("top_srcdir");
  return folder ? folder : ".";
}

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  ck_assert_msg(file != NULL, "%s can't be opened", path);
  char *bytes = malloc(INPUT_MAX);
  *size = fread(bytes, 1, INPUT_MAX, file);
  fclose(file);
  return bytes;
}

static glob_t find(const char *pattern) {
  char path[PATH_MAX];
  glob_t found;
  snprintf(path, sizeof path, "%s/%s", source_folder(), pattern);
  if (glob(path, 0, NULL, &found)) found.gl_pathc = 0;
  return found;
}

static void read_seeds(void) {
  glob_t found = find("tests/language/*/*/*.deck");
  ck_assert_msg(found.gl_pathc > 100, "no golden decks under %s/tests/language", source_folder());
  seeds = malloc(found.gl_pathc * sizeof *seeds);
  seed_sizes = malloc(found.gl_pathc * sizeof *seed_sizes);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    char *bytes = read_file(found.gl_pathv[i], &seed_sizes[seed_count]);
    if (seed_sizes[seed_count] < 6000) seeds[seed_count++] = bytes;
    else free(bytes);
  }
  globfree(&found);
}

// ---- running ----

static uint64_t number_of(const char *name, uint64_t otherwise) { // what the environment tells
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void run_alone(target *run, void (*make)(uint64_t, input *), uint64_t first, uint64_t count) {
  current = mmap(NULL, sizeof *current, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(current, MAP_FAILED);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    struct rlimit limit = {(rlim_t)2 << 30, (rlim_t)2 << 30};
#if !defined(__SANITIZE_ADDRESS__)
    setrlimit(RLIMIT_AS, &limit);
#endif
    (void)limit;
    alarm((unsigned)(SECONDS * number_of("SLOWNESS", 1)));
    for (uint64_t i = first; i < first + count; i++) {
      if (make) make(i, current);
      run(current->bytes, current->size);
    }
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ck_assert_msg(status == 0, "inputs %llu to %llu ended with status %#x at this one (%zu bytes):\n%.*s",
                (unsigned long long)first, (unsigned long long)(first + count - 1), (unsigned)status, current->size,
                (int)current->size, (char *)current->bytes);
  munmap(current, sizeof *current);
}

// ---- mutations ----

static uint64_t next_random(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t limit) { return limit ? next_random(state) % limit : 0; }

// Replaces size bytes at a place by others.
static void splice(input *in, size_t at, size_t size, const void *bytes, size_t count) {
  if (at > in->size) at = in->size;
  if (size > in->size - at) size = in->size - at;
  if (in->size - size + count > INPUT_MAX) return;
  uint8_t *kept = malloc(count + 1);
  memcpy(kept, bytes, count);
  memmove(in->bytes + at + count, in->bytes + at + size, in->size - at - size);
  memcpy(in->bytes + at, kept, count);
  free(kept);
  in->size += count - size;
}

static bool in_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 128;
}

static void find_word(const input *in, size_t at, size_t *begin, size_t *size) { // the word or sign at a place
  size_t end = at;
  while (at > 0 && at < in->size && in_word(in->bytes[at - 1]) && in_word(in->bytes[at])) at--;
  while (end < in->size && in_word(in->bytes[end])) end++;
  *begin = at;
  *size = end > at ? end - at : 1;
}

static void find_line(const input *in, size_t at, size_t *begin, size_t *size) {
  size_t end = at;
  while (at > 0 && in->bytes[at - 1] != '\n') at--;
  while (end < in->size && in->bytes[end++] != '\n') continue;
  *begin = at;
  *size = end - at;
}

static const char *const words[] = {
    "0", "-1", "9223372036854775807", "1e308", "0.0", "''", "'x'", "None", "True", "[]", "()", "{}", "self", "...",
    "f'{1}'", "b", "x", "int", "list", "dict", "str", "object", "type", "print", "len", "range(3)",
    "range(9223372036854775807)", "lambda: 0", "tensor([1.0])", "zeros((0, 3))", "Variable(1.0)", "GradientTape()",
    "(1, 2)", "[1, [2]]", "{1: 2}", "{1}", "iter([1])", "map(str, [1])", "slice(1)", "float('nan')", "ValueError",
    "ValueError('e')", "super()", "Exception", "(x for x in [1])", "property", "staticmethod", "classmethod", "+", "-",
    "*", "**", "/", "//", "%", "@", "==", "!=", "<", "in", "not in", "is", "and", "or", "not", "if", "else", "for",
    "while", "def", "class", "return", "yield", "break", "continue", "raise", "try:", "except:", "finally:", "with",
    "as", "del", "global", "nonlocal", "import", "from", "assert", "pass", ":", ",", ".", "(", ")", "[", "]", "{", "}",
    "=", "+=", ":=", "->", "*x", "**x", ";", "\n", "\n    ", "\t", "\\", "'", "\"", "'''", "#", "%who", "!", "?", "f'{",
    "}'", "1_0", "0x", "0b1", "1e", ".5", "\xc3\xa9", "\xff", "__init__", "__getattr__", "__eq__", "__hash__",
    "__iter__", "__next__", "__repr__", "__del__", "__class__", "__dict__", "__add__", "__bool__"};
enum { WORDS = sizeof words / sizeof *words };

static void mutate_text(uint64_t *state, input *in) {
  size_t begin, size, at = below(state, in->size);
  const char *word = words[below(state, WORDS)];
  const size_t other = below(state, seed_count);
  input line = {.size = 0};
  switch (below(state, 9)) {
  case 0: // another word
  case 1:
  case 2:
    find_word(in, at, &begin, &size);
    splice(in, begin, size, word, strlen(word));
    break;
  case 3: splice(in, at, 0, word, strlen(word)); break;
  case 4: // a word less
    find_word(in, at, &begin, &size);
    splice(in, begin, size, "", 0);
    break;
  case 5: // a word of its own elsewhere
    find_word(in, at, &begin, &size);
    splice(in, below(state, in->size), 0, in->bytes + begin, size);
    break;
  case 6: // a line less
    find_line(in, at, &begin, &size);
    splice(in, begin, size, "", 0);
    break;
  case 7: // a line of another deck
    memcpy(line.bytes, seeds[other], seed_sizes[other]);
    line.size = seed_sizes[other];
    find_line(&line, below(state, line.size), &begin, &size);
    const size_t from = begin, count = size;
    find_line(in, at, &begin, &size);
    splice(in, begin, below(state, 2) ? size : 0, line.bytes + from, count);
    break;
  default: // a byte
    if (in->size) in->bytes[at] = (uint8_t)next_random(state);
  }
}

static void make_deck(uint64_t number, input *in) {
  uint64_t state = number;
  size_t seed = below(&state, seed_count);
  in->size = seed_sizes[seed];
  memcpy(in->bytes, seeds[seed], in->size);
  for (size_t i = 1 + below(&state, 4); i > 0; i--) mutate_text(&state, in);
}

// After a byte that is anything, some of the pieces.
static void make_of_pieces(uint64_t number, input *in, const char *const *pieces, size_t count, size_t most) {
  uint64_t state = number;
  in->size = 0;
  uint8_t kind = (uint8_t)next_random(&state);
  splice(in, 0, 0, &kind, 1);
  for (size_t i = 1 + below(&state, most); i > 0; i--) {
    const char *piece = pieces[below(&state, count)];
    splice(in, in->size, 0, piece, strlen(piece));
  }
}

static void make_format(uint64_t number, input *in) {
  static const char *const pieces[] = {
      "<", ">", "=", "^", "+", "-", " ", "#", "0", "1", "9", "12", "30", "999999999999", ",", "_", ".", ".3", ".0", "e",
      "E", "f", "F", "g", "G", "n", "%", "d", "b", "o", "x", "X", "c", "s", "r", "a", "{", "}", "{}", "{0}", "{value}",
      "{0.real}", "{0[1]}", "{:{}}", "!r", "!s", "!a", "!", ":", "{value!r:>", "%s", "%d", "%5.2f", "%(k)s", "%*d",
      "%%", "é", "\xff", "z", "[", "]", "=", "'", "\n", "\\", "\\N{", "x=", "lambda", "*"};
  make_of_pieces(number, in, pieces, sizeof pieces / sizeof *pieces, 7);
}

static void make_number(uint64_t number, input *in) {
  static const char *const pieces[] = {
      "0", "1", "7", "9", "9223372036854775807", "18446744073709551616", "-", "+", "_", ".", "e", "E", "e-", "e308",
      "0x", "0b", "0o", "a", "f", "z", "Z", "inf", "nan", "infinity", " ", "\t", "\n", "\xc2\xa0", "\xd9\xa3", "\xff",
      "000000000000000000000000", "4.9e-324", "2.4703282292062328e-324", "1.7976931348623158e308", "j", "x"};
  make_of_pieces(number, in, pieces, sizeof pieces / sizeof *pieces, 6);
}

static void make_cells(uint64_t number, input *in) {
  static const char *const pieces[] = {
      "# %%", "\n", "\r\n", "[markdown]", " ", "# %", "#", "%%", "x = 1\n", "\"\"\"", "# %%\n", "\xc3\xa9", "\xff"};
  make_of_pieces(number, in, pieces, sizeof pieces / sizeof *pieces, 20);
}

static void make_idx(uint64_t number, input *in) {
  static const uint8_t codes[] = {8, 9, 11, 12, 13, 14, 0, 255};
  uint64_t state = number;
  const uint8_t start[4] = {0, 0, codes[below(&state, 8)], (uint8_t)below(&state, 10)};
  in->size = 0;
  splice(in, 0, 0, start, 4);
  for (int axis = 0; axis < start[3]; axis++) {
    const uint8_t size[4] = {below(&state, 16) ? 0 : 255, 0, 0, (uint8_t)below(&state, 5)};
    splice(in, in->size, 0, size, 4);
  }
  for (size_t i = below(&state, 100); i > 0; i--) splice(in, in->size, 0, &(uint8_t){(uint8_t)next_random(&state)}, 1);
#ifdef HAVE_ZLIB
  if (below(&state, 2)) { // the same, gzipped
    static uint8_t packed[INPUT_MAX];
    z_stream stream = {
        .next_in = in->bytes, .avail_in = (unsigned)in->size, .next_out = packed, .avail_out = sizeof packed};
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    deflate(&stream, Z_FINISH);
    in->size = stream.total_out;
    memcpy(in->bytes, packed, in->size);
    deflateEnd(&stream);
  }
#endif
  for (size_t i = below(&state, 4); i > 0; i--) in->bytes[below(&state, in->size)] = (uint8_t)next_random(&state);
  if (below(&state, 3) == 0) in->size = below(&state, in->size + 1);
}

// A sample of a format (tests/files/samples) with some bytes changed, cut out, doubled, or brought in from another one.
static glob_t samples;

static void spoil(uint64_t *state, input *in) {
  static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, ' ', '"', '{', '9', '\n'};
  static input other;
  size_t at = below(state, in->size + 1), size = below(state, 9);
  char *bytes;
  switch (below(state, 6)) {
  case 0: splice(in, at, size, "", 0); break;
  case 1: splice(in, at, 0, in->bytes + (at < size ? 0 : at - size), size < at ? size : at); break;
  case 2: splice(in, at, 1, &edges[below(state, sizeof edges)], 1); break;
  case 3:
    for (size_t i = at; i < at + size && i < in->size; i++) in->bytes[i] = edges[below(state, 5)];
    break;
  case 4:
    bytes = read_file(samples.gl_pathv[below(state, samples.gl_pathc)], &other.size);
    memcpy(other.bytes, bytes, other.size);
    free(bytes);
    if (other.size) splice(in, at, size * 8, other.bytes + below(state, other.size) / 2, other.size / 2);
    break;
  default: splice(in, at, 1, &(uint8_t){(uint8_t)next_random(state)}, 1);
  }
}

static void make_spoiled(uint64_t number, input *in) {
  uint64_t state = number;
  char *bytes = read_file(samples.gl_pathv[below(&state, samples.gl_pathc)], &in->size);
  memcpy(in->bytes, bytes, in->size);
  free(bytes);
  for (size_t i = 1 + below(&state, 4); i > 0; i--) spoil(&state, in);
}

static void make_table(uint64_t number, input *in) {
  static const char *const pieces[] = {
      ",", ",", "\n", "\r\n", "\"", "\"a, b\"", "\"\"", "1", "2.5", "-3e4", "nan", "NA", "text", " ", "\xc3\xa9",
      "\xff", "\xef\xbb\xbf", "99999999999999999999", "1e", "inf"};
  make_of_pieces(number, in, pieces, sizeof pieces / sizeof *pieces, 30);
  splice(in, 0, 1, "", 0);
}

static void make_json(uint64_t number, input *in) {
  static const char *const pieces[] = {
      "{", "}", "[", "]", ",", ":", "\"a\"", "\"\"", "\"\\u00e9\\n\"", "\"\\ud83d\"", "1", "-0", "2.5e3", "1e999",
      "null", "true", "NaN", " ", "\n", "{\"k\":[1,{}]}", "\"", "\\", "\xff", "9223372036854775808"};
  make_of_pieces(number, in, pieces, sizeof pieces / sizeof *pieces, 14);
  splice(in, 0, 1, "", 0);
}

// ---- cases ----

// What drives a find that is named TARGET-WHAT.
static target *target_of(const char *name) {
  static const struct { const char *name; target *run;
  } targets[] = {{"language-", fuzz_language}, {"format-", fuzz_format},
                 {"number-", fuzz_number},     {"cells-", fuzz_cells},
                 {"idx-", fuzz_idx},           {"npy-", fuzz_npy},
                 {"npz-", fuzz_npz},           {"safetensors-", fuzz_safetensors},
                 {"csv-", fuzz_csv},           {"png-", fuzz_png},
                 {"events-", fuzz_events},     {"json-", fuzz_json},
                 {"ipynb-", fuzz_ipynb},       {"checkpoint-", fuzz_checkpoint},
                 {"journal-", fuzz_journal}};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (strncmp(name, targets[i].name, strlen(targets[i].name)) == 0) return targets[i].run;
  ck_abort_msg("tests/fuzz/finds/%s: the name of no target", name);
}

static glob_t finds;
static void make_find(uint64_t number, input *in) {
  char *bytes = read_file(finds.gl_pathv[number], &in->size);
  memcpy(in->bytes, bytes, in->size);
  free(bytes);
}

START_TEST(past_finds) {
  finds = find("tests/fuzz/finds/*");
  for (size_t i = 0; i < finds.gl_pathc; i++) {
    const char *slash = strrchr(finds.gl_pathv[i], '/');
    run_alone(target_of(slash + 1), make_find, i, 1);
  }
  globfree(&finds);
}
END_TEST

// FUZZ_BATCHES asks for more batches of inputs, FUZZ_FIRST for others.
static void run_batches(target *run, void (*make)(uint64_t, input *), uint64_t batches, uint64_t size) {
  uint64_t first = number_of("FUZZ_FIRST", 0);
  batches = number_of("FUZZ_BATCHES", batches);
  for (uint64_t i = first; i < first + batches; i++) run_alone(run, make, i * size, size);
}

START_TEST(mutated_decks) {
  read_seeds();
  run_batches(fuzz_language, make_deck, 12, 200);
}
END_TEST

START_TEST(format_specs) { run_batches(fuzz_format, make_format, 4, 1000); }
END_TEST

START_TEST(numbers) { run_batches(fuzz_number, make_number, 4, 1000); }
END_TEST

START_TEST(deck_cells) { run_batches(fuzz_cells, make_cells, 4, 1000); }
END_TEST

START_TEST(idx_files) { run_batches(fuzz_idx, make_idx, 4, 1000); }
END_TEST

static void run_spoiled(target *run, const char *pattern) {
  samples = find(pattern);
  ck_assert_msg(samples.gl_pathc > 0, "no files %s/%s", source_folder(), pattern);
  run_batches(run, make_spoiled, 2, 2000);
  globfree(&samples);
}

START_TEST(npy_files) { run_spoiled(fuzz_npy, "tests/files/samples/*.npy"); }
END_TEST

START_TEST(npz_files) { run_spoiled(fuzz_npz, "tests/files/samples/*.npz"); }
END_TEST

START_TEST(safetensors_files) { run_spoiled(fuzz_safetensors, "tests/files/samples/*.safetensors"); }
END_TEST

START_TEST(png_files) { run_spoiled(fuzz_png, "tests/files/samples/*.png"); }
END_TEST

START_TEST(event_files) { run_spoiled(fuzz_events, "tests/files/samples/*tfevents*"); }
END_TEST

// Records of fields that a journal has, with numbers and texts that are anything.
static void make_journal(uint64_t number, input *in) {
  uint64_t state = number;
  in->size = 0;
  for (size_t records = 1 + below(&state, 8); records > 0; records--) {
    uint8_t record[256] = {0};
    size_t length = 2;
    for (size_t fields = below(&state, 9); fields > 0 && length < 200; fields--) {
      uint8_t field = fields == 8 ? 1 : (uint8_t)(1 + below(&state, 15));
      uint8_t wire = below(&state, 8) ? (uint8_t)(below(&state, 2) * 2) : (uint8_t)below(&state, 6);
      record[length++] = (uint8_t)(field << 3 | wire);
      record[length++] = (uint8_t)below(&state, below(&state, 4) ? 12 : 256);
      for (size_t i = wire == 2 ? record[length - 1] : 0; i > 0 && i < 13; i--)
        record[length++] = (uint8_t)(below(&state, 3) ? below(&state, 12) : below(&state, 256));
    }
    record[0] = (uint8_t)(length - 2);
    splice(in, in->size, 0, record, length);
  }
}

START_TEST(journals) { run_batches(fuzz_journal, make_journal, 4, 5000); }
END_TEST

START_TEST(notebooks) { run_spoiled(fuzz_ipynb, "tests/files/notebooks/*.ipynb"); }
END_TEST

START_TEST(tables) { run_batches(fuzz_csv, make_table, 2, 1000); }
END_TEST

START_TEST(json_texts) { run_batches(fuzz_json, make_json, 2, 1000); }
END_TEST

int main(void) {
  Suite *suite = suite_create("fuzz/inputs");
  const struct { const char *name; const TTest *test;
  } cases[] = {{"finds", past_finds}, {"decks", mutated_decks}, {"formats", format_specs},
               {"numbers", numbers},  {"cells", deck_cells},    {"idx", idx_files},
               {"npy", npy_files},    {"npz", npz_files},       {"safetensors", safetensors_files},
               {"png", png_files},    {"events", event_files},  {"csv", tables},
               {"json", json_texts},  {"ipynb", notebooks},     {"journal", journals}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TCase *test = tcase_create(cases[i].name);
    tcase_set_timeout(test, 3600);
    tcase_add_test(test, cases[i].test);
    suite_add_tcase(suite, test);
  }
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
