# A terminal for the tests: the program runs on a pseudo-terminal, and a small model of xterm shows what a user would
# see. The model knows what curses sends to xterm; whatever else comes is kept in "strange", so that nothing that data
# smuggled in goes unseen.
import codecs, concurrent.futures, fcntl, multiprocessing, os, pty, re, select, signal, struct, tempfile, termios, time
import unicodedata

SLOWNESS = float(os.environ.get("SLOWNESS", "1"))
PATIENCE = 40 * SLOWNESS
CASES_AT_ONCE = 6
TOKEN = re.compile(r"\x1b\[([<-?]?)([0-9;:]*)([ -/]*)([@-~])|\x1b([()*+])(.)|\x1b([P\]_^X])(.*?)(?:\x07|\x1b\\)|"
                   r"\x1b([^\[()*+P\]_^X])|([\x00-\x1a\x1c-\x1f\x7f-\x9f])|([^\x00-\x1f\x7f-\x9f]+)", re.S)


def width(character):
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


BLANK = (" ", ())


def blanks(count):
    return [BLANK] * count


class Model:
    def __init__(self, rows, columns):
        self.modes, self.strange, self.rest, self.last = {}, [], "", " "
        self.style, self.used = {}, set()
        self.resize(rows, columns)

    def resize(self, rows, columns):
        old = getattr(self, "grid", [])
        self.rows, self.columns = rows, columns
        self.grid = [[old[r][c] if r < len(old) and c < len(old[r]) else BLANK for c in range(columns)] for r in range(rows)]
        self.top, self.bottom = 0, rows - 1
        self.row, self.column = min(getattr(self, "row", 0), rows - 1), min(getattr(self, "column", 0), columns - 1)
        self.saved, self.wraps = (0, 0), False

    def change_screen(self):
        """To the other of the two screens; its size may have changed meanwhile."""
        other = getattr(self, "other", ([], 0, 0))
        self.other = (self.grid, self.row, self.column)
        self.grid, self.row, self.column = other
        self.resize(self.rows, self.columns)

    def feed(self, text):
        text = self.rest + text
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match:
                at = match.end()
                self.take(match)
            elif len(text) - at < 4096:  # a sequence that is not whole yet
                break
            else:
                self.strange.append(text[at:at + 20])
                at += 1
        self.rest = text[at:]

    def take(self, match):
        private, parameters, middle, final, set_, _, string, body, short, control, plain = match.groups()
        if plain:
            for character in plain:
                self.put(character)
        elif control:
            self.control(control)
        elif final:
            self.csi(private, [int(p or 0) for p in parameters.split(";")] if parameters else [0], middle + final, match.group())
        elif string:
            if not body.startswith("Gi=31,") and not body.startswith("Ga="):
                self.strange.append(match.group())
        elif short == "M":
            self.scroll_down() if self.row == self.top else self.move(self.row - 1, self.column)
        elif short == "7":
            self.saved = (self.row, self.column)
        elif short == "8":
            self.move(*self.saved)
        elif not set_ and short not in "=>":
            self.strange.append(match.group())

    def move(self, row, column):
        self.row, self.column = max(0, min(row, self.rows - 1)), max(0, min(column, self.columns - 1))
        self.wraps = False

    def put(self, character):
        wide = width(character)
        if not wide:
            column = self.column - (0 if self.wraps else 1)
            if column > 0 and not self.grid[self.row][column][0]:
                column -= 1
            text, style = self.grid[self.row][max(column, 0)]
            self.grid[self.row][max(column, 0)] = (text + character, style)
            return
        if self.wraps or self.column + wide > self.columns:
            self.move(self.row, 0)
            self.line_feed()
        line = self.grid[self.row]
        if not line[self.column][0] and self.column:
            line[self.column - 1] = BLANK
        style = tuple(sorted(self.style.items()))
        line[self.column] = (character, style)
        if wide == 2 and self.column + 1 < self.columns:
            line[self.column + 1] = ("", style)
        end = self.column + wide
        if end < self.columns and not line[end][0]:
            line[end] = BLANK
        self.wraps = end >= self.columns
        self.column = min(end, self.columns - 1)
        self.last = character

    def line_feed(self):
        if self.row == self.bottom:
            del self.grid[self.top]
            self.grid.insert(self.bottom, blanks(self.columns))
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def scroll_down(self):
        del self.grid[self.bottom]
        self.grid.insert(self.top, blanks(self.columns))

    def control(self, c):
        if c == "\r":
            self.move(self.row, 0)
        elif c == "\n":
            self.wraps = False
            self.line_feed()
        elif c == "\b":
            self.move(self.row, self.column - 1)
        elif c == "\t":
            self.move(self.row, (self.column // 8 + 1) * 8)
        elif c not in "\x0e\x0f\x07\x00":
            self.strange.append(c)

    def csi(self, private, p, final, whole):
        n, line = max(p[0], 1), self.grid[self.row]
        if private == "?" and final in "hl":
            if 1049 in p and self.modes.get(1049, False) != (final == "h"):
                self.change_screen()
            for mode in p:
                self.modes[mode] = final == "h"
        elif private or final in ("c", "n", "t", "!p"):
            if whole not in ("\x1b[c", "\x1b[!p", "\x1b[22;0;0t", "\x1b[23;0;0t"):
                self.strange.append(whole)
        elif final in "Hf":
            self.move(n - 1, max(p[1], 1) - 1 if len(p) > 1 else 0)
        elif final in "ABCD":
            self.move(self.row + {"A": -n, "B": n}.get(final, 0), self.column + {"C": n, "D": -n}.get(final, 0))
        elif final in "G`":
            self.move(self.row, n - 1)
        elif final == "d":
            self.move(n - 1, self.column)
        elif final == "K":
            first, last = {0: (self.column, self.columns), 1: (0, self.column + 1)}.get(p[0], (0, self.columns))
            line[first:last] = blanks(last - first)
        elif final == "J":
            first, last = {0: (self.row + 1, self.rows), 1: (0, self.row)}.get(p[0], (0, self.rows))
            for row in range(first, last):
                self.grid[row] = blanks(self.columns)
            if p[0] < 2:
                self.csi("", p, "K", whole)
        elif final == "X":
            line[self.column:self.column + n] = blanks(min(n, self.columns - self.column))
        elif final == "P":
            n = min(n, self.columns - self.column)
            del line[self.column:self.column + n]
            line += blanks(n)
        elif final == "@":
            n = min(n, self.columns - self.column)
            line[self.column:self.column] = blanks(n)
            del line[self.columns:]
        elif final in "LM" and self.top <= self.row <= self.bottom:
            for _ in range(min(n, self.rows)):
                del self.grid[self.bottom if final == "L" else self.row]
                self.grid.insert(self.row if final == "L" else self.bottom, blanks(self.columns))
        elif final == "r":
            self.top, self.bottom = n - 1, min((p[1] if len(p) > 1 and p[1] else self.rows), self.rows) - 1
            self.move(0, 0)
        elif final == "S" or final == "T":
            for _ in range(n):
                del self.grid[self.top if final == "S" else self.bottom]
                self.grid.insert(self.bottom if final == "S" else self.top, blanks(self.columns))
        elif final == "b":
            for _ in range(n):
                self.put(self.last)
        elif final == "Z":
            self.move(self.row, (self.column - 1) // 8 * 8)
        elif final == "m":
            self.paint(p)
        elif final not in ("l", "h"):
            self.strange.append(whole)

    def paint(self, p):
        """SGR: the look of what is written from now on; "used" keeps all that was asked for."""
        while p:
            n = p.pop(0)
            part = "foreground" if 30 <= n % 60 < 40 else "background"
            if n == 0:
                self.style = {}
            elif n < 10:
                self.style[str(n)] = True
            elif n < 30:
                for attribute in [1, 2] if n == 22 else [n - 20]:
                    self.style.pop(str(attribute), None)
            elif n in (38, 48):
                self.style[part] = tuple(p[:2])
                self.used.add(part + str(p[0]))
                del p[:2]
            elif n in (39, 49):
                self.style.pop(part, None)
            else:
                self.style[part] = n
                self.used.add(part)

    def text(self):
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self.grid)


class Program:
    """The program, or another command, on a terminal of its own in a fresh folder."""

    def __init__(self, *arguments, rows=24, columns=80, command=None, ready=r"^\[1\]>|Enter edit", home=None,
                 directory=None, ignored=(), **environment):
        self.home = home or tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.folder = directory or self.home.name
        self.model, self.raw = Model(rows, columns), bytearray()
        self.decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        command = command or [os.environ["TAPEDECK"], *arguments]
        settings = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": self.home.name, "INPUTRC": "/dev/null", **environment}
        self.process, self.fd = pty.fork()
        if not self.process:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(self.folder)
            for name in ("NO_COLOR", "COLUMNS", "LINES", "XDG_DATA_HOME", "TMUX", "STY"):
                os.environ.pop(name, None)
            os.environ.update({name: value for name, value in settings.items() if value is not None})
            os.execvp(command[0], command)
        self.alive = True
        if ready:
            self.until(ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        if self.alive:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.alive = False
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def read(self, seconds=0.0, most=1 << 16):
        """What came within some seconds, shown on the model; b"" when nothing did."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.fd, most)
        except OSError:
            data = b""
        self.raw += data
        self.model.feed(self.decoder.decode(data))
        return data

    def send(self, data):
        """Writes all of it, and reads what comes meanwhile."""
        data = data.encode() if isinstance(data, str) else data
        while data:
            readable, writable, _ = select.select([self.fd], [self.fd], [], PATIENCE)
            if readable:
                self.read()
            if writable:
                data = data[os.write(self.fd, data[:1024]):]
            if not readable and not writable:
                raise AssertionError("the program reads no keys")

    def text(self):
        return self.model.text()

    def shows(self, pattern):
        return re.search(pattern, self.text(), re.M)

    def until(self, pattern, seconds=PATIENCE):
        """Reads until the screen matches the pattern, or a function is true."""
        end = time.monotonic() + seconds
        test = pattern if callable(pattern) else lambda: self.shows(pattern)
        while not test():
            if time.monotonic() > end or (not self.read(0.05) and not self.is_alive()):
                raise AssertionError("never shown: %s\n%s" % (pattern, self.text()))

    def gone(self, pattern):
        self.until(lambda: not self.shows(pattern))

    def settle(self, seconds=0.4):
        """Reads until nothing came for some time."""
        while self.read(seconds):
            pass

    def enter(self, *lines):
        for line in lines:
            self.send(line + "\r")

    def paste(self, text):
        self.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def resize(self, rows, columns):
        self.read()
        self.model.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_alive(self):
        if self.alive:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self.alive, self.status = False, os.waitstatus_to_exitcode(status)
        return self.alive

    def ended(self, seconds):
        """Whether it ends within some seconds; its output is read."""
        end = time.monotonic() + seconds
        while self.is_alive() and time.monotonic() < end:
            if self.fd < 0 or not self.read(0.02):
                time.sleep(0.01)
        return not self.alive


def masked(text):
    """The screen without what differs from run to run: load, memory, times, rates."""
    title, _, rest = text.partition("\n")
    text = re.sub(r" +", " ", re.sub(r"CPU +\d+% +[\d.]+ [MG]B", "CPU", title)) + "\n" + rest
    return text


def redrawn(program):
    """Asserts that the screen is what a fresh draw shows."""
    program.send("\x1b[24~")  # F12 does nothing, but takes what the status line says away
    program.settle()
    before = masked(program.text())
    program.send("\x0c")
    program.settle()
    after = masked(program.text())
    assert before == after, "not what a fresh draw shows:\n%s\n---- fresh:\n%s" % (before, after)


def attempt(part, name, case):
    """What there is to say of a case, and whether it failed; in a process of its own."""
    started = time.monotonic()
    try:
        case()
    except AssertionError as error:
        return "%s/%s: %s\n" % (part, name, error), True
    took = time.monotonic() - started
    return "%s/%s %.1f s\n" % (part, name, took) if os.environ.get("TIMES") else "", False


def run(part, cases):
    """Runs the functions case_NAME that T asks for, as tests/run wants it; several at once, since most of them wait."""
    wanted, failed = os.environ.get("T", ""), 0
    names = [n[5:] for n in cases if n.startswith("case_") and ("%s/%s" % (part, n[5:])).startswith(wanted)]
    with concurrent.futures.ProcessPoolExecutor(CASES_AT_ONCE, multiprocessing.get_context("fork")) as pool:
        for said, is_failure in pool.map(attempt, [part] * len(names), names, [cases["case_" + n] for n in names]):
            print(said, end="", flush=True)
            failed += is_failure
    print("%d passed, %d failed" % (len(names) - failed, failed))
    return failed == 0
