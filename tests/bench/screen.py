# The screen's figures: opening to the first prompt, memory over the line face's, bytes that an idle screen sends, how
# long a key takes to be shown while a network trains on MNIST, and what the screen costs a training step. The real
# program on a terminal of 120x40 that this script is.
import fcntl, os, pty, re, select, signal, statistics, struct, sys, tempfile, termios, time

PROGRAM, SOURCE = sys.argv[1:3]
MNIST = os.path.join(os.path.abspath(SOURCE), "samples/data/mnist")
ROWS, COLUMNS = 40, 120
TRAIN = """(x, y), _ = load_mnist("@")
x, y = x.reshape((-1, 784)).astype(float32) / 255, y.astype(int64)
m = Sequential([Dense(64, "relu"), Dense(64, "relu"), Dense(10)])
m.compile("adam", CrossEntropy(from_logits=True))
m.fit(x, y, batch_size=32, epochs=%d)""".replace("@", MNIST)


class Terminal:
    def __init__(self, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.started = time.monotonic()
        self.process, self.fd = pty.fork()
        if not self.process:
            os.chdir(self.folder.name)
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8", HOME=self.folder.name, INPUTRC="/dev/null")
            os.execv(PROGRAM, [PROGRAM, *arguments])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.seen = b""

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return b""
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen = (self.seen + data)[-1 << 20:]
        return data

    def until(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > end:
                sys.exit("never shown: %r" % text)
            self.read(0.01)

    def write(self, text):
        os.write(self.fd, text.encode())

    def drain(self, seconds):
        total, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            total += len(self.read(max(0, end - time.monotonic())))
        return total

    def resident(self):
        with open("/proc/%d/statm" % self.process) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.fd)


def opening():
    times = []
    for _ in range(15):
        t = Terminal()
        t.until(b"[1]> ")
        times.append(1000 * (time.monotonic() - t.started))
        t.close()
    return statistics.median(times)


def memory():
    sizes = []
    for arguments in ([], ["--line"]):
        t = Terminal(*arguments)
        t.until(b"[1]> ")
        t.drain(0.5)
        sizes.append(t.resident())
        t.close()
    return sizes


def idle():
    t = Terminal()
    t.until(b"[1]> ")
    t.drain(1)
    sent = t.drain(5)
    t.close()
    return sent / 5


def keys_while_training():
    t = Terminal()
    t.until(b"[1]> ")
    t.write("\033[200~" + TRAIN % 1000 + "\033[201~\r")
    t.until(b"it/s")
    t.write("\033OQ")  # the curves
    t.drain(2)
    times, letters = [], "abcdefghijklmnopqrstuvwxyz"
    for i in range(400):
        letter = letters[i % 26]
        if i and i % 26 == 0:
            t.write("\x15")
            t.drain(0.05)
        t.seen = b""
        start = time.monotonic()
        t.write(letter)
        while letter.encode() not in re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", t.seen):
            t.read(0.2)
            if time.monotonic() - start > 5:
                break
        times.append(1000 * (time.monotonic() - start))
        t.drain(0.01)
    rate = t.drain(3) / 3
    t.close()
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.99)], rate


def epoch_seconds(arguments, keys):
    t = Terminal(*arguments)
    path = os.path.join(t.folder.name, "took.npy")
    t.until(b"[1]> ")
    t.write(keys)
    if "--line" not in arguments:
        t.write("\033OQ")
    end = time.monotonic() + 120
    while not os.path.exists(path) and time.monotonic() < end:
        t.read(0.1)
    with open(path, "rb") as file:
        seconds = struct.unpack("<d", file.read()[-8:])[0]
    t.close()
    return seconds


def cost():
    program = "\033[200~import time\n" + (TRAIN % 1).replace("m.fit", "start = time.time()\nm.fit") \
        + "\nsave_npy('took.npy', tensor(time.time() - start, dtype=float64))\033[201~\r"
    screen, line = [], []
    for _ in range(3):
        screen.append(epoch_seconds([], program))
        line.append(epoch_seconds(["--line"], program))
    return min(screen), min(line)


print("  open to the first prompt    %8.1f ms" % opening())
print("  resident, screen and line   %8.1f MiB %.1f MiB" % tuple(memory()))
print("  sent when idle              %8.1f bytes/s" % idle())
median, late, rate = keys_while_training()
print("  key shown while training    %8.1f ms, %.1f ms at the 99th percentile; %.0f bytes/s are sent" %
      (median, late, rate))
print("  MNIST epoch, screen and line %7.3f s %.3f s" % cost())
