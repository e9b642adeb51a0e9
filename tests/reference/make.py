#!/usr/bin/env python3
"""Computes the reference values of the op table with PyTorch, in float64, and writes one FAMILY.txt a family of ops.

Run by hand when a row's samples change or an op is added; neither the build nor the tests need it. It needs NumPy 1.24,
SciPy 1.10, mpmath and PyTorch 2.0 or later:

    make tests/reference/inputs && tests/reference/inputs >inputs.txt
    python3 make.py inputs.txt FOLDER [FAMILY ...]

inputs.c says what the inputs look like. A file of values repeats them and adds what this program found:

    op sum
    sample 2,3 | axis=1
    in float64 2,3 0.5 ...
    cotangent 0 2 1.25 ...        of output 0
    out float64 2 ...             one line an output
    gradient 0 2,3 ...            of the outputs weighted by the cotangents, in input 0

An op is one function of this file with the op's name; defaults of its arguments stand here once more, so that those of
the row are tested too. Where PyTorch's conventions are not tapedeck's the function spells tapedeck's out.
"""

import math
import sys

import numpy
import torch
from torch.nn import functional

import elementwise
import indexing
import layers
import linear_algebra
import losses
import reductions
import sequences

FAMILIES = (elementwise, indexing, layers, linear_algebra, losses, reductions, sequences)
OPS = {name: function for family in FAMILIES for name, function in family.OPS.items()}
DTYPES = {name: getattr(torch, name) for name in "bool uint8 int32 int64 float16 bfloat16 float32 float64".split()}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


# ---- matrices, shapes ----

simple(
    matmul=torch.matmul,
    reshape=lambda x, shape: x.reshape(shape),
    flatten=lambda x, start_dim=0, end_dim=-1: torch.flatten(x, start_dim, end_dim),
    squeeze=lambda x, axis=None: torch.squeeze(x) if axis is None else torch.squeeze(x, reductions.axes_of(x, axis)),
    broadcast_to=lambda x, shape: x.expand(shape),
    atleast_1d=torch.atleast_1d,
    atleast_2d=torch.atleast_2d,
    atleast_3d=torch.atleast_3d,
    concat=lambda *tensors, axis=0: torch.cat(tensors, axis),
    stack=lambda *tensors, axis=0: torch.stack(tensors, axis),
    tril=lambda x, k=0: torch.tril(x, k),
    triu=lambda x, k=0: torch.triu(x, k),
)


@op
def expand_dims(x, axis):
    axes = reductions.axes_of(x, axis)
    for a in sorted(a % (x.dim() + len(axes)) for a in axes):
        x = x.unsqueeze(a)
    return x


simple(
    transpose=lambda x, axes=None: x.permute(axes if axes is not None else tuple(reversed(range(x.dim())))),
    swapaxes=torch.swapaxes,
    moveaxis=torch.moveaxis,
    flip=lambda x, axis=None: torch.flip(x, reductions.axes_of(x, axis)),
    flipud=torch.flipud,
    fliplr=torch.fliplr,
    rot90=lambda x, k=1, axes=(0, 1): torch.rot90(x, k, axes),
    split=lambda x, sizes, axis=0: torch.split(x, sizes.tolist(), axis),
    chunk=lambda x, chunks, axis=0: torch.chunk(x, chunks, axis),
    array_split=lambda x, sections, axis=0: torch.tensor_split(x, sections.cpu(), axis),
    unstack=lambda x, axis=0: torch.unbind(x, axis),
    broadcast_tensors=torch.broadcast_tensors,
    meshgrid=lambda *tensors, indexing="xy": torch.meshgrid(*tensors, indexing=indexing),
)


@op
def roll(x, shift, axis=None):
    places = numpy.roll(numpy.arange(x.numel()).reshape(x.shape), shift, axis)
    return x.flatten()[torch.from_numpy(places).flatten()].reshape(x.shape)


def middle(x, axis, keepdim):
    return torch.quantile(x, 0.5, axis, keepdim, interpolation="midpoint")


@op
def pad(x, pairs, mode="constant", value=0.0):
    """Positions of x's elements where it repeats them; along one axis after the other where it computes."""
    pairs = numpy.broadcast_to(pairs.numpy(), (x.dim(), 2)).tolist()
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    if mode == "constant":
        flat = [n for pair in reversed(pairs) for n in pair]
        return functional.pad(x, flat, value=value) if flat else x
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        places = numpy.pad(numpy.arange(x.numel()).reshape(x.shape), pairs, mode=mode)
        return x.flatten()[torch.from_numpy(places)]
    for axis, (before, after) in enumerate(pairs):
        if mode == "linear_ramp":
            first, last = x.narrow(axis, 0, 1), x.narrow(axis, -1, 1)
            parts = [value + (first - value) * i / before for i in range(before)] + [x]
            parts += [value + (last - value) * i / after for i in reversed(range(after))]
        else:
            find = {"mean": torch.mean, "maximum": torch.amax, "minimum": torch.amin, "median": middle}[mode]
            found = find(x, axis, keepdim=True)
            parts = [found] * before + [x] + [found] * after
        x = torch.cat(parts, axis)
    return x


simple(
    vstack=lambda *tensors: torch.vstack(tensors),
    hstack=lambda *tensors: torch.hstack([torch.atleast_1d(t) for t in tensors]),
    dstack=lambda *tensors: torch.dstack(tensors),
    diagonal=lambda x, offset=0, axis1=0, axis2=1: diagonal_of(x, offset, axis1, axis2),
    diag=lambda x, k=0: diagonal_of(x, k, 0, 1) if x.dim() == 2 else torch.diag(x, k),
    diag_embed=lambda x, offset=0, axis1=-2, axis2=-1: torch.diag_embed(x, offset, axis1, axis2),
)


def diagonal_of(x, offset, axis1, axis2):
    if -x.shape[axis1] < offset < x.shape[axis2]:
        return torch.diagonal(x, offset, axis1, axis2)
    return torch.diagonal(x, 0, axis1, axis2)[..., :0]  # PyTorch refuses it


@op
def diagonal_adjoint(x, offset=0, axis1=0, axis2=1, shape=None):
    zeros = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
    return torch.autograd.grad(diagonal_of(zeros, offset, axis1, axis2), zeros, x, create_graph=True)[0]


@op
def repeat(x, repeats, axis=None):
    return torch.repeat_interleave(x, repeats.long().reshape(-1), axis)


def windows(x, window_shape, axis=None):
    """torch.Tensor.unfold gives the windows an axis at the end."""
    rank = x.dim()
    axes = range(rank) if axis is None else [a % rank for a in reductions.axes_of(x, axis)]
    for a, size in zip(axes, (window_shape,) if isinstance(window_shape, int) else window_shape):
        x = x.unfold(a, size, 1)
    return x


def im2col(x, kernel_size, dilation=1, padding=0, stride=1):
    return functional.unfold(x, kernel_size, dilation, padding, stride)


def col2im(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return functional.fold(x, output_size, kernel_size, dilation, padding, stride)


simple(
    tile=lambda x, reps: torch.tile(x, (reps,) if isinstance(reps, int) else reps),
    sliding_window_view=windows,
    im2col=im2col,
    col2im=col2im,
)


@op
def sliding_window_adjoint(x, window_shape, axis=None, shape=None):
    zeros = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
    return torch.autograd.grad(windows(zeros, window_shape, axis), zeros, x, create_graph=True)[0]


def block(starts, steps, sizes):
    """Indices of a block of a tensor, which broadcast against each other."""
    ranks = len(starts)
    lines = [torch.tensor([a + k * b for k in range(n)], dtype=torch.int64) for a, b, n in zip(starts, steps, sizes)]
    return tuple(line.reshape([-1 if i == j else 1 for j in range(ranks)]) for i, line in enumerate(lines))


@op
def slice_(x, starts, steps, sizes):
    return x[block(starts, steps, sizes)]


@op
def slice_adjoint(x, starts, steps, sizes, shape):
    return torch.zeros(shape, dtype=x.dtype).index_put(block(starts, steps, sizes), x)


@op
def index_update(x, value, starts, steps, sizes):
    return x.index_put(block(starts, steps, sizes), torch.broadcast_to(value, sizes))


# ---- tensors out of nothing: NumPy's, in float64 ----


def weak(*numbers):
    return torch.int64 if all(isinstance(n, int) for n in numbers) else torch.float32


def made(array, dtype):
    return torch.from_numpy(numpy.array(array)).to(dtype)


simple(
    full=lambda shape, value, dtype=None: made(numpy.full(shape, value), dtype or weak(value)),
    zeros=lambda shape, dtype=torch.float32: made(numpy.zeros(shape), dtype),
    ones=lambda shape, dtype=torch.float32: made(numpy.ones(shape), dtype),
    eye=lambda n, m=None, k=0, dtype=torch.float32: made(numpy.eye(n, m, k), dtype),
)


@op
def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    return made(numpy.arange(start, stop, step), dtype or weak(start, stop, step))


simple(
    full_like=lambda x, value, dtype=None: torch.full_like(x, value, dtype=dtype or x.dtype),
    zeros_like=lambda x, dtype=None: torch.zeros_like(x, dtype=dtype),
    ones_like=lambda x, dtype=None: torch.ones_like(x, dtype=dtype),
    tri=lambda n, m=None, k=0, dtype=torch.float32: made(numpy.tri(n, m, k), dtype),
    tril_indices=lambda n, k=0, m=None: tuple(made(a, torch.int64) for a in numpy.tril_indices(n, k, m)),
    triu_indices=lambda n, k=0, m=None: tuple(made(a, torch.int64) for a in numpy.triu_indices(n, k, m)),
)


@op
def vander(x, n=None, increasing=False):
    powers = range(len(x) if n is None else n)
    return torch.stack([x**p for p in (powers if increasing else reversed(powers))], 1)


@op
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=torch.float32):
    return made(numpy.logspace(start, stop, num, endpoint, base), dtype)


@op
def geomspace(start, stop, num=50, endpoint=True, dtype=torch.float32):
    return made(numpy.geomspace(start, stop, num, endpoint), dtype)


@op
def linspace(start, stop, num=50, endpoint=True, dtype=torch.float32):
    return made(numpy.linspace(start, stop, num, endpoint), dtype)


# ---- softmax ----

simple(
    softmax=lambda x, axis=-1: torch.softmax(x, axis),
    log_softmax=lambda x, axis=-1: torch.log_softmax(x, axis),
    softmax_adjoint=lambda y, c, axis=-1: y * (c - (c * y).sum(axis, keepdim=True)),
    log_softmax_adjoint=lambda y, c, axis=-1: c - torch.exp(y) * c.sum(axis, keepdim=True),
)


# ---- optimizers: PyTorch's Adam and AdamW; gradient descent in Keras's form ----


@op
def adam_update(
    variable, m, v, gradient, step, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0, decoupled=True
):
    x, m, v = torch.nn.Parameter(variable.detach().clone()), m.detach().clone(), v.detach().clone()
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimizer = kind([x], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay)
    optimizer.state[x] = {"step": torch.tensor(float(step - 1)), "exp_avg": m, "exp_avg_sq": v}
    x.grad = gradient.detach().clone()
    optimizer.step()
    return x, m, v


@op
def sgd_update(variable, velocity, gradient, lr=0.01, momentum=0, nesterov=False):
    velocity = momentum * velocity - lr * gradient
    return variable + (momentum * velocity - lr * gradient if nesterov else velocity), velocity


# ---- reading inputs, writing values ----


class Words(dict):
    """Names in a sample's arguments: dtypes, inf, nan; any other word is text."""

    def __missing__(self, key):
        if key == "dict":
            return dict
        return key


def arguments(text):
    return eval("dict(" + text + ")", {"__builtins__": {}}, Words(DTYPES, inf=math.inf, nan=math.nan))


def shape_of(word):
    return [] if word == "-" else [int(n) for n in word.split(",")]


def tensor_of(dtype, words):
    number = float if dtype.is_floating_point else int
    return torch.tensor([number(w) for w in words[1:]], dtype=dtype).reshape(shape_of(words[0]))


def line_of(head, t):
    numbers = (torch.zeros(t.shape, dtype=t.dtype) if t._is_zerotensor() else t.detach()).flatten().tolist()
    texts = [repr(n) if isinstance(n, float) else str(int(n)) for n in numbers]
    texts = [t[:-2] if t.endswith(".0") else t for t in texts]
    return " ".join([head, ",".join(map(str, t.shape)) or "-"] + texts)


def name_of(dtype):
    return str(dtype).replace("torch.", "")


class Sample:
    def __init__(self, name, title):
        self.name = name
        self.lines = [title]
        self.args = arguments(title.split(" | ", 1)[1] if " | " in title else "")
        self.inputs, self.cotangents = [], {}

    def read(self, line):
        self.lines.append(line)
        words = line.split()
        if words[0] == "in":
            self.inputs.append(None if words[1] == "none" else tensor_of(DTYPES[words[1]], words[2:]))
        else:
            self.cotangents[int(words[1])] = words[2:]

    def values(self):
        """The lines of its outputs and gradients."""
        floats = [t for t in self.inputs if t is not None and t.is_floating_point()]
        for t in floats:
            t.requires_grad_(True)
        outs = OPS[self.name](*self.inputs, **self.args)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        self.lines += [line_of("out " + name_of(t.dtype), t) for t in outs]
        if not self.cotangents:
            return self.lines
        cotangents = {i: tensor_of(outs[i].dtype, words) for i, words in self.cotangents.items()}
        total = sum((c * outs[i]).sum() for i, c in cotangents.items())
        found = torch.autograd.grad(total, floats, allow_unused=True) if total.requires_grad else [None] * len(floats)
        found = [torch.zeros_like(t) if g is None else g for t, g in zip(floats, found)]
        for i, t in enumerate(self.inputs):
            if t is not None and t.is_floating_point():
                self.lines.append(line_of("gradient %d" % i, found.pop(0)))
        return self.lines


def read_families(path):
    """{family: [op name or Sample, ...]}"""
    families, rows, name = {}, None, None
    with open(path, encoding="ascii") as file:
        for line in file.read().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "family":
                rows = families[rest] = []
            elif kind == "op":
                name = rest
                rows.append(name)
            elif kind == "sample":
                rows.append(Sample(name, line))
            else:
                rows[-1].read(line)
    return families


def write_family(path, family, rows):
    lines = ["# Values of the ops of family %s. Made by make.py, which says what the lines are." % family]
    for row in rows:
        if isinstance(row, Sample):
            lines += row.values() if row.name in OPS else []
        elif row in OPS:
            lines.append("op " + row)
        else:
            print("%s: no function for %s" % (family, row), file=sys.stderr)
    if len(lines) > 1:
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")


def main(inputs, folder, *wanted):
    for family, rows in read_families(inputs).items():
        if not wanted or family in wanted:
            write_family(folder + "/" + family + ".txt", family, rows)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
