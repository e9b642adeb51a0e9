"""Reference functions of make.py for the ops of layers: convolutions, pooling, resizing, normalization, attention."""

import torch
from torch.nn import functional

OPS = {}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def numbers(value, n):
    """One number for each of n axes."""
    return (value,) * n if isinstance(value, int) else tuple(value) * (n if len(value) == 1 else 1)


# ---- convolutions ----

CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
TRANSPOSED = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)


def frame(x, before, after):
    return functional.pad(x, [n for pair in zip(reversed(before), reversed(after)) for n in pair])


def same_padding(x, w, stride, dilation):
    """Keras's rule, which is PyTorch's where stride is 1."""
    before, after = [], []
    for size, kernel, s, d in zip(x.shape[2 - w.dim() :], w.shape[2:], stride, dilation):
        total = max((-(-size // s) - 1) * s + d * (kernel - 1) + 1 - size, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return before, after


def convolve(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    n = w.dim() - 2
    stride, dilation = numbers(stride, n), numbers(dilation, n)
    if padding == "same":
        x, padding = frame(x, *same_padding(x, w, stride, dilation)), 0
    padding = (0,) * n if padding == "valid" else numbers(padding, n)
    return CONVOLUTIONS[n - 1](x, w, b, stride, padding, dilation, groups)


def transpose(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n = w.dim() - 2
    stride, dilation, padding = numbers(stride, n), numbers(dilation, n), numbers(padding, n)
    return TRANSPOSED[n - 1](x, w, b, stride, padding, numbers(output_padding, n), groups, dilation)


OPS.update({"conv%dd" % n: convolve for n in (1, 2, 3)})
OPS.update({"conv_transpose%dd" % n: transpose for n in (1, 2, 3)})


@op
def convolution(x, w, stride, padding, dilation, groups, sizes):
    """With zeros behind x as many as the results need."""
    behind = []
    for size, kernel, s, p, d, out in zip(x.shape[2:], w.shape[2:], stride, padding, dilation, sizes):
        behind.append((out - 1) * s + d * (kernel - 1) + 1 - size - p)
    return CONVOLUTIONS[len(sizes) - 1](frame(x, padding, behind), w, None, stride, 0, dilation, groups)


@op
def convolution_adjoint(y, w, stride, padding, dilation, groups, sizes):
    x = torch.zeros((y.shape[0], w.shape[1] * groups) + tuple(sizes), dtype=y.dtype, requires_grad=True)
    result = convolution(x, w, stride, padding, dilation, groups, y.shape[2:])
    return torch.autograd.grad(result, x, y, create_graph=True)[0]


@op
def convolution_weight(x, y, stride, padding, dilation, groups, sizes):
    w = torch.zeros((y.shape[1], x.shape[1] // groups) + tuple(sizes), dtype=y.dtype, requires_grad=True)
    result = convolution(x, w, stride, padding, dilation, groups, y.shape[2:])
    return torch.autograd.grad(result, w, y, create_graph=True)[0]


# ---- pooling ----


def max_pool(name):
    def pool(x, *args, **named):
        dtype, places = x.dtype, True
        if not x.is_floating_point():
            x = x.double()
        y, places = getattr(functional, name)(x, *args, return_indices=True, **named)
        return y.to(dtype), places

    return pool


OPS.update({"max_pool%dd" % n: max_pool("max_pool%dd" % n) for n in (1, 2, 3)})
OPS.update({"adaptive_max_pool%dd" % n: max_pool("adaptive_max_pool%dd" % n) for n in (1, 2, 3)})
OPS.update({"adaptive_avg_pool%dd" % n: getattr(functional, "adaptive_avg_pool%dd" % n) for n in (1, 2, 3)})
OPS.update({"avg_pool%dd" % n: getattr(functional, "avg_pool%dd" % n) for n in (1, 2, 3)})


def planes_of(x, n):
    return x.reshape(x.shape[: x.dim() - n] + (-1,))


@op
def pool_gather(x, places, n):
    return torch.gather(planes_of(x, n), -1, planes_of(places, n)).reshape(places.shape)


@op
def pool_scatter(x, places, sizes):
    whole = torch.zeros(x.shape[: x.dim() - len(sizes)] + tuple(sizes), dtype=x.dtype)
    n = len(sizes)
    return planes_of(whole, n).scatter_add(-1, planes_of(places, n), planes_of(x, n)).reshape(whole.shape)


def adjoint_of(function, c, sizes):
    x = torch.zeros(c.shape[: c.dim() - len(sizes)] + tuple(sizes), dtype=c.dtype, requires_grad=True)
    return torch.autograd.grad(function(x), x, c, create_graph=True)[0]


@op
def avg_pool_adjoint(c, sizes, **named):
    return adjoint_of(lambda x: OPS["avg_pool%dd" % len(sizes)](x, **named), c, sizes)


@op
def adaptive_avg_pool_adjoint(c, sizes, output_size):
    return adjoint_of(lambda x: OPS["adaptive_avg_pool%dd" % len(sizes)](x, output_size), c, sizes)


# ---- normalization ----


@op
def layer_norm(x, w=None, b=None, eps=1e-5, normalized_shape=None):
    shape = normalized_shape or (w.shape if w is not None else b.shape if b is not None else x.shape[-1:])
    return functional.layer_norm(x, tuple(shape), w, b, eps)


@op
def rms_norm(x, w=None, eps=None, normalized_shape=None):
    shape = normalized_shape or (w.shape if w is not None else x.shape[-1:])
    return functional.rms_norm(x, tuple(shape), w, eps)


@op
def group_norm(x, w=None, b=None, eps=1e-5, num_groups=None):
    return functional.group_norm(x, num_groups, w, b, eps)


@op
def instance_norm(x, w=None, b=None, eps=1e-5):
    return functional.group_norm(x, x.shape[1], w, b, eps)  # instance_norm refuses an empty batch


@op
def batch_norm(x, mean=None, var=None, w=None, b=None, training=False, momentum=0.1, eps=1e-5):
    """functional.batch_norm keeps the running statistics out of the graph: where they matter here are formulas."""
    if not training:
        shape = [1, -1] + [1] * (x.dim() - 2)
        y = (x - mean.reshape(shape)) / torch.sqrt(var.reshape(shape) + eps)
        y = y if w is None else y * w.reshape(shape)
        return y if b is None else y + b.reshape(shape), mean.clone(), var.clone()
    y = functional.batch_norm(x, None, None, w, b, True, 0, eps)
    axes = [i for i in range(x.dim()) if i != 1]
    found = x.mean(axes), x.var(axes, correction=1)
    if mean is None:
        return (y,) + found
    return y, (1 - momentum) * mean + momentum * found[0], (1 - momentum) * var + momentum * found[1]


@op
def standardize(x, w=None, b=None, over_batch=False, centred=True, eps=1e-5):
    axes = (0, 3) if over_batch else (2, 3)
    off = x - x.mean(axes, keepdim=True) if centred else x
    y = off / torch.sqrt((off * off).mean(axes, keepdim=True) + eps)
    shape = (1, x.shape[1], x.shape[2], 1)
    y = y if w is None else y * w.reshape(shape)
    return y if b is None else y + b.reshape(shape)


@op
def standardize_adjoint(x, w, c, **named):
    count = x.shape[1] * x.shape[2]
    leaves = [x if x.requires_grad else x.requires_grad_(True)]
    weight = w if w is not None else torch.ones(count, dtype=x.dtype, requires_grad=True)
    shift = torch.zeros(count, dtype=x.dtype, requires_grad=True)
    y = standardize(x, weight, shift, **named)
    return torch.autograd.grad(y, leaves + [weight, shift], c, create_graph=True)


# ---- attention ----


def mask_of(scores, mask, is_causal):
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores


@op
def scaled_dot_product_attention(q, k, v, mask=None, key=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """The result, each row's log-sum-exp, 0 where no key may be seen, and nothing of what was dropped."""
    if enable_gqa:
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = mask_of(scale * q @ k.transpose(-1, -2), mask, is_causal)
    if is_causal and mask is not None:
        mask, is_causal = mask_of(torch.zeros(scores.shape, dtype=q.dtype), mask, True), False
    y = functional.scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal, scale=scale)
    none = (scores == -torch.inf).all(-1)
    logs = torch.logsumexp(torch.where(none[..., None], 0.0, scores), -1)
    shape = torch.broadcast_shapes(y.shape[:-1], logs.shape)
    return y, torch.where(none, 0.0, logs).expand(shape), torch.zeros(0, dtype=torch.bool)


@op
def attention_adjoint(q, k, v, c, logs, deltas, mask=None, kept=None, dropout_p=0.0, is_causal=False, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = mask_of(scale * q @ k.transpose(-1, -2), mask, is_causal)
    p = torch.exp(scores - logs[..., None])
    kept = 1 if kept is None else kept.to(c.dtype) / (1 - dropout_p)
    g = p * (kept * (c @ v.transpose(-1, -2)) - deltas[..., None])
    return scale * g @ k, scale * g.transpose(-1, -2) @ q, (kept * p).transpose(-1, -2) @ c


# ---- resizing ----


@op
def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False):
    """PyTorch refuses an empty batch."""
    corners = align_corners if mode in ("linear", "bilinear", "trilinear", "bicubic") else None
    if not len(x):
        return interpolate(torch.cat([x, torch.zeros((1,) + x.shape[1:], dtype=x.dtype)]), size)[:0]
    return functional.interpolate(x, size, scale_factor, mode, corners)


@op
def interpolate_adjoint(c, sizes, **named):
    return adjoint_of(lambda x: interpolate(x, **named), c, sizes)
