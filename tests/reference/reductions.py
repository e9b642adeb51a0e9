"""Reference functions of make.py for reductions, searches, sorts, quantiles and running sums."""

import math

import torch

OPS = {}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


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


@op
def nonzero_tuple(x):
    return torch.nonzero(torch.atleast_1d(x), as_tuple=True)


def in_line(x, axis):
    """x with its reduced axes joined into a last one, and the places of those axes."""
    axes = [a % x.dim() for a in axes_of(x, axis)] if x.dim() else []
    kept = [a for a in range(x.dim()) if a not in axes]
    x = x.permute(kept + axes)
    return x.reshape([x.shape[i] for i in range(len(kept))] + [-1]) if x.numel() else x.flatten(len(kept)), axes


def between(x, q, axis, keepdims, method):
    """Quantiles, with what leads their gradient back: places of the elements below and above, weight of the latter."""
    lines, axes = in_line(x if x.is_floating_point() else x.float(), axis)
    values, order = torch.sort(lines, dim=-1, stable=True)
    parts = []
    for share in q.flatten():
        rank = share * (values.shape[-1] - 1)
        low, high = math.floor(rank), math.ceil(rank)
        weight = rank - low
        if method == "nearest":
            low = high = round(rank.item())
        low, high = (low, low) if method == "lower" else (high, high) if method == "higher" else (low, high)
        weight = 0 if low == high else 0.5 if method == "midpoint" else weight
        result = values[..., low] + (values[..., high] - values[..., low]) * weight
        part = [result, order[..., low], order[..., high], torch.ones_like(result) * weight]
        for a in sorted(axes) if keepdims else []:
            part = [t.unsqueeze(a) for t in part]
        parts.append(part)
    if not parts:
        empty = torch.quantile(lines.detach(), torch.zeros(0, dtype=lines.dtype), -1) + lines.sum() * 0
        return empty, empty.long(), empty.long(), empty * q.sum()
    return tuple(torch.stack(ts).reshape(q.shape + ts[0].shape) for ts in zip(*parts))


simple(
    sort=lambda x, axis=-1, descending=False: torch.sort(x, dim=axis, descending=descending, stable=True),
    argsort=lambda x, axis=-1, descending=False: torch.argsort(x, dim=axis, descending=descending, stable=True),
    topk=lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest),
    kthvalue=lambda x, k, axis=-1, keepdims=False: torch.kthvalue(x, k, axis, keepdims),
    median=lambda x, axis=None, keepdims=False: between(x, torch.tensor(0.5), axis, keepdims, "midpoint"),
    quantile=lambda x, q, axis=None, keepdims=False, method="linear": between(x, q, axis, keepdims, method),
    percentile=lambda x, q, axis=None, keepdims=False, method="linear": between(x, q / 100, axis, keepdims, method),
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
