// The language before it runs: the tree of each construct, where each name lives, every refusal with its place, what
// counts as unfinished, what a person reads, and that no text of any kind can crash or hang the front.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/diagnose.h"

static td_interpreter *interpreter;

static void start(void) {
  interpreter = td_interpreter_new(1);
  ck_assert_ptr_nonnull(interpreter);
}

static void finish(void) {
  td_interpreter_free(interpreter);
  ck_assert_int_eq(td_memory_live(), 0);
}

typedef struct outcome {
  td_parse_result result;
  td_diagnostic diagnostic;
  int line, column, width;  // of the diagnostic
  char *dump;               // of the tree; owned
  char *message;            // as a person reads it; owned
} outcome;

static outcome run_text(const char *text, size_t length, bool resolved) {
  outcome o = {0};
  td_text dump = {0}, message = {0};
  td_arena *arena = td_arena_new();
  td_script *script = td_source_add(&interpreter->sources, "test.deck", "", text, length);
  td_node *tree;
  o.result = td_parse(script, arena, interpreter, &tree, &o.diagnostic);
  if (o.result == TD_PARSED && resolved &&
      !td_resolve(interpreter, script, arena, interpreter->main, tree, &o.diagnostic)) {
    o.result = TD_PARSE_ERROR;
  }
  if (o.result == TD_PARSED) {
    td_node_dump(tree, &dump, 0);
  } else {
    td_source_position(script, o.diagnostic.span.begin, &o.line, &o.column);
    o.width = (int)(o.diagnostic.span.end - o.diagnostic.span.begin);
    td_diagnose_syntax(script, &o.diagnostic, &message);
  }
  o.dump = td_text_take(&dump);
  o.message = td_text_take(&message);
  td_arena_unref(arena);
  return o;
}

static void drop(outcome *o) {
  td_memory_free(o->dump);
  td_memory_free(o->message);
}

static void expect_tree(const char *text, const char *expected, bool resolved) {
  outcome o = run_text(text, strlen(text), resolved);
  ck_assert_msg(o.result == TD_PARSED, "%s\n%s", text, o.diagnostic.message);
  ck_assert_msg(strcmp(o.dump, expected) == 0, "%s\nexpected %s\nfound %s", text, expected, o.dump);
  drop(&o);
}

typedef struct pair { const char *text, *expected; } pair;

#define EXPECT_TREES(rows, resolved)                                                                                   \
  for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) expect_tree((rows)[i].text, (rows)[i].expected, resolved)

START_TEST(literals) {
  static const pair rows[] = {
      {"0xff, 0o17, 0b101, 1_000, 0, 00", "\nexpression (tuple 255 15 5 1000 0 0)"},
      {"1e-3, .5, 1., 1_0.5_0e1_0, 1E5", "\nexpression (tuple 0.001 0.5 1.0 105000000000.0 100000.0)"},
      {"9223372036854775807, -9223372036854775808", "\nexpression (tuple 9223372036854775807 -9223372036854775808)"},
      {"-1, -1.5, - -1, -x, -2 ** 2, 2 ** -1", "\nexpression (tuple -1 -1.5 (- -1) (- x) (- (** 2 2)) (** 2 -1))"},
      {"None, True, False, ...", "\nexpression (tuple None True False ...)"},
      {"1if a else 2", "\nexpression (conditional 1 a 2)"},
      {"'a' \"b\" '''c\nd'''", "\nexpression 'abc\\nd'"},
      {"'\\n\\t\\\\\\'\\x41\\u00e9\\U0001F600\\101\\0'", "\nexpression '\\n\\x09\\\\\\'Aé😀A\\x00'"},
      {"'\\q' r'\\n' u'x' R\"\\\"\"", "\nexpression '\\\\q\\\\nx\\\\\"'"},
      {"'a\\\nb' '''c\\\r\nd'''", "\nexpression 'abcd'"},
      {"'''a\r\nb\rc'''", "\nexpression 'a\\nb\\nc'"},
      {"\xef\xbb\xbfx", "\nexpression x"},
      {"größe + 变量", "\nexpression (+ größe 变量)"},
  };
  EXPECT_TREES(rows, false);
}
END_TEST

START_TEST(formatted_strings) {
  static const pair rows[] = {
      {"f'a{x}b'", "\nexpression (fstring 'a' (format x) 'b')"},
      {"f'{x!r:>{w}.2f}'", "\nexpression (fstring (format !r x (fstring '>' (format w) '.2f')))"},
      {"f'{x=}{y = :3}{z=!s}'",
       "\nexpression (fstring (format !r 'x=' x) (format 'y = ' y (fstring '3')) (format !s 'z=' z))"},
      {"f'{{{a}}}'", "\nexpression (fstring '{' (format a) '}')"},
      {"f\"{d['k']}{d[\"q\"]}\"", "\nexpression (fstring (format (index d 'k')) (format (index d 'q')))"},
      {"f'{a, b}{ {1: 2}[1] }{(lambda x: x)(1)}'",
       "\nexpression (fstring (format (tuple a b)) (format (index (dict 1 2) 1)) (format (call (lambda (x) x) 1)))"},
      {"f'{a!=b}{a:=5}'", "\nexpression (fstring (format (compare a != b)) (format a (fstring '=5')))"},
      {"'p' f'{x}' 'q' f'' 'r'", "\nexpression (fstring 'p' (format x) 'qr')"},
      {"f'''{\nx\n}'''", "\nexpression (fstring (format x))"},
      {"rf'\\d{x}' f'\\x41'", "\nexpression (fstring '\\\\d' (format x) 'A')"},
      {"f'{f\"{x}\"}'", "\nexpression (fstring (format (fstring (format x))))"},
  };
  EXPECT_TREES(rows, false);
}
END_TEST

START_TEST(operators) {
  static const pair rows[] = {
      {"a | b ^ c & d << e + f * g", "\nexpression (| a (^ b (& c (<< d (+ e (* f g))))))"},
      {"a - b - c, a ** b ** c, a @ b // c % d",
       "\nexpression (tuple (- (- a b) c) (** a (** b c)) (% (// (@ a b) c) d))"},
      {"-a ** -b, ~a + +b", "\nexpression (tuple (- (** a (- b))) (+ (~ a) (+ b)))"},
      {"a < b <= c != d is not e not in f is g in h",
       "\nexpression (compare a < b <= c != d is not e not in f is g in h)"},
      {"not a and b or c and not d == e", "\nexpression (or (and (not a) b) (and c (not (compare d == e))))"},
      {"a if b else c if d else e", "\nexpression (conditional a b (conditional c d e))"},
      {"lambda: 0, lambda x, *y, z=1, **k: x", "\nexpression (tuple (lambda () 0) (lambda (x * z=1 *y **k) x))"},
      {"lambda a, /, b, *, c: a if b else lambda: c",
       "\nexpression (lambda (a / b * c) (conditional a b (lambda () c)))"},
      {"(a + b) * (c)", "\nexpression (* (+ a b) c)"},
      {"a +\\\n  b", "\nexpression (+ a b)"},
      {"(a + # comment\n  b\n\n)", "\nexpression (+ a b)"},
  };
  EXPECT_TREES(rows, false);
}
END_TEST

START_TEST(displays_and_calls) {
  static const pair rows[] = {
      {"(), (1,), [1, *a,], {}, {1}, {*a, 2}, {**a, 1: 2,}",
       "\nexpression (tuple (tuple) (tuple 1) (list 1 *a) (dict) (set 1) (set *a 2) (dict _ a 1 2))"},
      {"[x for x in y if a if b for z in x]",
       "\nexpression (list-comprehension x (for x in y if a if b) (for z in x))"},
      {"{x: y for x, y in z}, {x for (x, *w), in y}", "\nexpression (tuple (dict-comprehension x y (for (tuple x y) in "
                                                      "z)) (set-comprehension x (for (tuple (tuple x *w)) in y)))"},
      {"f(x for x in y), f((x for x in y), 1)",
       "\nexpression (tuple (call f (generator x _ y (for x in _))) (call f (generator x _ y (for x in _)) 1))"},
      {"f(a, *b, c=1, *d, **e)(1).g[2]", "\nexpression (index (attribute g (call (call f a *b c=1 *d **e) 1)) 2)"},
      {"x[1], x[1, 2], x[1,], x[:], x[1:], x[:2], x[::3], x[1:2:3]",
       "\nexpression (tuple (index x 1) (index x (tuple 1 2)) (index x (tuple 1)) (index x (slice _ _ _)) (index x "
       "(slice 1 _ _)) (index x (slice _ 2 _)) (index x (slice _ _ 3)) (index x (slice 1 2 3)))"},
      {"x[..., None, ::-1, a]", "\nexpression (index x (tuple ... None (slice _ _ -1) a))"},
  };
  EXPECT_TREES(rows, false);
}
END_TEST

START_TEST(simple_statements) {
  static const pair rows[] = {
      {"a = b = c, *d = [e, (f, g)] = h", "\nassign a b (tuple c *d) (list e (tuple f g)) = h"},
      {"a.b[c] += 1; a @= b; a //= b; a **= b; a >>= b",
       "\naugment += (index (attribute b a) c) 1\naugment @= a b\naugment //= a b\naugment **= a b\naugment >>= a b"},
      {"a: int = 1; b.c: list[int]; d: 'x' = 1, 2",
       "\nannotated a 1\nannotated (attribute c b)\nannotated d (tuple 1 2)"},
      {"x; y;", "\nexpression x\nexpression y ;"},
      {"if a: x;", "\nif a\n  expression x"},
      {"del a, b[1], (c, [d]); pass; assert a, 'm'; assert b",
       "\ndelete a (index b 1) (tuple c (list d))\npass\nassert a 'm'\nassert b"},
      {"import a, b.c, d.e as f", "\nimport 'a' a\nimport 'b.c' b\nimport as 'd.e' f"},
      {"from a.b import c, d as e", "\nfrom-import 'a.b' c=c d=e"},
      {"from .x import (a,\n b,)\nfrom ... import c\nfrom d import *",
       "\nfrom-import '.x' a=a b=b\nfrom-import '...' c=c\nfrom-import 'd'"},
      {"from __future__ import annotations", "\npass"},
      {"raise\nraise a\nraise a from b", "\nraise\nraise a\nraise a b"},
      {"%time f(x)  \n!ls -l \\\n  | wc\nfoo.bar?\?  # c\n? x\n  # only a comment\n",
       "\ncommand % 'time f(x)'\ncommand ! 'ls -l \\\\\\n  | wc'\ncommand ? 'foo.bar?\?'\ncommand ? '? x'"},
      {"if a:\n  %who\n  !ls\n  b?\n", "\nif a\n  command % 'who'\n  command ! 'ls'\n  command ? 'b?'"},
      {"# %% [markdown]\n# text = (\n# %%\nx", "\nexpression x"},
      {"print(1)\r\nx\ry", "\nexpression (call print 1)\nexpression x\nexpression y"},
      {"match = 1; type = match; case(match)", "\nassign match = 1\nassign type = match\nexpression (call case match)"},
  };
  EXPECT_TREES(rows, false);
}
END_TEST

START_TEST(compound_statements) {
  static const pair rows[] = {
      {"if a:\n  b\nelif c: d\nelif e:\n\n  # c\n  f\nelse:\n  g",
       "\nif a\n  expression b\nelif c\n  expression d\nelif e\n  expression f\nelse\n  expression g"},
      {"while a: break\nelse: pass", "\nwhile a\n  break\nelse\n  pass"},
      {"for i, (j, *k) in *a, b:\n\tcontinue\nelse:\n\tpass",
       "\nfor (tuple i (tuple j *k)) (tuple *a b)\n  continue\nelse\n  pass"},
      {"with a as b, c(), d as (e, f.g): pass", "\nwith a b (call c) _ d (tuple e (attribute g f))\n  pass"},
      {"with (a as b, c,): pass\nwith (a, b): pass\nwith (a): pass\nwith (a).b as c: pass",
       "\nwith a b c _\n  pass\nwith a _ b _\n  pass\nwith a _\n  pass\nwith (attribute b a) c\n  pass"},
      {"with (a, b) as c: pass\nwith (x for x in y): pass",
       "\nwith (tuple a b) c\n  pass\nwith (generator x _ y (for x in _)) _\n  pass"},
      {"try: a\nexcept B: c\nexcept (D, E) as f: g\nexcept: h\nelse: i\nfinally: j",
       "\ntry\n  expression a\nexcept B\n  expression c\nexcept (tuple D E) as f\n  expression g\nexcept\n  expression "
       "h\nelse\n  expression i\nfinally\n  expression j"},
      {"try: a\nfinally: b", "\ntry\n  expression a\nfinally\n  expression b"},
      {"def f(a, b: int = 1, /, c=2, *args: T, d, e: int = 3, **kw) -> list[int]:\n  'doc'\n  return a, *b",
       "\ndef f (a b=1 / c=2 * d e=3 *args **kw) doc 'doc'\n  return (tuple a *b)"},
      {"def f(*, a): return\n@a.b\n@c(1)\ndef g(): 'only'",
       "\ndef f (* a)\n  return\n@(attribute b a)\n@(call c 1)\ndef g () doc 'only'"},
      {"class A: pass\n@d\nclass B(A):\n  'doc'\n  x = 1\n  def __init__(self): self.__y = __z__\nself.__y",
       "\nclass A\n  pass\n@d\nclass B A doc 'doc'\n  assign x = 1\n  def __init__ (self)\n    assign (attribute _B__y "
       "self) = __z__\nexpression (attribute __y self)"},
      {"def f():\n  global a, b\n  def g():\n    nonlocal c", "\ndef f ()\n  global a b\n  def g ()\n    global n c"},
  };
  EXPECT_TREES(rows, false);
}
END_TEST

START_TEST(places_of_names) {
  static const pair rows[] = {
      {"x = y", "\nassign x = y"},
      {"def f(a, *b, c, **d):\n  e = a, b, c, d, g\n  return e",
       "\ndef f (a * c *b **d)\n  assign e@4 = (tuple a@0 b@2 c@1 d@3 g)\n  return e@4"},
      {"def f(a):\n  b = a\n  return lambda: (a, c)",
       "\ndef f (a)\n  assign b@1 = a&0\n  return (lambda () (tuple a&0 c))"},
      {"def f():\n  x = 1\n  def g():\n    def h():\n      nonlocal x\n      x = 2\n    return x",
       "\ndef f ()\n  assign x&0 = 1\n  def g@1 ()\n    def h@0 ()\n      global n x&0\n      assign x&0 = 2\n    "
       "return x&1"},
      {"[x for x in y]; x", "\nexpression (list-comprehension x@1 (for x@1 in y))\nexpression x"},
      {"def f(x):\n  return [x for x in x], x",
       "\ndef f (x)\n  return (tuple (list-comprehension x@2 (for x@2 in x@0)) x@0)"},
      {"[lambda: i for i in y]", "\nexpression (list-comprehension (lambda () i&0) (for i&1 in y))"},
      {"def f(a):\n  return (a + b + c for b in a for c in b)",
       "\ndef f (a)\n  return (generator (+ (+ a&4 b@1) c@3) _ a&0 (for b@1 in _) (for c@3 in b@1))"},
      {"class A:\n  x = 1\n  y = x, z\n  def m(self): return x\n  l = [x for w in y]",
       "\nclass A\n  assign x^0 = 1\n  assign y^1 = (tuple x^0 z)\n  def m^2 (self)\n    return x\n  assign l^3 = "
       "(list-comprehension x (for w@5 in y^1))"},
      {"def f(p):\n  class A:\n    q = p\n    def m(self): return p",
       "\ndef f (p)\n  class A@1\n    assign q^0 = p&2\n    def m^1 (self)\n      return p&1"},
      {"def f():\n  global a\n  a = 1\n  def g(): return a",
       "\ndef f ()\n  global a\n  assign a = 1\n  def g@0 ()\n    return a"},
      {"def f():\n  import a.b\n  from c import d as e\n  with g as h: pass\n  try: pass\n  except E as i: del i\n  j: "
       "int",
       "\ndef f ()\n  import 'a.b' a@0\n  from-import 'c' d=e@1\n  with g h@2\n    pass\n  try\n    pass\n  except E "
       "as i@3\n    delete i@3\n  annotated j@4"},
      {"def f(a=x):\n  x = 1\n  @x\n  def g(b=x): pass",
       "\ndef f (a=x)\n  assign x@1 = 1\n  @x@1\n  def g@2 (b=x@1)\n    pass"},
  };
  EXPECT_TREES(rows, true);
}
END_TEST

typedef struct refusal { const char *text; int line, column, width; const char *message, *hint; } refusal;

static void expect_refusals(const refusal *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    outcome o = run_text(rows[i].text, strlen(rows[i].text), true);
    ck_assert_msg(o.result == TD_PARSE_ERROR, "%s: not refused", rows[i].text);
    ck_assert_msg(strcmp(o.diagnostic.message, rows[i].message) == 0, "%s\nexpected %s\nfound %s", rows[i].text,
                  rows[i].message, o.diagnostic.message);
    ck_assert_msg(strcmp(o.diagnostic.hint, rows[i].hint) == 0, "%s\nexpected hint %s\nfound %s", rows[i].text,
                  rows[i].hint, o.diagnostic.hint);
    ck_assert_msg(o.line == rows[i].line && o.column == rows[i].column && o.width == rows[i].width,
                  "%s: at %d:%d, %d wide", rows[i].text, o.line, o.column, o.width);
    drop(&o);
  }
}

START_TEST(refusals_of_the_lexer) {
  static const refusal rows[] = {
      {"if x:\n  a\n b\n", 3, 1, 1, "the indentation fits no block above",
       "use the indentation of one of the blocks around it"},
      {"if x:\n\ta\n        b\n", 3, 1, 8, "tabs and spaces are mixed in the indentation",
       "indent the lines of a block alike, best by 4 spaces"},
      {"if x:\n    a\n\tb", 3, 1, 1, "tabs and spaces are mixed in the indentation",
       "indent the lines of a block alike, best by 4 spaces"},
      {"x = [1, 2)", 1, 10, 1, "')' does not close '['", ""},
      {"x = [1,\n2)", 2, 2, 1, "')' does not close '[' opened at line 1", ""},
      {"x = 1]", 1, 6, 1, "']' has no '[' before it", ""},
      {"foo(\"abc\n", 1, 5, 4, "the string is not closed on its line",
       "close it with the quote that opened it, or use three quotes for several lines"},
      {"f\"{x\"", 1, 3, 1, "f-string: '{' is not closed", ""},
      {"f'{x\n", 1, 3, 1, "f-string: '{' is not closed on its line", ""},
      {"f'a\n", 1, 1, 3, "the f-string is not closed on its line",
       "close it with the quote that opened it, or use three quotes for several lines"},
      {"f'}'", 1, 3, 1, "f-string: '}' has no '{' before it", "write }} for the character itself"},
      {"f'{x:\n}'", 1, 3, 1, "f-string: '{' is not closed", ""},
      {"y = x ? y : z", 1, 7, 1, "'?' is no operator",
       "write a if test else b to choose between two values; name? at a line's end shows help"},
      {"x = 5 \\ 3", 1, 7, 1, "unexpected character after '\\'",
       "a '\\' joins two lines only as the last character of the first"},
      {"1abc", 1, 1, 4, "'1abc' is not a decimal number", "a name can't begin with a digit"},
      {"0xg", 1, 1, 3, "a hexadecimal number without digits", ""},
      {"0b12", 1, 4, 1, "digit '2' in a binary number", ""},
      {"0o8", 1, 3, 1, "digit '8' in an octal number", ""},
      {"0x", 1, 1, 2, "a hexadecimal number without digits", ""},
      {"1__0", 1, 1, 4, "'_' in a number stands between two digits", ""},
      {"1_", 1, 1, 2, "'_' in a number stands between two digits", ""},
      {"007", 1, 1, 3, "a decimal number can't begin with 0", "octal numbers begin with 0o"},
      {"10L", 1, 1, 3, "numbers have no suffix 'L'", "write the digits alone"},
      {"1j", 1, 1, 2, "complex numbers are not in this language",
       "keep real and imaginary parts in two numbers or tensors"},
      {"9223372036854775808", 1, 1, 19, "the int 9223372036854775808 needs more than 64 bits",
       "ints have 64 bits here; a float such as 1e20 reaches further"},
      {"b\"abc\"", 1, 1, 2, "bytes are not in this language", "use a str, or a uint8 tensor for raw data"},
      {"x = “hi”", 1, 5, 3, "a curly quote (U+201C) can't stand here", "use ' or \""},
      {"x = a × b", 1, 7, 2, "a multiplication sign (U+00D7) can't stand here", "use *"},
      {"x = a + b", 1, 6, 2, "a non-breaking space (U+00A0) can't stand here", "use a plain space"},
      {"x = `a`", 1, 5, 1, "'`' is no character of the language", ""},
      {"$x", 1, 1, 1, "'$' is no character of the language", ""},
      {"x = \001", 1, 5, 1, "control character \\x01", "remove it"},
      {"a → b", 1, 3, 3, "an arrow (U+2192) can't stand here", "use ->"},
  };
  expect_refusals(rows, sizeof rows / sizeof *rows);
}
END_TEST

START_TEST(refusals_of_the_parser) {
  static const refusal rows[] = {
      {"if x = 3:\n  y", 1, 6, 1, "'=' assigns: it can't stand in a condition", "use '==' to compare"},
      {"if x\n  y", 1, 5, 0, "':' is missing at the end of the 'if' line", ""},
      {"if x {", 1, 6, 1, "blocks have no braces here", "write ':' and indent the block"},
      {"if x then", 1, 6, 4, "expected ':' after the 'if', found 'then'", "write ':' instead"},
      {"if a: b\nelse if c: d", 2, 1, 7, "'else if' is one word here", "write 'elif'"},
      {"else: x", 1, 1, 4, "'else' belongs to an 'if', 'for', 'while' or 'try' at the same indentation above it", ""},
      {"elif x: y", 1, 1, 4, "'elif' belongs to an 'if' at the same indentation above it", ""},
      {"except: y", 1, 1, 6, "'except' belongs to a 'try' at the same indentation above it", ""},
      {"finally: y", 1, 1, 7, "'finally' belongs to a 'try' at the same indentation above it", ""},
      {"  x = 1", 1, 1, 2, "unexpected indentation", "does the line above end in ':'?"},
      {"x\n  y", 2, 1, 2, "unexpected indentation", "does the line above end in ':'?"},
      {"if x:\ny", 2, 1, 1, "an indented block must follow the 'if' line", ""},
      {"if x: for y in z: pass", 1, 7, 3, "'for' must begin a line of its own", ""},
      {"foo(x):", 1, 7, 1, "this ':' opens no block", "blocks begin with if, for, while, def, class, with or try"},
      {"print x", 1, 1, 5, "'print' is a function here", "write print(...)"},
      {"print \"a\", b", 1, 1, 5, "'print' is a function here", "write print(...)"},
      {"exec \"x\"", 1, 1, 4, "'exec' is not in this language", "%run runs a file"},
      {"match x:\n  case 1: pass", 1, 1, 5, "'match' is not in this language", "write if and elif"},
      {"match (x):\n  case 1: pass", 1, 1, 5, "'match' is not in this language", "write if and elif"},
      {"switch x:\n  pass", 1, 1, 6, "'switch' is not in this language", "write if and elif"},
      {"let x = 5", 1, 1, 3, "a variable needs no declaration", "write name = value"},
      {"var x = 5", 1, 1, 3, "a variable needs no declaration", "write name = value"},
      {"function f(x)\n  y", 1, 1, 8, "functions begin with 'def'", "write def name(arguments):"},
      {"func f(x):\n  y", 1, 1, 4, "functions begin with 'def'", "write def name(arguments):"},
      {"elseif x:", 1, 1, 6, "'elseif' is not a word here", "write 'elif'"},
      {"unless x:", 1, 1, 6, "'unless' is not a word here", "write 'if not'"},
      {"foreach x in y:", 1, 1, 7, "'foreach' is not a word here", "write 'for x in xs:'"},
      {"throw x", 1, 1, 5, "'throw' is not a word here", "write 'raise'"},
      {"type X = int", 1, 1, 4, "'type' statements are not in this language", "assign: Name = value"},
      {"x++", 1, 4, 0, "expected an expression, found the end of the line", "there is no '++': write x += 1"},
      {"x--", 1, 4, 0, "expected an expression, found the end of the line", "there is no '--': write x -= 1"},
      {"x && y", 1, 4, 1, "expected an expression, found '&'", "write 'and'"},
      {"x || y", 1, 4, 1, "expected an expression, found '|'", "write 'or'"},
      {"y = !x", 1, 5, 1, "expected a value, found '!'", "write 'not x'"},
      {"a <> b", 1, 4, 1, "expected an expression, found '>'", "write '!='"},
      {"a === b", 1, 5, 1, "expected an expression, found '='", "write '==' or '!='"},
      {"a !== b", 1, 5, 1, "expected an expression, found '='", "write '==' or '!='"},
      {"// comment", 1, 1, 2, "expected an expression, found '//'", "comments begin with '#'"},
      {"/* c */", 1, 1, 1, "expected an expression, found '/'", "comments begin with '#'"},
      {"a = %time x", 1, 5, 1, "expected a value, found '%'", "a %command stands alone on its line"},
      {"f(%time)", 1, 3, 1, "expected an expression, found '%'", "a %command stands alone on its line"},
      {"x := 5", 1, 3, 2, "':=' is not in this language", "assign on a line of its own"},
      {"(x := 5)", 1, 4, 2, "':=' is not in this language", "assign on a line of its own"},
      {"yield 5", 1, 1, 5, "'yield' is not in this language",
       "collect the values in a list and return it, or write a generator expression"},
      {"x = yield", 1, 5, 5, "'yield' is not in this language",
       "collect the values in a list and return it, or write a generator expression"},
      {"await f()", 1, 1, 5, "'await' is not in this language", "call the function: it runs to its end"},
      {"async def f(): pass", 1, 1, 5, "'async' is not in this language",
       "write it without 'async': calls run to their end"},
      {"[x async for x in y]", 1, 4, 5, "'async' is not in this language", "write a plain 'for'"},
      {"class A(B, C): pass", 1, 12, 1, "multiple inheritance is not in this language",
       "inherit from one class and keep an instance of the other as an attribute"},
      {"class A(metaclass=M): pass", 1, 9, 9, "metaclasses are not in this language",
       "use a decorator of the class, or a function that makes it"},
      {"class A(x=1): pass", 1, 9, 1, "a class takes no keyword arguments", ""},
      {"try: a\nexcept A, e: b", 2, 8, 2, "several exception classes need parentheses",
       "write 'except (A, B):' for several classes, 'except A as e:' for a name"},
      {"try: a\nexcept* A: b", 2, 7, 1, "'except*' is not in this language", "write 'except'"},
      {"try: a\nexcept: b\nexcept A: c", 3, 1, 6, "an 'except' without a class must be the last one", ""},
      {"try: a\nx", 2, 1, 1, "expected 'except' or 'finally' after the 'try' block, found 'x'", ""},
      {"try: a\ncatch E: b", 2, 1, 5, "expected 'except' or 'finally' after the 'try' block, found 'catch'",
       "write 'except'"},
      {"raise A, \"x\"", 1, 8, 1, "'raise' takes one exception", "write raise ValueError(\"text\")"},
      {"for x of y: pass", 1, 7, 2, "expected 'in' after the loop's variable, found 'of'", ""},
      {"for i = 1: pass", 1, 7, 1, "expected 'in' after the loop's variable, found '='", "write 'for i in range(n):'"},
      {"for (int i): pass", 1, 10, 1, "expected ',' or ')', found 'i'", "a comma or an operator may be missing"},
      {"for 1 in x: pass", 1, 5, 1, "can't assign to a literal", ""},
      {"a b", 1, 3, 1, "expected the end of the line, found 'b'", ""},
      {"[a b]", 1, 4, 1, "expected ',' or ']', found 'b'", "a comma or an operator may be missing"},
      {"f(a b)", 1, 5, 1, "expected ',' or ')', found 'b'", "a comma or an operator may be missing"},
      {"{a b}", 1, 4, 1, "expected ',' or '}', found 'b'", "a comma or an operator may be missing"},
      {"{1: 2, 3}", 1, 9, 1, "expected ':' after the key, found '}'", ""},
      {"x[1:2:3:4]", 1, 8, 1, "expected ',' or ']', found ':'", ""},
      {"x +", 1, 4, 0, "expected an expression, found the end of the line", ""},
      {"x = = 3", 1, 5, 1, "expected an expression, found '='", ""},
      {"x =", 1, 4, 0, "expected an expression, found the end of the line", ""},
      {"= 3", 1, 1, 1, "expected an expression, found '='", ""},
      {"import", 1, 7, 0, "expected a name, found the end of the line", ""},
      {"import a as", 1, 12, 0, "expected a name, found the end of the line", ""},
      {"from a import", 1, 14, 0, "expected a name, found the end of the line", ""},
      {"from a import b,", 1, 17, 0, "expected a name, found the end of the line", ""},
      {"from import b", 1, 6, 6, "'import' is a keyword: it can't be a name", ""},
      {"def 3():", 1, 5, 1, "expected a name, found a number", ""},
      {"def f:", 1, 6, 1, "expected '(' after the function's name, found ':'", ""},
      {"def f(a, a): pass", 1, 10, 1, "parameter 'a' is there twice", ""},
      {"def f(a=1, b): pass", 1, 12, 1, "parameter 'b' without a default follows one with a default",
       "give it a default too, or put it first"},
      {"def f(*): pass", 1, 8, 1, "expected a name, found ')'", ""},
      {"def f(*, **k): pass", 1, 7, 1, "named parameters must follow a bare '*'", ""},
      {"def f(*a, *b): pass", 1, 11, 1, "a second '*' among the parameters", ""},
      {"def f(/): pass", 1, 7, 1, "parameters must come before '/'", ""},
      {"def f(a, /, b, /): pass", 1, 16, 1, "a second '/' among the parameters", ""},
      {"def f(*a, /): pass", 1, 11, 1, "'/' must come before '*'", ""},
      {"def f(**k, a): pass", 1, 12, 1, "nothing can follow the **parameter", ""},
      {"def f(a b): pass", 1, 9, 1, "expected ',' or ')', found 'b'", ""},
      {"lambda a, a: 1", 1, 11, 1, "parameter 'a' is there twice", ""},
      {"class if: pass", 1, 7, 2, "'if' is a keyword: it can't be a name", ""},
      {"True = 1", 1, 1, 4, "can't assign to True", ""},
      {"f(True=1)", 1, 3, 4, "'True' is a keyword: it can't be a name", ""},
      {"f(a=1, 2)", 1, 8, 1, "a positional argument stands after a keyword argument", ""},
      {"f(a=1, a=2)", 1, 8, 3, "keyword argument 'a' is given twice", ""},
      {"f(**a, *b)", 1, 8, 2, "a *sequence stands after a keyword argument", ""},
      {"f(a.b=1)", 1, 3, 4, "a keyword argument is a name before '='", "'==' compares"},
      {"f(x for x in y, 1)", 1, 3, 12, "a generator beside other arguments needs parentheses", ""},
      {"[*x for x in y]", 1, 2, 2, "a comprehension's element can't be starred", ""},
      {"[x for x in y if a else b]", 1, 20, 4, "a comprehension's 'if' has no 'else'",
       "to choose a value, write [a if test else b for x in xs]"},
      {"[x if y for z in w]", 1, 9, 3, "expected 'else' of the conditional expression, found 'for'", ""},
      {"(*a)", 1, 2, 2, "a starred expression can't stand alone", "write (*x,) for a tuple"},
      {"*a", 1, 1, 2, "a starred expression can't stand alone", "write *x, for a tuple"},
      {"x = *a", 1, 5, 2, "a starred expression can't stand alone", "write *x, for a tuple"},
      {"*a = b", 1, 1, 2, "a starred target must be in a list or tuple", "write a comma after it: *x, = values"},
      {"*a, *b = c", 1, 5, 2, "two starred targets in one assignment", ""},
      {"return *a", 1, 8, 2, "a starred expression can't stand alone", "write *x, for a tuple"},
      {"f() = 3", 1, 1, 3, "can't assign to a function call", "'==' compares, '=' assigns"},
      {"a + 1 = 2", 1, 1, 5, "can't assign to an expression", "'==' compares, '=' assigns"},
      {"3 = x", 1, 1, 1, "can't assign to a literal", ""},
      {"a < b = c", 1, 1, 5, "can't assign to a comparison", "'==' compares, '=' assigns"},
      {"f() += 1", 1, 1, 3, "can't assign to a function call", "'==' compares, '=' assigns"},
      {"a, b += 1", 1, 1, 4, "'+=' changes one target, not a list of them", ""},
      {"(a, b): int", 1, 1, 6, "an annotation belongs to one target", ""},
      {"x: int: y", 1, 7, 1, "expected the end of the line, found ':'", ""},
      {"a if b else c = 1", 1, 1, 13, "can't assign to a conditional expression", ""},
      {"lambda: 1 = 2", 1, 1, 9, "can't assign to a lambda", ""},
      {"[x for x in y] = 1", 1, 1, 14, "can't assign to a comprehension", ""},
      {"f\"{x}\" = 1", 1, 1, 6, "can't assign to an f-string", ""},
      {"{1: 2} = 3", 1, 1, 6, "can't assign to a dict display", ""},
      {"{1} = 2", 1, 1, 3, "can't assign to a set display", ""},
      {"with a as 3: pass", 1, 11, 1, "can't assign to a literal", ""},
      {"with a as f(): pass", 1, 11, 3, "can't assign to a function call", "'==' compares, '=' assigns"},
      {"del f()", 1, 5, 3, "'del' takes names, attributes and items", ""},
      {"del a + b", 1, 5, 5, "'del' takes names, attributes and items", ""},
      {"global 3", 1, 8, 1, "expected a name, found a number", ""},
      {"global", 1, 7, 0, "expected a name, found the end of the line", ""},
      {"@x\ny", 2, 1, 1, "expected 'def' or 'class' after a decorator, found 'y'", ""},
      {"@x\nasync def f(): pass", 2, 1, 5, "'async' is not in this language",
       "write a plain function: calls run to their end"},
      {"assert", 1, 7, 0, "expected an expression, found the end of the line", ""},
      {"f\"{}\"", 1, 3, 2, "f-string: the field holds no expression", "write {{ for the character itself"},
      {"f\"{x!z}\"", 1, 6, 1, "f-string: after '!' comes r, s or a", ""},
      {"f\"{!r}\"", 1, 3, 2, "f-string: the field holds no expression", "write {{ for the character itself"},
      {"f\"{x y}\"", 1, 6, 1, "expected '}' of the f-string's field, found 'y'", ""},
      {"\"\\N{DASH}\"", 1, 2, 2, "\\N{name} is not in this language",
       "write the character itself, or \\u with its number"},
      {"f\"\\N{DASH}\"", 1, 3, 2, "\\N{name} is not in this language",
       "write the character itself, or \\u with its number"},
      {"\"\\x1\"", 1, 2, 3, "\\x needs 2 hexadecimal digits", ""},
      {"\"\\u12\"", 1, 2, 4, "\\u needs 4 hexadecimal digits", ""},
      {"\"\\ud800\"", 1, 2, 6, "U+D800 is no character", ""},
      {"\"\\U00110000\"", 1, 2, 10, "U+110000 is no character", ""},
      {"x = 1 if y", 1, 11, 0, "expected 'else' of the conditional expression, found the end of the line", ""},
      {"not", 1, 4, 0, "expected an expression, found the end of the line", ""},
      {"x not y", 1, 3, 3, "expected the end of the line, found 'not'", ""},
      {"x is", 1, 5, 0, "expected an expression, found the end of the line", ""},
      {"a.3", 1, 2, 2, "expected the end of the line, found a number", ""},
      {"a.if", 1, 3, 2, "'if' is a keyword: it can't be a name", ""},
      {"x = (1, 2\ny = 3\n", 1, 5, 1, "'(' is never closed", ""},
      {"break x", 1, 7, 1, "expected the end of the line, found 'x'", ""},
      {"pass 1", 1, 6, 1, "expected the end of the line, found a number", ""},
      {"continue;;", 1, 10, 1, "expected an expression, found ';'", ""},
  };
  expect_refusals(rows, sizeof rows / sizeof *rows);
}
END_TEST

START_TEST(refusals_of_the_resolver) {
  static const refusal rows[] = {
      {"return 1", 1, 1, 8, "'return' outside a function", ""},
      {"class A:\n  return 1", 2, 3, 8, "'return' outside a function", ""},
      {"break", 1, 1, 5, "'break' outside a loop", ""},
      {"continue", 1, 1, 8, "'continue' outside a loop", ""},
      {"if x: break", 1, 7, 5, "'break' outside a loop", ""},
      {"while x:\n  def f(): break", 2, 12, 5, "'break' outside a loop", ""},
      {"for x in y: pass\nelse: break", 2, 7, 5, "'break' outside a loop", ""},
      {"def f(a):\n  global a", 2, 10, 1, "'a' is a parameter and can't be global", ""},
      {"def f():\n  a = 1\n  global a", 3, 10, 1, "'a' is used before its 'global' declaration",
       "put the declaration first"},
      {"def f():\n  print(a)\n  global a", 3, 10, 1, "'a' is used before its 'global' declaration",
       "put the declaration first"},
      {"nonlocal x", 1, 10, 1, "'nonlocal' outside a function: names of the top level are global", ""},
      {"def f():\n  nonlocal x", 2, 12, 1, "no enclosing function binds 'x' for 'nonlocal'", ""},
      {"def f():\n  def g():\n    nonlocal y", 3, 14, 1, "no enclosing function binds 'y' for 'nonlocal'", ""},
      {"x = 1\ndef f():\n  nonlocal x", 3, 12, 1, "no enclosing function binds 'x' for 'nonlocal'", ""},
      {"def f():\n  x = 1\n  def g():\n    global x\n    nonlocal x", 5, 14, 1,
       "'x' is declared both global and nonlocal", ""},
      {"def f():\n  from a import *", 2, 3, 15, "'import *' stands only at the top level", "name what you import"},
  };
  expect_refusals(rows, sizeof rows / sizeof *rows);
}
END_TEST

START_TEST(nul_bytes) {
  outcome o = run_text("x = 1\ny\0z", 9, true);
  ck_assert_int_eq(o.result, TD_PARSE_ERROR);
  ck_assert_str_eq(o.diagnostic.message, "NUL byte at offset 7");
  drop(&o);
}
END_TEST

START_TEST(unfinished_texts) {
  static const pair rows[] = {
      {"x = (1,\n", "'(' is never closed"},
      {"f(a, [b, {c: (d\n\n", "'(' is never closed"},
      {"'''abc\n", "the string that begins here is never closed"},
      {"f'''abc{x}\n", "the f-string that begins here is never closed"},
      {"f'''abc{x\n", "'{' is never closed"},
      {"x = 1 + \\\n", "the line goes on after its '\\', but the text ends"},
      {"x = 1 + \\", "the line goes on after its '\\', but the text ends"},
      {"'abc\\\n", "the string that begins here is never closed"},
      {"!ls \\\n", "the line goes on after its '\\', but the text ends"},
      {"if x:\n", "the block after ':' has no line yet"},
      {"if x:\n\n  # comment\n", "the block after ':' has no line yet"},
      {"if x:", "the block after ':' has no line yet"},
      {"class A:\n  def f(self):\n", "the block after ':' has no line yet"},
      {"if x:\n  y\nelse:\n", "the block after ':' has no line yet"},
      {"@graph\n", "a decorator stands above a 'def' or 'class'"},
      {"try:\n  x\n", "'try' has no 'except' or 'finally' yet"},
      {"try: x", "'try' has no 'except' or 'finally' yet"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    outcome o = run_text(rows[i].text, strlen(rows[i].text), true);
    ck_assert_msg(o.result == TD_PARSE_INCOMPLETE, "%s: result %d", rows[i].text, (int)o.result);
    ck_assert_str_eq(o.diagnostic.message, rows[i].expected);
    drop(&o);
  }
  static const char *const finished[] = {
      "", "\n", "# comment", "x", "if x: y", "if x:\n  y", "def f():\n  pass\n", "x = [\n1]\n", "%who", "x?",
      "with a:\n  b"};
  for (size_t i = 0; i < sizeof finished / sizeof *finished; i++) {
    outcome o = run_text(finished[i], strlen(finished[i]), true);
    ck_assert_msg(o.result == TD_PARSED, "%s: %s", finished[i], o.diagnostic.message);
    drop(&o);
  }
}
END_TEST

START_TEST(messages) {
  static const pair rows[] = {
      {"if x\n",
       "error: SyntaxError: ':' is missing at the end of the 'if' line\n  test.deck:1  if x\n                   ^\n"},
      {"y = 1\nif x:\n\t\tf(\"谢谢 é😉\", a b, 3)  # comment\n",
       "error: SyntaxError: expected ',' or ')', found 'b'\n  test.deck:3  f(\"谢谢 é😉\", a b, 3)  # comment\n"
       "                               ^\n  hint: a comma or an operator may be missing\n"},
      {"x = \"\x1b[31m\" (3 5)\n",
       "error: SyntaxError: expected ',' or ')', found a number\n  test.deck:1  x = \"\\x1b[31m\" (3 5)\n"
       "                                 ^\n  hint: a comma or an operator may be missing\n"},
      {"x = [1,\n\n  2\ny = 3\n",
       "error: SyntaxError: '[' is never closed\n  test.deck:1  x = [1,\n                   ^\n"},
      {"ab\tcd\n",
       "error: SyntaxError: expected the end of the line, found 'cd'\n  test.deck:1  ab  cd\n                   ^^\n"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    outcome o = run_text(rows[i].text, strlen(rows[i].text), true);
    ck_assert_str_eq(o.message, rows[i].expected);
    drop(&o);
  }
}
END_TEST

START_TEST(long_lines_are_cut_around_the_span) {
  char text[4000] = "f(";
  for (int i = 0; i < 200; i++) strcat(text, "abcdef + ");
  strcat(text, "1 2");
  for (int i = 0; i < 100; i++) strcat(text, ", other");
  strcat(text, ")\n");
  outcome o = run_text(text, strlen(text), false);
  ck_assert_ptr_nonnull(strstr(o.message, "  test.deck:1  ..."));
  const char *line = strstr(o.message, "  test.deck"), *end = strchr(line, '\n'), *caret = strchr(end + 1, '^');
  ck_assert_int_le(end - line, 120);
  ck_assert_int_eq(line[caret - end - 1], '2');
  drop(&o);
}
END_TEST

static void keep_error(void *owner, const td_event *event) {
  if (event->kind == TD_EVENT_ERROR) td_text_add_bytes(owner, event->text, event->length);
}

START_TEST(messages_of_running_code) {
  static const pair rows[] = {
      {"W1 = zeros((784, 64))\nx = zeros((32, 784))\ndef step(h):\n  y = W1 @ h\n\nstep(x)",
       "error: matmul: inner sizes differ: 64 and 32\n  test.deck:4  y = W1 @ h\n                   ^^^^^^\n"
       "  W1  float32[784, 64]\n  h   float32[32, 784]\n  called from test.deck:6\n  hint: h @ W1 fits\n"},
      {"matmul(zeros((2, 3)), b=W1)",
       "error: matmul: inner sizes differ: 3 and 784\n  test.deck:1  matmul(zeros((2, 3)), b=W1)\n"
       "               ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  zeros((2, 3))  float32[2, 3]\n  W1             float32[784, "
       "64]\n"},
      {"learning_rate = 1\nx = lerning_rate", "error: NameError: name 'lerning_rate' is not defined\n"
                                              "  test.deck:2  x = lerning_rate\n                   ^^^^^^^^^^^^\n"
                                              "  hint: did you mean 'learning_rate'?\n"},
      {"def f(n):\n  return g(n)\ndef g(n):\n  return f(n) if n else 1 / n\nf(0)",
       "error: ZeroDivisionError: division by zero\n  test.deck:4  return f(n) if n else 1 / n\n"
       "                                     ^^^^^\n  called from f at test.deck:2\n  called from test.deck:5\n"},
      {"try: {}['\\x1b']\nexcept KeyError as e: raise ValueError('a\\x1b[2Jb') from e",
       "error: ValueError: a\\x1b[2Jb\n  test.deck:2  except KeyError as e: raise ValueError('a\\x1b[2Jb') from e\n"
       "                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
       "  caused by KeyError: '\\x1b' at test.deck:1\n"},
  };
  td_text found = {0};
  const td_event_sink sink = {keep_error, &found};
  const td_run_options options = {.name = "test.deck", .folder = ""};
  interpreter->sink = &sink;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_int_eq(td_run(interpreter, interpreter->main, rows[i].text, strlen(rows[i].text), &options),
                     TD_RUN_FAILED);
    ck_assert_str_eq(found.data, rows[i].expected);
    td_text_clear(&found);
  }
  interpreter->sink = NULL;
}
END_TEST

// ---- bounds ----

static char *repeat(const char *before, const char *part, int count, const char *after) {
  size_t length = strlen(part);
  char *text = malloc(strlen(before) + length * (size_t)count + strlen(after) + 1), *end = text;
  end += sprintf(end, "%s", before);
  for (int i = 0; i < count; i++, end += length) memcpy(end, part, length);
  strcpy(end, after);
  return text;
}

static td_parse_result result_of(const char *before, const char *part, int count, const char *after,
                                 const char *message) {
  char *text = repeat(before, part, count, after);
  outcome o = run_text(text, strlen(text), true);
  if (message) ck_assert_str_eq(o.diagnostic.message, message);
  td_parse_result result = o.result;
  drop(&o);
  free(text);
  return result;
}

START_TEST(deep_and_long_texts) {
  ck_assert_int_eq(result_of("x = ", "(", 200, "1", "'(' is never closed"), TD_PARSE_INCOMPLETE);
  ck_assert_int_eq(result_of("", "(", 100000, "", "brackets are nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("", "[(", 100000, "", "brackets are nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("", "-", 100000, "x", "nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("", "not ", 100000, "x", "nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("x", " ** x", 100000, "", "nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("", "lambda: ", 100000, "x", "nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("", "a if b else ", 100000, "x", "nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("f'", "{x:", 100000, "", "brackets are nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("f\"", "{f\"", 100000, "", "f-strings are nested deeper than 200"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("x", " + x", 4900, "", ""), TD_PARSED);
  ck_assert_int_eq(result_of("x", " + x", 100000, "", "the expression chains more than 5000 operations"),
                   TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("x", "()", 100000, "", "the expression chains more than 5000 operations"), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("x", " and x", 100000, "", "the expression chains more than 5000 operations"),
                   TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("x", " < x", 100000, "", ""), TD_PARSED);
  ck_assert_int_eq(result_of("if a: b\n", "elif a: b\n", 20000, "else: c", ""), TD_PARSED);
  ck_assert_int_eq(result_of("x = [", "1, ", 300000, "]", ""), TD_PARSED);
  ck_assert_int_eq(result_of("x = '", "abcdefghij", 1000000, "'", ""), TD_PARSED);
  ck_assert_int_eq(result_of("", "abcdefghij", 1000000, "", ""), TD_PARSED);
  ck_assert_int_eq(result_of("x = ", "'ab' ", 100000, "", ""), TD_PARSED);
  ck_assert_int_eq(result_of("x = ", "1234567890", 1000000, "", NULL), TD_PARSE_ERROR);
  ck_assert_int_eq(result_of("", "x; ", 100000, "", ""), TD_PARSED);
}
END_TEST

START_TEST(deep_blocks) {
  td_text text = {0};
  for (int i = 0; i < 300; i++) {
    td_text_pad(&text, text.length + (size_t)i, ' ');
    td_text_add(&text, "if a:\n");
  }
  outcome o = run_text(text.data, text.length, true);
  ck_assert_str_eq(o.diagnostic.message, "blocks are nested deeper than 200");
  drop(&o);
  td_text_clear(&text);
}
END_TEST

static const char *const program =
    "import a.b as c\n"
    "@graph(strict=True)\n"
    "class Model(Layer):\n"
    "  'doc'\n"
    "  rate: float = 1e-3\n"
    "  def __init__(self, n, *args, units=64, **kw):\n"
    "    super().__init__()\n"
    "    self.__w = [lambda: i + n for i in range(n) if i % 2 != 0]\n"
    "    def step(x, /, y=1, *, z=None):\n"
    "      nonlocal n\n"
    "      n += 1; return {k: v for k, v in kw.items()}, (q for q in x if q), y[::2, ..., 0]\n"
    "  @property\n"
    "  def w(self): return self.__w\n"
    "for i, (x, *y) in enumerate(data):\n"
    "\ttry:\n"
    "\t\twith GradientTape() as tape, open(f'{p!r:>{w}}.npy') as f: loss = -(x @ w + b) ** 2\n"
    "\texcept (ValueError, TypeError) as e:\n"
    "\t\tprint(f\"step {i}: {e=} {loss:.4f}\"); continue\n"
    "\telse: pass\n"
    "\tfinally:\n"
    "\t\tdel x, y[0]\n"
    "else:\n"
    "  %time f(x)\n"
    "  model?\n"
    "if not a < b <= c and d is not e: x = 0xff if y else \"\"\"t\n"
    "u\"\"\" 'v'\n"
    "elif g: raise A from B\n"
    "while True: assert x, 'm'; break\n";

START_TEST(every_allocation_fails) {
  for (int64_t n = 1;; n++) {
    td_memory_fail(n, false);
    td_arena *arena = td_arena_new();
    td_script *script = td_source_add(&interpreter->sources, "t", "", program, strlen(program));
    td_node *tree = NULL;
    td_diagnostic diagnostic;
    bool parsed = arena && script && td_parse(script, arena, interpreter, &tree, &diagnostic) == TD_PARSED;
    bool done = parsed && td_resolve(interpreter, script, arena, interpreter->main, tree, &diagnostic);
    td_memory_fail(0, false);
    td_clear_raised(interpreter);
    td_arena_unref(arena);
    if (done) break;
    ck_assert_int_lt(n, 5000);
  }
}
END_TEST

static uint32_t next_random(uint32_t *state) { // xorshift
  *state ^= *state << 13;
  *state ^= *state >> 17;
  return *state ^= *state << 5;
}

static void mutate(td_text *text, uint32_t *state) {
  static const char *const pieces[] = {
      "(", ")", "[", "]", "{", "}", "f'", "'", "\"\"\"", ":", "\n", "\n  ", "\t", "\\", "\\\n", " if ", " for ", " in ",
      "lambda ", "*", "**", "=", ",", ";", "?", "!", "%", "#", "def ", "class ", "global x\n", "return ", "1e", "0x",
      ".", "...", "é", "\xff", "\r", "@", "not ", "else", "try:", "import ", "nonlocal y\n", "yield", ":="};
  uint32_t kind = next_random(state) % 3, at = next_random(state) % (uint32_t)(text->length + 1);
  uint32_t size = next_random(state) % 12;
  if (at + size > text->length) size = (uint32_t)text->length - at;
  td_text changed = {0};
  td_text_add_bytes(&changed, text->data, at);
  if (kind == 0) td_text_add(&changed, pieces[next_random(state) % (sizeof pieces / sizeof *pieces)]);
  if (kind == 1) td_text_add_bytes(&changed, text->data + next_random(state) % text->length / 2, text->length / 3);
  if (kind != 2) size = 0;
  td_text_add_bytes(&changed, text->data + at + size, text->length - at - size);
  td_text_clear(text);
  *text = changed;
}

START_TEST(random_texts) {
  uint32_t state = 20240607;
  for (int round = 0; round < 3000; round++) {
    td_text text = {0};
    td_text_add(&text, program);
    for (uint32_t n = 1 + next_random(&state) % 4; n && text.length < 20000; n--) mutate(&text, &state);
    outcome o = run_text(text.data, text.length, true);
    ck_assert_int_ne(o.result, TD_PARSE_MEMORY);
    if (o.result != TD_PARSED) {
      ck_assert_uint_le(o.diagnostic.span.begin, o.diagnostic.span.end);
      ck_assert_uint_le(o.diagnostic.span.end, text.length);
      ck_assert(o.diagnostic.message[0]);
    }
    drop(&o);
    td_text_clear(&text);
  }
}
END_TEST

START_TEST(beginnings_of_a_program_are_unfinished_or_whole) { // cut at line ends, no line of it is an error
  for (size_t at = 0; program[at]; at++) {
    if (program[at] != '\n') continue;
    outcome o = run_text(program, at + 1, true);
    ck_assert_msg(o.result == TD_PARSED || o.result == TD_PARSE_INCOMPLETE, "at %zu: %s", at, o.diagnostic.message);
    drop(&o);
  }
}
END_TEST

// ---- scripts, suggestions ----

START_TEST(lines_and_columns) {
  td_script *script = td_source_add(&interpreter->sources, "s", "", "a\r\né\tb\rc\n", 10);
  int line, column, length;
  td_source_position(script, 6, &line, &column);
  ck_assert_int_eq(line, 2);
  ck_assert_int_eq(column, 3);
  ck_assert_int_eq(script->line_count, 4);
  ck_assert_int_eq(*td_source_line(script, 3, &length), 'c');
  ck_assert_int_eq(length, 1);
  td_source_line(script, 4, &length);
  ck_assert_int_eq(length, 0);
  ck_assert_ptr_eq(td_source_find(&interpreter->sources, (td_place)script->id << 32), script);
  ck_assert_ptr_null(td_source_find(&interpreter->sources, (td_place)(script->id + 1) << 32));
}
END_TEST

START_TEST(scripts_without_trees_go) {
  td_script *kept = td_source_ref(td_source_add(&interpreter->sources, "kept", "", "x", 1));
  for (int i = 0; i < 5000; i++) ck_assert_ptr_nonnull(td_source_add(&interpreter->sources, "s", "", "x", 1));
  ck_assert_uint_le(interpreter->sources.count, 512);
  ck_assert_ptr_eq(td_source_find(&interpreter->sources, (td_place)kept->id << 32), kept);
  td_source_unref(kept);
}
END_TEST

START_TEST(suggestions) {
  static const char *const names[] = {"learning_rate", "softmax", "matmul", "reshape", "x", "xs", "Dense", "MaxPool"};
  td_list *list = td_list_new(interpreter, 8);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    td_value name = td_from(td_str_from(interpreter, names[i]));
    td_list_append(interpreter, list, name);
    td_unref(name);
  }
  ck_assert_str_eq(td_suggest("lerning_rate", list), "learning_rate");
  ck_assert_str_eq(td_suggest("learningRate", list), "learning_rate");
  ck_assert_str_eq(td_suggest("sofmtax", list), "softmax");
  ck_assert_str_eq(td_suggest("max_pool", list), "MaxPool");
  ck_assert_str_eq(td_suggest("dense", list), "Dense");
  ck_assert_str_eq(td_suggest("null", list), "None");
  ck_assert_str_eq(td_suggest("true", list), "True");
  ck_assert_ptr_null(td_suggest("completely_other", list));
  ck_assert_ptr_null(td_suggest("y", list));
  td_unref(td_from(list));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("front");
  TCase *tests = tcase_create("front");
  suite_add_tcase(suite, tests);
  tcase_add_checked_fixture(tests, start, finish);
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, literals);
  tcase_add_test(tests, formatted_strings);
  tcase_add_test(tests, operators);
  tcase_add_test(tests, displays_and_calls);
  tcase_add_test(tests, simple_statements);
  tcase_add_test(tests, compound_statements);
  tcase_add_test(tests, places_of_names);
  tcase_add_test(tests, refusals_of_the_lexer);
  tcase_add_test(tests, refusals_of_the_parser);
  tcase_add_test(tests, refusals_of_the_resolver);
  tcase_add_test(tests, nul_bytes);
  tcase_add_test(tests, unfinished_texts);
  tcase_add_test(tests, messages);
  tcase_add_test(tests, messages_of_running_code);
  tcase_add_test(tests, long_lines_are_cut_around_the_span);
  tcase_add_test(tests, deep_and_long_texts);
  tcase_add_test(tests, deep_blocks);
  tcase_add_test(tests, every_allocation_fails);
  tcase_add_test(tests, random_texts);
  tcase_add_test(tests, beginnings_of_a_program_are_unfinished_or_whole);
  tcase_add_test(tests, lines_and_columns);
  tcase_add_test(tests, scripts_without_trees_go);
  tcase_add_test(tests, suggestions);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
