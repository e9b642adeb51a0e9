// The ground floor: memory, errors, texts, numbers, hashes, threads and random numbers. Each test leaves as many live
// bytes as it found. Files have a suite of their own in test_file.c.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <check.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/context.h"
#include "engine/base/detached.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/base/text.h"

static int64_t live_before;
static void remember_live(void) { live_before = td_memory_live(); }
static void compare_live(void) { ck_assert_int_eq(td_memory_live(), live_before); }

// An assertion writes to a pipe, so that loops over bytes count what differs and assert once.
static size_t differing(const unsigned char *bytes, size_t size, size_t step, unsigned char first,
                        unsigned char slope) {
  size_t count = 0;
  for (size_t i = 0; i < size; i += step) count += bytes[i] != (unsigned char)(first + i * slope);
  return count;
}

static uint64_t draw(uint64_t n) { // the n-th of a fixed row of random bits
  uint32_t bits[4];
  td_random_block(2024, n, 0, bits);
  return (uint64_t)bits[0] << 32 | bits[1];
}

// ---- memory ----

START_TEST(block_sizes_around_every_class) {
  for (size_t size = 0; size < (size_t)5 << 20; size = size < 1100 ? size + 1 : size + size / 7) {
    int64_t before = td_memory_live();
    unsigned char *block = td_memory_new(size);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % (size >= 1024 ? 64 : 16), 0);
    ck_assert_uint_eq(td_memory_size(block), size);
    ck_assert_int_eq(td_memory_live() - before, (int64_t)size);
    memset(block, 0x5a, size);
    td_memory_free(block);
    ck_assert_int_eq(td_memory_live(), before);
  }
}
END_TEST

START_TEST(zero_block_is_zero_after_reuse) {
  const size_t sizes[] = {1, 64, 512, 4096, 100000, (size_t)3 << 20, (size_t)40 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int round = 0; round < 2; round++) {
      unsigned char *block = td_memory_new_zero(sizes[i]);
      ck_assert_uint_eq(differing(block, sizes[i], 61, 0, 0), 0);
      ck_assert_uint_eq(block[sizes[i] - 1], 0);
      memset(block, 0xee, sizes[i]);
      td_memory_free(block);
    }
}
END_TEST

START_TEST(resize_keeps_contents) {
  size_t size = 1;
  unsigned char *block = td_memory_resize(NULL, size);
  block[0] = 0;
  for (int step = 0; step < 400; step++) {
    size_t next = (size_t)(draw((uint64_t)step) % (step % 10 ? 3000 : 3000000)) + 1;
    block = td_memory_resize(block, next);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(td_memory_size(block), next);
    ck_assert_uint_eq(differing(block, size < next ? size : next, 1, 0, 7), 0);
    for (size_t k = size; k < next; k++) block[k] = (unsigned char)(k * 7);
    size = next;
  }
  td_memory_free(block);
  td_memory_free(NULL);
}
END_TEST

START_TEST(many_blocks_stay_apart) {
  static unsigned char *blocks[500];
  static size_t sizes[500], wrong;
  for (int step = 0; step < 40000; step++) {
    size_t k = draw((uint64_t)step) % 500;
    if (blocks[k]) {
      wrong += differing(blocks[k], sizes[k], 13, (unsigned char)k, 0);
      td_memory_free(blocks[k]);
    }
    sizes[k] = draw((uint64_t)step + 1000000) % ((size_t)1 << (step % 17));
    blocks[k] = td_memory_new(sizes[k]);
    memset(blocks[k], (int)k, sizes[k]);
  }
  for (int k = 0; k < 500; k++) {
    td_memory_free(blocks[k]);
    blocks[k] = NULL;
  }
  ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(nth_allocation_fails_once) {
  void *blocks[4];
  td_memory_fail(3, false);
  for (size_t i = 0; i < 4; i++) blocks[i] = td_memory_new(100 + i);
  td_memory_fail(0, false);
  for (size_t i = 0; i < 4; i++) ck_assert(i == 2 ? !blocks[i] : blocks[i] != NULL);
  ck_assert_int_eq(td_memory_failed(), 102);
  for (size_t i = 0; i < 4; i++) td_memory_free(blocks[i]);
}
END_TEST

START_TEST(nth_allocation_fails_for_ever) {
  char *block = td_memory_new(40);
  strcpy(block, "kept");
  td_memory_fail(2, true);
  void *first = td_memory_new_zero(8);
  ck_assert_ptr_nonnull(first);
  ck_assert_ptr_null(td_memory_new_zero(8));
  ck_assert_ptr_null(td_memory_resize(block, 5000));
  ck_assert_ptr_null(td_memory_text("x"));
  ck_assert_ptr_null(td_memory_new((size_t)50 << 20));
  td_memory_fail(0, false);
  ck_assert_str_eq(block, "kept");
  block = td_memory_resize(block, 5000);
  ck_assert_str_eq(block, "kept");
  td_memory_free(block);
  td_memory_free(first);
}
END_TEST

START_TEST(impossible_sizes_are_refused) {
  const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 64, (size_t)1 << 62, (size_t)1 << 61, (size_t)1 << 46};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
#ifdef __SANITIZE_ADDRESS__
    if (i == 3) continue; // the sanitizer's malloc would stop the program, not refuse
#endif
    ck_assert_ptr_null(td_memory_new(sizes[i]));
    ck_assert_int_eq(td_memory_failed(), sizes[i] > INT64_MAX ? INT64_MAX : (int64_t)sizes[i]);
  }
}
END_TEST

static void *freed_elsewhere[64];
static void *free_and_make(void *argument) {
  for (size_t i = 0; i < 64; i++) {
    td_memory_free(freed_elsewhere[i]);
    freed_elsewhere[i] = td_memory_new(i * 331);
  }
  return argument;
}

START_TEST(blocks_cross_threads) {
  int64_t count = td_memory_count();
  for (size_t i = 0; i < 64; i++) freed_elsewhere[i] = td_memory_new(i * 100);
  for (int round = 0; round < 20; round++) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, free_and_make, NULL), 0);
    pthread_join(thread, NULL);
  }
  ck_assert_int_eq(td_memory_count() - count, 64 * 21);
  ck_assert_int_eq(td_memory_live() - live_before, 331 * 63 * 32);
  for (size_t i = 0; i < 64; i++) td_memory_free(freed_elsewhere[i]);
}
END_TEST

START_TEST(peak_covers_large_blocks) {
  td_memory_free(td_memory_new((size_t)30 << 20));
  ck_assert_int_ge(td_memory_peak(), live_before + (30 << 20));
  ck_assert_int_lt(td_memory_live(), 30 << 20);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(TD_HARSH)
START_TEST(caches_are_given_back_under_pressure) {
  void *kept[2] = {td_memory_new((size_t)120 << 20), td_memory_new((size_t)120 << 20)};
  for (int i = 0; i < 2; i++) td_memory_free(kept[i]);
  for (int i = 0; i < 4000; i++) td_memory_free(td_memory_new((size_t)i));
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  if (!pages) return; // no such file system here
  rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)20 << 20);
  struct rlimit limit = {most, RLIM_INFINITY};
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
  char *block = td_memory_new((size_t)200 << 20);
  ck_assert_ptr_nonnull(block);
  ck_assert_ptr_null(td_memory_new((size_t)200 << 20));
  ck_assert_int_eq(td_memory_failed(), 200 << 20);
  td_memory_free(block);
  td_memory_trim();
}
END_TEST
#endif

// ---- errors ----

START_TEST(error_replaces_error) {
  td_context *context = td_context_new(1);
  context->place = 77;
  ck_assert_int_eq(td_error_set(context, TD_ERROR_SHAPE, "sizes %d and %d", 3, 4), TD_ERROR_SHAPE);
  td_error_hint(context, "try %s", "x.T");
  context->error.operand_count = 2;
  ck_assert_str_eq(context->error.message, "sizes 3 and 4");
  ck_assert_str_eq(context->error.hint, "try x.T");
  ck_assert_uint_eq(context->error.place, 77);
  td_error_set(context, TD_ERROR_VALUE, "other");
  ck_assert_int_eq(context->error.operand_count, 0);
  ck_assert_str_eq(context->error.hint, "");
  td_error_clear(context);
  ck_assert_int_eq(context->error.code, TD_OK);
  ck_assert_str_eq(td_error_name(TD_ERROR_ZERO_DIVISION), "ZERO_DIVISION");
  ck_assert_str_eq(td_error_name(999), "UNKNOWN");
  td_context_free(context);
}
END_TEST

START_TEST(long_message_ends_at_a_whole_character) {
  td_context *context = td_context_new(1);
  char text[2000];
  for (size_t shift = 0; shift < 4; shift++) {
    memset(text, 'a', shift);
    for (size_t i = shift; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
    td_error_set(context, TD_ERROR_VALUE, "%s", text);
    size_t length = strlen(context->error.message);
    ck_assert_uint_ge(length, sizeof context->error.message - 4);
    ck_assert_uint_eq((length - shift) % 3, 0);
  }
  td_context_free(context);
}
END_TEST

START_TEST(memory_error_names_the_size) {
  td_context *context = td_context_new(1);
  ck_assert_int_eq(td_error_memory(context, "tensor", 3 << 20), TD_ERROR_MEMORY);
  ck_assert_str_eq(context->error.message, "tensor: no memory for 3145728 bytes (3.0 MiB)");
  td_error_memory(context, "tensor", 12);
  ck_assert_str_eq(context->error.message, "tensor: no memory for 12 bytes");
  td_context_free(context);
}
END_TEST

START_TEST(context_without_memory) {
  for (int n = 1; n <= 2; n++) {
    td_memory_fail(n, false);
    ck_assert_ptr_null(td_context_new(2));
    td_memory_fail(0, false);
  }
}
END_TEST

static void describe_fixed(void *owner, td_place place, char *buffer, int size) {
  (void)owner;
  snprintf(buffer, (size_t)size, "line %d", (int)place);
}

START_TEST(places_have_names) {
  td_context *context = td_context_new(1);
  char buffer[16];
  td_place_describe(context, 5, buffer, sizeof buffer);
  ck_assert_str_eq(buffer, "an unknown line");
  context->describe = describe_fixed;
  td_place_describe(context, 5, buffer, sizeof buffer);
  ck_assert_str_eq(buffer, "line 5");
  td_place_describe(context, 0, buffer, sizeof buffer);
  ck_assert_str_eq(buffer, "an unknown line");
  td_context_free(context);
}
END_TEST

// ---- text ----

START_TEST(text_grows) {
  td_text text = {0};
  for (int i = 0; i < 1000; i++) {
    td_text_print(&text, "%d", i % 10);
    td_text_add_char(&text, ',');
    td_text_add(&text, "ab");
    td_text_add_bytes(&text, "c\0d", 2);
    ck_assert_uint_eq(text.length, (size_t)(i + 1) * 6);
    ck_assert_int_eq(text.data[text.length], 0);
  }
  ck_assert_mem_eq(text.data + 6 * 999, "9,abc", 6);
  td_text_pad(&text, 6100, '.');
  ck_assert_uint_eq(text.length, 6100);
  td_text_pad(&text, 10, '.');
  ck_assert_uint_eq(text.length, 6100);
  ck_assert(!text.failed);
  td_text_clear(&text);
  ck_assert_ptr_null(text.data);
}
END_TEST

START_TEST(text_prints_any_length) {
  for (int length = 0; length < 300; length++) {
    td_text text = {0};
    td_text_print(&text, "%s", "");
    td_text_print(&text, "%*s|", length, "x");
    ck_assert_uint_eq(text.length, (size_t)(length ? length : 1) + 1);
    ck_assert_str_eq(text.data + text.length - 2, "x|");
    td_text_clear(&text);
  }
}
END_TEST

START_TEST(text_take) {
  td_text text = {0};
  char *empty = td_text_take(&text);
  ck_assert_str_eq(empty, "");
  td_memory_free(empty);
  td_text_add(&text, "kept");
  char *taken = td_text_take(&text);
  ck_assert_str_eq(taken, "kept");
  ck_assert_ptr_null(text.data);
  td_memory_free(taken);
}
END_TEST

START_TEST(text_remembers_failure) {
  for (int n = 1; n < 8; n++) {
    td_text text = {0};
    td_memory_fail(n, false);
    for (int i = 0; i < 500; i++) td_text_print(&text, "%d ", i);
    td_text_pad(&text, 9000, ' ');
    bool failed = text.failed;
    td_memory_fail(0, false);
    ck_assert(failed);
    td_text_add(&text, "more");
    ck_assert(!text.data || strlen(text.data) == text.length);
    ck_assert(!text.data || !strstr(text.data, "more"));
    ck_assert_ptr_null(td_text_take(&text));
  }
}
END_TEST

// ---- numbers ----

START_TEST(numbers_as_python_writes_them) {
  static const struct {
    double value;
    const char *text;
  } rows[] = {{0.1, "0.1"},
              {1, "1.0"},
              {-0.0, "-0.0"},
              {1e-5, "1e-05"},
              {0.0001, "0.0001"},
              {1e16, "1e+16"},
              {123456789012345, "123456789012345.0"},
              {9999999999999998, "9999999999999998.0"},
              {5e-324, "5e-324"},
              {1.7976931348623157e308, "1.7976931348623157e+308"},
              {2.2250738585072014e-308, "2.2250738585072014e-308"},
              {1.0 / 3, "0.3333333333333333"},
              {0.1 + 0.2, "0.30000000000000004"},
              {1e22, "1e+22"},
              {1e23, "1e+23"},
              {1e100, "1e+100"},
              {-1.5e-7, "-1.5e-07"},
              {9007199254740993.0, "9007199254740992.0"},
              {INFINITY, "inf"},
              {-INFINITY, "-inf"},
              {NAN, "nan"},
              {(double)0.3f, "0.30000001192092896"},
              {2.5e-10, "2.5e-10"},
              {5.684341886080801e-14, "5.684341886080801e-14"},
              {8.41e21, "8.41e+21"},
              {1.1754943508222875e-38, "1.1754943508222875e-38"}};
  char buffer[TD_NUMBER_TEXT];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_uint_eq((size_t)td_number_print(buffer, rows[i].value), strlen(rows[i].text));
    ck_assert_str_eq(buffer, rows[i].text);
  }
}
END_TEST

START_TEST(floats_as_numpy_writes_them) {
  static const struct {
    float value;
    const char *text;
  } rows[] = {{0.1f, "0.1"},
              {0.3f, "0.3"},
              {16777216, "16777216.0"},
              {3.4028235e38f, "3.4028235e+38"},
              {1e-45f, "1e-45"},
              {1.1754944e-38f, "1.1754944e-38"},
              {2.5f, "2.5"},
              {9.999999e-5f, "9.999999e-05"},
              {1.0f / 3, "0.33333334"}};
  char buffer[TD_NUMBER_TEXT];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    td_number_print_float(buffer, rows[i].value);
    ck_assert_str_eq(buffer, rows[i].text);
  }
}
END_TEST

static int digits_in(const char *text) { // significant digits
  int count = 0, zeros = 0;
  for (; *text && *text != 'e'; text++) {
    if (*text < '0' || *text > '9' || (*text == '0' && !count)) continue;
    zeros = *text == '0' ? zeros + 1 : 0;
    count++;
  }
  return count - zeros;
}

START_TEST(random_doubles_read_back_and_are_shortest) {
  char buffer[TD_NUMBER_TEXT], shorter[TD_NUMBER_TEXT];
  for (uint64_t i = 0; i < 40000; i++) {
    uint64_t bits = draw(i);
    double value;
    if (i % 2) bits = (bits & 0x800fffffffffffff) | (uint64_t)(1000 + bits % 60) << 52; // of everyday size
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    td_number_print(buffer, value);
    ck_assert_msg(strtod(buffer, NULL) == value, "%s", buffer);
    int digits = digits_in(buffer);
    ck_assert_int_le(digits, 17);
    if (digits < 2) continue;
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
    ck_assert_msg(strtod(shorter, NULL) != value, "%s is longer than %s", buffer, shorter);
  }
}
END_TEST

START_TEST(random_floats_read_back_and_are_shortest) {
  char buffer[TD_NUMBER_TEXT], shorter[TD_NUMBER_TEXT];
  for (uint64_t i = 0; i < 40000; i++) {
    uint32_t bits = (uint32_t)draw(i);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    td_number_print_float(buffer, value);
    ck_assert_msg(strtof(buffer, NULL) == value, "%s", buffer);
    int digits = digits_in(buffer);
    ck_assert_int_le(digits, 9);
    if (digits < 2) continue;
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, (double)value);
    ck_assert_msg(strtof(shorter, NULL) != value, "%s is longer than %s", buffer, shorter);
  }
}
END_TEST

START_TEST(powers_of_two_read_back) { // the numbers below them lie closer than those above
  char buffer[TD_NUMBER_TEXT];
  int wrong = 0;
  for (int k = -1074; k < 1024; k++) {
    double value = ldexp(1, k);
    const double near[] = {nextafter(value, 0), value, nextafter(value, INFINITY)};
    for (int i = 0; i < 3; i++) {
      td_number_print(buffer, near[i]);
      wrong += strtod(buffer, NULL) != near[i];
      td_number_print_float(buffer, (float)near[i]);
      wrong += strtof(buffer, NULL) != (float)near[i];
    }
  }
  for (int k = -24; k < 16; k++) { // half floats: the text is within half a step of no other
    double value = ldexp(1, k);
    td_number_print_bits(buffer, value, 11);
    double read = strtod(buffer, NULL), step = ldexp(1, k - 10 < -24 ? -24 : k - 10);
    wrong += read > value + step / 2 || read < value - (k > -14 ? step / 4 : step / 2);
  }
  ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(digits_and_point) {
  char digits[24];
  int point;
  ck_assert_int_eq(td_number_digits(-1250, false, digits, &point), 3);
  ck_assert_str_eq(digits, "125");
  ck_assert_int_eq(point, 4);
  td_number_digits(0, false, digits, &point);
  ck_assert_str_eq(digits, "0");
  ck_assert_int_eq(point, 1);
  td_number_digits((double)0.001f, true, digits, &point);
  ck_assert_str_eq(digits, "1");
  ck_assert_int_eq(point, -2);
  td_number_digits_bits(0.333251953125, 11, digits, &point); // the float16 beside 1/3
  ck_assert_str_eq(digits, "3333");
  td_number_digits_bits(0.333984375, 8, digits, &point); // the bfloat16 beside 1/3
  ck_assert_str_eq(digits, "334");
}
END_TEST

// ---- threads ----

enum { HITS = 20000 };
static _Atomic int hits[HITS];
static td_pool *shared_pool;
static void hit(void *argument, int64_t chunk) { atomic_fetch_add(&hits[chunk + *(int64_t *)argument], 1); }

START_TEST(every_chunk_runs_once) {
  const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, HITS};
  for (int threads = 1; threads <= 5; threads++) {
    td_pool *pool = td_pool_new(threads);
    ck_assert_int_eq(td_pool_threads(pool), threads);
    for (int round = 0; round < 20; round++)
      for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int64_t start = 0;
        memset(hits, 0, sizeof hits);
        td_pool_run(pool, counts[k], hit, &start);
        int wrong = 0;
        for (int64_t i = 0; i < HITS; i++) wrong += hits[i] != (i < counts[k]);
        ck_assert_int_eq(wrong, 0);
      }
    td_pool_free(pool);
  }
}
END_TEST

static void nested(void *argument, int64_t chunk) {
  (void)argument;
  int64_t start = chunk * 10;
  td_pool_run(shared_pool, 10, hit, &start);
}

START_TEST(nested_runs) {
  shared_pool = td_pool_new(3);
  memset(hits, 0, sizeof hits);
  td_pool_run(shared_pool, 100, nested, NULL);
  for (int i = 0; i < 1000; i++) ck_assert_int_eq(hits[i], 1);
  td_pool_free(shared_pool);
}
END_TEST

static atomic_int arrived, masked;
static pthread_t main_thread;
static void meet(void *argument, int64_t chunk) { // returns when both chunks run at the same time, or after 20 s
  (void)argument, (void)chunk;
  sigset_t set;
  if (!pthread_equal(pthread_self(), main_thread) && !pthread_sigmask(SIG_BLOCK, NULL, &set))
    atomic_fetch_add(&masked, sigismember(&set, SIGINT) && sigismember(&set, SIGWINCH));
  atomic_fetch_add(&arrived, 1);
  for (time_t start = time(NULL); atomic_load(&arrived) < 2 && time(NULL) - start < 20;) sched_yield();
}

START_TEST(chunks_run_beside_each_other_with_signals_blocked) {
  td_pool *pool = td_pool_new(2);
  main_thread = pthread_self();
  arrived = masked = 0;
  td_pool_run(pool, 2, meet, NULL);
  ck_assert_int_eq(arrived, 2);
  ck_assert_int_eq(masked, 1);
  td_pool_free(pool);
}
END_TEST

static atomic_int interrupt;
static void hit_and_interrupt(void *argument, int64_t chunk) { // later chunks see the flag at their end
  hit(argument, chunk);
  if (chunk == 10) atomic_store(&interrupt, 1);
  while (chunk > 10 && !atomic_load(&interrupt)) sched_yield();
}

START_TEST(a_stopped_pool_leaves_chunks_out) {
  for (int threads = 1; threads <= 3; threads++) {
    td_pool *pool = td_pool_new(threads);
    int64_t start = 0, ran = 0;
    atomic_bool breakable = false;
    td_pool_watch(pool, &interrupt, &breakable);
    memset(hits, 0, sizeof hits);
    atomic_store(&interrupt, 0);
    td_pool_run(pool, 1000, hit_and_interrupt, &start); // whole: nobody would drop its results
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(hits[i], 1);
    ck_assert(!td_pool_stopped(pool));
    atomic_store(&interrupt, 0);
    breakable = true;
    td_pool_run(pool, HITS, hit_and_interrupt, &start);
    ck_assert(td_pool_stopped(pool));
    for (int i = 1000; i < HITS; i++) ran += hits[i];
    ck_assert_int_lt(ran, threads); // the others begin with a chunk of their own share
    memset(hits, 0, sizeof hits);
    td_pool_run(pool, 10, hit, &start);
    for (int i = 0; i < 10; i++) ck_assert_int_eq(hits[i], 0);
    atomic_store(&interrupt, 0);
    td_pool_run(pool, 10, hit, &start);
    for (int i = 0; i < 10; i++) ck_assert_int_eq(hits[i], 1);
    td_pool_free(pool);
  }
}
END_TEST

// ---- work that is left behind ----

static atomic_bool go_on;
static void wait_to_go_on(void *block) {
  atomic_fetch_add((atomic_int *)block, 1);
  while (!atomic_load(&go_on)) sched_yield();
}

static void *let_go_on(void *argument) {
  usleep(100000);
  atomic_store(&go_on, true);
  return argument;
}

static atomic_int *counter(void) {
  atomic_int *block = td_memory_new(1 << 16);
  atomic_init(block, 0);
  return block;
}

START_TEST(work_is_left_behind) {
  td_pool *pool = td_pool_new(1);
  atomic_bool breakable = true;
  atomic_int *block = counter();
  pthread_t helper;
  td_pool_watch(pool, &interrupt, &breakable);
  atomic_store(&interrupt, 0);
  atomic_store(&go_on, true);
  for (int k = 1; k <= 3; k++) { // nobody stops it
    ck_assert(td_detached_run(k == 2 ? NULL : pool, wait_to_go_on, block));
    ck_assert_int_eq(*block, k);
  }
  td_memory_free(block);
  atomic_store(&interrupt, 1);
  atomic_store(&go_on, false);
  int left = 0;
  for (; left < 100 && td_detached_left() == left; left++) {
    if (left == 4) pthread_create(&helper, NULL, let_go_on, NULL); // as many as may be left: this one is waited for
    block = counter();
    if (!td_detached_run(pool, wait_to_go_on, block)) continue;
    ck_assert_int_eq(*block, 1);
    td_memory_free(block);
    break;
  }
#ifdef __GLIBC__
  ck_assert_int_ge(left, 4);
  pthread_join(helper, NULL);
#endif
  while (td_detached_left()) sched_yield();
  atomic_store(&interrupt, 0);
  td_pool_free(pool);
}
END_TEST

START_TEST(the_end_waits_for_nobody) {
  int ends[2], status;
  char said[8] = "";
  ck_assert_int_eq(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], STDOUT_FILENO);
    td_pool *pool = td_pool_new(1);
    atomic_bool breakable = true;
    td_pool_watch(pool, &interrupt, &breakable);
    atomic_store(&interrupt, 1);
    atomic_store(&go_on, false);
    printf("kept");
    bool done = td_detached_run(pool, wait_to_go_on, counter());
    exit(done ? 1 : 7);
  }
  close(ends[1]);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(read(ends[0], said, sizeof said), 4);
  ck_assert_str_eq(said, "kept");
  close(ends[0]);
#ifdef __GLIBC__
  ck_assert_int_eq(WEXITSTATUS(status), 7);
#endif
}
END_TEST

START_TEST(sleeping_workers_wake) {
  td_pool *pool = td_pool_new(3);
  int64_t start = 0;
  memset(hits, 0, sizeof hits);
  for (int i = 0; i < 40; i++) {
    td_pool_run(pool, 50, hit, &start);
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  }
  for (int i = 0; i < 50; i++) ck_assert_int_eq(hits[i], 40);
  td_pool_free(pool);
}
END_TEST

START_TEST(forked_child_runs_alone) {
  shared_pool = td_pool_new(3);
  int64_t start = 0;
  memset(hits, 0, sizeof hits);
  td_pool_run(shared_pool, 10, hit, &start);
  pid_t child = fork();
  if (!child) {
    td_pool_run(shared_pool, 10, hit, &start);
    td_pool_free(shared_pool);
    _exit(hits[9] == 2 ? 0 : 1);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  td_pool_free(shared_pool);
}
END_TEST

START_TEST(wanted_threads) {
  setenv("TAPEDECK_THREADS", "3", 1);
  ck_assert_int_eq(td_threads_wanted(), 3);
  unsetenv("TAPEDECK_THREADS");
  int cores = td_threads_wanted();
  ck_assert_int_ge(cores, 1);
  const char *const bad[] = {"", "0", "-2", "257", "4x", "many"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("TAPEDECK_THREADS", bad[i], 1);
    ck_assert_int_eq(td_threads_wanted(), cores);
  }
}
END_TEST

// ---- random numbers ----

// ---- hashes ----

// TensorFlow's to_hash_bucket_fast, and to_hash_bucket_strong with the key (133, 137), of the first letters.
START_TEST(hashes_known_answers) {
  static const struct { size_t length; uint64_t plain, keyed; } known[] = {
      {0, UINT64_C(0x9ae16a3b2f90404f), UINT64_C(0x4464e36d49835ad4)},
      {1, UINT64_C(0xb3454265b6df75e3), UINT64_C(0x6239e4ed0a5f3eca)},
      {3, UINT64_C(0x2d5b0cbcc48fdc6b), UINT64_C(0x427fbf5c077cc6c5)},
      {4, UINT64_C(0x7b803bc75cee3292), UINT64_C(0xdac3b13cded8b5fb)},
      {7, UINT64_C(0xed26868869003b0a), UINT64_C(0x71aa2512d54f7135)},
      {8, UINT64_C(0x93b52af6d9b92820), UINT64_C(0x0595f3cff22cd44e)},
      {16, UINT64_C(0xf496a3696582095e), UINT64_C(0x95878272edde6915)},
      {17, UINT64_C(0x1f0c64814df23a1a), UINT64_C(0x80f5fe01de52af27)},
      {32, UINT64_C(0xe4880aa81eb072fd), UINT64_C(0x83b64c9db154bb24)},
      {33, UINT64_C(0xa11779744df6e238), UINT64_C(0x43d6eee877d3eaf8)},
      {64, UINT64_C(0xdb874bf15499c039), UINT64_C(0x6aa38c863e3dbf98)},
      {65, UINT64_C(0x97519f99786933fd), UINT64_C(0x035fb6f742c19358)},
      {128, UINT64_C(0x3d466e5101fadb26), UINT64_C(0xb698e8da2568bdc7)},
      {199, UINT64_C(0x9f42a1292de01e86), UINT64_C(0xd50de97b0b34359e)},
  };
  const uint64_t key[2] = {133, 137};
  char letters[200];
  for (int i = 0; i < 200; i++) letters[i] = (char)('a' + (i * 7 + i / 26) % 26);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char *alone = td_memory_new(known[i].length + 1); // reads beyond it are seen
    memcpy(alone, letters, known[i].length);
    ck_assert(td_hash_bytes(alone, known[i].length) == known[i].plain);
    ck_assert(td_hash_keyed(key, alone, known[i].length) == known[i].keyed);
    td_memory_free(alone);
  }
  ck_assert(td_hash_join(UINT64_C(0xDECAFCAFFE), 5) != td_hash_join(5, UINT64_C(0xDECAFCAFFE)));
}
END_TEST

START_TEST(philox_known_answers) { // the vectors that its authors publish
  static const struct {
    uint64_t key, counter, stream;
    uint32_t out[4];
  } rows[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t out[4];
    td_random_block(rows[i].key, rows[i].counter, rows[i].stream, out);
    ck_assert_mem_eq(out, rows[i].out, sizeof out);
  }
}
END_TEST

START_TEST(unit_intervals) {
  ck_assert(td_random_unit(0, 0) == 0 && td_random_unit_float(0) == 0);
  ck_assert(td_random_unit(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53);
  ck_assert(td_random_unit_float(UINT32_MAX) == 1 - 0x1p-24f);
  double sum = 0;
  for (uint64_t i = 0; i < 10000; i++) sum += td_random_unit((uint32_t)(draw(i) >> 32), (uint32_t)draw(i));
  ck_assert_double_eq_tol(sum / 10000, 0.5, 0.02);
}
END_TEST

// ---- the suite ----

static TCase *test_case(Suite *suite, const char *name) {
  TCase *tests = tcase_create(name);
  tcase_add_checked_fixture(tests, remember_live, compare_live);
  tcase_set_timeout(tests, 120);
  suite_add_tcase(suite, tests);
  return tests;
}

int main(void) {
  Suite *suite = suite_create("base");
  TCase *tests = test_case(suite, "memory");
  tcase_add_test(tests, block_sizes_around_every_class);
  tcase_add_test(tests, zero_block_is_zero_after_reuse);
  tcase_add_test(tests, resize_keeps_contents);
  tcase_add_test(tests, many_blocks_stay_apart);
  tcase_add_test(tests, nth_allocation_fails_once);
  tcase_add_test(tests, nth_allocation_fails_for_ever);
  tcase_add_test(tests, impossible_sizes_are_refused);
  tcase_add_test(tests, blocks_cross_threads);
  tcase_add_test(tests, peak_covers_large_blocks);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(TD_HARSH)
  tcase_add_test(tests, caches_are_given_back_under_pressure);
#endif
  tests = test_case(suite, "error");
  tcase_add_test(tests, error_replaces_error);
  tcase_add_test(tests, long_message_ends_at_a_whole_character);
  tcase_add_test(tests, memory_error_names_the_size);
  tcase_add_test(tests, context_without_memory);
  tcase_add_test(tests, places_have_names);
  tests = test_case(suite, "text");
  tcase_add_test(tests, text_grows);
  tcase_add_test(tests, text_prints_any_length);
  tcase_add_test(tests, text_take);
  tcase_add_test(tests, text_remembers_failure);
  tests = test_case(suite, "number");
  tcase_add_test(tests, numbers_as_python_writes_them);
  tcase_add_test(tests, floats_as_numpy_writes_them);
  tcase_add_test(tests, random_doubles_read_back_and_are_shortest);
  tcase_add_test(tests, random_floats_read_back_and_are_shortest);
  tcase_add_test(tests, powers_of_two_read_back);
  tcase_add_test(tests, digits_and_point);
  tests = test_case(suite, "threads");
  tcase_add_test(tests, every_chunk_runs_once);
  tcase_add_test(tests, nested_runs);
  tcase_add_test(tests, chunks_run_beside_each_other_with_signals_blocked);
  tcase_add_test(tests, a_stopped_pool_leaves_chunks_out);
  tcase_add_test(tests, work_is_left_behind);
  tcase_add_test(tests, the_end_waits_for_nobody);
  tcase_add_test(tests, sleeping_workers_wake);
  tcase_add_test(tests, forked_child_runs_alone);
  tcase_add_test(tests, wanted_threads);
  tests = test_case(suite, "hash");
  tcase_add_test(tests, hashes_known_answers);
  tests = test_case(suite, "random");
  tcase_add_test(tests, philox_known_answers);
  tcase_add_test(tests, unit_intervals);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
