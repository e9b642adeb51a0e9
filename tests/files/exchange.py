"""What tapedeck writes is read by the other side, and the other way round.

exchange.py PROGRAM COUNT, in a scratch folder.
"""

import glob
import os
import subprocess
import sys

import numpy as np

program, count = os.path.abspath(sys.argv[1]), int(sys.argv[2])
here = os.path.dirname(os.path.abspath(__file__))
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("differs:", what)


def run(deck):
    with open("exchange.deck", "w", encoding="utf-8") as f:
        f.write(deck)
    done = subprocess.run([program, "run", "exchange.deck"], capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-1000:], done.stderr[-1000:])
    return done.returncode == 0


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def arrays():  # random ones, of the types that both sides have
    random = np.random.default_rng(7)
    for i in range(count):
        dtype = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"][i % 7]
        shape = tuple(random.integers(0, 5, size=random.integers(0, 6)))
        array = np.frombuffer(random.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype="u1")
        yield ((array & 1).astype("?") if dtype == "bool" else array.view(dtype)).reshape(shape)


def exchange_numpy():
    ours = list(arrays())
    deck = ""
    for i, a in enumerate(ours):
        order = (a, a.copy(order="F"), a.astype(a.dtype.newbyteorder(">")))[i % 3]
        np.save(f"in{i}.npy", order)
        (np.savez, np.savez_compressed)[i % 2](f"in{i}.npz", x=order)
        deck += f"x = load_npy('in{i}.npy')\ny = load_npz('in{i}.npz')['x']\nsave_npy('out{i}.npy', x)\n"
        deck += f"save_npz('out{i}.npz', compressed={i % 2 == 0}, y=y)\n"
    check(run(deck), "the deck")
    for i, a in enumerate(ours):
        check(same(np.load(f"out{i}.npy"), a), f"npy {a.dtype} {a.shape}")
        check(same(np.load(f"out{i}.npz")["y"], a), f"npz {a.dtype} {a.shape}")


def exchange_safetensors():
    from safetensors import safe_open
    from safetensors.numpy import save_file

    ours = {f"t/{i}": a for i, a in enumerate(arrays())}
    save_file(ours, "in.safetensors", metadata={"a": 'b\n"é'})
    check(
        run(
            "save_safetensors('out.safetensors', load_safetensors('in.safetensors'), "
            "safetensors_metadata('in.safetensors'))"
        ),
        "the deck",
    )
    with safe_open("out.safetensors", "np") as f:
        check(f.metadata() == {"a": 'b\n"é'}, "metadata")
        for name, a in ours.items():
            check(same(f.get_tensor(name), a), f"safetensors {a.dtype} {a.shape}")


def pictures_agree(x, path):
    from PIL import Image

    with Image.open(path) as picture:
        if picture.mode == "P":
            wanted = np.asarray(picture.convert("RGBA" if "transparency" in picture.info else "RGB"))
        else:
            wanted = np.asarray(picture.convert("L") if picture.mode == "1" else picture)
    if x.ndim == 3 and x.shape[2] == 2 and wanted.ndim == 3:  # grey and alpha of 16 bits, which Pillow reads as RGBA
        x, wanted = x[..., 0], wanted[..., 0]
    if x.ndim == 3 and x.shape[2] in (2, 4) and wanted.ndim == x.ndim - (x.shape[2] == 2) and wanted.shape != x.shape:
        x = x[..., 0] if x.shape[2] == 2 else x[..., :3]  # one colour is transparent, which Pillow tells elsewhere
    if x.dtype == np.int32 and wanted.dtype == np.uint8:  # Pillow cuts colours of 16 bits
        return x.shape == wanted.shape and abs((x >> 8) - wanted.astype(int)).max() <= 1
    return x.shape == wanted.shape and (x == wanted).all()


def exchange_pictures():
    from PIL import Image

    names = sorted(glob.glob(f"{here}/samples/png_*.png") + glob.glob(f"{here}/pngsuite/[!x]*.png"))
    deck = "".join(f"save_npy('p{i}.npy', load_png({name!r}))\n" for i, name in enumerate(names))
    random = np.random.default_rng(1)
    ours = [random.integers(0, 256, size=s).astype("u1") for s in ((5, 7), (5, 7, 2), (5, 7, 3), (5, 7, 4))]
    for i, a in enumerate(ours):
        np.save(f"q{i}.npy", a)
        deck += f"save_png('q{i}.png', load_npy('q{i}.npy'))\n"
    check(run(deck), "the deck")
    for i, name in enumerate(names):
        check(pictures_agree(np.load(f"p{i}.npy"), name), name)
    for i, a in enumerate(ours):
        check((np.asarray(Image.open(f"q{i}.png")) == a).all(), f"save_png {a.shape}")


def exchange_events():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    check(
        run("""
values = randn(50).astype(float64)
save_npy("values.npy", values.astype(float32))
with summary_writer("logs"):
    for step, value in enumerate(values):
        summary.scalar("loss", value, step)
    for step, value in enumerate([1, nan, inf, 2]):
        summary.scalar("odd", value, step)
    summary.histogram("kernel", values, 3)
    summary.image("picture", ones((4, 6, 3)), 3)
    summary.text("note", "*text*", 3)
with summary_writer("logs"):
    for step in range(30, 60):
        summary.scalar("loss", 5, step)
"""),
        "the deck",
    )
    log = EventAccumulator("logs", size_guidance={"scalars": 0})
    log.Reload()
    wanted = np.concatenate([np.load("values.npy")[:30], np.full(30, 5, dtype="f4")])
    check([e.step for e in log.Scalars("loss")] == list(range(60)), "steps")
    check((np.array([e.value for e in log.Scalars("loss")], dtype="f4") == wanted).all(), "values")
    check(
        np.array_equal([e.value for e in log.Scalars("odd")], [1, np.nan, np.inf, 2], equal_nan=True),
        "NaN and infinity",
    )
    check(sum(log.Histograms("kernel")[0].histogram_value.bucket) == 50, "histogram")
    check((log.Images("picture")[0].height, log.Images("picture")[0].width) == (4, 6), "picture")
    check(log.Tensors("note")[0].tensor_proto.string_val[0] == b"*text*", "text")


def convert(*arguments):
    return subprocess.run([program, "convert", *arguments], capture_output=True, text=True).returncode == 0


def read_valid(path):  # checks it; the notebook
    import nbformat

    with open(path, encoding="utf-8", newline="") as f:
        text = f.read()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    check(nbformat.writes(notebook) + "\n" == text, f"{path} as nbformat writes it")
    return notebook


def random_notebook(random):  # any texts, outputs of all kinds
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    letters = ["a", "\n", '"', "\\", "é", "😉", "\t", "\x1b", "# %%", " ", "x = 1\n", "\x7f", "\r\n", "%%"]

    def text():
        return "".join(random.choice(letters, size=random.integers(0, 8)))

    def output():
        kind = random.integers(0, 4)
        if kind == 0:
            return new_output("stream", name="stderr", text=text())
        if kind == 1:
            return new_output("error", ename=text(), evalue=text(), traceback=[text(), text()])
        data = {"text/plain": text(), "application/json": {"k": [1, None, {}]}, "text/html": text()}
        return new_output("execute_result" if kind == 2 else "display_data", data, metadata={"m": {"n": 1}})

    cells = []
    for _ in range(random.integers(0, 6)):
        if random.integers(0, 3) == 0:
            cells.append(new_markdown_cell(text()))
        else:
            cells.append(
                new_code_cell(
                    text(), metadata={"k": [text()]}, outputs=[output() for _ in range(random.integers(0, 3))]
                )
            )
    return new_notebook(cells=cells, metadata={"title": text()})


def exchange_notebooks():
    import nbformat

    with open("a.deck", "w", encoding="utf-8") as f:
        f.write(
            "# %% [markdown]\n# Title\n\n# %% id=first\nx = tensor([1.0, 2.0])\nprint(x, 'é')\nx * 2\n\n# %%\n1 / 0\n"
        )
    check(convert("a.deck", "a.ipynb"), "a deck is converted")
    cells = read_valid("a.ipynb").cells
    check([c.cell_type for c in cells] == ["markdown", "code", "code"] and cells[1].id == "first", "cells")
    check(cells[0].source == "Title" and cells[1].source.startswith("x = tensor"), "sources")
    check(not convert("--run", "a.deck", "b.ipynb"), "a failing run is told")
    cells = read_valid("b.ipynb").cells
    check([o.output_type for o in cells[1].outputs] == ["stream", "execute_result"], "outputs")
    check(cells[1].outputs[0].text == "[1., 2.] é\n" and cells[1].execution_count == 1, "output and number")
    check(cells[2].outputs[0].ename == "ZeroDivisionError", "error")
    check(convert("a.ipynb", "b.deck") and convert("b.deck", "c.ipynb"), "and back")
    check(
        [c.source for c in read_valid("c.ipynb").cells] == [c.source for c in read_valid("a.ipynb").cells],
        "sources again",
    )
    random = np.random.default_rng(3)
    for i in range(count):
        notebook = random_notebook(random)
        with open("r.ipynb", "w", encoding="utf-8", newline="") as f:
            f.write(nbformat.writes(notebook) + "\n" * (i % 2))
        check(
            convert("r.ipynb", "s.ipynb") and open("r.ipynb", "rb").read() == open("s.ipynb", "rb").read(),
            "byte for byte",
        )
        check(convert("r.ipynb", "s.deck") and convert("s.deck", "t.ipynb"), "by a deck")
        read_valid("t.ipynb")


for exchange in (exchange_numpy, exchange_safetensors, exchange_pictures, exchange_events, exchange_notebooks):
    try:
        exchange()
    except ImportError as missing:  # that library is not here
        print(f"{exchange.__name__}: {missing}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
