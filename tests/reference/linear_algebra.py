"""The functions of make.py for einsum and linear algebra: PyTorch's, with the signs of singular and eigenvectors that
tapedeck gives them, and symmetric matrices read as such in both triangles."""

import numpy
import torch

OPS = {}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


def slope_along(f, a, c):
    return torch.autograd.functional.jvp(f, a, c, create_graph=True)[1]


def triangle_alone(a):
    return a[..., :0], torch.linalg.qr(a, "r")[1]


simple(
    det=torch.linalg.det,
    cofactor=lambda a: torch.linalg.det(a)[..., None, None] * torch.linalg.inv(a).mT,
    slogdet=torch.linalg.slogdet,
    inv=torch.linalg.inv,
    solve=torch.linalg.solve,
    lu=torch.linalg.lu,
    cholesky=lambda a, upper=False: torch.linalg.cholesky(a, upper=upper),
    cholesky_solve=lambda b, l, upper=False: torch.cholesky_solve(b, l.triu() if upper else l.tril(), upper=upper),
    qr=lambda a, mode="reduced": triangle_alone(a.float()) if mode == "r" else torch.linalg.qr(a, mode),
    cofactor_slope=lambda a, c: slope_along(OPS["cofactor"], a, c),
    svdvals=torch.linalg.svdvals,
    eigvalsh=lambda a, UPLO="L": torch.linalg.eigvalsh((a + a.mT) / 2, UPLO),
)


simple(
    pinv=lambda a, rtol=None, hermitian=False: torch.linalg.pinv(a, rtol=rtol),
    matrix_rank=lambda a, tol=None: torch.linalg.matrix_rank(a, atol=tol),
    matrix_norm=lambda x, ord="fro", axis=(-2, -1), keepdims=False: torch.linalg.matrix_norm(x, ord, axis, keepdims),
    matrix_power=torch.linalg.matrix_power,
    expm=torch.linalg.matrix_exp,
)


@op
def cond(x, p=None):
    if p in (None, 2, -2):
        return torch.linalg.cond(x, p)
    return torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(torch.linalg.inv(x), p)


@op
def lstsq(a, b, rtol=None):
    vector = b.dim() == 1
    b = b[:, None] if vector else b
    rank = torch.linalg.matrix_rank(a.detach())
    x = torch.linalg.pinv(a) @ b
    rest = ((b - a @ x) ** 2).sum(-2) if a.shape[-2] > a.shape[-1] else b.new_zeros(b.shape[:-2] + (0,))
    return x[:, 0] if vector else x, rest, rank, torch.linalg.svdvals(a)


@op
def einsum(*operands, subscripts):
    if all(t.is_floating_point() for t in operands):
        return torch.einsum(subscripts, *operands)
    return torch.from_numpy(numpy.array(numpy.einsum(subscripts, *[t.numpy() for t in operands])))


def paired(a, b, first, second):
    return torch.tensordot(a, b, dims=(first, second)) if a.dim() and b.dim() else a * b


simple(
    tensordot=lambda a, b, axes=2: torch.tensordot(a, b, dims=axes),
    dot=lambda a, b: paired(a, b, [-1], [max(b.dim() - 2, 0)]),
    inner=lambda a, b: paired(a, b, [-1], [-1]),
    vdot=lambda a, b: torch.dot(a.flatten(), b.flatten()),
    outer=torch.outer,
    kron=torch.kron,
    trace=lambda x, offset=0, axis1=0, axis2=1: torch.diagonal(x, offset, axis1, axis2).sum(-1),
)


@op
def solve_triangular(a, b, upper, left=True, unitriangular=False, transposed=False):
    vector = b.dim() == 1
    a, upper = (a.mT, not upper) if transposed else (a, upper)
    x = torch.linalg.solve_triangular(
        a, b[:, None] if vector else b, upper=upper, left=left, unitriangular=unitriangular
    )
    return x[:, 0] if vector else x


def signs(columns):
    """1 or -1 for each column: the sign of its largest element."""
    if columns.shape[-2] == 0:
        return columns.new_ones(columns.shape[-1])
    return torch.sign(torch.gather(columns, -2, columns.abs().argmax(-2, keepdim=True))[..., 0, :]).detach()


@op
def svd(a, full_matrices=True):
    u, s, vh = torch.linalg.svd(a, full_matrices=full_matrices)
    sign = signs(u)
    return u * sign[..., None, :], s, vh * sign[..., :, None]


@op
def eigh(a, UPLO="L"):
    w, v = torch.linalg.eigh((a + a.mT) / 2, UPLO)
    return w, v * signs(v)[..., None, :]
