// Out of memory at every place: each script runs while its n-th allocation fails, once, then for ever. It must end as
// if nothing had happened or with MemoryError; the session must live on and, when it closes, give every byte back.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "tests/language/runs.h"

typedef struct script { const char *name, *code; } script;

static const script scripts[] = {
    {"arithmetic",
     "x = 0\n"
     "for i in range(20):\n    x += i * 3 // 2 - i % 5\n"
     "y = 0.5 ** x if x < 3 else 2.0 / x\n"
     "print(x, y, -x, abs(-7), divmod(17, 5), round(2.567, 2), int('42'), float('1e3'), 7 & 3 | 8, x == y)\n"
     "x\n"},
    {"strings", "a = 'one two three'\n"
                "b = a.split()\n"
                "c = ''\n"
                "for w in b:\n    c += w.upper() + '-'\n"
                "print(c, a.replace('o', '0'), '|'.join(reversed(b)), a[::-1], a.find('three'), 'x' * 40)\n"
                "print(f'{a!r:>20}|{3.14159:.3f}|{42:08b}|{1234567:,}|{\"é\":^5}|{a=}', '{:>5}{k}'.format(1, k=2), '%d "
                "%s' % (1, 'x'))\n"
                "print(a.title(), sorted(a)[:3], ord('é'), chr(233), repr('\\n'))\n"},
    {"containers",
     "a = [3, 1, 2]\n"
     "a.append(5); a.extend(range(4)); a.sort(key=lambda v: -v); a[1:3] = [9, 9, 9]; del a[0]\n"
     "d = {'k': a, (1, 2): {3, 4}, 5: None}\n"
     "d.update(z=1); d.setdefault('q', []).append(1); x = d.pop(5, 0)\n"
     "s = {1, 2, 3} & {2, 3, 4} | {9}; t = (1, *a, 2)\n"
     "print(a, d, s, t, x, sorted(d['k']), list(d.items())[0], dict(zip('ab', [1, 2])), list(enumerate('ab', 1)))\n"
     "first, *rest = a\n"
     "print(first, rest, a.copy() == a, a.index(9), {**d, 'w': 2}['w'], [[1] * 3] * 2, list(map(str, a)))\n"},
    {"classes", "class Base:\n"
                "    count = 0\n"
                "    def __init__(self, name, *, size=1):\n        self.name = name\n        self.size = size\n"
                "    def __repr__(self):\n        return f'{type(self).__name__}({self.name!r})'\n"
                "    def __add__(self, other):\n        return Base(self.name + other.name)\n"
                "    @property\n    def twice(self):\n        return self.size * 2\n"
                "    @staticmethod\n    def make():\n        return Base('made')\n"
                "    @classmethod\n    def build(cls):\n        return cls('built', size=3)\n"
                "class Child(Base):\n"
                "    def __init__(self, name):\n        super().__init__(name, size=5)\n"
                "    def __getattr__(self, name):\n        if name == 'extra':\n            return 'got'\n        "
                "raise AttributeError(name)\n"
                "c = Child('x')\n"
                "print(c, c + Base.make(), Base.build().twice, c.twice, c.extra, isinstance(c, Base), getattr(c, "
                "'none', 1), vars(c))\n"},
    {"recorded",
     "w = Variable([1., 2.], requires_grad=True, constraint=lambda v: v * 0.5)\n"
     "v = Variable([3., 4.], requires_grad=True)\n"
     "h = w * v\n"
     "y = (h ** 2.).sum()\n"
     "print(_recorded_gradient([y, w.sum()], [w, v, h], [tensor(2.), None], True, False))\n"
     "first = _recorded_gradient([y], [w], None, True, True)\n"
     "print(_recorded_gradient([first[0].sum()], [w, tensor(1.)], None, False, False), w.grad)\n"
     "try:\n    _recorded_gradient([y], [w], None, False, False)\nexcept RuntimeError as error:\n    print('spent')\n"
     "w.assign(w.constraint(w.value()))\n"
     "w.constraint = None\n"
     "print(len(_constrained([w, v])), w)\n"},
    {"exceptions",
     "class Wrong(ValueError):\n    pass\n"
     "def fail(n):\n    if n == 0:\n        raise Wrong('deep', n)\n    return fail(n - 1)\n"
     "class Guard:\n"
     "    def __enter__(self):\n        return self\n"
     "    def __exit__(self, kind, value, trace):\n        print('left', kind.__name__ if kind else None)\n        "
     "return False\n"
     "for thing in (lambda: fail(3), lambda: 1 // 0, lambda: {}['k'], lambda: [].x, lambda: missing):\n"
     "    try:\n        with Guard():\n            thing()\n"
     "    except (Wrong, ZeroDivisionError) as e:\n        print('caught', e, repr(e), e.args)\n"
     "    except (KeyError, AttributeError) as e:\n        print('looked', e)\n"
     "    except NameError:\n        print('name')\n"
     "    finally:\n        print('done')\n"
     "try:\n    try:\n        fail(0)\n    except Wrong as e:\n        raise RuntimeError('again') from e\n"
     "except RuntimeError as e:\n    print(e.__cause__)\n"},
    {"closures",
     "def counter(start):\n    n = start\n"
     "    def step(by=1):\n        nonlocal n\n        n += by\n        return n\n"
     "    return step\n"
     "c = counter(10)\n"
     "print(c(), c(by=5), [f(2) for f in [lambda x, k=k: x * k for k in range(4)]])\n"
     "print({k: v for k, v in zip('abc', range(3)) if v}, {x % 3 for x in range(9)}, sum(x * x for x in range(10) if x "
     "% 2))\n"
     "g = (y for x in range(3) for y in range(x))\n"
     "print(list(g), any(x > 3 for x in range(5)), [[j for j in range(i)] for i in range(3)])\n"
     "def wrap(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs) + 1\n    return inner\n"
     "@wrap\ndef add(a, b=2, *rest, k=3, **others):\n    return a + b + k + len(rest) + len(others)\n"
     "print(add(1), add(1, 2, 3, 4, k=5, z=6), add(*[1, 2], **{'k': 0}))\n"},
    {"tensors",
     "x = tensor([[1.0, 2.0], [3.0, 4.0]])\n"
     "y = (x @ x.T + 1) * 2 - x / 3\n"
     "z = where(y > 10, exp(-y), sqrt(abs(y)))\n"
     "x[0, 1] = 9\n"
     "x[1] += 2\n"
     "print(x, y.shape, z.sum(axis=0), y.mean(), y.argmax(axis=1), x.tolist(), concat([x, y], axis=1), x[:, 0], x[x > "
     "3])\n"
     "print(random.normal((2, 2), seed=3).shape if False else zeros((2, 3)), arange(5)[::-1], one_hot(tensor([0, 2]), "
     "3), x.astype(int64))\n"
     "print(softmax(x), x.reshape(4, 1).T, float(x[0, 0]), int(x.sum()), x.dtype, max(3, 4), stack([x, x]).shape)\n"},
    {"session", "import logging\n"
                "for i in range(200):\n    plot('loss', i); plot(f'curve {i % 12}', -i, step=i)\n"
                "curve_cut('loss', 150)\n"
                "steps, values = curve('loss')\n"
                "print(steps.shape, values[-1].item())\n"
                "log = logging.getLogger('memory')\n"
                "log.warning('%d of %s', 3, [1, 2]); logging.error('plain'); log.setLevel('ERROR'); log.info('%s', 1)\n"
                "class A:\n    pass\n"
                "v = Variable([1.0, 2.0]); a = A()\n"
                "s = variable_snapshot()\n"
                "v.assign([3.0, 4.0]); w = Variable(1.0); s.add_new()\n"
                "print(s.bytes(), s.bytes(variable_snapshot()), len(live_instances(A)))\n"
                "s.restore()\nprint(v.tolist())\n"},
    {"gradients", "x = Variable([1.0, 2.0], name='x')\n"
                  "with GradientTape(persistent=True) as tape:\n"
                  "    with GradientTape() as inner:\n        y = (x * x * x).sum() + exp(x).sum() * 0\n"
                  "    g = inner.gradient(y, x)\n"
                  "print(y, g, tape.gradient(g, x), tape.gradient(y, {'a': x, 'b': [x]}))\n"
                  "c = tensor(3.0)\n"
                  "with GradientTape() as tape:\n    tape.watch(c)\n    z = relu(c * x).mean() + c ** 2\n"
                  "print(tape.gradient(z, [c, x]), tape.why(c))\n"},
    {"derivatives", "x = tensor([1.0, 2.0])\n"
                    "print(jvp(lambda v: sin(v).sum(), (x,), (x,)), hessian(lambda v: (v ** 3).sum(), x))\n"
                    "with GradientTape() as t:\n    t.watch(x)\n    y = x * x\n"
                    "print(t.jacobian(y, x))\n"},
    {"vmap", "x = tensor([[1.0, 2.0], [3.0, 4.0]])\n"
             "print(vmap(grad(lambda v: (v * v).sum()))(x), vmap(lambda v: (v.sum(), v[0]), in_axes=1)(x))\n"},
    {"given", "@custom_gradient\ndef double(x):\n    return x * 1, lambda up: up * 2\n"
              "print(grad(double)(3.0), gradcheck(cos, tensor([1.0], dtype=float64)))\n"
              "print(grad(checkpoint(lambda x: exp(sin(x))))(1.0))\n"},
    {"optimizer", "w = Variable([[0.5, -0.5], [1.0, 2.0]], name='w')\n"
                  "b = Variable(zeros(2))\n"
                  "x, y = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([0, 1])\n"
                  "loss_fn, optimizer = CrossEntropy(from_logits=True), Adam(learning_rate=0.1)\n"
                  "for step in range(2):\n"
                  "    with GradientTape() as tape:\n        loss = loss_fn(y, x @ w + b)\n"
                  "    optimizer.apply(tape.gradient(loss, [w, b]), [w, b])\n"
                  "print(f'{loss:.4f}', w, b)\n"
                  "accuracy = Accuracy()\naccuracy.update_state(y, x @ w + b)\nprint(accuracy.result())\n"},
    {"imports", "import math, time\nfrom math import sqrt as root, pi\nimport losses\n"
                "print(math.floor(2.5), root(16.0), round(pi, 3), math.factorial(5), time.time() > 0)\n"
                "try:\n    import nothing_of_this_name\nexcept ImportError as e:\n    print('no', type(e).__name__)\n"},
    {"printing", "a = [1]\na.append(a)\nd = {'self': a}\nd['d'] = d\n"
                 "print(a, d, sep='; ', end='.\\n')\n"
                 "for i in range(30):\n    print(i, i / 7, [i, str(i)], end=' ')\n"
                 "print('y' * 3000)\n"
                 "a\nd\n'text'\n1.5\n(1, 'two', None, True)\nprint\nzeros((50, 50))\n"},
    {"syntax", "x = [1, 2\ny = }\n"},
    {"error", "def helper(value):\n    return value.upper(1, 2) + undefined\n\n\nhelper('x' * 300)\n"},
    {"shapes", "def layer(h, weight):\n    return h @ weight\n\n\nlayer(zeros((32, 784)), zeros((512, 10)))\n"},
    {"recursion", "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    print('deep')\n"
                  "class A:\n    def __getattr__(self, name):\n        return getattr(self, name + 'x')\n"
                  "try:\n    A().y\nexcept RecursionError:\n    print('deeper')\n"},
};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

static runs session;

static void check_session_lives(const script *s, long long nth) {
  td_run_result result = runs_code(&session, "1 + 1\n");
  ck_assert_msg(result == TD_RUN_DONE && strcmp(session.printed, "2\n") == 0,
                "%s, allocation %lld: then 1 + 1 gave %s%s", s->name, nth, session.printed, session.error);
}

// The message without "error: " and the class before it, which an engine error shows only where its report had no room.
static const char *message_of(const char *error) {
  const char *colon = strchr(error, ':'), *next = colon ? strchr(colon + 1, ':') : NULL;
  if (!colon) return error;
  return next && next - colon > 6 && strncmp(next - 5, "Error", 5) == 0 ? next + 1 : colon + 1;
}

// The same message, or the class alone where there was no room for a message.
static bool same_message(const char *a, const char *b) {
  size_t line = strcspn(a, "\n");
  if (line > 12 && strncmp(a + line - 5, "Error", 5) == 0 && !memchr(a + 7, ' ', line - 7)) return true;
  a = message_of(a);
  b = message_of(b);
  size_t length = strcspn(a, "\n");
  return length == strcspn(b, "\n") && memcmp(a, b, length) == 0;
}

// Runs the script with its nth allocation failing. What ends without MemoryError ends as the sound run, but for details
// of the diagnosis that had no room.
static void run_failing(const script *s, long long nth, bool forever, td_run_result sound, const char *printed,
                        const char *error) {
  ck_assert_msg(runs_open(&session, 1), "%s: no interpreter", s->name);
  td_memory_fail(nth, forever);
  td_run_result result = runs_code(&session, s->code);
  td_memory_fail(0, false);
  ck_assert_msg(session.errors == (result != TD_RUN_DONE), "%s, allocation %lld: %d errors were shown", s->name, nth,
                session.errors);
  if (!strstr(session.error, "emory"))
    ck_assert_msg(result == sound && strcmp(session.printed, printed) == 0 && same_message(session.error, error),
                  "%s, allocation %lld, no MemoryError but\n%s%sin place of\n%s%s", s->name, nth, session.printed,
                  session.error, printed, error);
  check_session_lives(s, nth);
  runs_close(&session);
  ck_assert_msg(td_memory_live() == 0, "%s, allocation %lld: %lld bytes are left", s->name, nth,
                (long long)td_memory_live());
}

// All of a short script's allocations are tried, and about WANTED of a long one's; each of its first FIRST.
enum { FIRST = 300, WANTED = 400 };

static void check_script(const script *s, bool forever) {
  static char printed[RUNS_TEXT], error[RUNS_TEXT];
  ck_assert(runs_open(&session, 1));
  int64_t before = td_memory_count();
  td_run_result sound = runs_code(&session, s->code);
  int64_t count = td_memory_count() - before;
  strcpy(printed, session.printed);
  strcpy(error, session.error);
  ck_assert_msg((sound == TD_RUN_FAILED) == (error[0] != 0) && !strstr(error, "emory"), "%s: %s", s->name, error);
  check_session_lives(s, 0);
  runs_close(&session);
  ck_assert_int_eq(td_memory_live(), 0);
  int64_t stride = count > FIRST + WANTED ? (count - FIRST + WANTED - 1) / WANTED : 1;
  if (getenv("MEMORY_ALL")) stride = 1;
  for (int64_t nth = 1; nth <= count; nth += nth < FIRST ? 1 : stride)
    run_failing(s, nth, forever, sound, printed, error);
}

START_TEST(each_allocation_fails_once) { check_script(&scripts[_i], false); }
END_TEST

START_TEST(every_allocation_fails_from_one_on) { check_script(&scripts[_i], true); }
END_TEST

START_TEST(an_interpreter_is_made_or_not) {
  static const script nothing = {"interpreter", ""};
  int64_t before = td_memory_count();
  ck_assert(runs_open(&session, 1));
  int64_t count = td_memory_count() - before;
  runs_close(&session);
  for (int64_t nth = 1; nth <= count; nth++) {
    td_memory_fail(nth, _i);
    bool made = runs_open(&session, 1);
    td_memory_fail(0, false);
    if (made) check_session_lives(&nothing, nth);
    if (made) runs_close(&session);
    ck_assert_msg(td_memory_live() == 0, "interpreter, allocation %lld: %lld bytes are left", (long long)nth,
                  (long long)td_memory_live());
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("language/memory");
  TCase *test = tcase_create("once");
  tcase_set_timeout(test, 600);
  tcase_add_loop_test(test, each_allocation_fails_once, 0, SCRIPTS);
  suite_add_tcase(suite, test);
  test = tcase_create("for_ever");
  tcase_set_timeout(test, 600);
  tcase_add_loop_test(test, every_allocation_fails_from_one_on, 0, SCRIPTS);
  suite_add_tcase(suite, test);
  test = tcase_create("interpreter");
  tcase_set_timeout(test, 600);
  tcase_add_loop_test(test, an_interpreter_is_made_or_not, 0, 2);
  suite_add_tcase(suite, test);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
