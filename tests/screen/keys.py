# Every key of every row of repl/screen/request.h, pressed in the real program where it counts, and what it does there.
# A row without an own expectation must at least change what the screen shows.
import concurrent.futures, os, re, tempfile
from emulator import Program

SOURCE = os.path.join(os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")),
                      "repl/screen/request.h")
ROWS = re.findall(r'^  X\((\w+), ([A-Z]+), "((?:[^"\\]|\\.)*)"', open(SOURCE).read(), re.M)
NAMED = {"Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
         "PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "S-Up": "\x1b[1;2A", "S-Down": "\x1b[1;2B", "Enter": "\r", "M-Enter": "\x1b\r",
         "S-Enter": "\x1b[13;2u", "C-Enter": "\x1b[13;5u", "Esc": "\x1b", "Space": " ", "Tab": "\t", "S-Tab": "\x1b[Z",
         "Backspace": "\x7f", "S-F5": "\x1b[15;2~", "F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS", "F5": "\x1b[15~",
         "F6": "\x1b[17~", "F7": "\x1b[18~", "F8": "\x1b[19~", "F9": "\x1b[20~", "F10": "\x1b[21~", "Delete": "\x1b[3~"}
DECK = ("# %%\nalpha = 1\n\n# %%\nfor i in range(200): print('row', i)\n\n# %%\nalpha + 41\n\n# %%\n1/0\n\n# %%\n" +
        "\n\n# %%\n".join("more_%d = %d" % (i, i) for i in range(20)) + "\n")
CODE = {
    "CURVES": "for i in range(60):\n  plot('loss', 1 / (1 + i))\n  plot('accuracy', i)\n",
    "TAPE": "def f(x): return sum(exp(x) * x / 0)\nx = Variable([1.0, 2.0])\nwith GradientTape(persistent=True) as t:\n  y = f(x)\n  z = y * y\n",
    "VARIABLES": "a = Variable([1.0, 2.0])\nb = zeros((100, 100))\nc = [Variable(1.0)]\n" + "".join("v%d = ones(%d)\n" % (i, i) for i in range(1, 40)),
    "RUNS": "for n in ('a', 'b'):\n  w = summary_writer(f'runs/{n}')\n  for i in range(5): w.scalar('loss', 1.0 / (i + 1), i)\n",
    "IMAGES": "for i in range(3): show(random.uniform((8, 8)))\n",
    "LOG": "for i in range(200): print('line', i)\n",
    "HELP": "1\n"}
OPENS = {"CURVES": "F2", "TAPE": "F3", "VARIABLES": "F9", "RUNS": "C-x_p", "IMAGES": "C-x_i", "LOG": "F7", "HELP": "F1"}
TRAIN = "import time\nfor i in progress(range(100000), 'step'):\n  time.sleep(0.01)\n  plot('loss', i)\n"


def bytes_of(key):
    """What xterm sends for a key of the table: "C-x_h" is two of them."""
    parts = key.split("_") if len(key) > 2 and "_" in key[1:-1] else [key]
    return "".join(NAMED.get(k) or (chr(ord(k[2]) & 31) if k[:2] == "C-" else "\x1b" + k[2:] if k[:2] == "M-" else k) for k in parts)


def looks(p):
    text = [[cell for cell in line] for line in p.model.grid[1:]]
    return text, p.model.row, p.model.column, tuple(p.model.modes.items())


# ---- what is there before the key ----

def prompt(p, code="1 + 1"):
    p.paste(code)
    p.send("\r")
    p.until(r"^\[2\]>")


def paused(p):
    p.paste(TRAIN)
    p.send("\r")
    p.until("it/s")
    p.send("\x03")
    p.until("F5 go on|paused at")


def with_pane(kind):
    def start(p):
        prompt(p, CODE[kind])
        p.send(bytes_of(OPENS[kind]))
        p.settle(0.15)
        p.send("\x18o")
        p.settle(0.15)
    return start


def typed(text):
    return lambda p: (prompt(p), p.send(text), p.settle(0.1))


def walking(keys=""):
    def start(p):
        p.settle(0.1)
        p.send("\x1b")
        p.until("Enter edit")
        p.send("g")
        p.settle(0.1)
        for key in keys.split():
            p.send(bytes_of(key))
            p.settle(0.2)
    return start


# NAME: (what is there before, what the screen shows after, or a function). None: it must change what is shown.
TABLE = {
    "HELP": (prompt, "tapedeck in a minute"), "SHOW_CURVES": (prompt, "no curve yet"), "SHOW_TAPE": (prompt, r"│ *tape"),
    "SHOW_CELLS": (prompt, "Enter edit"), "RESUME": (paused, lambda p: not p.shows("F5 go on")),
    "STEP": (paused, None), "STOP": (paused, "interrupted|KeyboardInterrupt|stopped"), "SHOW_LOG": (prompt, r"│log"),
    "SHOW_VARIABLES": (prompt, r"│variables"), "SHOW_RUNS": (prompt, r"│runs in"), "SHOW_IMAGES": (prompt, "no image yet"),
    "RUN_ALL": (walking(), r"^\[\d+\]= 42|row 199"), "QUIT": (prompt, "not saved"), "SAVE": (prompt, "save as"),
    "OTHER": (with_pane("CURVES"), "F1 help"), "CLOSE_PANE": (with_pane("CURVES"), lambda p: not p.shows("curves, |│")),
    "ZOOM": (with_pane("CURVES"), lambda p: not p.shows("│curves")), "REDRAW": (prompt, lambda p: p.shows("1 \\+ 1")),
    "SUSPEND": (prompt, lambda p: p.shows("1 \\+ 1")), "EXPORT": (prompt, "[Ss]creen|saved|written|\\.txt"),
    "SUBMIT": (typed("6 * 7"), r"^\[2\]= 42"), "LEAVE_EDIT": (typed("6"), "Enter edit"),
    "SCROLL_UP": (lambda p: (walking()(p), p.send("G"), p.settle(0.1), p.send("i")), None),
    "SCROLL_DOWN": (lambda p: (walking()(p), p.send("i"), p.settle(0.1), p.send("\x1b[5~")), None),
    "REPLAY": (lambda p: (prompt(p, "u = 1"), p.enter("v = 2"), p.until(r"^\[3\]>"), p.send("\x1b[A\x1b[A"), p.until("> u = 1$")), r"^\[4\]> v = 2"),
    "CALL_HELP": (typed("tanh"), "hyperbolic tangent|tanh\\("),
    "CELL_SPLIT": (lambda p: (walking("Enter")(p), p.send("\x1b[H\x1b[C\x1b[C")), r"> al$"),
    "CELL_RUN": (walking("j j"), "NameError"), "CELL_RUN_NEXT": (walking(), r"^\[1\]> alpha"),
    "CELL_RUN_BELOW": (walking("j j j"), "ZeroDivision"), "CELL_RUN_ABOVE": (walking("j j"), "row 199"),
    "CELL_RUN_STALE": (lambda p: (walking("r j j r g Enter")(p), p.send("0\x1b\r"), p.settle(0.3), p.send("g")), r"^\[\d\]= 51"),
    "CELL_EDIT": (walking(), "Alt-Enter run"), "CELL_ABOVE": (walking("j"), "Alt-Enter run"), "CELL_BELOW": (walking(), "Alt-Enter run"),
    "CELL_DELETE": (walking(), lambda p: not p.shows("alpha = 1")), "CELL_PASTE": (walking("d_d"), "alpha = 1"),
    "CELL_COPY": (walking(), "copied|^"), "CELL_MOVE_DOWN": (walking(), None), "CELL_MOVE_UP": (walking("j"), None),
    "CELL_CODE": (walking("m"), None), "CELL_UNDO": (walking("d_d"), "alpha = 1"),
    "CELL_REDO": (walking("d_d u"), lambda p: not p.shows("alpha = 1")), "CELL_FOLD": (walking("j r"), None),
    "CELL_CLEAR": (walking("j r"), lambda p: not p.shows("row 19")),
    "CELL_ERROR": (walking("j j j r"), "Alt-Enter run"), "CELL_UP": (walking("j"), None), "CELL_FIRST": (walking("G"), None),
    "CELL_PAGE_UP": (walking("G"), None), "CELL_SEARCH": (walking(), "^/"), "CELL_LEAVE": (walking(), "F1 help"),
    "CELL_SEARCH_NEXT": (lambda p: (walking("/")(p), p.send("more\r"), p.settle(0.2)), None),
    "CELL_SEARCH_BACK": (lambda p: (walking("/")(p), p.send("more\r"), p.settle(0.2)), None),
    "OUTPUT_UP": (walking("j r"), None), "OUTPUT_DOWN": (walking("j r S-Up"), None), "COMMAND_LINE": (walking(), "^:"),
    "PANE_UP": (lambda p: (with_pane("LOG")(p)), None), "PANE_DOWN": (lambda p: (with_pane("VARIABLES")(p)), None),
    "PANE_PAGE_UP": (with_pane("LOG"), None), "PANE_PAGE_DOWN": (with_pane("VARIABLES"), None), "PANE_FIRST": (with_pane("LOG"), None),
    "PANE_LAST": (with_pane("VARIABLES"), None), "PANE_LEFT": (with_pane("CURVES"), None), "PANE_RIGHT": (with_pane("CURVES"), None),
    "PANE_OPEN": (with_pane("VARIABLES"), None), "PANE_BACK": (lambda p: (with_pane("CURVES")(p), p.send("h"), p.settle(0.1)), None),
    "PANE_SEARCH": (with_pane("LOG"), "^/"), "PANE_FILTER": (with_pane("LOG"), "^&"), "PANE_SORT": (with_pane("VARIABLES"), None),
    "PANE_SEARCH_NEXT": (lambda p: (with_pane("LOG")(p), p.send("/line 7\r"), p.settle(0.2)), None),
    "PANE_SEARCH_BACK": (lambda p: (with_pane("LOG")(p), p.send("/line 7\r"), p.settle(0.2)), None),
    "PANE_LEAVE": (with_pane("LOG"), "F1 help"), "PANE_CLOSE": (with_pane("LOG"), lambda p: not p.shows("│")),
    "CURVES_LOG": (with_pane("CURVES"), "curves, log"), "CURVES_SMOOTH": (with_pane("CURVES"), "smoothing"),
    "CURVES_IN": (with_pane("CURVES"), "of the steps"), "CURVES_SAVE": (with_pane("CURVES"), "saved loss.png"),
    "CURVES_OUT": (lambda p: (with_pane("CURVES")(p), p.send("+"), p.until("of the steps")), lambda p: not p.shows("of the steps")),
    "CURVES_ALL": (lambda p: (with_pane("CURVES")(p), p.send("+"), p.until("of the steps")), lambda p: not p.shows("of the steps")),
    "TAPE_BAD": (lambda p: (with_pane("TAPE")(p), p.send("g"), p.settle(0.1)), None), "TAPE_FOLLOW": (with_pane("TAPE"), None),
    "TAPE_USE": (lambda p: (with_pane("TAPE")(p), p.send("g"), p.settle(0.1)), None),
    "RUNS_FOLDER": (with_pane("RUNS"), "older|:"), "RUNS_AGAIN": (with_pane("RUNS"), "runs in"), "RUNS_OVERLAY": (with_pane("RUNS"), r"\* runs/|in curves"),
    "IMAGES_OUT": (lambda p: (with_pane("IMAGES")(p), p.send("+"), p.settle(0.1)), None), "IMAGES_BACK": (with_pane("IMAGES"), "image 2/3"), "IMAGES_SAVE": (with_pane("IMAGES"), "save as"),
    "IMAGES_NEXT": (lambda p: (with_pane("IMAGES")(p), p.send("h"), p.until("image 2/3")), "image 3/3")}
PANES = [(name, key) for name, _, keys in ROWS for key in keys.split() if name in
         ("HELP", "SHOW_CURVES", "SHOW_TAPE", "SHOW_LOG", "SHOW_VARIABLES", "SHOW_RUNS", "SHOW_IMAGES")]
NO_CHANGE = ("REDRAW", "SUSPEND", "CELL_COPY", "TAPE_FOLLOW", "RUNS_AGAIN", "SIZES", "EDITOR")


def start_of(name, context):
    if name in TABLE:
        return TABLE[name]
    if context in CODE:
        return with_pane(context), None
    if name in ("WIDER", "NARROWER", "SIZES"):
        return lambda p: (with_pane("CURVES")(p), p.send("\x18}" if name == "SIZES" else ""), p.settle(0.1)), None
    return {"CELLS": walking(), "PANE": with_pane("LOG"), "EDIT": typed("abc")}.get(context, prompt), None


def press(name, context, key):
    with tempfile.TemporaryDirectory() as home:
        with open(home + "/mine.deck", "w") as file:
            file.write(DECK)
        start, shows = start_of(name, context)
        deck = ["mine.deck"] if context == "CELLS" or name in ("RUN_ALL", "CELL_SPLIT", "SCROLL_UP", "SCROLL_DOWN") else []
        with Program(*deck, rows=24, columns=100, ready=r"^\[1\]>|Esc walks", directory=home, EDITOR="touch") as p:
            start(p)
            p.settle(0.1)
            before = looks(p)
            p.send(bytes_of(key))
            try:
                if callable(shows):
                    p.until(lambda: shows(p), 10)
                elif shows:
                    p.until(shows, 10)
                if name not in NO_CHANGE:
                    p.until(lambda: looks(p) != before, 10)
            except AssertionError as error:
                return "%s by %s in %s: %s\n" % (name, key, context, error)
            return "" if p.is_alive() or name == "QUIT" else "%s by %s: ended with %s\n" % (name, key, p.status)


def case_a_panes_key_opens_it_goes_into_it_and_closes_it():
    for columns, name, key in [(100, *pane) for pane in PANES] + [(50, *pane) for pane in PANES]:
        with Program(rows=24, columns=columns) as p:
            p.send("typed")
            p.until("> typed")
            p.send(bytes_of(key))
            p.until("into the pane")
            p.send("1")
            p.until("> typed1")  # the focus is where it was
            p.send(bytes_of(key))
            p.until("Esc prompt")
            p.send("2" + bytes_of(key))
            p.gone("Esc prompt|into the pane")
            p.send("3")
            p.until("> typed13")


def case_unicode_is_typed_in_a_locale_of_ascii():
    with Program(LC_ALL="C") as p:
        assert bytes(p.raw).isascii(), "bytes that are not ASCII"
        p.send("s = 'caf\u00e9 \u4e2dx")
        p.until("the terminal sends UTF-8: it is kept")
        p.until("> s = 'caf\u00e9 \u4e2dx$")
        p.send("\x7f\x7f'\r")  # whole characters
        p.until(r"^\[2\]>$")
        p.paste("print(s, len(s), '\u00fc')")
        p.send("\x1b[D\x1b[D\x7f\u00f6\r")
        p.until("^caf\u00e9  5 \u00f6")
    with Program("--line", LC_ALL="C") as p:
        for word in ("eins", "f\u00fcnf"):  # in the second line, too
            p.send("'%s\u4e2d\x7f'\r" % word)
            p.until("= '%s'" % word)


def case_every_key_does_something():
    wanted = os.environ.get("KEY", "")
    rows = [(name, context, key) for name, context, keys in ROWS for key in keys.split() if name.startswith(wanted)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        failed = list(pool.map(lambda row: press(*row), rows))
    assert len(rows) > 0 and not any(failed), "".join(failed)
