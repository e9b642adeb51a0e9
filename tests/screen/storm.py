# What a hostile user and a hostile terminal send: sizes, keys, pastes, late answers, slow lines.
import os, random, time
from emulator import PATIENCE, Program, masked, redrawn

KEYS = int(os.environ.get("STORM_KEYS", "10000"))  # 1000000 by hand
SIZES = int(os.environ.get("STORM_SIZES", "300"))
SEED = int(os.environ.get("STORM_SEED", "20"))
SIGNALS = (26, 28)  # Ctrl-Z, and what the terminal itself turns into a signal
PASTED = [c for c in range(256) if c not in (27, *SIGNALS)]
TRAINING = """x, y = random.normal((256, 20)), random.randint(0, 2, (256,))
m = Sequential([Dense(16, "relu"), Dense(2)])
m.compile("adam", CrossEntropy(from_logits=True))
for round in progress(range(100000), "round"):
  for i in progress(range(50), "inner"): plot("made", 1 / (1 + i))
  m.fit(x, y, batch_size=8, epochs=2)
"""


def start_training(program):
    program.paste(TRAINING)
    program.send("\r")
    program.until("it/s")


def stop_training(program):
    program.send("\x18k")
    program.until(lambda: not program.shows(r"\brunning\b|stopping"))


def case_sizes():
    chance = random.Random(SEED)
    with Program() as p:
        start_training(p)
        p.send("\x1bOQ")
        p.send("half")
        edges = [(1, 1), (500, 200), (200, 500), (1, 500), (200, 1), (4, 20), (3, 20), (4, 19), (24, 80)]
        for i in range(SIZES):
            rows, columns = edges[i % 9] if i % 4 == 0 else (chance.randint(1, 200), chance.randint(1, 500))
            p.resize(rows, columns)
            p.read(0.005)
            assert p.is_alive(), "ended at %d x %d with %s" % (columns, rows, p.status)
        p.resize(24, 80)
        p.until(r"> half *(│|$)")
        stop_training(p)
        redrawn(p)
        assert not p.model.strange, p.model.strange


def case_sizes_with_every_pane():
    with Program() as p:
        start_training(p)
        for pane in ("\x1bOQ", "\x1bOR", "\x1b[18~", "\x1b[20~", "\x18p", "\x18i", "\x1bOP"):
            p.send(pane)
            for rows, columns in ((1, 1), (4, 20), (10, 40), (24, 80), (3, 500), (200, 60), (8, 60), (60, 200)):
                p.resize(rows, columns)
                p.read(0.02)
                assert p.is_alive(), "ended at %d x %d with %s" % (columns, rows, p.status)
            p.resize(24, 80)
        stop_training(p)
        redrawn(p)


def typed(chance):
    """Bytes of keys that never run anything, and of a broken line: no Enter, no Esc and no key of a cell."""
    kind = chance.randrange(12)
    if kind < 4:
        return chance.choice("abcdefghijklmnopqrstuvwxyz0123456789 .,()[]{}'\"=+-*/%!?_#@:;<>^~\\|&").encode()
    if kind == 4:
        return bytes([chance.choice([1, 2, 5, 6, 7, 8, 9, 11, 12, 14, 16, 20, 21, 22, 23, 25, 29, 30, 31, 127])])
    if kind == 5:
        return chance.choice([b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[H", b"\x1b[F", b"\x1b[3~", b"\x1b[5~",
                              b"\x1b[6~", b"\x1b[Z", b"\x1b[24~", b"\x1b[1;5C"])
    if kind == 6:
        return b"\x1b[<%d;%d;%dM" % (chance.choice([32, 35, 64, 65, 68]), chance.randrange(300), chance.randrange(100))
    if kind == 7:
        return chance.choice(["\u00e9", "\u8c22", "\U0001f609", "\u0301", "\u200b"]).encode()[:chance.randint(1, 4)]
    if kind == 8:
        return bytes(chance.randrange(128, 256) for _ in range(chance.randint(1, 5)))
    if kind == 9:
        return b"\x1b[?" + bytes(chance.choice(b"0123456789;:") for _ in range(chance.randint(0, 6))) + chance.choice([b"c", b"n", b"y"])
    if kind == 10:
        return chance.choice([b"\x1bP1$r0m\x1b\\", b"\x1b]11;rgb:0/0/0\x07", b"\x1b_Gi=31;OK\x1b\\", b"\x1b[?1;2c", b"\x1b[2;5R"])
    return b"\x1b[200~" + bytes(chance.choice(PASTED) for _ in range(chance.randint(0, 40))) + b"\x1b[201~"


def anything(chance):
    kind = chance.randrange(4)
    if kind == 0:
        return typed(chance)
    if kind == 1:
        return bytes([chance.choice([c for c in range(256) if c not in (4, *SIGNALS)])])
    if kind == 2:
        return chance.choice([b"\x1bOP", b"\x1bOQ", b"\x1bOR", b"\x1bOS", b"\x1b[15~", b"\x1b[17~", b"\x1b[18~", b"\x1b[20~", b"\x1b",
                              b"\x18p", b"\x18i", b"\x18z", b"\x18o", b"\x18-", b"\x18}", b"\r", b"\x1b\r", b"\x1b[1;2A", b"q", b"/", b"&"])
    return b"\x1b[<%d;%d;%d%s" % (chance.randrange(256), chance.randrange(100), chance.randrange(30), chance.choice([b"M", b"m"]))


def send_random(p, make, count):
    chance, sent = random.Random(SEED), b""
    for i in range(count):
        sent += make(chance)
        if len(sent) > 400 or i == count - 1:
            p.send(sent)
            sent = b""
            p.read()
            assert p.is_alive(), "seed %d: ended after %d keys with %s" % (SEED, i, p.status)
    p.send("\x1b\\\x07\x1b[201~")
    p.settle()


def case_keys_run_nothing():
    with Program() as p:
        p.enter('print("before")')
        p.until(r"^before")
        send_random(p, typed, KEYS // 2)
        p.send("\x03\x03")
        p.until(r"^\[2\]>$")
        redrawn(p)
        assert not p.model.strange, p.model.strange


def case_keys_crash_nothing():
    with Program() as p:
        p.enter('print("before")')
        p.until(r"^before")
        send_random(p, anything, KEYS // 2)
        p.resize(30, 100)
        p.settle()
        redrawn(p)
        assert not p.model.strange, p.model.strange


def case_large_pastes():
    with Program() as p:
        text = 'total = 0\n' + "".join("total += %d\n" % (i % 10) for i in range(1 << 16))
        p.paste(text)
        p.until(r"above|total \+= 5", 4 * PATIENCE)
        assert not p.shows(r"^\[1\]= "), "a paste ran by itself"
        p.send("\x03")
        p.until(r"^\[1\]>$")
        p.send("\x1b[200~")  # one that doesn't end yet
        p.send("1 + 1\r2 + 2\r")
        p.send("\x03x" * 8)
        p.settle()
        assert not p.shows(r"= 2"), "ran before the paste was closed"
        p.send("\x1b[201~")
        p.until(r"2 \+ 2")
        assert not p.shows(r"= 2"), "ran before Enter"


def case_late_answers_are_never_typed():
    with Program() as p:
        time.sleep(0.2)
        answers = ["\x1b[?62;4", ";6;9c", "\x1b", "[?1;2c", "\x1b]11;rgb:0000/00", "00/0000\x1b", "\\", "\x1b_Gi=31;", "OK\x1b", "\\",
                   "\x1bP>|xterm(3", "70)\x1b\\", "\x1b[24;80R", "\x1b[8;24;80t", "\x1b[?2026;2$y", "\x1b[0n"]
        for piece in answers:
            p.send(piece)
            p.settle(0.12 if piece != "\x1b" else 0.005)
        p.send("x1")
        p.until(r"^\[1\]> x1$")
        assert p.shows(r"^\[1\]> x1$")


def case_a_pane_tells_that_it_waits():
    """While code runs that no question comes between: keys are answered meanwhile."""
    with Program() as p:
        p.enter("[[1] * 10000] * 60000 == [[1] * 10000] * 60000")
        p.until("running")
        p.send("\x1b[20~")
        p.until(r"variables: \d+  waits \d+ s")
        p.send("typed")
        p.until("> typed", 5)


def case_slow_line():
    speed = 9600.0  # bytes a second, as a line of 96,000 baud
    with Program() as p:
        start_training(p)
        p.send("\x1bOQ")
        p.settle(0)
        begin, got, first_key, keys = time.monotonic(), 0, None, []
        text = ""
        while time.monotonic() - begin < 6:
            budget = int((time.monotonic() - begin) * speed) - got
            if budget > 100:
                got += len(p.read(0.01, budget))
            else:
                time.sleep(0.01)
            if first_key is None and time.monotonic() - begin > 1.5 + len(keys) * 1.0:
                letter = "qwxyz"[len(keys) % 5]
                text += letter
                os.write(p.fd, letter.encode())
                first_key = time.monotonic()
            if first_key and p.shows(r"> " + text + r"\s*(│|$)"):
                keys.append(time.monotonic() - first_key)
                first_key = None
        assert p.shows("it/s"), "the bar isn't shown\n" + p.text()
        assert len(keys) >= 2, "keys aren't answered: %s\n%s" % (keys, p.text())
        if os.environ.get("TIMES"):
            print("slow line: %d bytes/s, keys shown after %s s" % (got / 6, ["%.2f" % k for k in keys]))


def case_idle_sends_nothing():
    with Program() as p:
        p.send("\x1bOQ")
        p.settle(1.2)
        assert p.read(3) == b"", "an idle screen sends bytes"


def case_others_cannot_spoil_the_screen():
    with Program() as p:
        p.enter("!echo to-1; echo to-2 >&2; printf 'no end'")
        p.until(r"no end")
        redrawn(p)
        p.until(r"^\[2\]>$")
        p.enter("!sleep 0.3; echo late >&2")
        p.until(r"^late")
        redrawn(p)
        with open("/proc/%d/fd/1" % p.process, "wb", 0) as stray:  # as a library that prints
            stray.write(b"stray \x1b]0;title\x07 \x1b[2J print\n")
        p.send("\x1b[18~")
        p.until(r"stray .x1b\]0;title")
        redrawn(p)
        assert not p.model.strange, p.model.strange
