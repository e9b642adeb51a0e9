"""The rows of the op bench. A row's setup and step are run as they stand by tapedeck and by python3 under PyTorch's
names, or the latter's own text where the two differ. uniform, normal, integers and gradients are defined on both sides
(ops_ours.deck, ops_torch.py). All is float32, indices int64."""
from dataclasses import dataclass


@dataclass
class Row:
    op: str            # what the summary gathers rows under
    case: str
    setup: str
    step: str
    torch_setup: str = ""  # PyTorch's own, where the text above is not its
    torch_step: str = ""
    read: float = 0    # bytes that the step can't do without reading and writing, where memory is what bounds it
    written: float = 0
    times: int = 1     # how often the step does the thing

    @property
    def name(self):
        return f"{self.op} {self.case}"


def elementwise():
    for op, inputs in ("exp(x)", 1), ("sqrt(x)", 1), ("x + y", 2):
        for power in range(3, 8):
            n = 10 ** power
            yield Row(op, f"1e{power}", f"x, y = uniform({n}), uniform({n if inputs == 2 else 1})", op,
                      read=4 * n * inputs, written=4 * n)
    yield Row("(x * y + z).tanh()", "1e7", "x, y, z = normal(10000000), normal(10000000), normal(10000000)",
              "(x * y + z).tanh()", read=12e7, written=4e7)


def reductions():
    for op in "sum", "mean", "max", "var":
        for axis, case in (None, "all"), (1, "axis=1"), (0, "axis=0"):
            arguments = "" if axis is None else f"axis={axis}"
            theirs = f"x.amax({arguments})" if op == "max" else ""
            yield Row(op, f"4096x4096 {case}", "x = normal(4096, 4096)", f"x.{op}({arguments})", torch_step=theirs,
                      read=2 ** 26)


def with_gradient(op, case, setup, call, inputs, cotangent, theirs=None, **options):
    """The op alone, then with its gradients in inputs; cotangent is a shape, "" for the loss that the op is. Both sides
    call it alike unless theirs is given."""
    names = ", ".join(inputs)
    step = "gradients(lambda {}: {}, [{}], g)"
    g = f"normal({cotangent})" if cotangent else "None"
    yield Row(op, case, setup, call, torch_step=theirs or "", **options)
    yield Row(op, f"{case} + gradient", f"{setup}\ng = {g}", step.format(names, call, names),
              torch_step=step.format(names, theirs, names) if theirs else "")


def normalizations():
    size = {"read": 2 ** 24, "written": 2 ** 24}
    yield from with_gradient("softmax", "4096x1024", "x = normal(4096, 1024)", "softmax(x, dim=1)", ["x"], "4096, 1024",
                             **size)
    yield from with_gradient("layer_norm", "4096x1024", "x, w, b = normal(4096, 1024), normal(1024), normal(1024)",
                             "layer_norm(x, w, b)", ["x", "w", "b"], "4096, 1024", "layer_norm(x, (1024,), w, b)",
                             **size)
    yield from with_gradient("cross_entropy", "8192x1000", "x, y = normal(8192, 1000), integers(1000, 8192)",
                             "cross_entropy(x, y)", ["x"], "", read=4 * 8192000)


def indices():
    n, row = 10 ** 6, 4 * 64
    setup = f"x, i = uniform({n}, 64), integers({n}, {n})"
    yield Row("x[i]", "1e6 rows of 64", setup, "x[i]", read=n * (row + 8), written=n * row)
    yield Row("embedding", "1e6 rows of 64", setup, "embedding(i, x)", read=n * (row + 8), written=n * row)
    yield Row("embedding", "1e6 rows of 64 + gradient", f"{setup}\ng = uniform({n}, 64)",
              "gradients(lambda x: embedding(i, x), [x], g)")
    yield Row("index_add", "1e6 rows of 64", f"{setup}\ns = uniform({n}, 64)", "index_add(x, 0, i, s)",
              read=n * (2 * row + 8), written=n * row)
    picks = f"x, i, s = uniform({n}, 64), integers(64, {n}, 8), uniform({n}, 8)"
    yield Row("gather", "8 of 64 in 1e6 rows", picks, "gather(x, i, 1)", torch_step="gather(x, 1, i)",
              read=n * (row + 64), written=n * 32)
    yield Row("scatter_add", "8 of 64 in 1e6 rows", picks, "scatter_add(x, i, s, 1)",
              torch_step="scatter_add(x, 1, i, s)", read=n * (row + 96), written=n * row)


def orders():
    for op in "sort(x)", "topk(x, 10)":
        yield Row(op, "1e6", "x = uniform(1000000)", op)
        yield Row(op, "1000x1000", "x = uniform(1000, 1000)", op)
    yield Row("cumsum", "1e7", "x = uniform(10000000)", "cumsum(x, axis=0)", read=4e7, written=4e7)
    for axis in 1, 0:
        yield Row("cumsum", f"4096x1024 axis={axis}", "x = uniform(4096, 1024)", f"cumsum(x, axis={axis})",
                  read=2 ** 24, written=2 ** 24)


def layers():
    for case, x, w, y, padding in (
            ("LeNet 1, batch 32", "32, 1, 28, 28", "6, 1, 5, 5", "32, 6, 28, 28", 2),
            ("LeNet 2, batch 32", "32, 6, 14, 14", "16, 6, 5, 5", "32, 16, 10, 10", 0),
            ("3x3 64-64 56x56, batch 1", "1, 64, 56, 56", "64, 64, 3, 3", "1, 64, 56, 56", 1),
            ("3x3 64-64 56x56, batch 16", "16, 64, 56, 56", "64, 64, 3, 3", "16, 64, 56, 56", 1)):
        yield from with_gradient("conv2d", case, f"x, w = normal({x}), normal({w})", f"conv2d(x, w, padding={padding})",
                                 ["x", "w"], y)
    yield from with_gradient("attention", "8 heads, L 512, E 64, causal",
                             "q, k, v = normal(1, 8, 512, 64), normal(1, 8, 512, 64), normal(1, 8, 512, 64)",
                             "scaled_dot_product_attention(q, k, v, is_causal=True)", ["q", "k", "v"], "1, 8, 512, 64")
    yield from with_gradient("lstm", "T 100, N 32, F 128, H 256",
                             "x, w, u = normal(100, 32, 128), 0.05 * normal(1024, 128), 0.05 * normal(1024, 256)\n"
                             "b, d = normal(1024), normal(1024)",
                             "lstm_layer(x, w, u, b, d)[0]", ["x", "w", "u", "b", "d"], "100, 32, 256",
                             "lstm(x, (torch.zeros(1, 32, 256), torch.zeros(1, 32, 256)), [w, u, b, d], "
                             "True, 1, 0.0, False, False, False)[0]")


def products():
    yield Row("matmul", "784x32x64", "a, b = normal(784, 32), normal(32, 64)", "a @ b")
    yield Row("matmul", "1024x1024x1024", "a, b = normal(1024, 1024), normal(1024, 1024)", "a @ b")
    yield Row("matmul", "64 of 64x64x64", "a, b = normal(64, 64, 64), normal(64, 64, 64)", "a @ b")
    for subscripts, shapes in (
            ("ij,jk->ik", "512, 512; 512, 512"),
            ("bhqd,bhkd->bhqk", "4, 8, 256, 64; 4, 8, 256, 64"),
            ("bij,bj->bi", "64, 256, 256; 64, 256"),
            ("i,j->ij", "4096; 4096"),
            ("ijk->ik", "256, 256, 256"),
            ("bi,ij,bj->b", "256, 256; 256, 256; 256, 256")):
        inputs = [f"normal({shape})" for shape in shapes.split(";")]
        names = ", ".join("abc"[:len(inputs)])
        yield Row("einsum", subscripts, f"{names} = {', '.join(inputs)}", f'einsum("{subscripts}", {names})')


def dispatch():
    adds = "for _ in range(1000):\n    c = a + b"
    setup = "a, b = normal(1), normal(1)"
    recorded = "with GradientTape() as tape:\n    tape.watch(a)\n    " + adds.replace("\n", "\n    ")
    yield Row("add", "1 element", setup, adds, times=1000)
    yield Row("add", "1 element, recorded", setup, recorded, f"{setup}\na.requires_grad_()", adds, times=1000)


GROUPS = dispatch, elementwise, reductions, normalizations, indices, orders, products, layers
ROWS = [row for group in GROUPS for row in group()]
