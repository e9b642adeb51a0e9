"""Reference functions of make.py for the ops that read and write at indices."""

import math

import torch
from torch.nn import functional

OPS = {}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


# ---- indices ----


def keys(axes, indices):
    """x[keys] reads at indices along axes."""
    chosen = [slice(None)] * (max(axes) + 1)
    for axis, index in zip(axes, indices):
        chosen[axis] = index.long()
    return tuple(chosen)


@op
def index(x, *indices, axes):
    return x[keys([a % x.dim() for a in axes], indices)]


@op
def index_adjoint(values, *indices, axes, shape):
    x = torch.zeros(shape, dtype=values.dtype, requires_grad=True)
    return torch.autograd.grad(index(x, *indices, axes=axes), x, values, create_graph=True)[0]


@op
def index_put(x, value, *indices, axes):
    """Element by element: of repeated places the last value stays."""
    places = index(torch.arange(x.numel()).reshape(x.shape), *indices, axes=axes)
    flat = list(x.flatten())
    for place, v in zip(places.flatten().tolist(), torch.broadcast_to(value, places.shape).flatten()):
        flat[place] = v
    return torch.stack(flat).reshape(x.shape)


def counted(index, n):
    return torch.where(index < 0, index + n, index).long()


@op
def take(x, index, axis=None, mode="raise"):
    x = x.flatten() if axis is None else x
    n = x.shape[axis or 0]
    index = index % n if mode == "wrap" else index.clamp(0, n - 1) if mode == "clip" else index
    return OPS["index"](x, index, axes=(axis or 0,))


@op
def index_add(x, index, source, axis=0):
    index = counted(index.reshape(-1), x.shape[axis])
    places = list(x.shape)
    places[axis] = len(index)
    return x.index_add(axis, index, torch.broadcast_to(source, places))


@op
def embedding(index, weight, padding_idx=None):
    return functional.embedding(index.long(), weight, padding_idx)


@op
def gather(x, index, axis):
    return torch.gather(x, axis, counted(index, x.shape[axis]))


@op
def take_along_axis(x, index, axis):
    return torch.take_along_dim(x, counted(index, x.shape[axis]), axis)


@op
def gather_adjoint(x, index, axis, shape):
    return torch.zeros(shape, dtype=x.dtype).scatter_add(axis, counted(index, shape[axis]), x)


@op
def scatter(x, index, source, axis, mode="set"):
    """Element by element for "set", where of repeated places the last value stays."""
    index = counted(index, x.shape[axis])
    source = torch.broadcast_to(source, index.shape)
    reduce = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}.get(mode, mode)
    if reduce != "set":
        return x.scatter_reduce(axis, index, source, reduce)
    places = torch.gather(torch.arange(x.numel()).reshape(x.shape), axis, index)
    flat = list(x.flatten())
    for place, v in zip(places.flatten().tolist(), source.flatten()):
        flat[place] = v
    return torch.stack(flat).reshape(x.shape)


@op
def scatter_add(x, index, source, axis):
    return scatter(x, index, source, axis, "add")


@op
def put_along_axis(x, index, source, axis):
    shape = list(x.shape)
    shape[axis] = index.shape[axis]
    return scatter(x, torch.broadcast_to(index, shape), source, axis)


@op
def one_hot(index, n=-1, dtype=torch.float32):
    return functional.one_hot(index.long(), n).to(dtype)


def segments(source, ids, n):
    """The rows of each number."""
    ids, rows = ids.flatten(), source.reshape((-1,) + source.shape[ids.dim() :])
    n = int(ids.max()) + 1 if n is None else n
    return [rows[ids == k] for k in range(n)]


def segment(combine):
    return lambda source, ids, n=None: torch.stack([combine(rows) for rows in segments(source, ids, n)])


def extreme(find, empty):
    return lambda rows: find(rows, 0) if len(rows) else torch.full(rows.shape[1:], empty, dtype=rows.dtype)


simple(
    segment_sum=segment(lambda rows: rows.sum(0)),
    segment_mean=segment(lambda rows: rows.sum(0) / max(len(rows), 1)),
    segment_max=segment(extreme(torch.amax, -math.inf)),
    segment_min=segment(extreme(torch.amin, math.inf)),
)


simple(
    masked_select=lambda x, mask: torch.masked_select(x, mask),
    masked_adjoint=lambda x, mask, shape: torch.zeros(shape, dtype=x.dtype).masked_scatter(mask, x),
    masked_fill=lambda x, mask, value: torch.where(mask, value, x),
)
