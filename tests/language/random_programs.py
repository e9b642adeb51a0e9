"""Random programs in the common subset of Python 3 and tapedeck.

    random_programs.py --show SEED                               prints the program of a seed
    random_programs.py --program PATH [--seed S] [--count N]     runs the programs of seeds S .. S + N - 1 under both

A program always ends: loops have few steps, functions call only functions written before them and never from a loop.
It prints much, and prints an exception's type and text where a statement raises one. Integers stay far from 64 bits,
since tapedeck raises where Python grows them. Nothing depends on hashes of texts or on addresses. The second form stops
at the first program whose output differs, shows its seed and the first lines that differ, and exits with 1.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

HEADER = '''import math


def cut(n):
    return n if -9999 <= n <= 9999 else n % 9999 - 5000


class Noted:
    def __init__(self, name, hide=False):
        self.name, self.hide = name, hide

    def __enter__(self):
        print("enter", self.name)
        return self.name

    def __exit__(self, kind, value, trace):
        print("leave", self.name, kind.__name__ if kind else None)
        return self.hide


class Problem(Exception):
    pass


class Trouble(Problem):
    def __init__(self, what, size=0):
        super().__init__(what, size)
        self.size = size

'''
TEXTS = ['""', '"a"', '"tape"', '"Deck of cells"', '"  two  spaces "', '"x,y,,z"', '"it\'s"', "'say \"hi\"'",
         '"tab\\there"',
         '"línea é"', '"日本語"', '"😀!"', '"back\\\\slash"', '"42"', '"-7"', '"3.5"', '"AbCd"', 'r"\\d+"',
         '"line\\nbreak"']
FLOATS = ["0.0", "-0.0", "0.5", "1.0", "-2.5", "3.14159", "1e-7", "1e16", "123456.789", "2.675", "0.1", "1e300",
          "-1e-5", "99.995"]
INT_SPECS = ["", "d", "5", "<6", ">6", "^7", "05", "+", ",", "x", "#x", "b", "o", "*^9", "+06", "_", ".1f", "e", " d"]
FLOAT_SPECS = ["", ".2f", ".0f", "8.3f", "<9.1f", "+.1f", "e", ".3e", "g", ".3g", "%", ".1%", ",.2f", "010.2f",
               "*>12.4f", ".6g"]
TEXT_SPECS = ["", "8", "<8", ">8", "^9", ".2", "*^8.3", "s", "->6"]
TYPES = ["int", "int", "float", "str", "bool", "list", "dict", "tuple", "set"]


class Scope:
    """What an expression may read (names by type) and a statement may assign to."""

    def __init__(self, names, assignable, calls=True, loop=0, function=False):
        self.names, self.assignable = names, assignable
        self.calls, self.loop, self.function = calls, loop, function

    def inner(self, **changes):
        new = Scope({t: list(n) for t, n in self.names.items()}, self.assignable, self.calls, self.loop, self.function)
        for key, value in changes.items():
            setattr(new, key, value)
        return new


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.functions = []  # (name, parameter types, result type)
        self.classes = []    # (name, methods that return an int)
        self.fresh = 0

    # ---- helpers ----
    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def name(self, prefix):
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def write(self, depth, line):
        self.lines.append("    " * depth + line)

    # ---- expressions ----
    def expression(self, kind, scope, depth):
        if self.chance(1):  # the wrong type, at times
            return f"({self.expression(self.random.choice(TYPES), scope, depth - 1)})"
        if depth <= 0 or self.chance(15):
            return self.leaf(kind, scope)
        if self.chance(6):
            return (f"({self.expression(kind, scope, depth - 1)} if {self.expression('bool', scope, depth - 1)}"
                    f" else {self.expression(kind, scope, depth - 1)})")
        if scope.calls and self.chance(12):
            call = self.call(kind, scope, depth)
            if call:
                return call
        return getattr(self, "make_" + kind)(scope, lambda k: self.expression(k, scope, depth - 1))

    def leaf(self, kind, scope):
        if scope.names.get(kind) and self.chance(70):
            return self.random.choice(scope.names[kind])
        r = self.random
        if kind == "int":
            return str(self.pick(r.randrange(10), r.randrange(10), r.randrange(1000), -r.randrange(1, 100)))
        if kind == "float":
            return r.choice(FLOATS)
        if kind == "str":
            return r.choice(TEXTS)
        if kind == "bool":
            return self.pick("True", "False")
        if kind == "list":
            return "[" + ", ".join(str(r.randrange(-9, 30)) for _ in range(r.randrange(5))) + "]"
        if kind == "dict":
            return "{" + ", ".join(f"{r.choice(TEXTS)}: {r.randrange(50)}" for _ in range(r.randrange(4))) + "}"
        if kind == "tuple":
            return f"({r.randrange(20)}, {r.choice(TEXTS)})"
        return "{" + ", ".join(str(r.randrange(9)) for _ in range(r.randrange(1, 5))) + "}"

    def call(self, kind, scope, depth):
        fitting = [f for f in self.functions if f[2] == kind]
        if kind == "int" and self.classes and self.chance(40):
            name, methods = self.random.choice(self.classes)
            made = f"{name}({self.expression('int', scope, depth - 1)}, {self.expression('str', scope, depth - 1)})"
            return f"{made}.{self.random.choice(methods)}({self.expression('int', scope, depth - 1)})"
        if not fitting:
            return None
        name, parameters, _ = self.random.choice(fitting)
        given = [self.expression(t, scope, depth - 1) for _, t in parameters]
        if self.chance(30):
            return f"{name}({', '.join(f'{p}={g}' for (p, _), g in zip(parameters, given))})"
        if self.chance(20) and given:
            return f"{name}(*({given[0]},), {', '.join(given[1:])})".replace(", )", ")")
        return f"{name}({', '.join(given[:-1] if self.chance(30) else given)})"

    def make_int(self, scope, e):
        v, k = self.name("v"), self.random.randrange(1, 9)
        return self.pick(
            lambda: f"({e('int')} + {e('int')})", lambda: f"({e('int')} - {e('int')})",
            lambda: f"(cut({e('int')}) * {self.leaf('int', scope)})", lambda: f"({e('int')} // {e('int')})",
            lambda: f"({e('int')} % {e('int')})", lambda: f"({e('int')} {self.pick('&', '|', '^')} {e('int')})",
            lambda: f"(cut({e('int')}) << {k})", lambda: f"({e('int')} >> {k})",
            lambda: f"(cut({e('int')}) ** {k % 4})",
            lambda: f"-{e('int')}", lambda: f"~{e('int')}", lambda: f"abs({e('int')})",
            lambda: f"len({e(self.pick('str', 'list', 'dict', 'tuple', 'set'))})", lambda: f"int({e('bool')})",
            lambda: f"cut(sum({e('list')}))", lambda: f"{self.pick('min', 'max')}({e('int')}, {e('int')})",
            lambda: f"{self.pick('min', 'max')}({e('list')}, default={k})",
            lambda: f"{e('list')}[{self.random.randrange(-3, 4)}]",
            lambda: f"{e('dict')}.get({e('str')}, {k})", lambda: f"{e('dict')}[{e('str')}]", lambda: f"{e('tuple')}[0]",
            lambda: f"divmod({e('int')}, {k})[{k % 2}]", lambda: f"pow({e('int')}, {k}, {k + 6})",
            lambda: f"{e('str')}.{self.pick('count', 'find', 'index')}({e('str')})",
            lambda: f"{e('list')}.index({e('int')})",
            lambda: f"round({e('float')} % 1000)", lambda: f"math.floor({e('float')} % 97)", lambda: f"int({e('str')})",
            lambda: f"sum({v} * {k} for {v} in {e('list')} if {v} > {k})",
            lambda: f"(lambda {v}: {v} + {k})({e('int')})",
            lambda: f"math.gcd({e('int')}, {e('int')})", lambda: f"({e('int')} or {e('int')})",
            lambda: f"({e('int')} and {e('int')})",
            lambda: f"ord({e('str')}[:1])", lambda: f"len({{{v} % {k} for {v} in {e('list')}}})")()

    def make_float(self, scope, e):
        k = self.random.randrange(5)
        return self.pick(
            lambda: f"({e('float')} {self.pick('+', '-', '*')} {e('float')})", lambda: f"({e('float')} / {e('float')})",
            lambda: f"({e('int')} / {e('int')})", lambda: f"({e('float')} // {e('float')})",
            lambda: f"({e('float')} % {e('float')})",
            lambda: f"({e('int')} * {e('float')})", lambda: f"-{e('float')}", lambda: f"abs({e('float')})",
            lambda: f"float({e('int')})", lambda: f"round({e('float')}, {k})",
            lambda: f"{self.pick('min', 'max')}({e('float')}, {e('float')})",
            lambda: f"math.sqrt({e('float')})", lambda: f"float({e('str')})",
            lambda: f"math.fmod({e('float')}, {e('float')})",
            lambda: f"abs({e('float')}) ** 0.5", lambda: f"divmod({e('float')}, {e('float')})[{k % 2}]",
            lambda: f"math.copysign({e('float')}, {e('float')})", lambda: f"math.hypot({e('float')}, {e('float')})")()

    def field(self, e):
        kind, specs = self.pick(("int", INT_SPECS), ("float", FLOAT_SPECS), ("str", TEXT_SPECS))
        return kind, self.random.choice(specs)

    def make_str(self, scope, e):
        v, k, n = self.name("v"), self.random.randrange(-5, 9), self.random.randrange(3)
        kind, spec = self.field(e)
        method = self.pick("upper", "lower", "title", "strip", "capitalize", "swapcase", "lstrip", "rstrip", "casefold")
        return self.pick(
            lambda: f"({e('str')} + {e('str')})", lambda: f"({e('str')} * {n})", lambda: f"{e('str')}[{k}:]",
            lambda: f"{e('str')}[:{k}]",
            lambda: f"{e('str')}[::{k or 1}]", lambda: f"{e('str')}[{k}]", lambda: f"{e('str')}.{method}()",
            lambda: f"{e('str')}.replace({e('str')}, {e('str')}, {n})",
            lambda: f"{e('str')}.{self.pick('center', 'ljust', 'rjust', 'zfill')}({k})",
            lambda: f"str({e(self.pick('int', 'float', 'bool', 'list', 'tuple', 'dict'))})",
            lambda: f"repr({e(self.pick('str', 'float', 'list', 'tuple', 'dict'))})",
            lambda: f"format({e(kind)}, {spec!r})", lambda: f'"[{{:{spec}}}]".format({e(kind)})',
            lambda: f"{self.pick('-', ',', '')!r}.join({e('str')}.split())",
            lambda: f"'+'.join(str({v}) for {v} in {e('list')})",
            lambda: f"('%s|%r|%{self.pick('5', '-5', '05', '+', '')}d' % ({e('str')}, {e('str')}, {e('int')}))",
            lambda: f"('%{self.pick('.2', '8.3', '-9.1', '')}{self.pick('f', 'e', 'g')}' % {e('float')})",
            lambda: f"{e('str')}.{self.pick('partition', 'rpartition')}({e('str')})[{n}]",
            lambda: f"''.join(sorted({e('str')}))",
            lambda: f"''.join({v} for {v} in {e('str')} if "
                    f"{v}.{self.pick('isalpha', 'isdigit', 'isalnum', 'isspace')}())",
            lambda: f"{e('str')}.{self.pick('split', 'rsplit')}({self.pick('', 'None, 1', repr(','))})[{n - 1}]",
            lambda: f"{e('tuple')}[1]",
            lambda: f"''.join(reversed({e('str')}))", lambda: f"ascii({e('str')})",
            lambda: f"type({e(self.random.choice(TYPES))}).__name__",
            lambda: f"{e('str')}.removeprefix({e('str')})", lambda: f"max({e('str')}, {e('str')}, key=len)",
            lambda: f"chr(cut({e('int')}) % 90 + 33)",
            lambda: f"{self.pick('hex', 'bin', 'oct')}({e('int')})")()

    def make_bool(self, scope, e):
        kind = self.pick("int", "float", "str", "list", "tuple")
        v, k = self.name("v"), self.random.randrange(9)
        compare = lambda: self.pick("<", "<=", ">", ">=", "==", "!=")
        return self.pick(
            lambda: f"({e(kind)} {compare()} {e(kind)})",
            lambda: f"({e('int')} {compare()} {e('float')} {compare()} {e('int')})",
            lambda: f"(not {e('bool')})", lambda: f"({e('bool')} and {e('bool')})",
            lambda: f"({e('bool')} or {e('bool')})",
            lambda: f"({e('int')} {self.pick('in', 'not in')} {e(self.pick('list', 'tuple', 'set'))})",
            lambda: f"({e('str')} in {e(self.pick('str', 'dict'))})",
            lambda: f"bool({e(self.random.choice(TYPES))})",
            lambda: f"isinstance({e(kind)}, {self.pick('int', 'float', '(str, list)', 'bool')})",
            lambda: f"{self.pick('any', 'all')}({v} > {k} for {v} in {e('list')})",
            lambda: f"{e('str')}.{self.pick('startswith', 'endswith')}({e('str')})",
            lambda: f"({e('set')} {self.pick('<=', '==', '>')} {e('set')})", lambda: f"({e('dict')} == {e('dict')})",
            lambda: f"{e('str')}.{self.pick('isdigit', 'isupper', 'isalpha', 'islower', 'isspace', 'istitle')}()")()

    def make_list(self, scope, e):
        v, w, k = self.name("v"), self.name("w"), self.random.randrange(-4, 5)
        return self.pick(
            lambda: f"[cut({e('int')}), {self.leaf('int', scope)}]", lambda: f"({e('list')} + {e('list')})",
            lambda: f"({e('list')} * {abs(k) % 3})",
            lambda: f"{e('list')}[{k}:]", lambda: f"{e('list')}[:{k}]", lambda: f"{e('list')}[::{k or -1}]",
            lambda: f"[{v} {self.pick('+', '-', '%', '//')} {abs(k) + 1} for {v} in {e('list')}]",
            lambda: f"[{v} for {v} in {e('list')} if {v} % {abs(k) + 2}]",
            lambda: f"[{v} - {w} for {v} in {e('list')}[:3] for {w} in range({abs(k)})]",
            lambda: f"sorted({e(self.pick('list', 'set'))}{self.pick('', ', reverse=True')})",
            lambda: f"list(reversed({e('list')}))",
            lambda: f"sorted({e('list')}, key=lambda {v}: ({v} % {abs(k) + 2}, {v}))",
            lambda: f"list(range({k}, {abs(k) + 3}))",
            lambda: f"list(map(lambda {v}: {v} + {k}, {e('list')}))",
            lambda: f"list(filter(lambda {v}: {v} > {k}, {e('list')}))",
            lambda: f"list({e('dict')}.values())", lambda: f"[*{e('list')}, *{e('list')}]",
            lambda: f"[len({v}) for {v} in {e('str')}.split()]",
            lambda: f"[{v} * {w} for {v}, {w} in zip({e('list')}, {e('list')})]",
            lambda: f"[{v} + {w} for {v}, {w} in enumerate({e('list')}, {k})]",
            lambda: f"list(map(ord, {e('str')}))",
            lambda: f"sorted({e('set')} {self.pick('|', '&', '-', '^')} {e('set')})")()

    def make_dict(self, scope, e):
        v, w = self.name("v"), self.name("w")
        return self.pick(
            lambda: f"{{{e('str')}: cut({e('int')}), {e('str')}: {self.leaf('int', scope)}}}",
            lambda: f"{{**{e('dict')}, {e('str')}: {self.leaf('int', scope)}}}",
            lambda: f"({e('dict')} | {e('dict')})", lambda: f"{{{v}: {w} for {w}, {v} in enumerate({e('str')})}}",
            lambda: f"{{{v}.upper(): {w} for {v}, {w} in {e('dict')}.items() if {w} != 3}}",
            lambda: f"dict(zip({e('str')}, {e('list')}))",
            lambda: f"dict.fromkeys({e('str')}, {self.leaf('int', scope)})",
            lambda: f"dict(sorted({e('dict')}.items(), key=lambda {v}: {v}[1]))")()

    def make_tuple(self, scope, e):
        return self.pick(lambda: f"(cut({e('int')}), {e('str')})",
                         lambda: f"({self.leaf('int', scope)}, {e('str')}, {e('list')})",
                         lambda: f"({e('tuple')}[0], {e('str')})", lambda: f"min({e('tuple')}, {e('tuple')})")()

    def make_set(self, scope, e):
        v = self.name("v")
        return self.pick(lambda: f"{{{v} + 0 for {v} in {e('list')}}}",
                         lambda: f"({e('set')} {self.pick('|', '&', '-', '^')} {e('set')})",
                         lambda: f"{{{v} % 7 for {v} in {e('list')}}}",
                         lambda: f"{e('set')}.union({v} + 0 for {v} in {e('list')})")()

    # ---- statements ----
    def bounded(self, kind, text):
        """An expression's value kept small enough for a variable."""
        if kind == "int":
            return f"cut({text})"
        if kind in ("str", "list"):
            return f"{text}[:24]"
        return text

    def shown(self, kind, text):
        return f"sorted({text})" if kind == "set" else text

    def statements(self, scope, depth, count):
        for _ in range(count):
            self.statement(scope, depth)

    def statement(self, scope, depth):
        deep = depth > 3 or scope.loop > 1
        simple = [self.say, self.say, self.assign, self.assign, self.assign, self.change, self.unpack, self.mutate,
                  self.check]
        nested = [] if deep else [self.branch, self.branch, self.attempt, self.loop, self.loop, self.while_loop,
                                  self.manage]
        self.random.choice(simple + nested + ([self.leave] if scope.loop or scope.function else []))(scope, depth)

    def say(self, scope, depth):
        kinds = [self.random.choice(TYPES) for _ in range(self.random.randrange(1, 4))]
        texts = [self.shown(k, self.expression(k, scope, 2)) for k in kinds]
        form = self.random.randrange(4)
        if form == 0:
            kind, spec = self.field(None)
            text = self.leaf(kind, scope)
            if '"' in text or "\\" in text or "'" in text or "{" in text:
                text = "7"
            self.write(depth,
                       f'print(f"<{{{text}:{spec}}}> {{{text}!r}} {{{text} == {text}}}")' if text != "7"
                       else 'print(f"{7:>3}")')
        else:
            options = self.pick("", "", ', sep="|"', ', end=" ~\\n"')
            self.write(depth, f"print({', '.join(texts)}{options})")

    def assign(self, scope, depth):
        kind = self.random.choice(list(scope.assignable))
        name = self.random.choice(scope.assignable[kind])
        self.write(depth, f"{name} = {self.bounded(kind, self.expression(kind, scope, 3))}")

    def change(self, scope, depth):
        kind = self.pick("int", "float", "str", "list")
        name = self.random.choice(scope.assignable[kind])
        operator = {"int": self.pick("+", "-", "//", "%", "&", "|", "^", ">>"),
                    "float": self.pick("+", "-", "*", "/", "//", "%")}
        self.write(depth, f"{name} {operator.get(kind, '+')}= {self.expression(kind, scope, 2)}")
        if kind != "float":
            self.write(depth, f"{name} = {self.bounded(kind, name)}")

    def unpack(self, scope, depth):
        a, b = (self.random.choice(scope.assignable["int"]) for _ in range(2))
        text, items = self.random.choice(scope.assignable["str"]), self.random.choice(scope.assignable["list"])
        self.write(depth, self.pick(
            lambda: f"{a}, {b} = {b}, {a}", lambda: f"{a}, *{items} = {self.expression('list', scope, 2)}[:9]",
            lambda: f"*{items}, {a} = {self.expression('list', scope, 2)}[:9]",
            lambda: f"{a}, {text} = {self.expression('tuple', scope, 2)}[:2]",
            lambda: f"{a} = {b} = {self.bounded('int', self.expression('int', scope, 2))}",
            lambda: f"({a}, [{b}, {text}]) = cut({self.expression('int', scope, 1)}), ({self.leaf('int', scope)}, "
                    f"{self.leaf('str', scope)})")())
        self.write(depth, f"print({a}, {b}, {text}, {items})")

    def mutate(self, scope, depth):
        items, table = self.random.choice(scope.assignable["list"]), self.random.choice(scope.assignable["dict"])
        group, k = self.random.choice(scope.assignable["set"]), self.random.randrange(-3, 5)
        e = lambda kind: self.expression(kind, scope, 2)
        self.write(depth, self.pick(
            lambda: f"{items}.append(cut({e('int')}))", lambda: f"{items}.insert({k}, {self.leaf('int', scope)})",
            lambda: f"print({items}.pop())",
            lambda: f"{items}.extend({e('list')}[:5])", lambda: f"{items}.sort(reverse={self.leaf('bool', scope)})",
            lambda: f"{items}.reverse()",
            lambda: f"{items}.remove({e('int')})", lambda: f"{items}[{k}] = cut({e('int')})",
            lambda: f"{items}[{k}:{k + 2}] = {e('list')}[:4]",
            lambda: f"del {items}[{k}]", lambda: f"del {items}[{k}::{abs(k) + 1}]",
            lambda: f"{table}[{e('str')}] = cut({e('int')})",
            lambda: f"print({table}.pop({e('str')}, None), {table})", lambda: f"{table}.update({e('dict')})",
            lambda: f"{table}[{e('str')}] += {k}", lambda: f"print({table}.setdefault({e('str')}, {k}))",
            lambda: f"del {table}[{e('str')}]",
            lambda: f"{group}.add(cut({e('int')}))", lambda: f"{group}.discard({e('int')})",
            lambda: f"{group} |= {e('set')}")())

    def check(self, scope, depth):
        test = self.expression("bool", scope, 2)
        if self.chance(50):
            self.write(depth, f"assert {test}, {self.expression('str', scope, 1)}")
        else:
            self.write(depth, f"if {test}:")
            error = self.pick("Problem({})", "Trouble({}, 5)", "ValueError({})", "KeyError({})")
            self.write(depth + 1, f"raise {error.format(self.expression('str', scope, 1))}")

    def leave(self, scope, depth):
        self.write(depth, f"if {self.expression('bool', scope, 2)}:")
        if scope.function and (not scope.loop or self.chance(40)):
            self.write(depth + 1, f"return {self.bounded(scope.function, self.expression(scope.function, scope, 2))}")
        else:
            self.write(depth + 1, self.pick("break", "continue"))

    def branch(self, scope, depth):
        self.write(depth, f"if {self.expression('bool', scope, 2)}:")
        self.statements(scope, depth + 1, self.random.randrange(1, 3))
        if self.chance(40):
            self.write(depth, f"elif {self.expression(self.random.choice(TYPES), scope, 2)}:")
            self.statements(scope, depth + 1, 1)
        if self.chance(50):
            self.write(depth, "else:")
            self.statements(scope, depth + 1, self.random.randrange(1, 3))

    def attempt(self, scope, depth):
        self.write(depth, "try:")
        self.statements(scope, depth + 1, self.random.randrange(1, 4))
        error = self.name("e")
        for kind in self.random.sample(["ZeroDivisionError", "(KeyError, IndexError)", "ValueError", "Problem"],
                                       self.random.randrange(3)):
            self.write(depth, f"except {kind} as {error}:")
            self.write(depth + 1, f"print({kind.split(',')[0].strip('(')!r}, repr({error}), {error}.args)")
            if self.chance(20):
                self.write(depth + 1, self.pick("raise", f'raise Trouble("again") from {error}'))
        self.write(depth, f"except Exception as {error}:")
        self.write(depth + 1, f"print(type({error}).__name__, {error})")
        if self.chance(30):
            self.write(depth, "else:")
            self.statements(scope, depth + 1, 1)
        if self.chance(40):
            self.write(depth, "finally:")
            self.say(scope, depth + 1)

    def loop(self, scope, depth):
        inner = scope.inner(loop=scope.loop + 1, calls=False)
        v, w = self.name("i"), self.name("j")
        form = self.random.randrange(6)
        source = lambda kind: self.expression(kind, scope.inner(calls=False), 2)
        if form == 0:
            head, new = f"{v} in range({self.random.randrange(5)})", {"int": [v]}
        elif form == 1:
            head, new = f"{v} in {source('list')}[:5]", {"int": [v]}
        elif form == 2:
            head, new = f"{v} in {source('str')}[:5]", {"str": [v]}
        elif form == 3:
            head, new = f"{v}, {w} in enumerate({source('list')}[:4])", {"int": [v, w]}
        elif form == 4:
            head, new = f"{v}, {w} in list({source('dict')}.items())[:4]", {"str": [v], "int": [w]}
        else:
            head, new = f"{v}, {w} in zip({source('str')}[:4], {source('list')})", {"str": [v], "int": [w]}
        for kind, names in new.items():
            inner.names[kind] = inner.names[kind] + names * 2
        self.write(depth, f"for {head}:")
        self.statements(inner, depth + 1, self.random.randrange(1, 4))
        if self.chance(25):
            self.write(depth, "else:")
            self.say(scope, depth + 1)

    def while_loop(self, scope, depth):
        v = self.name("n")
        inner = scope.inner(loop=scope.loop + 1, calls=False)
        self.write(depth, f"{v} = {self.random.randrange(5)}")
        self.write(depth, f"while {v} > "
                          f"0{self.pick('', ' and ' + self.expression('bool', scope.inner(calls=False), 1))}:")
        self.write(depth + 1, f"{v} -= 1")
        inner.names["int"] = inner.names["int"] + [v]
        self.statements(inner, depth + 1, self.random.randrange(1, 3))
        if self.chance(25):
            self.write(depth, "else:")
            self.say(scope, depth + 1)

    def manage(self, scope, depth):
        first = f"Noted({self.expression('str', scope, 1)}, {self.leaf('bool', scope)})"
        second = self.pick("", f", Noted({self.leaf('int', scope)}) as {self.random.choice(scope.assignable['int'])}")
        self.write(depth, f"with {first} as {self.random.choice(scope.assignable['str'])}{second}:")
        self.statements(scope, depth + 1, self.random.randrange(1, 3))

    # ---- definitions ----
    def variables(self, depth, prefix, given=None):
        names = {kind: list((given or {}).get(kind, [])) for kind in set(TYPES)}
        own = {}
        for kind in sorted(set(TYPES)):
            own[kind] = [f"{prefix}{kind[0:2]}{i}" for i in range(2)]
            for name in own[kind]:
                self.write(depth, f"{name} = {self.leaf(kind, Scope({}, {}))}")
            names[kind] += own[kind]
        return Scope(names, own)

    def function(self, scope):
        name, result = self.name("f"), self.random.choice(TYPES)
        parameters = [(self.name("p"), self.random.choice(TYPES)) for _ in range(self.random.randrange(1, 4))]
        heads = [p for p, _ in parameters]
        heads[-1] += f"={self.leaf(parameters[-1][1], Scope({}, {}))}"
        if self.chance(25):
            self.write(0, f"def {name}_wrap(f):")
            self.write(1, "def wrapper(*args, **kwargs):")
            self.write(2, f"print('called', {name!r}, len(args), sorted(kwargs))")
            self.write(2, "return f(*args, **kwargs)")
            self.write(1, "return wrapper")
            self.write(0, f"@{name}_wrap")
        self.write(0, f"def {name}({', '.join(heads)}):")
        given = {kind: list(names) for kind, names in scope.names.items()}
        for p, kind in parameters:
            given[kind] = given.get(kind, []) + [p] * 2
        inner = self.variables(1, name + "_", given)
        inner.function = result
        if self.chance(40):
            counter = self.random.choice(inner.assignable["int"])
            helper = self.name("g")
            self.write(1, f"def {helper}(x, *rest):")
            self.write(2, f"nonlocal {counter}")
            self.write(2, f"{counter} = cut({counter} + x + len(rest))")
            self.write(2, f"return {counter}")
            self.write(1, f"print({helper}(1), {helper}({self.leaf('int', inner)}, 2, 3))")
        self.statements(inner, 1, self.random.randrange(2, 6))
        self.write(1, f"return {self.bounded(result, self.expression(result, inner, 2))}")
        self.functions.append((name, parameters, result))

    def define_class(self, scope):
        name = self.name("C")
        base = self.random.choice(self.classes)[0] if self.classes and self.chance(50) else None
        self.write(0, f"class {name}({base}):" if base else f"class {name}:")
        self.write(1, f"made = 0")
        own = {kind: list(names) for kind, names in scope.names.items()}
        own["int"] = own["int"] + ["self.n"] * 3
        own["str"] = own["str"] + ["self.s"] * 3
        inner = Scope(own, {}, calls=False)
        e = lambda kind: self.expression(kind, inner, 2)
        if not base or self.chance(40):
            self.write(1, "def __init__(self, n, s='none'):")
            if base:
                self.write(2, "super().__init__(n, s + '+')")
                self.write(2, f"self.n += {self.random.randrange(5)}")
            else:
                self.write(2, "self.n, self.s = n, s")
            self.write(2, f"{name}.made += 1")
        if not base:
            self.write(1, "def __repr__(self):")
            self.write(2, "return f'{type(self).__name__}({self.n!r}, {self.s!r})'")
            self.write(1, "def __eq__(self, other):")
            self.write(2, "return self.n == other.n if hasattr(other, 'n') else NotImplemented")
            self.write(1, "def __lt__(self, other):")
            self.write(2, "return self.n < other.n")
            self.write(1, "@property")
            self.write(1, "def size(self):")
            self.write(2, f"return len(self.s) + {self.random.randrange(9)}")
        for special in self.random.sample(["add", "sub", "mul", "radd", "and", "iadd", "mod"], 2):
            self.write(1, f"def __{special}__(self, other):")
            self.write(2, f"return type(self)(cut({e('int')}), self.s + {special!r})")
        for special, kind in self.random.sample([("len", "int"), ("bool", "bool"), ("str", "str"), ("neg", "int"),
                                                 ("abs", "float"),
                                                 ("getitem", "int"), ("contains", "bool"), ("iter", "list"),
                                                 ("call", "str")], 3):
            more = ", x" if special in ("getitem", "contains") else ", *x" if special == "call" else ""
            self.write(1, f"def __{special}__(self{more}):")
            value = "self.n" if special == "len" else e(kind)  # list() asks for a length, and fails with it
            if special == "getitem":
                self.write(2, "if x > 5:")
                self.write(3, "raise IndexError(x)")
            value = f"abs({value}) % 50" if special == "len" else f"iter({value})" if special == "iter" else value
            self.write(2, f"return {value}")
        methods = [m for c, ms in self.classes if c == base for m in ms]
        for _ in range(self.random.randrange(1, 3)):
            method = self.pick(*methods) if methods and self.chance(40) else self.name("m")
            self.write(1, f"def {method}(self, k):")
            if method in methods and self.chance(70):
                self.write(2, f"return cut(super().{method}(k) + {e('int')})")
            else:
                self.write(2, f"self.n = cut(self.n + {e('int')})")
                self.write(2, f"return cut(k - self.n)")
                methods.append(method)
        self.classes.append((name, sorted(set(methods))))

    def use_class(self, scope):
        name, methods = self.random.choice(self.classes)
        a, b = self.name("a"), self.name("b")
        e = lambda kind: self.expression(kind, scope, 1)
        self.guarded(f"{a}, {b} = {name}({e('int')}, {e('str')}), {name}({e('int')})")
        acts = [f"{a} + {b}", f"{a} - 3", f"{b} * {a}", f"5 + {a}", f"{a} & {b}", f"{a} % 2", f"{a} == {b}",
                f"{a} != 5", f"{a} < {b}",
                f"len({a})", f"bool({b})", f"str({a})", f"-{a}", f"abs({a})", f"{a}[2]", f"3 in {a}", f"list({a})",
                f"{a}(1, 2)", f"{a}.size",
                f"[{a}, {b}]", f"sorted([{a}, {b}])", f"f'{{{a}!r:>20}}'", f"{a}.{self.pick(*methods)}(3)",
                f"{name}.made", f"{a}.missing",
                f"getattr({a}, 'n', None)", f"vars({b})", f"isinstance({a}, {self.random.choice(self.classes)[0]})",
                f"max({a}, {b})", f"{a} + 'x'"]
        for act in self.random.sample(acts, 7):
            self.guarded(f"print({act})")

    def guarded(self, *lines):
        self.write(0, "try:")
        for line in lines:
            self.write(1, line)
        self.write(0, "except Exception as e:")
        self.write(1, "print(type(e).__name__, e)")

    def program(self):
        self.lines += HEADER.split("\n")
        scope = self.variables(0, "")
        for _ in range(self.random.randrange(8, 14)):
            act = self.random.randrange(10)
            if act == 0:
                self.define_class(scope)
            elif act == 1 and self.classes:
                self.use_class(scope)
            elif act in (2, 3):
                self.function(scope)
            else:
                self.write(0, "try:")
                self.statements(scope, 1, self.random.randrange(1, 5))
                self.write(0, "except Exception as e:")
                self.write(1, "print(type(e).__name__, e)")
            for name, parameters, kind in self.functions[-1:]:
                call = f"{name}({', '.join(self.expression(t, scope, 1) for _, t in parameters)})"
                self.guarded(f"print({self.shown(kind, call)})")
        for kind, names in scope.assignable.items():
            self.guarded(f"print({', '.join(self.shown(kind, n) for n in names)})")
        return "\n".join(self.lines) + "\n"


def run(command, path):
    seconds = 60 * int(os.environ.get("SLOWNESS", "1"))  # as tests/run tells
    try:
        done = subprocess.run([*command, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds} s", b"", b""
    return done.returncode, done.stdout, done.stderr


def show_difference(seed, expected, got):
    print(f"random program {seed}: python3 ended with {expected[0]}, tapedeck with {got[0]}")
    left, right = (text.decode("utf-8", "replace").split("\n") for text in (expected[1], got[1]))
    for number in range(max(len(left), len(right))):
        a, b = (lines[number] if number < len(lines) else "(the end)" for lines in (left, right))
        if a != b:
            print(f"line {number + 1} of the output:\n  python3:  {a[:300]}\n  tapedeck: {b[:300]}")
            break
    print(got[2].decode("utf-8", "replace")[:1000], end="")
    print(f"the program: random_programs.py --show {seed}")


def main():
    parser = argparse.ArgumentParser(description="Random programs in the common subset of Python 3 and tapedeck.")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--program", metavar="PATH")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.show is not None:
        sys.stdout.reconfigure(encoding="utf-8")
        print(Writer(arguments.show).program(), end="")
        return 0
    if arguments.program is None:
        parser.error("--show or --program is needed")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.deck")
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            with open(path, "w", encoding="utf-8") as file:
                file.write(Writer(seed).program())
            expected = run([sys.executable, "-I", "-W", "ignore", "-X", "utf8"], path)
            got = run([arguments.program, "run"], path)
            if expected[:2] != got[:2]:
                show_difference(seed, expected, got)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
