// The methods of str. Searches work on bytes, since UTF-8 can't match inside a character; positions are turned into
// characters at the ends. Case and kinds of characters come from unicode.c.
#include "repl/language/builtins.h"

static td_str *self_str(td_value self) { return td_as_str(self); }

static td_str *want_str(td_interpreter *I, td_value v, const char *what) {
  if (td_is(v, &td_str_type)) return td_as_str(v);
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s, not %s", what, td_type_name(I, v));
  return NULL;
}

static td_value part(td_interpreter *I, td_str *s, size_t begin, size_t end) {
  return td_from(td_str_part(I, s, begin, end));
}

static uint32_t properties_at(const char *bytes, int *size) {
  return td_unicode_properties(td_utf8_decode(bytes, size));
}

static bool is_space_at(const char *bytes, int *size) {
  unsigned char c = (unsigned char)*bytes;
  *size = 1;
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
  return properties_at(bytes, size) & TD_UNICODE_SPACE;
}

static size_t previous(const char *bytes, size_t at) { // start of the character that ends before at
  do at--;
  while (((unsigned char)bytes[at] & 0xC0) == 0x80);
  return at;
}

// ---- searching ----
typedef struct span {
  size_t begin, end;
  bool empty;
} span; // empty: start lies past the end, nothing is in it

static bool take_span(td_interpreter *I, td_str *s, td_value *bounds, span *range) {
  int64_t first, last;
  if (!td_slice_bounds(I, bounds[0], bounds[1], s->characters, &first, &last)) return false;
  range->empty = first > last || first > s->characters;
  if (range->empty) first = last;
  range->begin = td_str_offset(s, first);
  range->end = td_str_offset(s, last);
  return true;
}

static const char *search(const char *bytes, size_t length, const td_str *sub, bool last) {
  if (!last) return memmem(bytes, length, sub->data, sub->length);
  for (size_t at = length; at >= sub->length; at--) {
    const char *here = bytes + at - sub->length;
    if (memcmp(here, sub->data, sub->length) == 0) return here;
    if (at == 0) break;
  }
  return NULL;
}

// Character position of the first or last occurrence, -1 if there is none; false: exception
static bool find_position(td_interpreter *I, td_value self, td_value *arguments, bool last, int64_t *position) {
  td_str *s = self_str(self), *sub = want_str(I, arguments[0], "must be str");
  span range;
  *position = -1;
  if (!sub || !take_span(I, s, arguments + 1, &range)) return false;
  if (range.empty) return true;
  const char *found = search(s->data + range.begin, range.end - range.begin, sub, last);
  if (!found) return true;
  *position = td_str_is_ascii(s) ? found - s->data : td_utf8_count(s->data, (size_t)(found - s->data));
  return true;
}

static td_value str_find(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t at;
  return find_position(I, self, arguments, false, &at) ? td_int(at) : TD_NIL;
}

static td_value str_rfind(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t at;
  return find_position(I, self, arguments, true, &at) ? td_int(at) : TD_NIL;
}

static td_value found_or_error(td_interpreter *I, td_value self, td_value *arguments, bool last) {
  int64_t at;
  if (!find_position(I, self, arguments, last, &at)) return TD_NIL;
  return at >= 0 ? td_int(at) : td_raise(I, TD_CLASS_VALUE_ERROR, "substring not found");
}

static td_value str_index(td_interpreter *I, td_value self, td_value *arguments) {
  return found_or_error(I, self, arguments, false);
}
static td_value str_rindex(td_interpreter *I, td_value self, td_value *arguments) {
  return found_or_error(I, self, arguments, true);
}

static td_value str_count(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self), *sub = want_str(I, arguments[0], "must be str");
  span range;
  if (!sub || !take_span(I, s, arguments + 1, &range)) return TD_NIL;
  if (range.empty) return td_int(0);
  const char *at = s->data + range.begin, *end = s->data + range.end;
  if (sub->length == 0) return td_int(td_utf8_count(at, range.end - range.begin) + 1);
  int64_t count = 0;
  while ((at = memmem(at, (size_t)(end - at), sub->data, sub->length))) at += sub->length, count++;
  return td_int(count);
}

static bool has_affix(const td_str *s, const span *range, const td_str *affix, bool suffix) {
  if (range->empty || affix->length > range->end - range->begin) return false;
  return memcmp(s->data + (suffix ? range->end - affix->length : range->begin), affix->data, affix->length) == 0;
}

static td_value affix_test(td_interpreter *I, td_value self, td_value *arguments, bool suffix, const char *name) {
  td_str *s = self_str(self);
  span range;
  if (!take_span(I, s, arguments + 1, &range)) return TD_NIL;
  if (td_is(arguments[0], &td_str_type)) return td_bool(has_affix(s, &range, td_as_str(arguments[0]), suffix));
  if (!td_is(arguments[0], &td_tuple_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "%s first arg must be str or a tuple of str, not %s", name,
                    td_type_name(I, arguments[0]));
  td_tuple *all = td_as_tuple(arguments[0]);
  for (int64_t i = 0; i < all->count; i++) {
    if (!td_is(all->items[i], &td_str_type))
      return td_raise(I, TD_CLASS_TYPE_ERROR, "tuple for %s must only contain str, not %s", name,
                      td_type_name(I, all->items[i]));
    if (has_affix(s, &range, td_as_str(all->items[i]), suffix)) return td_bool(true);
  }
  return td_bool(false);
}

static td_value str_startswith(td_interpreter *I, td_value self, td_value *arguments) {
  return affix_test(I, self, arguments, false, "startswith");
}
static td_value str_endswith(td_interpreter *I, td_value self, td_value *arguments) {
  return affix_test(I, self, arguments, true, "endswith");
}

static td_value str_removeprefix(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self), *affix = want_str(I, arguments[0], "removeprefix() argument must be str");
  if (!affix) return TD_NIL;
  span whole = {0, s->length, false};
  return part(I, s, has_affix(s, &whole, affix, false) ? affix->length : 0, s->length);
}

static td_value str_removesuffix(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self), *affix = want_str(I, arguments[0], "removesuffix() argument must be str");
  if (!affix) return TD_NIL;
  span whole = {0, s->length, false};
  return part(I, s, 0, has_affix(s, &whole, affix, true) ? s->length - affix->length : s->length);
}

static td_value str_replace(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self), *old = want_str(I, arguments[0], "replace() argument 1 must be str"),
         *new = old ? want_str(I, arguments[1], "replace() argument 2 must be str") : NULL;
  int64_t left;
  if (!new || !td_index_value(I, arguments[2], &left)) return TD_NIL;
  if (left < 0) left = INT64_MAX;
  td_text text = {0};
  const char *at = s->data, *end = at + s->length, *found;
  if (old->length == 0) {
    for (; left > 0; left--) { // before each character and at the end
      td_text_add_bytes(&text, new->data, new->length);
      if (at == end) break;
      int size = td_utf8_size((unsigned char)*at);
      td_text_add_bytes(&text, at, (size_t)size);
      at += size;
    }
  } else {
    for (; left > 0 && (found = memmem(at, (size_t)(end - at), old->data, old->length)); left--) {
      td_text_add_bytes(&text, at, (size_t)(found - at));
      td_text_add_bytes(&text, new->data, new->length);
      at = found + old->length;
    }
    if (at == s->data) return td_ref(self);
  }
  td_text_add_bytes(&text, at, (size_t)(end - at));
  return td_from(td_str_take(I, &text));
}

// ---- splitting and joining ----
static bool append_part(td_interpreter *I, td_list *list, td_str *s, size_t begin, size_t end) {
  td_value piece = part(I, s, begin, end);
  bool done = !td_is_nil(piece) && td_list_append(I, list, piece);
  td_unref(piece);
  return done;
}

static bool split_blanks(td_interpreter *I, td_str *s, int64_t left, td_list *list) {
  size_t at = 0;
  int size;
  for (;;) {
    while (at < s->length && is_space_at(s->data + at, &size)) at += (size_t)size;
    if (at == s->length) return true;
    size_t begin = at;
    if (left-- == 0) return append_part(I, list, s, begin, s->length);
    while (at < s->length && !is_space_at(s->data + at, &size)) at += (size_t)size;
    if (!append_part(I, list, s, begin, at)) return false;
  }
}

static bool split_blanks_right(td_interpreter *I, td_str *s, int64_t left, td_list *list) {
  size_t at = s->length;
  int size;
  for (;;) {
    while (at > 0 && is_space_at(s->data + previous(s->data, at), &size)) at = previous(s->data, at);
    if (at == 0) return true;
    size_t end = at;
    if (left-- == 0) return append_part(I, list, s, 0, end);
    while (at > 0 && !is_space_at(s->data + previous(s->data, at), &size)) at = previous(s->data, at);
    if (!append_part(I, list, s, at, end)) return false;
  }
}

static bool split_at(td_interpreter *I, td_str *s, td_str *separator, int64_t left, td_list *list) {
  size_t at = 0;
  const char *found;
  while (left-- != 0 && (found = memmem(s->data + at, s->length - at, separator->data, separator->length))) {
    if (!append_part(I, list, s, at, (size_t)(found - s->data))) return false;
    at = (size_t)(found - s->data) + separator->length;
  }
  return append_part(I, list, s, at, s->length);
}

static bool split_at_right(td_interpreter *I, td_str *s, td_str *separator, int64_t left, td_list *list) {
  size_t end = s->length;
  const char *found;
  while (left-- != 0 && (found = search(s->data, end, separator, true))) {
    if (!append_part(I, list, s, (size_t)(found - s->data) + separator->length, end)) return false;
    end = (size_t)(found - s->data);
  }
  return append_part(I, list, s, 0, end);
}

static td_value split(td_interpreter *I, td_value self, td_value *arguments, bool right) {
  int64_t left;
  td_str *s = self_str(self),
         *separator = td_is_none(arguments[0]) ? NULL : want_str(I, arguments[0], "must be str or None");
  if ((!separator && !td_is_none(arguments[0])) || !td_index_value(I, arguments[1], &left)) return TD_NIL;
  if (separator && separator->length == 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "empty separator");
  td_list *list = td_list_new(I, 0);
  bool done =
      list && (separator ? right ? split_at_right(I, s, separator, left, list) : split_at(I, s, separator, left, list)
               : right ? split_blanks_right(I, s, left, list)
                         : split_blanks(I, s, left, list));
  if (done && right)
    for (int64_t i = 0, j = list->count - 1; i < j; i++, j--) {
      td_value swap = list->items[i];
      list->items[i] = list->items[j];
      list->items[j] = swap;
    }
  if (done) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

static td_value str_split(td_interpreter *I, td_value self, td_value *arguments) {
  return split(I, self, arguments, false);
}
static td_value str_rsplit(td_interpreter *I, td_value self, td_value *arguments) {
  return split(I, self, arguments, true);
}

static size_t line_break(const char *at) { // bytes of the line end at at; 0: none
  uint32_t code = td_utf8_decode(at, NULL);
  if (code == '\r') return at[1] == '\n' ? 2 : 1;
  if ((code >= '\n' && code <= '\f') || (code >= 0x1c && code <= 0x1e)) return 1;
  return code == 0x85 ? 2 : code == 0x2028 || code == 0x2029 ? 3 : 0;
}

static td_value str_splitlines(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self);
  int keep = td_truth(I, arguments[0]);
  td_list *list = keep < 0 ? NULL : td_list_new(I, 0);
  bool done = list != NULL;
  for (size_t at = 0, begin = 0; done && at < s->length;) {
    size_t end = line_break(s->data + at), next = at + (end ? end : (size_t)td_utf8_size((unsigned char)s->data[at]));
    if (end || next == s->length) {
      done = append_part(I, list, s, begin, end ? at + (keep ? end : 0) : next);
      begin = next;
    }
    at = next;
  }
  if (done) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

static td_value partition(td_interpreter *I, td_value self, td_value *arguments, bool last) {
  td_str *s = self_str(self), *separator = want_str(I, arguments[0], "must be str");
  if (!separator) return TD_NIL;
  if (separator->length == 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "empty separator");
  const char *found = search(s->data, s->length, separator, last);
  size_t at = found ? (size_t)(found - s->data) : last ? 0 : s->length;
  td_tuple *three = td_tuple_new(I, 3);
  if (!three) return TD_NIL;
  three->items[0] = part(I, s, 0, at);
  three->items[1] = found ? td_ref(arguments[0]) : part(I, s, 0, 0);
  three->items[2] = part(I, s, found ? at + separator->length : at, s->length);
  if (td_is_nil(I->raised)) return td_from(three);
  td_unref(td_from(three));
  return TD_NIL;
}

static td_value str_partition(td_interpreter *I, td_value self, td_value *arguments) {
  return partition(I, self, arguments, false);
}
static td_value str_rpartition(td_interpreter *I, td_value self, td_value *arguments) {
  return partition(I, self, arguments, true);
}

// The sizes of all items and of the separators between them; false: exception.
static bool joined_size(td_interpreter *I, const td_str *s, const td_value *items, int64_t count, size_t *bytes,
                        size_t *characters) {
  *bytes = count > 1 ? (size_t)(count - 1) * s->length : 0;
  *characters = count > 1 ? (size_t)(count - 1) * s->characters : 0;
  for (int64_t i = 0; i < count; i++) {
    if (!td_is(items[i], &td_str_type)) {
      td_raise(I, TD_CLASS_TYPE_ERROR, "sequence item %lld: expected str instance, %s found", (long long)i,
               td_type_name(I, items[i]));
      td_raise_hint(I, "map(str, ...) makes texts of all items");
      return false;
    }
    *bytes += td_as_str(items[i])->length;
    *characters += td_as_str(items[i])->characters;
  }
  return true;
}

static td_value joined(td_interpreter *I, const td_str *s, const td_value *items, int64_t count) {
  size_t bytes, characters;
  if (!joined_size(I, s, items, count, &bytes, &characters)) return TD_NIL;
  if (count == 1) return td_ref(items[0]);
  td_str *result = td_str_blank(I, bytes);
  if (!result) return TD_NIL;
  char *at = result->data;
  for (int64_t i = 0; i < count; i++) {
    const td_str *item = td_as_str(items[i]);
    if (i) memcpy(at, s->data, s->length), at += s->length;
    memcpy(at, item->data, item->length);
    at += item->length;
  }
  result->characters = (uint32_t)characters;
  return td_from(result);
}

static td_value str_join(td_interpreter *I, td_value self, td_value *arguments) {
  const td_type *type = td_type_of(arguments[0]);
  if (!type->iterate && !type->next) return td_raise(I, TD_CLASS_TYPE_ERROR, "can only join an iterable");
  if (type == &td_list_type)
    return joined(I, self_str(self), td_as_list(arguments[0])->items, td_as_list(arguments[0])->count);
  td_value held = td_tuple_from(I, arguments[0]);
  if (td_is_nil(held)) return TD_NIL;
  td_value result = joined(I, self_str(self), td_as_tuple(held)->items, td_as_tuple(held)->count);
  td_unref(held);
  return result;
}

// ---- stripping and padding ----
static bool in_set(const td_str *characters, const char *at, int *size) {
  if (!characters) return is_space_at(at, size);
  *size = td_utf8_size((unsigned char)*at);
  return memmem(characters->data, characters->length, at, (size_t)*size) != NULL;
}

static td_value strip(td_interpreter *I, td_value self, td_value set, bool left, bool right) {
  if (!td_is_none(set) && !td_is(set, &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "strip arg must be None or str");
  td_str *s = self_str(self), *characters = td_is_none(set) ? NULL : td_as_str(set);
  size_t begin = 0, end = s->length;
  int size;
  while (left && begin < end && in_set(characters, s->data + begin, &size)) begin += (size_t)size;
  while (right && end > begin && in_set(characters, s->data + previous(s->data, end), &size)) end -= (size_t)size;
  return part(I, s, begin, end);
}

static td_value str_strip(td_interpreter *I, td_value self, td_value *arguments) {
  return strip(I, self, arguments[0], true, true);
}
static td_value str_lstrip(td_interpreter *I, td_value self, td_value *arguments) {
  return strip(I, self, arguments[0], true, false);
}
static td_value str_rstrip(td_interpreter *I, td_value self, td_value *arguments) {
  return strip(I, self, arguments[0], false, true);
}

static td_value padded(td_interpreter *I, td_value self, int64_t left, td_str *fill, int64_t right) {
  td_str *s = self_str(self);
  size_t bytes, extra;
  if (left + right <= 0) return td_ref(self);
  if (__builtin_mul_overflow((size_t)(left + right), fill->length, &extra) ||
      __builtin_add_overflow(extra, s->length, &bytes) || bytes > UINT32_MAX / 2)
    return td_raise_memory(I);
  td_text text = {0};
  for (; left > 0; left--) td_text_add_bytes(&text, fill->data, fill->length);
  td_text_add_bytes(&text, s->data, s->length);
  for (; right > 0; right--) td_text_add_bytes(&text, fill->data, fill->length);
  return td_from(td_str_take(I, &text));
}

static td_str *want_fill(td_interpreter *I, td_value v) {
  if (!td_is(v, &td_str_type))
    td_raise(I, TD_CLASS_TYPE_ERROR, "The fill character must be a unicode character, not %s", td_type_name(I, v));
  else if (td_as_str(v)->characters != 1)
    td_raise(I, TD_CLASS_TYPE_ERROR, "The fill character must be exactly one character long");
  else return td_as_str(v);
  return NULL;
}

static td_value justify(td_interpreter *I, td_value self, td_value *arguments, char side) {
  int64_t width;
  td_str *fill;
  if (!td_index_value(I, arguments[0], &width) || !(fill = want_fill(I, arguments[1]))) return TD_NIL;
  int64_t missing = width > self_str(self)->characters ? width - self_str(self)->characters : 0;
  int64_t left = side == 'l' ? 0 : side == 'r' ? missing : missing / 2 + (missing & width & 1);
  return padded(I, self, left, fill, missing - left);
}

static td_value str_ljust(td_interpreter *I, td_value self, td_value *arguments) {
  return justify(I, self, arguments, 'l');
}
static td_value str_rjust(td_interpreter *I, td_value self, td_value *arguments) {
  return justify(I, self, arguments, 'r');
}
static td_value str_center(td_interpreter *I, td_value self, td_value *arguments) {
  return justify(I, self, arguments, 'c');
}

static td_value str_zfill(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self);
  int64_t width;
  if (!td_index_value(I, arguments[0], &width)) return TD_NIL;
  if (width <= s->characters) return td_ref(self);
  if (width > UINT32_MAX / 2) return td_raise_memory(I);
  td_text text = {0};
  size_t sign = s->data[0] == '+' || s->data[0] == '-';
  td_text_add_bytes(&text, s->data, sign);
  td_text_pad(&text, sign + (size_t)(width - s->characters), '0');
  td_text_add_bytes(&text, s->data + sign, s->length - sign);
  return td_from(td_str_take(I, &text));
}

static td_value str_expandtabs(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self);
  int64_t size, column = 0;
  if (!td_index_value(I, arguments[0], &size)) return TD_NIL;
  td_text text = {0};
  for (size_t i = 0; i < s->length; i++) {
    char c = s->data[i];
    if (c == '\t') {
      int64_t blanks = size > 0 ? size - column % size : 0;
      if (blanks > UINT32_MAX / 2) text.failed = true;
      column += blanks;
      td_text_pad(&text, text.length + (size_t)blanks, ' ');
    } else {
      td_text_add_char(&text, c);
      if (c == '\n' || c == '\r') column = 0;
      else if (((unsigned char)c & 0xC0) != 0x80) column++;
    }
  }
  return td_from(td_str_take(I, &text));
}

// ---- case ----
// Whether the sigma at offset ends a word: a cased letter before it and none after it, ignorable characters left out.
static bool is_final_sigma(const td_str *s, size_t offset) {
  size_t at = offset;
  uint32_t found = 0;
  int size;
  while (at > 0) {
    at = previous(s->data, at);
    found = properties_at(s->data + at, &size);
    if (!(found & TD_UNICODE_CASE_IGNORABLE)) break;
    found = 0;
  }
  if (!(found & (TD_UNICODE_UPPER | TD_UNICODE_LOWER | TD_UNICODE_TITLE))) return false;
  for (at = offset + 2; at < s->length; at += (size_t)size) {
    found = properties_at(s->data + at, &size);
    if (!(found & TD_UNICODE_CASE_IGNORABLE))
      return !(found & (TD_UNICODE_UPPER | TD_UNICODE_LOWER | TD_UNICODE_TITLE));
  }
  return true;
}

static void add_case(td_text *text, const td_str *s, size_t offset, uint32_t code, enum td_case which) {
  if (code == 0x3A3 && which == TD_CASE_LOWER) td_text_add_code(text, is_final_sigma(s, offset) ? 0x3C2 : 0x3C3);
  else td_unicode_add_case(text, code, which);
}

typedef enum td_case choose_case(uint32_t properties, bool first, bool after_cased);

static td_value change_case(td_interpreter *I, td_value self, choose_case *choose) {
  td_str *s = self_str(self);
  td_text text = {0};
  bool after_cased = false;
  int size;
  for (size_t at = 0; at < s->length; at += (size_t)size) {
    uint32_t code = td_utf8_decode(s->data + at, &size), properties = td_unicode_properties(code);
    add_case(&text, s, at, code, choose(properties, at == 0, after_cased));
    after_cased = properties & (TD_UNICODE_UPPER | TD_UNICODE_LOWER | TD_UNICODE_TITLE);
  }
  return td_from(td_str_take(I, &text));
}

static enum td_case all_upper(uint32_t p, bool first, bool after) {
  return (void)p, (void)first, (void)after, TD_CASE_UPPER;
}
static enum td_case all_lower(uint32_t p, bool first, bool after) {
  return (void)p, (void)first, (void)after, TD_CASE_LOWER;
}
static enum td_case all_folded(uint32_t p, bool first, bool after) {
  return (void)p, (void)first, (void)after, TD_CASE_FOLD;
}
static enum td_case first_title(uint32_t p, bool first, bool after) {
  return (void)p, (void)after, first ? TD_CASE_TITLE : TD_CASE_LOWER;
}
static enum td_case words_title(uint32_t p, bool first, bool after) {
  return (void)p, (void)first, after ? TD_CASE_LOWER : TD_CASE_TITLE;
}
static enum td_case swapped(uint32_t p, bool first, bool after) {
  return (void)first, (void)after, p & TD_UNICODE_UPPER ? TD_CASE_LOWER : TD_CASE_UPPER;
}

static td_value ascii_case(td_interpreter *I, td_value self, bool upper) {
  const td_str *s = self_str(self);
  td_str *copy = td_str_blank(I, s->length);
  if (!copy) return TD_NIL;
  char first = upper ? 'a' : 'A';
  for (uint32_t i = 0; i < s->length; i++) {
    bool changes = (unsigned char)(s->data[i] - first) < 26;
    copy->data[i] = (char)(changes ? s->data[i] ^ 32 : s->data[i]);
  }
  copy->characters = s->characters;
  return td_from(copy);
}

static td_value str_upper(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_str_is_ascii(self_str(self)) ? ascii_case(I, self, true) : change_case(I, self, all_upper);
}

static td_value str_lower(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_str_is_ascii(self_str(self)) ? ascii_case(I, self, false) : change_case(I, self, all_lower);
}

static td_value str_title(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)arguments, change_case(I, self, words_title);
}
static td_value str_capitalize(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)arguments, change_case(I, self, first_title);
}
static td_value str_swapcase(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)arguments, change_case(I, self, swapped);
}
static td_value str_casefold(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)arguments, change_case(I, self, all_folded);
}

// ---- kinds of characters ----
static td_value all_have(td_value self, uint32_t wanted, bool empty) { // each character has one of the properties
  td_str *s = self_str(self);
  int size;
  for (size_t at = 0; at < s->length; at += (size_t)size)
    if (!(properties_at(s->data + at, &size) & wanted)) return td_bool(false);
  return td_bool(s->length > 0 || empty);
}

static td_value all_cased(td_value self, uint32_t wanted, uint32_t refused) { // no refused one, at least one wanted
  td_str *s = self_str(self);
  bool found = false;
  int size;
  for (size_t at = 0; at < s->length; at += (size_t)size) {
    uint32_t properties = properties_at(s->data + at, &size);
    if (properties & refused) return td_bool(false);
    found |= (properties & wanted) != 0;
  }
  return td_bool(found);
}

#define KIND(name, properties, empty)                                                 \
  static td_value str_##name(td_interpreter *I, td_value self, td_value *arguments) { \
    return (void)I, (void)arguments, all_have(self, properties, empty);               \
  }
KIND(isalpha, TD_UNICODE_ALPHA, false)
KIND(isdigit, TD_UNICODE_DIGIT, false)
KIND(isdecimal, TD_UNICODE_DECIMAL, false)
KIND(isnumeric, TD_UNICODE_NUMERIC, false)
KIND(isalnum, TD_UNICODE_ALPHA | TD_UNICODE_DECIMAL | TD_UNICODE_DIGIT | TD_UNICODE_NUMERIC, false)
KIND(isspace, TD_UNICODE_SPACE, false)
KIND(isprintable, TD_UNICODE_PRINTABLE, true)
#undef KIND

static td_value str_isupper(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)I, (void)arguments, all_cased(self, TD_UNICODE_UPPER, TD_UNICODE_LOWER | TD_UNICODE_TITLE);
}

static td_value str_islower(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)I, (void)arguments, all_cased(self, TD_UNICODE_LOWER, TD_UNICODE_UPPER | TD_UNICODE_TITLE);
}

static td_value str_isascii(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)I, (void)arguments, td_bool(td_str_is_ascii(self_str(self)));
}

static td_value str_istitle(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  td_str *s = self_str(self);
  bool cased = false, after_cased = false;
  int size;
  for (size_t at = 0; at < s->length; at += (size_t)size) {
    uint32_t properties = properties_at(s->data + at, &size);
    bool upper = properties & (TD_UNICODE_UPPER | TD_UNICODE_TITLE), lower = properties & TD_UNICODE_LOWER;
    if ((upper && after_cased) || (lower && !after_cased)) return td_bool(false);
    after_cased = upper || lower;
    cased |= after_cased;
  }
  return td_bool(cased);
}

static td_value str_isidentifier(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  td_str *s = self_str(self);
  int size;
  for (size_t at = 0; at < s->length; at += (size_t)size)
    if (!(properties_at(s->data + at, &size) & (at ? TD_UNICODE_ID_CONTINUE : TD_UNICODE_ID_START)))
      return td_bool(false);
  return td_bool(s->length > 0);
}

// ---- translating ----
// What the table says for a character: NIL without exception: nothing
static td_value table_entry(td_interpreter *I, td_value table, uint32_t code) {
  td_value key = td_int(code), value;
  if (td_is(table, &td_dict_type)) return td_dict_get(I, td_as_dict(table), key, &value) == 1 ? td_ref(value) : TD_NIL;
  value = td_item(I, table, key);
  if (!td_is_nil(value)) return value;
  td_value type = {.tag = TD_TAG_OBJECT, .o = &I->classes[TD_CLASS_LOOKUP_ERROR]->container.object};
  if (td_isinstance(I, I->raised, (td_class *)type.o)) td_clear_raised(I);
  return TD_NIL;
}

static bool add_translated(td_interpreter *I, td_value to, td_text *text) {
  if (td_is_none(to)) return true;
  if (td_is(to, &td_str_type)) td_text_add_bytes(text, td_as_str(to)->data, td_as_str(to)->length);
  else if (!td_is_integer(to))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "character mapping must return integer, None or str"), false;
  else if (to.i < 0 || to.i > 0x10FFFF)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "character mapping must be in range(0x110000)"), false;
  else td_text_add_code(text, (uint32_t)to.i);
  return true;
}

static td_value str_translate(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *s = self_str(self);
  td_text text = {0};
  bool done = true;
  int size;
  for (size_t at = 0; done && at < s->length; at += (size_t)size) {
    td_value to = table_entry(I, arguments[0], td_utf8_decode(s->data + at, &size));
    if (td_is_nil(to) && td_is_nil(I->raised)) td_text_add_bytes(&text, s->data + at, (size_t)size);
    else done = !td_is_nil(to) && add_translated(I, to, &text);
    td_unref(to);
  }
  if (done) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

static bool map_characters(td_interpreter *I, td_dict *table, td_str *from, td_str *to) { // to NULL: removed
  int from_size, to_size = 0;
  for (size_t at = 0, there = 0; at < from->length; at += (size_t)from_size, there += (size_t)to_size) {
    td_value code = td_int(td_utf8_decode(from->data + at, &from_size));
    if (!td_dict_set(I, table, code, to ? td_int(td_utf8_decode(to->data + there, &to_size)) : TD_NONE)) return false;
  }
  return true;
}

static bool map_dict(td_interpreter *I, td_dict *table, td_value source) {
  if (!td_is(source, &td_dict_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "if you give only one argument to maketrans it must be a dict"), false;
  td_value key, value;
  for (int64_t position = 0; td_dict_next(td_as_dict(source), &position, &key, &value);) {
    if (td_is(key, &td_str_type)) {
      if (td_as_str(key)->characters != 1)
        return td_raise(I, TD_CLASS_VALUE_ERROR, "string keys in translate table must be of length 1"), false;
      key = td_int(td_utf8_decode(td_as_str(key)->data, NULL));
    } else if (!td_is_integer(key)) {
      return td_raise(I, TD_CLASS_TYPE_ERROR, "keys in translate table must be strings or integers"), false;
    }
    if (!td_dict_set(I, table, key, value)) return false;
  }
  return true;
}

static td_value str_maketrans(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_dict *table = td_dict_new(I);
  bool done = table != NULL;
  if (done && td_is_nil(arguments[1])) {
    done = map_dict(I, table, arguments[0]);
  } else if (done) {
    td_str *from = want_str(I, arguments[0], "maketrans() argument 1 must be str"),
           *to = from ? want_str(I, arguments[1], "maketrans() argument 2 must be str") : NULL;
    td_str *removed =
        to && !td_is_nil(arguments[2]) ? want_str(I, arguments[2], "maketrans() argument 3 must be str") : NULL;
    done = to && (removed || td_is_nil(arguments[2]));
    if (done && from->characters != to->characters) {
      td_raise(I, TD_CLASS_VALUE_ERROR, "the first two maketrans arguments must have equal length");
      done = false;
    }
    done = done && map_characters(I, table, from, to) && (!removed || map_characters(I, table, removed, NULL));
  }
  if (done) return td_from(table);
  td_unref(td_from(table));
  return TD_NIL;
}

// ---- formatting ----
static td_value str_format(td_interpreter *I, td_value self, td_value *arguments) {
  return td_str_format(I, self_str(self), td_as_tuple(arguments[0]), arguments[1]);
}

static td_value str_format_map(td_interpreter *I, td_value self, td_value *arguments) {
  return td_str_format(I, self_str(self), NULL, arguments[0]);
}

static td_value str_encode(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self, (void)arguments;
  td_raise(I, TD_CLASS_TYPE_ERROR, "str.encode: there are no bytes in this language");
  td_raise_hint(I, "a str is UTF-8 already: save_ functions write it as it is, ord() gives the code of a character");
  return TD_NIL;
}

const td_method td_str_methods[] = {
    {"split", "(sep=None, maxsplit=-1)", str_split,
     "The parts between separators; without sep, between blanks.\n>>> \"a b\".split()"},
    {"rsplit", "(sep=None, maxsplit=-1)", str_rsplit,
     "As split, but maxsplit counts from the right.\n>>> \"a.b.c\".rsplit(\".\", 1)"},
    {"splitlines", "(keepends=False)", str_splitlines, "The lines, without their ends."},
    {"join", "(iterable, /)", str_join,
     "All texts of iterable with this one between them.\n>>> \", \".join([\"a\", \"b\"])"},
    {"strip", "(chars=None, /)", str_strip,
     "Without blanks, or the characters in chars, at both ends.\n>>> \" a \".strip()"},
    {"lstrip", "(chars=None, /)", str_lstrip, "Without blanks, or the characters in chars, at the start."},
    {"rstrip", "(chars=None, /)", str_rstrip, "Without blanks, or the characters in chars, at the end."},
    {"upper", "()", str_upper, "In upper case.\n>>> \"relu\".upper()"},
    {"lower", "()", str_lower, "In lower case."},
    {"title", "()", str_title, "Each word with a first letter in upper case."},
    {"capitalize", "()", str_capitalize, "The first character in upper case, the others in lower case."},
    {"swapcase", "()", str_swapcase, "Upper case for lower case and the reverse."},
    {"casefold", "()", str_casefold, "A form in which texts that differ in case only are equal."},
    {"replace", "(old, new, count=-1, /)", str_replace,
     "With new in place of each old, or of the first count ones.\n>>> \"aab\".replace(\"a\", \"x\")"},
    {"find", "(sub, start=None, end=None, /)", str_find, "Position of the first sub, or -1.\n>>> \"abc\".find(\"c\")"},
    {"rfind", "(sub, start=None, end=None, /)", str_rfind, "Position of the last sub, or -1."},
    {"index", "(sub, start=None, end=None, /)", str_index, "Position of the first sub; ValueError if there is none."},
    {"rindex", "(sub, start=None, end=None, /)", str_rindex, "Position of the last sub; ValueError if there is none."},
    {"count", "(sub, start=None, end=None, /)", str_count,
     "How often sub occurs, without overlaps.\n>>> \"aaa\".count(\"aa\")"},
    {"startswith", "(prefix, start=None, end=None, /)", str_startswith,
     "Whether the text begins with prefix, or with one of a tuple of them."},
    {"endswith", "(suffix, start=None, end=None, /)", str_endswith,
     "Whether the text ends with suffix, or with one of a tuple of them."},
    {"removeprefix", "(prefix, /)", str_removeprefix, "Without prefix, if it begins with it."},
    {"removesuffix", "(suffix, /)", str_removesuffix, "Without suffix, if it ends with it."},
    {"isalpha", "()", str_isalpha, "Whether all characters are letters and there is one."},
    {"isdigit", "()", str_isdigit, "Whether all characters are digits and there is one."},
    {"isdecimal", "()", str_isdecimal, "Whether all characters are decimal digits and there is one."},
    {"isnumeric", "()", str_isnumeric, "Whether all characters stand for numbers and there is one."},
    {"isalnum", "()", str_isalnum, "Whether all characters are letters or digits and there is one."},
    {"isspace", "()", str_isspace, "Whether all characters are blanks and there is one."},
    {"isprintable", "()", str_isprintable, "Whether repr() would show all characters as they are."},
    {"isupper", "()", str_isupper, "Whether all cased characters are upper case and there is one."},
    {"islower", "()", str_islower, "Whether all cased characters are lower case and there is one."},
    {"istitle", "()", str_istitle, "Whether each word begins with upper case and goes on in lower case."},
    {"isascii", "()", str_isascii, "Whether all characters are ASCII."},
    {"isidentifier", "()", str_isidentifier, "Whether the text could be a name."},
    {"zfill", "(width, /)", str_zfill, "With zeros before it, after a sign, up to width.\n>>> \"-7\".zfill(4)"},
    {"center", "(width, fillchar=' ', /)", str_center, "In the middle of width characters."},
    {"ljust", "(width, fillchar=' ', /)", str_ljust, "At the left of width characters."},
    {"rjust", "(width, fillchar=' ', /)", str_rjust, "At the right of width characters."},
    {"partition", "(sep, /)", str_partition,
     "What stands before the first sep, sep, and what stands behind it.\n>>> \"k=v\".partition(\"=\")"},
    {"rpartition", "(sep, /)", str_rpartition, "What stands before the last sep, sep, and what stands behind it."},
    {"expandtabs", "(tabsize=8)", str_expandtabs, "With blanks in place of tabs."},
    {"translate", "(table, /)", str_translate, "Each character as table, by its code, says; see maketrans."},
    {"maketrans", "(x, y=..., z=..., /)", str_maketrans,
     "A table for translate: characters of x become those of y, those of z go."},
    {"format", "(*args, **kwargs)", str_format,
     "With values in place of {} fields.\n>>> \"{}: {:.2f}\".format(\"loss\", 0.5)"},
    {"format_map", "(mapping, /)", str_format_map, "As format(**mapping)."},
    {"encode", "(encoding='utf-8', errors='strict')", str_encode, "Refused: there are no bytes in this language."},
    {NULL, NULL, NULL, NULL}};

const td_method td_str_statics[] = {
    {"maketrans", "(x, y=..., z=..., /)", str_maketrans,
     "A table for translate: characters of x become those of y, those of z go.\n>>> str.maketrans(\"ab\", \"xy\")"},
    {NULL, NULL, NULL, NULL}};
