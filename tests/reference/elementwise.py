"""Reference functions of make.py for the ops that work element by element."""

import functools
import math

import mpmath
import numpy
import scipy.special
import torch
from torch.nn import functional

OPS = {}


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
    div=lambda x, y, rounding_mode=None: torch.div(x, y, rounding_mode=rounding_mode),
    ldexp=lambda x, n: x * 2.0**n,
    frexp=lambda x: (x / 2.0 ** torch.frexp(x)[1], torch.frexp(x)[1]),
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
    tanh_gradient=lambda c, x: c / torch.cosh(x) ** 2,
    sigmoid_gradient=lambda c, x: c * torch.sigmoid(x) * torch.sigmoid(-x),
    relu=torch.relu,
    hardswish_gradient=lambda c, x: c * torch.where(x <= -3, 0, torch.where(x < 3, x / 3 + 0.5, 1)),
    above_gradient=lambda c, x, low=0: torch.where(x <= low, 0 * c, c),
    leaky_gradient=lambda c, x, slope=0: torch.where(x > 0, c, slope * c),
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

zeta_of = differentiable(scipy.special.zeta, lambda s, q: -s * scipy.special.zeta(s + 1, q))


def drawn_slope(a, x):
    """How x moves with a while mpmath's incomplete gamma function stays: PyTorch's own has four digits."""
    with mpmath.workdps(40):
        share = mpmath.diff(lambda b: mpmath.gammainc(b, 0, x, regularized=True), a)
        return float(-share / (mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)))


@op
def gamma_slope(a, x):
    a, x = torch.broadcast_tensors(a.detach(), x.detach())
    slopes = [drawn_slope(*pair) for pair in zip(a.flatten().tolist(), x.flatten().tolist())]
    return torch.tensor(slopes, dtype=x.dtype).reshape(x.shape)


simple(
    zeta=lambda s, q: zeta_of(s.numpy(), q),
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
