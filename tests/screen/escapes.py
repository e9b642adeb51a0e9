# Data that tries to act on the terminal: 40 sequences, in every place where data is shown. None reaches it as it is.
import json, os, shutil
from emulator import Program

CORPUS = [
    "\x1b]2;E\x07", "\x1b]0;E\x1b\\", "\x1b]1;E\x07", "\x9d2;E\x9c", "\x1b]52;c;RQ==\x07", "\x1b]52;p;?\x1b\\",
    "\x1b]8;;http://e/\x1b\\", "\x1b]4;1;#123456\x07", "\x1b]10;?\x07", "\x1b]11;#654321\x07", "\x1b]104\x07",
    "\x1b]777;notify;E;E\x07", "\x1b]9;E\x07", "\x1b]1337;File=:RQ==\x07", "\x1b]50;E\x07", "\x1b[6n", "\x1b[0c", "\x1b[>0c",
    "\x1b[21t", "\x1b[?15n", "\x1b[3;7;9;31m", "\x1b[41;1;5m", "\x1b[7;13H", "\x1b[3J\x1b[2J", "\x1b[19A", "\x1b[4h", "\x1b[?1003h",
    "\x1b[?47h", "\x1b[?7l", "\x1b[3;5r", "\x1bc", "\x1b(0", "\x1b#8", "\x1bP1$qm\x1b\\", "\x1bP+q436f\x1b\\", "\x1b_Gi=9,a=q;RQ==\x1b\\",
    "\x1b^E\x1b\\", "\x1bXE\x1b\\", "\x9b5;5H\x85\x8d\x90E\x9c", "\x0e\x0f\x05\x08\x08\x0c\x0b\x7f"]
MARKED = ["<%02d%s%02d>" % (i, text, i) for i, text in enumerate(CORPUS)]
RAW_MARKS = [mark.encode() for mark in MARKED] + [mark.encode("latin-1") for mark in MARKED]
assert len(CORPUS) == 40


def literal(text):
    return '"' + "".join(c if c.isprintable() and c not in '"\\' and ord(c) < 127 else "\\x%02x" % ord(c) for c in text) + '"'


LIST = "[" + ", ".join(literal(mark) for mark in MARKED) + "]"


def harmless(p, place, marks=MARKED):
    """Every mark stands on the screen, and none of the sequences came."""
    p.settle()
    raw = bytes(p.raw)
    for i, mark in enumerate(RAW_MARKS):
        assert mark not in raw, "%s: %r reached the terminal" % (place, mark)
    assert not p.model.strange, "%s: %r" % (place, p.model.strange)
    missing = [mark for mark in marks if mark[:3] not in p.text()]
    assert not missing, "%s: %d marks aren't on the screen, %s\n%s" % (place, len(missing), missing[0][:3], p.text())


def case_escapes_in_outputs():
    with Program(rows=200, columns=200) as p:
        p.paste("evil = %s" % LIST)
        p.send("\r")
        p.until(r"^\[2\]>$")
        harmless(p, "source")
        p.enter("for e in evil: print(e)", "")
        p.until(r"^\[3\]>$")
        harmless(p, "print")
        p.enter("evil")
        p.until(r"^\[4\]>$")
        p.paste("class E:\n  def __init__(self, s):\n    self.s = s\n  def __repr__(self): return self.s\n\n[E(e) for e in evil]")
        p.send("\r")
        p.until(r"^\[5\]>$")
        harmless(p, "values")
        p.send("\x1b[18~")  # the log
        harmless(p, "log")


def case_escapes_in_errors_and_names():
    with Program(rows=200, columns=200) as p:
        p.paste("evil = %s\nclass W(Exception): pass\ndef f(): raise ValueError('\\n'.join(evil))\n" % LIST)
        p.send("\r")
        p.until(r"^\[2\]>$")
        p.enter("f()")
        p.until("ValueError")
        harmless(p, "error")
        p.send("\x1bOQ")
        p.paste("for e in evil: plot(e, 1.0)\nkept = [Variable(1.0, name=e) for e in evil]\n")
        p.send("\r")
        p.until("curve|points?")
        for _ in range(45):
            p.send("\x18oj\x18o")
        harmless(p, "curves", [])
        p.send("\x1b[20~")
        p.send("\x18oa")
        harmless(p, "variables", [])
        p.enter("?f")
        harmless(p, "names", [])


def case_escapes_in_docstrings():
    with Program(rows=200, columns=200) as p:
        p.paste("evil = %s\nclass D:\n  def __init__(self): pass\ndef g(x):\n  %s\n  return x" % (LIST, literal("\n".join(MARKED))))
        p.send("\r")
        p.until(r"^\[2\]>$")
        p.send("\x1b")
        p.until("Enter edit")
        p.send("i")
        p.enter("?g")
        p.until("<39")
        harmless(p, "docstring")
        p.enter("g??")
        harmless(p, "source of a function")


def case_escapes_in_files():
    for i in range(0, 40, 8):
        with Program(rows=60, columns=200) as p:
            name = "".join(MARKED[i:i + 2]).replace("/", "_").replace("\x00", "")
            with open("%s/%s.deck" % (p.folder, name), "w", encoding="utf-8") as file:
                file.write("# %%\n1 + 1\n")
            p.enter("load(%s)" % literal(name + ".npz"))
            p.until("error:|Error")
            p.enter("!ls")
            harmless(p, "file", [])
            with Program(name + ".deck", rows=60, columns=200, home=p.home) as q:
                q.until("<%02d" % i)
                harmless(q, "title", [])


def case_escapes_in_notebooks():
    with Program(rows=200, columns=200, ready=None) as first:
        cells = [{"cell_type": "markdown", "id": "m", "metadata": {}, "source": "\n".join(MARKED)},
                 {"cell_type": "code", "id": "c", "metadata": {}, "execution_count": 1, "source": "1",
                  "outputs": [{"output_type": "stream", "name": "stdout", "text": "\n".join(MARKED) + "\n"},
                              {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": MARKED[0]}},
                              {"output_type": "error", "ename": MARKED[1], "evalue": MARKED[2], "traceback": MARKED}]}]
        with open(first.folder + "/evil.ipynb", "w", encoding="utf-8") as file:
            json.dump({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, file)
        with Program("evil.ipynb", rows=200, columns=200, home=first.home) as p:
            p.until("<39")
            harmless(p, "notebook")


def case_escapes_in_run_names():
    with Program(rows=150, columns=200) as p:
        p.paste("w = summary_writer(\"runs/a\")\nfor i in range(5): w.scalar(\"loss\", 1.0 / (i + 1), i)\n")
        p.send("\r")
        p.until(lambda: os.path.exists(p.folder + "/runs/a") and p.shows(r"^\[2\]>") and not p.shows("running"))
        for mark in MARKED:
            shutil.copytree(p.folder + "/runs/a", p.folder + "/runs/" + mark.replace("/", "_"))
        assert len(os.listdir(p.folder + "/runs")) == 41
        p.send("\x18p")
        p.until("<39")
        p.send("\x18o")
        for _ in range(41):  # all of them in the curves
            p.send(" j")
        p.settle()
        harmless(p, "runs")
        p.send("\x1bOQ")
        harmless(p, "curves of runs", [])
