"""make bench: runs everything below several times, interleaved with its rival where one is installed (python3 itself,
PyTorch), and prints medians and ratios as a table. Nothing here is asserted: machines are shared and noisy.

usage: bench.py TAPEDECK SOURCE BUILD [--quick] [NAME...]   (names: start scalar add mnist training ops; none: all. Any
other word asks for the rows of ops whose name contains it. --quick: ops in one short round on one thread, to see them
run)"""
import glob
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source tree may be read-only, and is shipped whole
import ops
import ops_rows

TAPEDECK, SOURCE, BUILD = sys.argv[1:4]
QUICK = "--quick" in sys.argv
WANTED = [word for word in sys.argv[4:] if word != "--quick"]
HERE = os.path.join(SOURCE, "tests", "bench")
PYTHON = os.environ.get("PYTHON", sys.executable)


def output(command, threads=None):
    env = dict(os.environ)
    if threads:
        env["TAPEDECK_THREADS"] = str(threads)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    if done.returncode:
        print(f"  failed: {' '.join(command)}\n{done.stderr[-800:]}")
        return None
    return done.stdout


def last_number(text, word):
    found = re.findall(rf"^{word} ([0-9.e+-]+)$", text or "", re.M)
    return float(found[-1]) if found else None


def interleaved(pairs, rounds, word):
    """pairs: name -> function that runs once and gives its output. Medians of rounds runs each, A B A B."""
    times = {name: [] for name in pairs}
    for _ in range(rounds):
        for name, run in pairs.items():
            value = last_number(run(), word)
            if value is not None:
                times[name].append(value)
    return {name: statistics.median(values) for name, values in times.items() if values}


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def start():
    print("start-up: tapedeck -e '1+1'")
    times = []
    for _ in range(21):
        begin = time.perf_counter()
        subprocess.run([TAPEDECK, "-e", "1+1"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - begin)
    # The program asks for its own peak: a child's figure from wait() would hold the memory of this interpreter too.
    peak = re.search(r"VmHWM:\s*(\d+)", output([TAPEDECK, "-e", "1+1\n!cat /proc/$PPID/status"]) or "")
    kibibytes = int(peak.group(1)) if peak else 0
    print(f"  median {1e3 * statistics.median(times):.2f} ms, peak {kibibytes / 1024:.1f} MiB\n")


def scalar():
    print(f"scalar programs: seconds, and python3 {sys.version.split()[0]}'s time divided by ours")
    for path in sorted(glob.glob(os.path.join(HERE, "programs", "*.deck"))):
        got = interleaved({"ours": lambda: output([TAPEDECK, "run", path]), "python3": lambda: output([PYTHON, path])},
                          5, "seconds")
        if len(got) == 2:
            name = os.path.basename(path)[:-5]
            print(f"  {name:14} {got['ours']:8.3f} {got['python3']:8.3f}   {got['python3'] / got['ours']:.2f}x")
    print()


def add():
    print("a recorded add of two one-element tensors: ns")
    engine = output([os.path.join(BUILD, "tests", "bench", "bench_engine")])
    if engine:
        print("  " + engine.strip().replace("\n", "\n  "))
    runs = {"from the language": lambda: output([TAPEDECK, "run", os.path.join(HERE, "add.deck")])}
    if has_torch():
        runs["PyTorch eager"] = lambda: output([PYTHON, os.path.join(HERE, "add_torch.py")])
    got = interleaved(runs, 5, "ns")
    for name, value in got.items():
        print(f"  {name:22} {value:8.1f}")
    if len(got) == 2:
        print(f"  ratio {got['PyTorch eager'] / got['from the language']:.1f}x")
    print()


def mnist():
    folder = os.path.join(SOURCE, "samples", "data", "mnist")
    print("MNIST, 784-64-64-10, batches of 32, Adam, eager, 2 threads: seconds an epoch")
    runs = {"ours": lambda: output([TAPEDECK, "run", os.path.join(HERE, "mnist_race.deck"), "2", folder], threads=2)}
    if has_torch():
        runs["PyTorch"] = lambda: output([PYTHON, os.path.join(HERE, "mnist_torch.py"), folder, "2"])
    got = interleaved(runs, 5, "epoch seconds")
    for name, value in got.items():
        print(f"  {name:10} {value:8.3f}")
    if len(got) == 2:
        print(f"  ratio {got['PyTorch'] / got['ours']:.2f}x")
    print()


def training():
    print("training with the library's layers and Adam, 2 threads: steps a second")
    for model in ("mlp", "mlp_512", "cnn", "lstm", "transformer"):
        runs = {"ours": lambda: output([TAPEDECK, "run", os.path.join(HERE, "training.deck"), model, "1"], threads=2)}
        if has_torch():
            runs["PyTorch"] = lambda: output([PYTHON, os.path.join(HERE, "training_torch.py"), model, "1"])
        got = interleaved(runs, 5, "steps")
        ratio = f"   {got['ours'] / got['PyTorch']:.2f}x" if len(got) == 2 else ""
        print(f"  {model:14}" + "".join(f" {value:9.1f}" for value in got.values()) + ratio)
    print()


def screen():
    print("the screen, 120x40")
    if "screen" in output([TAPEDECK, "--version"]):
        print(output([sys.executable, os.path.join(HERE, "screen.py"), TAPEDECK, SOURCE]))
    else:
        print("  this build has none\n")


def race_ops(words):
    rows = [row for row in ops_rows.ROWS if not words or any(word in row.name for word in words)]
    if not rows:
        print(f"no part and no row of ops is called {' or '.join(words)}")
        return
    bound = os.path.join(BUILD, "tests", "bench", "bound")
    ops.race(rows, TAPEDECK, PYTHON if has_torch() else None, bound, QUICK)


SECTIONS = {section.__name__: section for section in (start, scalar, add, mnist, training, screen)}
for name, section in SECTIONS.items():
    if not WANTED or name in WANTED:
        section()
words = [word for word in WANTED if word not in SECTIONS and word != "ops"]
if not WANTED or "ops" in WANTED or words:
    race_ops(words)
