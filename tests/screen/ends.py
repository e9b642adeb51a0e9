# How it ends: hang-ups, signals, suspension. The terminal is as it was before, and the work is kept.
import os, signal, subprocess, time
from emulator import SLOWNESS, Program

LIMIT = 2 * SLOWNESS


def hang_up(keys, pattern, ignored):
    with Program(ignored=ignored) as p:
        p.enter("kept = 41 + 1")
        p.until(r"^\[2\]>$")
        p.send(keys)
        p.until(pattern)
        home = p.home
        os.close(p.fd)
        p.fd = -1
        assert p.ended(LIMIT), "lives %g s after the hang-up" % LIMIT
    with Program(home=home, ready="left by a session") as p:  # the journal has what was there
        p.send("\r")
        p.until(r"> kept = 41 \+ 1")


def case_hang_up_while_idle():
    hang_up("half", r"> half", ())
    hang_up("half", r"> half", (signal.SIGHUP,))


def case_hang_up_while_a_cell_runs():
    hang_up("while True: pass\r\r", r"running", (signal.SIGHUP,))
    hang_up("while True: print(1)\r\r", r"^1$", (signal.SIGHUP,))


def case_hang_up_while_input_waits():
    hang_up('input("who? ")\r', r"^who\?", (signal.SIGHUP,))


def case_curves_survive_a_kill():
    with Program() as p:
        p.paste("import time\nfor i in range(100000):\n  plot('loss', 1 / (1 + i))\n  time.sleep(0.01)\n")
        p.send("\r\x1bOQ")
        p.until(r"loss: last 0\.0")
        time.sleep(1.5)  # the journal is written once a second
        home = p.home
        p.kill()
    with Program(home=home, ready="left by a session") as p:
        p.send("\r\x1bOQ")
        p.until(r"loss: last 0\.0")
        p.enter("plot('loss', 5)")  # a new run of that name goes on from its own beginning
        p.until("loss: last 5 at 0")


def descendants(process):
    """The program under a shell."""
    found = subprocess.run(["pgrep", "-P", str(process), "tapedeck"], capture_output=True, text=True).stdout.split()
    assert found, "the program isn't there"
    return int(found[0])


def given_back(p, how):
    modes = p.model.modes
    assert not modes.get(1049), how + ": still on the other screen"
    assert modes.get(25, True), how + ": the cursor is gone"
    assert not modes.get(2004), how + ": pastes are still marked"
    assert not modes.get(1002) and not modes.get(1006), how + ": the mouse still reports"


def end_with(how, code, face=""):
    script = 'stty -a >before; "$TAPEDECK" %s; echo code $?; stty -a >after; echo over; exec cat' % face
    with Program(command=["sh", "-c", "trap : INT; " + script]) as p:
        p.enter("6 * 7")
        p.until("= 42")
        if not face:
            p.enter("%set mouse on")
            p.until("mouse: on")
            assert p.model.modes[1002] and p.model.modes[2004] and p.model.modes[1049]
        how(p) if callable(how) else os.kill(descendants(p.process), how)
        p.until("^code %d$" % code)
        p.until("^over$")
        given_back(p, str(how))
        with open(p.folder + "/before") as before, open(p.folder + "/after") as after:
            assert before.read() == after.read(), "%s: other modes of the terminal" % how
        home = p.home
    if not callable(how) and not face:
        with Program(home=home, ready="left by a session") as p:
            p.send("\r")
            p.until(r"> 6 \* 7")


SIGNALS = ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGABRT, 134), (signal.SIGSEGV, 139), (signal.SIGBUS, 135),
           (signal.SIGFPE, 136), (signal.SIGILL, 132), (signal.SIGQUIT, 131))


def case_signals_give_the_terminal_back():
    for number, code in SIGNALS:
        end_with(number, code)


def case_signals_end_the_plain_face():
    for number, code in SIGNALS:
        end_with(number, code, "--line")


def case_a_signal_while_a_cell_cannot_be_stopped():
    with Program() as p:
        p.paste("while True:\n  try:\n    while True: pass\n  except BaseException: pass\n")
        p.send("\r")
        p.until("running")
        os.kill(p.process, signal.SIGTERM)
        assert p.ended(3 * SLOWNESS) and p.status == 143, "ended with %s" % getattr(p, "status", "nothing")


def case_exits_give_the_terminal_back():
    end_with(lambda p: p.send("exit(3)\r"), 3)
    end_with(lambda p: p.send("\x04y"), 0)
    end_with(lambda p: p.send("exit(4)\x1b\r"), 4)
    end_with(lambda p: p.send("quit\ry"), 0)
    end_with(lambda p: p.send("exit\r"), 0, "--line")


def suspend(keys, pattern):
    with Program(command=["bash", "--norc", "-i"], ready=r"#|\$") as p:
        p.enter("bind 'set enable-bracketed-paste off'", "stty -a >before", '"$TAPEDECK"')
        p.until(r"^\[1\]>")
        p.enter("%set mouse on")
        p.until("mouse: on")
        p.send(keys)
        p.until(pattern)
        p.send("\x1a")
        p.until("Stopped")
        p.enter("stty -a >after; echo over")
        p.until("^over")
        given_back(p, "suspended")
        with open(p.folder + "/before") as before, open(p.folder + "/after") as after:
            assert before.read() == after.read(), "suspended: other modes of the terminal"
        p.resize(20, 70)
        p.enter("fg")
        p.until(lambda: all(p.model.modes[mode] for mode in (1002, 2004, 1049)))
        p.until(pattern)
        p.until(lambda: p.text().split("\n")[19].startswith(" "))


def case_suspend_and_return():
    suspend("kept", r"> kept$")
    suspend("while True: pass\r\r", "running")
