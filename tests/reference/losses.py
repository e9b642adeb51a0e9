"""Reference functions of make.py for losses."""

import math

import torch
from torch.nn import functional

OPS = {}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


def labels(target):
    return target if target.is_floating_point() else target.long()


def labelled_losses(logs, target, weight, reduction, ignore_index, smoothing):
    """cross_entropy and nll_loss once more: PyTorch has no gradient in weight, nor 0 where all labels are ignored."""
    axis = 1 if logs.ndim > 1 else 0
    count = logs.shape[axis]
    shape = [count if i == axis else 1 for i in range(logs.ndim)]
    weight = (logs.new_ones(count) if weight is None else weight).reshape(shape)
    counted = None
    if target.ndim < logs.ndim:
        counted = (target != ignore_index).to(logs.dtype).unsqueeze(axis)
        at = (target.unsqueeze(axis) == torch.arange(count).reshape(shape)).to(logs.dtype) * counted
        wanted = at * (1 - smoothing) + counted * smoothing / count
    else:
        wanted = target * (1 - smoothing) + smoothing / count
    losses = -(weight * wanted * logs).sum(axis)
    if reduction != "mean":
        return losses.sum() if reduction == "sum" else losses
    return losses.sum() / ((weight * at).sum() if counted is not None else losses.numel())


@op
def cross_entropy(input, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0):
    logs = torch.log_softmax(input, 1 if input.ndim > 1 else 0)
    loss = labelled_losses(logs, labels(target), weight, reduction, ignore_index, label_smoothing)
    same = functional.cross_entropy(
        input,
        labels(target),
        weight if weight is None else weight.detach(),
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )
    assert torch.allclose(loss, same, rtol=1e-13)
    return loss


@op
def cross_entropy_adjoint(input, target, weight, cotangent, **args):
    loss = cross_entropy(input, target, weight, **args)
    return torch.autograd.grad(loss, input, cotangent, create_graph=True)[0]


@op
def nll_loss(input, target, weight=None, reduction="mean", ignore_index=-100):
    loss = labelled_losses(input, target.long(), weight, reduction, ignore_index, 0)
    constant = weight if weight is None else weight.detach()
    same = functional.nll_loss(input, target.long(), constant, reduction=reduction, ignore_index=ignore_index)
    assert torch.allclose(loss, same, rtol=1e-13)
    return loss


def spread(loss):
    """A loss of PyTorch's whose inputs are broadcast first."""

    def run(input, target, *others, broadcast=False, **args):
        input, target = torch.broadcast_tensors(input, target)
        return loss(input, target.to(input.dtype), *[t if t is None else t.expand(input.shape) for t in others], **args)

    return run


def gradient_of(loss):
    """The gradient in input of a loss, with the cotangent of each element as third input."""

    def run(input, target, cotangent, **args):
        input, target, cotangent = torch.broadcast_tensors(input, target, cotangent)
        return torch.autograd.grad((cotangent * loss(input, target, reduction="none", **args)).sum(), input,
                                   create_graph=True)[0]

    return run


@spread
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    return functional.gaussian_nll_loss(input, target, var, full=full, eps=eps, reduction=reduction)


@op
def margin_ranking_loss(input1, input2, target, margin=0, reduction="mean", broadcast=False):
    input1, input2, target = torch.broadcast_tensors(input1, input2, target)
    return functional.margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)


def reduced(losses, reduction):
    return {"mean": torch.mean, "sum": torch.sum, "none": torch.clone}[reduction](losses)


def hinge(input, target, reduction="mean"):
    return reduced(torch.clamp(1 - target * input, min=0), reduction)


def soft_margin(input, target, reduction="mean"):  # PyTorch's has no gradient in target
    return reduced(functional.softplus(-target * input), reduction)


def binary(input, target, reduction):  # PyTorch's second derivative is off by an epsilon
    return -(target * torch.log(input) + (1 - target) * torch.log1p(-input))


def weighted(loss):
    """A loss of PyTorch's, which has no gradient in weight, with its weight multiplied from outside."""

    def run(input, target, weight=None, *others, reduction="mean"):
        losses = loss(input, target, None, *others, reduction="none")
        return reduced(losses if weight is None else weight * losses, reduction)

    return run


def positive_logits(input, target, weight=None, pos_weight=None, reduction="mean"):
    positive = target if pos_weight is None else target * pos_weight
    losses = positive * functional.softplus(-input) + (1 - target) * functional.softplus(input)
    constant = pos_weight if pos_weight is None else pos_weight.detach()
    same = functional.binary_cross_entropy_with_logits(input, target, pos_weight=constant, reduction="none")
    assert torch.allclose(losses, same, rtol=1e-13)
    return losses


simple(
    **{
        name: spread(getattr(functional, name))
        for name in (
            "mse_loss l1_loss huber_loss smooth_l1_loss kl_div poisson_nll_loss hinge_embedding_loss"
        ).split()
    },
    **{
        name + "_gradient": gradient_of(getattr(functional, name))
        for name in (
            "mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy_with_logits"
        ).split()
    },
    gaussian_nll_loss=gaussian_nll_loss,
    binary_cross_entropy_gradient=gradient_of(binary),
    hinge_loss=spread(hinge),
    soft_margin_loss=spread(soft_margin),
    binary_cross_entropy=spread(weighted(functional.binary_cross_entropy)),
    binary_cross_entropy_with_logits=spread(weighted(positive_logits)),
)


# ---- ctc_loss: PyTorch's gradient is joined with log_softmax's, so the chain's sums stand here once more ----


def one_ctc(scores, labels, blank):  # scores: time x classes
    states = [blank]
    for label in labels:
        states += [label, blank]
    if not len(scores):
        return scores.new_tensor(0.0 if len(states) == 1 else math.inf)
    nothing = scores.new_tensor(-math.inf)
    alpha = [scores[0, s] if i < 2 else nothing for i, s in enumerate(states)]
    for line in scores[1:]:
        before, alpha = alpha, []
        for i, s in enumerate(states):
            reached = before[max(0, i - 1) : i + 1]
            if i > 1 and s != blank and s != states[i - 2]:
                reached = [before[i - 2]] + reached
            reached = [a for a in reached if a > -math.inf]
            alpha.append(torch.logsumexp(torch.stack(reached), 0) + line[s] if reached else nothing)
    ends = [a for a in alpha[-2:] if a > -math.inf]
    return -torch.logsumexp(torch.stack(ends), 0) if ends else scores.new_tensor(math.inf)


@op
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    args = dict(blank=blank, reduction=reduction, zero_infinity=zero_infinity)
    if targets.ndim == 1:
        targets = targets[: int(target_lengths.sum())]
    same = functional.ctc_loss(log_probs.detach(), targets, input_lengths, target_lengths, **args)
    if log_probs.ndim == 2:
        log_probs, input_lengths, target_lengths = log_probs[:, None], input_lengths[None], target_lengths[None]
    losses, at = [], 0
    for n, (time, count) in enumerate(zip(input_lengths.tolist(), target_lengths.tolist())):
        row = targets[n] if targets.ndim == 2 else targets[at:]
        loss = one_ctc(log_probs[:time, n], row[:count].tolist(), blank)
        losses.append(loss * 0 if loss == math.inf and zero_infinity else loss)
        losses[-1] = torch.where(torch.isnan(losses[-1]), torch.zeros_like(losses[-1]), losses[-1])
        at += count
    losses = torch.stack(losses)
    loss = {"mean": (losses / target_lengths.clamp(min=1)).mean(), "sum": losses.sum(), "none": losses}[reduction]
    loss = loss.reshape(same.shape)
    assert torch.allclose(loss, same, rtol=1e-13)
    return loss
