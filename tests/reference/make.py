#!/usr/bin/env python3
"""Computes the reference values of the op table with PyTorch, in float64, and writes one FAMILY.txt a family of ops.

Run by hand when a row's samples change or an op is added; neither the build nor the tests need it. It needs NumPy 1.24,
SciPy 1.10 and PyTorch 2.0 or later:

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

import functools
import math
import sys

import numpy
import scipy.special
import torch
from torch.nn import functional

import layers
import linear_algebra
import losses
import sequences

OPS = {**layers.OPS, **linear_algebra.OPS, **losses.OPS, **sequences.OPS}
DTYPES = {name: getattr(torch, name) for name in "bool uint8 int32 int64 float16 bfloat16 float32 float64".split()}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


def slope_of(f, x):
    """The derivative of an elementwise f, itself differentiable."""
    return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]


# ---- arithmetic, power, bounds ----

simple(
    add=torch.add,
    subtract=torch.subtract,
    multiply=torch.multiply,
    divide=torch.divide,
    floor_divide=lambda x, y: torch.div(x, y, rounding_mode="floor"),
    remainder=torch.remainder,
    negative=torch.negative,
    sign=torch.sign,
    abs=torch.abs,
    same=lambda x: x,
    chain=lambda c, d: torch.where(c == 0, 0.0, c * d),
    chain_quotient=lambda c, d: torch.where(c == 0, 0.0, c / d),
    abs_gradient=lambda c, x: c * torch.sign(x),
    power=torch.pow,
    square=torch.square,
    reciprocal=torch.reciprocal,
    fmod=torch.fmod,
    lerp=torch.lerp,
    float_power=torch.float_power,
    cbrt=lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
    hypot=torch.hypot,
    power_slope=lambda x, y: y * x ** (y - 1),
    power_log=lambda x, y: x**y * torch.log(x),
    minimum=torch.minimum,
    maximum=torch.maximum,
    maximum_gradient=lambda c, x, y: c * ((x > y) + 0.5 * (x == y)),
    clip=lambda x, low, high: torch.clamp(x, low, high),
    floor=torch.floor,
    ceil=torch.ceil,
    round=lambda x, decimals=0: torch.round(x, decimals=decimals) if x.is_floating_point() else x,
    trunc=torch.trunc,
    frac=lambda x: x - torch.trunc(x),
    fmin=torch.fmin,
    fmax=torch.fmax,
    copysign=torch.copysign,
    copysign_gradient=lambda c, x, y: c * torch.sign(x) * torch.copysign(torch.ones(()), y),
    nextafter=torch.nextafter,
    nan_to_num=lambda x, nan=0.0, posinf=None, neginf=None: torch.nan_to_num(x, nan, posinf, neginf),
)


@op
def heaviside(x, values):
    return torch.where(x == 0, values, (x > 0).to(values.dtype))


# ---- bits, comparisons ----


def shift(x, y, place):
    """Python's shift of each element, wrapped into the dtype. A count below 0 counts as one of all bits."""
    dtype = torch.promote_types(x.dtype, y.dtype)
    bits = torch.iinfo(dtype).bits
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    values = [place(a, b if 0 <= b < bits else bits) for a, b in zip(x.flatten().tolist(), y.flatten().tolist())]
    unsigned = numpy.array([v % 2**64 for v in values], dtype=numpy.uint64)
    return torch.from_numpy(unsigned.astype(numpy.int64)).to(dtype).reshape(x.shape)


simple(
    bitwise_and=torch.bitwise_and,
    bitwise_or=torch.bitwise_or,
    bitwise_xor=torch.bitwise_xor,
    bitwise_not=torch.bitwise_not,
    left_shift=lambda x, y: shift(x, y, lambda a, b: a << b),
    right_shift=lambda x, y: shift(x, y, lambda a, b: a >> b),
    gcd=torch.gcd,
    lcm=torch.lcm,
    equal=torch.eq,
    not_equal=torch.ne,
    less=torch.lt,
    less_equal=torch.le,
    greater=torch.gt,
    greater_equal=torch.ge,
    logical_and=torch.logical_and,
    logical_or=torch.logical_or,
    logical_xor=torch.logical_xor,
    logical_not=torch.logical_not,
    isnan=torch.isnan,
    isinf=torch.isinf,
    isfinite=torch.isfinite,
    isposinf=torch.isposinf,
    isneginf=torch.isneginf,
    signbit=torch.signbit,
    where=lambda condition, x, y: torch.where(condition != 0, x, y),
)



@op
def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return torch.from_numpy(numpy.array(numpy.isclose(x.detach(), y.detach(), rtol, atol, equal_nan)))


@op
def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return isclose(x, y, rtol, atol, equal_nan).all()


# ---- exponentials, angles, activations ----

simple(
    **{
        name: getattr(torch, name)
        for name in "exp expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid "
        "exp2 asinh acosh atanh deg2rad rad2deg logaddexp logaddexp2 erf erfc erfinv lgamma sinc logit xlogy".split()
    },
    tanh_gradient=lambda c, y: c * (1 - y * y),
    sigmoid_gradient=lambda c, y: c * y * (1 - y),
    relu=torch.relu,
    relu_gradient=lambda c, x, slope=0: torch.where(x > 0, c, slope * c),
    leaky_relu=lambda x, slope=0.01: functional.leaky_relu(x, slope),
    elu=lambda x, alpha=1: functional.elu(x, alpha),
    log_sigmoid=functional.logsigmoid,
    softplus=lambda x, beta=1, threshold=math.inf: functional.softplus(x, beta, threshold),
    softsign=functional.softsign,
    tanhshrink=functional.tanhshrink,
    mish=functional.mish,
    mish_slope=lambda x: slope_of(lambda a: a * torch.tanh(functional.softplus(a)), x),
    glu=lambda x, axis=-1: functional.glu(x, axis),
    prelu=functional.prelu,
    celu=lambda x, alpha=1: functional.celu(x, alpha),
    selu=functional.selu,
    hardtanh=lambda x, min_val=-1, max_val=1: functional.hardtanh(x, min_val, max_val),
    relu6=functional.relu6,
    hardswish=functional.hardswish,
    threshold=lambda x, threshold, value: functional.threshold(x, threshold, value),
    hardshrink=lambda x, limit=0.5: functional.hardshrink(x, limit),
    softshrink=lambda x, limit=0.5: functional.softshrink(x, limit),
    inside_gradient=lambda c, x, low=0, high=1, slope=1: slope * c * ((x > low) & (x < high)),
    i0=torch.special.i0,
    i1=torch.special.i1,
    xlog1py=torch.special.xlog1py,
    silu=functional.silu,
    silu_slope=lambda x: slope_of(functional.silu, x),
    gelu=lambda x, approximate="none": functional.gelu(x, approximate=approximate),
    gelu_slope=lambda x, approximate="none": slope_of(lambda a: functional.gelu(a, approximate=approximate), x),
)


def differentiable(function, derivative):
    """A function of SciPy's and its derivative, of an order and x, as one that PyTorch differentiates."""

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(context, x, n):
            context.save_for_backward(x)
            context.n = n
            return torch.from_numpy(numpy.asarray(function(n, x.detach().numpy())))

        @staticmethod
        def backward(context, cotangent):
            (x,) = context.saved_tensors
            return cotangent * torch.from_numpy(numpy.asarray(derivative(context.n, x.numpy()))), None

    return lambda n, x: Made.apply(x, n)


# PyTorch's own polygamma has nine digits.
polygamma_of = differentiable(scipy.special.polygamma, lambda n, x: scipy.special.polygamma(n + 1, x))
bessel_of = differentiable(scipy.special.iv, scipy.special.ivp)

simple(
    polygamma=lambda n, x: polygamma_of(n.numpy(), x),
    digamma=lambda x: polygamma_of(0, x),
    bessel_i=lambda x, n: bessel_of(n, x),
    hardsigmoid=lambda x: torch.clamp(x + 3, 0, 6) / 6,
)


@op
def sinc_derivative(x, n):
    f = torch.sinc
    for _ in range(n):
        f = functools.partial(slope_of, f)
    return f(x)


@op
def cast(x, dtype, saturate=False):
    return x.to(dtype)


# ---- reductions ----


def axes_of(x, axis):
    if axis is None:
        return tuple(range(x.dim()))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def count_over(x, axis, keepdims):
    return sum_(x != 0, axis, keepdims)


@op
def sum_(x, axis=None, keepdims=False):
    return torch.sum(x, axes_of(x, axis), keepdims) if x.dim() else torch.sum(x)


@op
def mean(x, axis=None, keepdims=False):
    x = x if x.is_floating_point() else x.float()
    return torch.mean(x, axes_of(x, axis), keepdims)


@op
def prod(x, axis=None, keepdims=False):
    for a in sorted((a % x.dim() for a in axes_of(x, axis)), reverse=True):
        x = torch.prod(x, a, keepdims)
    return x


@op
def max_(x, axis=None, keepdims=False):
    return torch.amax(x, axes_of(x, axis), keepdims)  # elements that tie share the cotangent


@op
def min_(x, axis=None, keepdims=False):
    return torch.amin(x, axes_of(x, axis), keepdims)


@op
def any_(x, axis=None, keepdims=False):
    return count_over(x, axis, keepdims) > 0


@op
def all_(x, axis=None, keepdims=False):
    return sum_(x == 0, axis, keepdims) == 0


@op
def count_nonzero(x, axis=None, keepdims=False):
    return count_over(x, axis, keepdims)


@op
def var(x, axis=None, keepdims=False, ddof=0):
    return torch.var(x, axes_of(x, axis), correction=ddof, keepdim=keepdims)


@op
def std(x, axis=None, keepdims=False, ddof=0):
    return torch.std(x, axes_of(x, axis), correction=ddof, keepdim=keepdims)


@op
def var_mean(x, axis=None, keepdims=False, ddof=0):
    return torch.var_mean(x, axes_of(x, axis), correction=ddof, keepdim=keepdims)


@op
def std_mean(x, axis=None, keepdims=False, ddof=0):
    return torch.std_mean(x, axes_of(x, axis), correction=ddof, keepdim=keepdims)


@op
def nansum(x, axis=None, keepdims=False):
    return sum_(torch.where(torch.isnan(x), 0, x), axis, keepdims)


@op
def nanprod(x, axis=None, keepdims=False):
    return prod(torch.where(torch.isnan(x), 1, x), axis, keepdims)


@op
def nanmean(x, axis=None, keepdims=False):
    return torch.nanmean(x, axes_of(x, axis), keepdims)


simple(nanmax=max_, nanmin=min_, nanvar=var, nanstd=std)  # without a NaN they are the same


@op
def aminmax(x, axis=None, keepdims=False):
    return min_(x, axis, keepdims), max_(x, axis, keepdims)


@op
def logsumexp(x, axis=None, keepdims=False):
    return torch.logsumexp(x, axes_of(x, axis), keepdims)


@op
def norm(x, ord=2, axis=None, keepdims=False):
    return torch.linalg.vector_norm(x, ord, axes_of(x, axis), keepdims)


def index_of(find, x, axis, keepdims):
    if axis is not None:
        return find(x, axis, keepdims)
    found = find(x.flatten(), 0)
    return found.reshape([1] * x.dim()) if keepdims else found


@op
def argmax(x, axis=None, keepdims=False):
    return index_of(torch.argmax, x, axis, keepdims)


@op
def argmin(x, axis=None, keepdims=False):
    return index_of(torch.argmin, x, axis, keepdims)


@op
def nonzero(x):
    return torch.nonzero(x)


def in_line(x, axis):
    """x with its reduced axes joined into a last one, and the places of those axes."""
    axes = [a % x.dim() for a in axes_of(x, axis)] if x.dim() else []
    kept = [a for a in range(x.dim()) if a not in axes]
    x = x.permute(kept + axes)
    return x.reshape([x.shape[i] for i in range(len(kept))] + [-1]) if x.numel() else x.flatten(len(kept)), axes


def between(x, q, axis, keepdims, method):
    """Quantiles, with what leads their gradient back: places of the elements below and above, weight of the latter."""
    lone = not isinstance(q, tuple)
    lines, axes = in_line(x if x.is_floating_point() else x.float(), axis)
    values, order = torch.sort(lines, dim=-1, stable=True)
    parts = []
    for share in (q,) if lone else q:
        rank = share * (values.shape[-1] - 1)
        low, high = math.floor(rank), math.ceil(rank)
        weight = rank - low
        if method == "nearest":
            low = high = round(rank)
        low, high = (low, low) if method == "lower" else (high, high) if method == "higher" else (low, high)
        weight = 0 if low == high else 0.5 if method == "midpoint" else weight
        result = values[..., low] + (values[..., high] - values[..., low]) * weight
        part = [result, order[..., low], order[..., high], torch.full_like(result, weight)]
        for a in sorted(axes) if keepdims else []:
            part = [t.unsqueeze(a) for t in part]
        parts.append(part)
    return tuple(parts[0]) if lone else tuple(torch.stack(ts) for ts in zip(*parts))


def percent(q):
    return tuple(p / 100 for p in q) if isinstance(q, tuple) else q / 100


simple(
    sort=lambda x, axis=-1, descending=False: torch.sort(x, dim=axis, descending=descending, stable=True),
    argsort=lambda x, axis=-1, descending=False: torch.argsort(x, dim=axis, descending=descending, stable=True),
    topk=lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest),
    kthvalue=lambda x, k, axis=-1, keepdims=False: torch.kthvalue(x, k, axis, keepdims),
    median=lambda x, axis=None, keepdims=False: between(x, 0.5, axis, keepdims, "midpoint"),
    quantile=lambda x, q, axis=None, keepdims=False, method="linear": between(x, q, axis, keepdims, method),
    percentile=lambda x, q, axis=None, keepdims=False, method="linear": between(x, percent(q), axis, keepdims, method),
)
simple(nanmedian=OPS["median"], nanquantile=OPS["quantile"], nanpercentile=OPS["percentile"])


simple(
    searchsorted=lambda edges, values, side="left": torch.searchsorted(edges, values, side=side),
    bucketize=lambda x, edges, right=False: torch.bucketize(x, edges, right=right),
    digitize=lambda x, edges, right=False: torch.bucketize(x, edges, right=not right),
    bincount=lambda x, weights=None, minlength=0: (
        torch.bincount(x, minlength=minlength)
        if weights is None
        else torch.zeros(max(minlength, int(x.max()) + 1), dtype=weights.dtype).index_add(0, x, weights)
    ),
)


def running(scan, start):
    """A running reduction along axis, with TensorFlow's exclusive and reverse."""

    def apply(x, axis=None, exclusive=False, reverse=False):
        x, axis = (x.flatten(), 0) if axis is None else (x, axis)
        x = torch.flip(x, [axis]) if reverse else x
        x = scan(x, axis)
        if exclusive:
            first = torch.full_like(x.narrow(axis, 0, min(1, x.shape[axis])), start)
            x = torch.cat([first, x.narrow(axis, 0, max(x.shape[axis] - 1, 0))], axis)
        return torch.flip(x, [axis]) if reverse else x

    return apply


def along(scan):
    return lambda x, axis=None: tuple(scan(x.flatten(), 0)) if axis is None else tuple(scan(x, axis))


simple(
    cumsum=running(torch.cumsum, 0),
    cumprod=running(torch.cumprod, 1),
    cummax=along(torch.cummax),
    cummin=along(torch.cummin),
)


@op
def logcumsumexp(x, axis=None):
    x = x if x.is_floating_point() else x.float()
    return torch.logcumsumexp(x.flatten(), 0) if axis is None else torch.logcumsumexp(x, axis)


@op
def recurrence(x, factor, axis, reverse=False):
    if not x.numel():
        return x * factor
    x, factor = (list(torch.unbind(t, axis)) for t in (x, factor))
    order = range(len(x))[::-1] if reverse else range(len(x))
    y = {}
    for j in order:
        before = j + 1 if reverse else j - 1
        y[j] = x[j] + factor[max(j, before)] * y[before] if before in y else x[j]
    return torch.stack([y[j] for j in range(len(x))], axis)


# ---- matrices, shapes ----

simple(
    matmul=torch.matmul,
    reshape=lambda x, shape: x.reshape(shape),
    flatten=lambda x, start_dim=0, end_dim=-1: torch.flatten(x, start_dim, end_dim),
    squeeze=lambda x, axis=None: torch.squeeze(x) if axis is None else torch.squeeze(x, axes_of(x, axis)),
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
    axes = axes_of(x, axis)
    for a in sorted(a % (x.dim() + len(axes)) for a in axes):
        x = x.unsqueeze(a)
    return x


simple(
    transpose=lambda x, axes=None: x.permute(axes if axes is not None else tuple(reversed(range(x.dim())))),
    swapaxes=torch.swapaxes,
    moveaxis=torch.moveaxis,
    flip=lambda x, axis=None: torch.flip(x, axes_of(x, axis)),
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
            find = {"mean": torch.mean, "maximum": torch.amax, "minimum": torch.amin}[mode]
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
    axes = range(rank) if axis is None else [a % rank for a in axes_of(x, axis)]
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
def take(x, index, axis=None):
    return OPS["index"](x.flatten() if axis is None else x, index, axes=(axis or 0,))


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
