# Shell commands that need the terminal: they get it, keys and Ctrl-C reach them, and the screen comes back.
import os, shutil, signal
from emulator import SLOWNESS, Program, redrawn


def is_lent(p):
    return not p.model.modes.get(1049) and not p.model.modes.get(2004)


def lend(p, line):
    p.enter(line)
    p.until(lambda: is_lent(p))


def is_back(p, number):
    p.until(lambda: p.model.modes.get(1049) and p.model.modes.get(2004))
    p.until(r"^\[%d\]>$" % number)
    redrawn(p)


def case_a_command_reads_what_is_typed():
    with Program() as p:
        lend(p, "!printf 'your name? '; read x; echo \"$x, hello\"")
        p.until(r"^your name\? $|^your name\?$")
        p.enter("somebody")
        is_back(p, 2)
        assert p.shows(r"^your name\? somebody, hello|^somebody, hello"), p.text()
        p.enter("!echo beside; cat /dev/null")
        p.until("^beside")
        assert p.model.modes[1049], "left the screen for nothing"


def case_ctrl_c_reaches_the_command():
    with Program() as p:
        lend(p, "!sh")
        p.until("[#$] $|[#$]$")
        p.enter("echo $((6 * 7)); sleep 1000")
        p.until("^42$")
        p.settle()  # a signal between the fork of sleep and its start is lost
        p.send("\x03")
        p.until("[#$] *$")  # what is typed before a shell asks again may be lost
        p.enter("echo $((7 * 8))")
        p.until("56$")
        p.enter("exit 3")
        is_back(p, 2)
        assert p.shows("the command ended with exit code 3") and not p.shows("Keyboard"), p.text()
        p.enter("1 + 1")
        p.until("= 2$")


def case_raw_keys():
    with Program() as p:
        lend(p, "!stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | od -An -tx1; stty sane")
        p.until("^ready")
        p.send("\x03")
        is_back(p, 2)
        assert p.shows(r"^ *03$"), p.text()


def case_full_screen_programs():
    for command, keys, shown in (("less numbers", "q", "^line 5"), ("vi numbers", "\x1b:q!\r", "^line 5")):
        if not shutil.which(command.split()[0]):
            continue
        with Program() as p:
            with open(p.folder + "/numbers", "w") as file:
                file.write("".join("line %d\n" % i for i in range(100)))
            p.enter("!" + command)
            p.until(shown)
            p.until(lambda: not p.shows(r"\[1\]>"))
            p.settle()  # it has its terminal's answers, or waits for none
            p.resize(30, 90)
            p.until("^line 26")
            p.send(keys)
            is_back(p, 2)
            assert not p.shows(shown), p.text()
            assert len(p.text().split("\n")[29].strip()) > 5, "the size isn't the new one\n" + p.text()


def case_suspended_with_its_command():
    with Program(command=["bash", "--norc", "-i"], ready=r"#|\$") as p:
        p.enter("bind 'set enable-bracketed-paste off'", '"$TAPEDECK"')
        p.until(r"^\[1\]>")
        lend(p, "!cat")
        p.settle()
        p.send("first\r")
        p.until("^first\n+first$")
        p.send("\x1a")
        p.until("Stopped")
        p.enter("echo the shell")
        p.until("^the shell")
        p.enter("fg")
        p.until("^fg|TAPEDECK")
        p.settle()
        p.send("second\r")
        p.until("^second\n+second$")
        p.send("\x04")
        is_back(p, 2)


def case_a_signal_while_a_command_has_the_terminal():
    script = 'stty -a >before; "$TAPEDECK"; echo code $?; stty -a >after; echo over; exec cat'
    with Program(command=["sh", "-c", script]) as p:
        lend(p, "!stty -echo raw; echo ready; cat")
        p.until("^ready")
        os.kill(int(open("/proc/%d/task/%d/children" % (p.process, p.process)).read().split()[0]), signal.SIGTERM)
        p.until("code 143$")
        p.until("over$")
        with open(p.folder + "/before") as before, open(p.folder + "/after") as after:
            assert before.read() == after.read(), "other modes of the terminal"


def case_the_plain_prompt_lends_it_too():
    with Program("--line") as p:
        p.enter("!cat")
        p.settle(0.3)
        p.send("typed\r")
        p.until("^typed\n+typed$")
        p.send("\x04")
        p.until(r"^\[2\]>")
        p.enter("!sh")
        p.until("[#$] $|[#$]$")
        p.enter("sleep 1000")
        p.settle(0.2)
        p.send("\x03")
        p.enter("exit")
        p.until(r"^\[3\]>")


def case_without_a_terminal_to_lend():
    with Program("-e", "!cat; echo empty\n!cat </dev/tty\n", ready=None) as p:
        assert p.ended(20 * SLOWNESS), "it hangs"
        p.settle(0)  # what it had written before its end
        assert p.shows("^empty") and p.shows("the command wants the terminal") and p.status == 1, p.text()
