# Every pane at five sizes in three sets of characters, the colours of terminals, and pictures of the panes: text files
# in pictures/ that a change of looks changes. PICTURES=write tests/screen/run-terminal makes them anew.
import difflib, os, re
from emulator import Program, masked, redrawn

PANES = {"curves": "\x1bOQ", "tape": "\x1bOR", "log": "\x1b[18~", "variables": "\x1b[20~", "runs": "\x18p", "images": "\x18i", "help": "\x1bOP"}
SIZES = ((60, 200), (40, 120), (24, 80), (10, 40), (4, 20))
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pictures")
CELLS = (
    "import math\nfor i in range(100):\n  plot('loss', math.exp(-i / 20))\n  plot('val_loss', math.exp(-i / 25) + 0.1)\n"
    "  plot('accuracy', nan if 40 < i < 45 else 1 - math.exp(-i / 20))\n",
    "w = Variable([[1.0, 2.0], [3.0, 4.0]], name='w')\nx = ones((3, 2))\nwith GradientTape(persistent=True) as tape:\n"
    "  y = tanh(x @ w)\n  loss = mean(y * y)\n",
    "tape.gradient(loss, w)",
    "writer = summary_writer('runs/first')\nfor i in range(20): writer.scalar('loss', 1 / (1 + i), i)\n",
    "show(arange(64, dtype=float32).reshape((8, 8)))",
    "for i in range(40): print('line', i, 'of the log')\n")


def fill(p):
    for number, cell in enumerate(CELLS):
        p.paste(cell)
        p.send("\r")
        p.until(lambda: p.shows(r"^\[%d\]>" % (number + 2)) and not p.shows("running"))


def panes(p):
    """Opens one pane after the other."""
    for name, key in PANES.items():
        p.send(key)
        yield name
        p.send("\x181")


def every_pane_at_every_size(glyphs, **environment):
    with Program(rows=24, columns=80, **environment) as p:
        p.enter("%set glyphs " + glyphs)
        fill(p)
        for rows, columns in SIZES:
            p.resize(rows, columns)
            for name in panes(p):
                p.settle(0.05)
                assert p.is_alive(), "%s at %dx%d: ended with %s" % (name, columns, rows, p.status)
            redrawn(p)
        assert not p.model.strange, p.model.strange
        return bytes(p.raw)


def case_every_pane_at_every_size():
    every_pane_at_every_size("braille")


def case_every_pane_in_blocks_at_every_size():
    every_pane_at_every_size("block")


def case_every_pane_in_ascii_at_every_size():
    assert every_pane_at_every_size("ascii", LC_ALL="C").isascii(), "bytes that are not ASCII"


def case_colours():
    for environment, used in (({"NO_COLOR": "1"}, set()), ({"TERM": "xterm"}, {"foreground", "background"}),
                              ({"TERM": "xterm-256color"}, {"foreground5", "background5"}), ({"TERM": "vt100"}, set())):
        with Program(rows=24, columns=80, **environment) as p:
            fill(p)
            for _ in panes(p):
                p.settle(0.05)
            assert p.model.used <= used | {"foreground", "background"} if used else not p.model.used, (environment, p.model.used)
            assert not used or p.model.used & used, (environment, p.model.used)


def case_pictures():
    wrong = []
    for rows, columns in ((40, 120), (24, 80)):
        with Program(rows=rows, columns=columns) as p:
            fill(p)
            for name in panes(p):
                p.settle(0.3)
                p.send("\x1b[24~")
                p.settle(0.1)
                wrong += compare("%s-%dx%d.txt" % (name, columns, rows), steady(p.text()))
    assert not wrong, "\n".join(wrong)


def steady(text):
    """Without times and memory."""
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|MB|GB|KB)\b", "-- \\2", masked(text))
    return text + "\n"


def compare(name, got):
    path = os.path.join(FOLDER, name)
    if os.environ.get("PICTURES") == "write":
        os.makedirs(FOLDER, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(got)
    with open(path, encoding="utf-8") as file:
        wanted = file.read()
    return difflib.unified_diff(wanted.splitlines(), got.splitlines(), "pictures/" + name, "now", lineterm="", n=0) if got != wanted else []
