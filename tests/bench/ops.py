"""The race of ops against PyTorch: every row of ops_rows.py, round by round, tapedeck, PyTorch and the memory's bound
(bound.c) one after the other, in processes that wait while another runs. tapedeck gets a process a row, PyTorch one for
all, because it is slow to start. Times are medians of the rounds' medians; memory is what a process had at its peak
beyond what it held before the row."""
import json
import math
import os
import re
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BOUND_BYTES = 1 << 20  # rows that move less fit in a core's own cache
LEAST_ROUNDS, PATIENCE = 3, 4  # a row that has taken so many seconds gets no more rounds than these


def text(name):
    with open(os.path.join(HERE, name)) as file:
        return file.read()


def function(step):
    return "def step():\n" + "".join(f"    {line}\n" for line in step.split("\n"))


class Process:
    """A child that answers lines of input with lines of output."""

    def __init__(self, command, **env):
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
                                      env=dict(os.environ, **env))

    def say(self, line):
        try:
            self.child.stdin.write(f"{line}\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass

    def hear(self, *words):
        """Lines up to the first that begins with one of words; the child's end counts as one."""
        lines = []
        for line in self.child.stdout:
            lines.append(line.strip())
            if line.startswith(words):
                break
        return lines

    def seconds(self, request):
        self.say(request)
        heard = self.hear("seconds")
        return float(heard[-1].split()[1]) if heard and heard[-1].startswith("seconds") else None

    def end(self):
        rest, errors = self.child.communicate()
        return rest.split("\n"), errors.strip().split("\n")[0]


def memory_of(lines):
    kilobytes = [int(number) for line in lines for number in re.findall(r"^VmHWM:\s*(\d+)", line)]
    return (kilobytes[-1] - kilobytes[0]) / 1024 if len(kilobytes) > 1 else None


class Ours:
    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def open(self, row):
        memory = "!grep VmHWM /proc/$PPID/status"
        self.file = tempfile.NamedTemporaryFile("w", suffix=".deck")
        self.file.write("\n".join([text("ops_clock.deck"), text("ops_ours.deck"), memory, row.setup, function(row.step),
                                   "serve(step)", memory, ""]))
        self.file.flush()
        self.process = Process([self.program, "run", self.file.name], TAPEDECK_THREADS=str(self.threads))
        self.heard = self.process.hear("ready")
        return "" if self.heard[-1:] == ["ready"] else self.process.end()[1] or "it ended"

    def seconds(self, duration):
        return self.process.seconds(duration)

    def close(self):
        self.process.say("end")
        rest, _ = self.process.end()
        return memory_of(self.heard + rest)


class PyTorch:
    def __init__(self, python, threads):
        script, clock = (os.path.join(HERE, name) for name in ("ops_torch.py", "ops_clock.deck"))
        self.process = Process([python, "-u", script, clock, str(threads)])

    def open(self, row):
        self.process.say(json.dumps([row.torch_setup or row.setup, function(row.torch_step or row.step)]))
        self.heard = self.process.hear("ready", "skipped")
        if self.heard[-1:] == ["ready"]:
            return ""
        self.process.hear("end")
        return self.heard[-1][len("skipped "):] if self.heard else "it ended"

    def seconds(self, duration):
        return self.process.seconds(duration)

    def close(self):
        self.process.say("end")
        return memory_of(self.heard + self.process.hear("end"))


class Bound:
    def __init__(self, program):
        self.process = Process([program])

    def seconds(self, row, duration):
        return self.process.seconds(f"{int(row.read)} {int(row.written)} {duration}")


# ---- figures ----

def time_text(seconds):
    for unit, scale in ("ns", 1e9), ("us", 1e6), ("ms", 1e3):
        if seconds * scale < 999.5:
            break
    return f"{seconds * scale:.{3 if seconds * scale < 999.5 else 4}g} {unit}"


def side(times, row):
    """Median of the rounds and half their range: "1.23 ms  4%"."""
    median = statistics.median(times)
    return f"{time_text(median / row.times):>8} {50 * (max(times) - min(times)) / median:3.0f}%"


def line(name, ours, theirs="", ratio="", of_bound="", memory=""):
    print(f"  {name:50}{ours:>13} {theirs:>14}  {ratio:>7} {of_bound:>9}  {memory:>13}".rstrip(), flush=True)


def note(name, text):
    print(f"  {name:50}{text}", flush=True)


def measure(row, rivals, bound, rounds, duration):
    """Times of each rival and of the bound, a number a round, and each rival's memory."""
    times = {name: [] for name in rivals}
    limits = []
    began = time.monotonic()
    for done in range(rounds):
        if done >= LEAST_ROUNDS and time.monotonic() - began > PATIENCE:
            break
        for name, rival in rivals.items():
            times[name].append(rival.seconds(duration))
            time.sleep(0.005)  # PyTorch's idle threads spin for a while
        if bound and row.read + row.written >= BOUND_BYTES:
            limits.append(bound.seconds(row, duration / 2))
    return times, limits, {name: rival.close() for name, rival in rivals.items()}


def race_row(row, rivals, bound, rounds, duration):
    """Runs one row and prints its line. Its ratio; None where one of both can't run it."""
    able = {}
    for name, rival in rivals.items():
        reason = rival.open(row)
        if not reason:
            able[name] = rival
            continue
        note(row.name, f"skipped by {name}: {reason}")
        if name == "tapedeck":
            return None
    times, limits, memory = measure(row, able, bound, rounds, duration)
    ended = [name for name in able if None in times[name]]
    if ended:
        note(row.name, f"ended: {' and '.join(ended)}")
        return None
    ours = statistics.median(times["tapedeck"])
    ratio = statistics.median(times["PyTorch"]) / ours if "PyTorch" in able else None
    line(row.name, side(times["tapedeck"], row), side(times["PyTorch"], row) if ratio else "",
         f"{ratio:.2f}x" if ratio else "", f"{ours / min(limits):.1f}x" if limits else "",
         " / ".join(f"{memory[name]:.0f}" for name in able if memory[name] is not None))
    return ratio


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def summary(ratios):
    """ratios: op -> (ratio, case) of its rows. A line an op, as README.md has them."""
    print("\n  an op's rows: PyTorch's time divided by ours, geometric mean (least to most, and where it is least)")
    for op, rows in ratios.items():
        (least, case), (most, _) = min(rows), max(rows)
        span = f"  ({least:.2f} to {most:.2f}, least at {case})" if len(rows) > 1 else ""
        print(f"    {op:48}{mean([ratio for ratio, _ in rows]):6.2f}x{span}")
    every = [ratio for rows in ratios.values() for ratio, _ in rows]
    print(f"    {f'all {len(every)} rows':48}{mean(every):6.2f}x  ({sum(ratio < 1 for ratio in every)} behind)")


def race(rows, program, python, bound, quick):
    """python: the interpreter that has PyTorch; None: tapedeck alone. quick: one short round on one thread."""
    threads, rounds, duration = (1, 1, 0.001) if quick else (2, 5, 0.08)
    rivals = {"tapedeck": Ours(program, threads)}
    if python:
        rivals["PyTorch"] = PyTorch(python, threads)
    bound = Bound(bound) if os.path.exists(bound) else None
    began = time.monotonic()
    print(f"ops, float32, threads: {threads}. Medians of interleaved rounds ({rounds}) and half the rounds' span;\n"
          "PyTorch's time divided by ours; our time divided by what the machine's memory allows; peak memory of both")
    line("", "tapedeck", *(["PyTorch", "ratio"] if python else ["", ""]), "of bound", "MiB")
    ratios = {}
    for row in rows:
        ratio = race_row(row, rivals, bound, rounds, duration)
        if ratio:
            ratios.setdefault(row.op, []).append((ratio, row.case))
    if len(ratios) > 1:
        summary(ratios)
    print(f"  {time.monotonic() - began:.0f} seconds\n")
