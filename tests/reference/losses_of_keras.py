"""Writes tests/language/decks/library/losses_agree.deck: Keras's losses, values and gradients in y_pred, float64.

python3 tests/reference/losses_of_keras.py >tests/language/decks/library/losses_agree.deck
needs PyTorch, and Keras with its PyTorch backend.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import torch  # noqa: E402

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
keras.backend.set_floatx("float64")


HEAD = """# Losses against Keras's values and gradients; made by tests/reference/losses_of_keras.py.
def numbers(seed, low, high):
    x = sin(arange(12).astype(float64) * 1.7 + seed)
    return ((x + 1) / 2 * (high - low) + low).reshape(4, 3)

data = {
    "numbers": (numbers(0, -2, 2), numbers(1, -2, 2)),
    "positive": (numbers(0, 0.1, 3), numbers(1, 0.1, 3)),
    "chances": (softmax(numbers(0, -2, 2), axis=-1), softmax(numbers(1, -2, 2), axis=-1)),
    "bits": ((numbers(0, -2, 2) > 0).astype(float64), numbers(1, 0.01, 0.99)),
    "bit_logits": ((numbers(0, -2, 2) > 0).astype(float64), numbers(1, -5, 5)),
    "onehot": (one_hot(tensor([2, 0, 1, 2]), 3).astype(float64), softmax(numbers(1, -2, 2), axis=-1)),
    "onehot_loose": (one_hot(tensor([2, 0, 1, 2]), 3).astype(float64), numbers(1, 0.1, 0.9)),
    "onehot_logits": (one_hot(tensor([2, 0, 1, 2]), 3).astype(float64), numbers(1, -5, 5)),
    "labels": (tensor([2, 0, 1, 2]), softmax(numbers(1, -2, 2), axis=-1)),
    "label_logits": (tensor([2, 0, 1, 2]), numbers(1, -5, 5)),
    "sequence": (tensor([[1, 2], [2, 0]]), numbers(1, -5, 5).reshape(2, 2, 3)),
    "embeddings": (tensor([0, 1, 0, 1]), normalize(numbers(1, -5, 5), axis=-1)),
}
weights = tensor([1., 0.5, 0., 2.], dtype=float64)

def close(found, expected, tolerance):
    found, expected = found.reshape(-1).astype(float64), tensor(expected, dtype=float64)
    return (abs(found - expected) / maximum(abs(expected), 0.01)).max().item() < tolerance

def check(name, make, kind, value, gradient, each, weighted):
    for dtype, tolerance in [(float64, 1e-10), (float32, 1e-5)]:
        y_true, y_pred = data[kind]
        y_true = y_true if y_true.dtype == int64 else y_true.astype(dtype)
        y_pred = Variable(y_pred.astype(dtype))
        with GradientTape() as t:
            loss = make("mean")(y_true, y_pred)
        good = [close(loss, [value], tolerance), close(t.gradient(loss, y_pred), gradient, tolerance * 10),
                close(make("none")(y_true, y_pred), each, tolerance),
                close(make("sum")(y_true, y_pred), [sum(each)], tolerance)]
        if weighted is not None:
            good.append(close(make("mean")(y_true, y_pred, sample_weight=weights), [weighted[0]], tolerance))
            good.append(close(make("mean_with_sample_weight")(y_true, y_pred, weights), [weighted[1]], tolerance))
        if not all(good):
            print(name, dtype, good)
"""


def numbers(seed, low, high):
    x = torch.sin(torch.arange(12.0) * 1.7 + seed)
    return ((x + 1) / 2 * (high - low) + low).reshape(4, 3)


ONE_HOT = torch.nn.functional.one_hot(torch.tensor([2, 0, 1, 2]), 3).double()
BITS = (numbers(0, -2, 2) > 0).double()
DATA = {
    "numbers": (numbers(0, -2, 2), numbers(1, -2, 2)),
    "positive": (numbers(0, 0.1, 3), numbers(1, 0.1, 3)),
    "chances": (numbers(0, -2, 2).softmax(-1), numbers(1, -2, 2).softmax(-1)),
    "bits": (BITS, numbers(1, 0.01, 0.99)),
    "bit_logits": (BITS, numbers(1, -5, 5)),
    "onehot": (ONE_HOT, numbers(1, -2, 2).softmax(-1)),
    "onehot_loose": (ONE_HOT, numbers(1, 0.1, 0.9)),
    "onehot_logits": (ONE_HOT, numbers(1, -5, 5)),
    "labels": (torch.tensor([2, 0, 1, 2]), numbers(1, -2, 2).softmax(-1)),
    "label_logits": (torch.tensor([2, 0, 1, 2]), numbers(1, -5, 5)),
    "sequence": (torch.tensor([[1, 2], [2, 0]]), numbers(1, -5, 5).reshape(2, 2, 3)),
    "embeddings": (torch.tensor([0, 1, 0, 1]), torch.nn.functional.normalize(numbers(1, -5, 5), dim=-1)),
}
WEIGHTS = torch.tensor([1.0, 0.5, 0.0, 2.0])
L = keras.losses
CASES = [  # class, its arguments in Python, data
    ("MeanSquaredError", "", "numbers"),
    ("MeanAbsoluteError", "", "numbers"),
    ("MeanAbsolutePercentageError", "", "positive"),
    ("MeanSquaredLogarithmicError", "", "positive"),
    ("Huber", "delta=0.7", "numbers"),
    ("LogCosh", "", "numbers"),
    ("Poisson", "", "positive"),
    ("CosineSimilarity", "", "numbers"),
    ("KLDivergence", "", "chances"),
    ("Hinge", "", "bit_logits"),
    ("SquaredHinge", "", "bit_logits"),
    ("CategoricalHinge", "", "onehot_logits"),
    ("BinaryCrossentropy", "", "bits"),
    ("BinaryCrossentropy", "label_smoothing=0.2", "bits"),
    ("BinaryCrossentropy", "from_logits=True, label_smoothing=0.1", "bit_logits"),
    ("BinaryFocalCrossentropy", "", "bits"),
    ("BinaryFocalCrossentropy", "apply_class_balancing=True, gamma=1.5, from_logits=True", "bit_logits"),
    ("CategoricalCrossentropy", "", "onehot"),
    ("CategoricalCrossentropy", "", "chances"),
    ("CategoricalCrossentropy", "label_smoothing=0.1", "onehot_loose"),
    ("CategoricalCrossentropy", "from_logits=True, label_smoothing=0.1", "onehot_logits"),
    ("SparseCategoricalCrossentropy", "", "labels"),
    ("SparseCategoricalCrossentropy", "from_logits=True", "label_logits"),
    ("SparseCategoricalCrossentropy", "from_logits=True", "sequence"),
    ("CategoricalFocalCrossentropy", "", "onehot_loose"),
    ("CategoricalFocalCrossentropy", "alpha=0.5, gamma=1.5, from_logits=True", "onehot_logits"),
    ("Dice", "", "bits"),
    ("Dice", "axis=1", "bits"),
    ("Tversky", "alpha=0.3, beta=0.7", "bits"),
    ("Tversky", "alpha=0.3, beta=0.7, axis=-1", "bits"),
    ("CategoricalGeneralizedCrossEntropy", "q=0.3", "labels"),
    ("Circle", "gamma=2.0", "embeddings"),
    ("Circle", "gamma=3.0, margin=0.3, remove_diagonal=False", "embeddings"),
]


# Keras computes means and maxima in float32. Its formulae once more, in float64; Keras's values must be near.
def relu(x):
    return x.clamp(min=0)


def signs(y):
    return 2 * y - 1


def unit(x):
    return x / x.square().sum(-1, keepdim=True).sqrt()


def log1p(x):
    return torch.log(x.clamp(min=1e-7) + 1)


def logits_loss(y, p):
    return torch.nn.functional.binary_cross_entropy_with_logits(p, y, reduction="none")


def binary(y, p):
    return torch.nn.functional.binary_cross_entropy(p.clamp(1e-7, 1 - 1e-7), y, reduction="none")


def circle(y, p, gamma, margin, remove_diagonal):
    distance = relu(1 - p @ p.T)
    same = y[:, None] == y
    near = same & (torch.eye(len(y)) == 0) if remove_diagonal else same
    pull = -gamma * (margin + distance) * (margin - distance)
    push = gamma * relu(1 + margin - distance) * (1 - margin - distance)
    both = (torch.where(near, pull, -torch.inf).logsumexp(1) + torch.where(same, -torch.inf, push).logsumexp(1))
    return torch.nn.functional.softplus(both)


def focal(y, p, gamma):
    return binary(y, p) * (1 - y * p - (1 - y) * (1 - p)) ** gamma


FORMULAE = {
    "MeanSquaredError()": lambda y, p: (y - p).square().mean(-1),
    "MeanAbsoluteError()": lambda y, p: (y - p).abs().mean(-1),
    "MeanAbsolutePercentageError()": lambda y, p: 100 * ((y - p) / y).abs().mean(-1),
    "MeanSquaredLogarithmicError()": lambda y, p: (log1p(p) - log1p(y)).square().mean(-1),
    "Huber(delta=0.7)": lambda y, p: torch.nn.functional.huber_loss(p, y, delta=0.7, reduction="none").mean(-1),
    "LogCosh()": lambda y, p: torch.log(torch.cosh(p - y)).mean(-1),
    "Poisson()": lambda y, p: (p - y * torch.log(p + 1e-7)).mean(-1),
    "CosineSimilarity()": lambda y, p: -(unit(y) * unit(p)).sum(-1),
    "Hinge()": lambda y, p: relu(1 - signs(y) * p).mean(-1),
    "SquaredHinge()": lambda y, p: relu(1 - signs(y) * p).square().mean(-1),
    "CategoricalHinge()": lambda y, p: relu(((1 - y) * p).max(-1).values - (y * p).sum(-1) + 1),
    "BinaryCrossentropy()": lambda y, p: binary(y, p).mean(-1),
    "BinaryCrossentropy(label_smoothing=0.2)": lambda y, p: binary(y * 0.8 + 0.1, p).mean(-1),
    "BinaryCrossentropy(from_logits=True, label_smoothing=0.1)": lambda y, p: logits_loss(y * 0.9 + 0.05, p).mean(-1),
    "BinaryFocalCrossentropy()": lambda y, p: focal(y, p, 2).mean(-1),
    "BinaryFocalCrossentropy(apply_class_balancing=True, gamma=1.5, from_logits=True)": lambda y, p: (
        focal(y, p.sigmoid(), 1.5) * (0.25 * y + 0.75 * (1 - y))
    ).mean(-1),
    "Circle(gamma=2.0)": lambda y, p: circle(y, p, 2, 0.4, True),
    "Circle(gamma=3.0, margin=0.3, remove_diagonal=False)": lambda y, p: circle(y, p, 3, 0.3, False),
}


def flat(x):
    return keras.ops.convert_to_numpy(x).reshape(-1).tolist()


def main():
    print(HEAD)
    for name, arguments, kind in CASES:
        y_true, y_pred = DATA[kind]
        y_pred = y_pred.clone().requires_grad_()

        loss = eval(f"L.{name}({arguments}{', ' if arguments else ''}reduction='none', dtype='float64')")
        formula = FORMULAE.get(f"{name}({arguments})", loss)
        each = formula(y_true, y_pred)
        assert torch.allclose(each.float(), loss(y_true, y_pred).float(), rtol=1e-5, atol=1e-6), name
        gradient = torch.autograd.grad(each.mean(), y_pred)[0]
        weighted = None
        if kind != "sequence" and each.ndim == 1:
            sums = (each * WEIGHTS).sum()
            weighted = [(sums / 4).item(), (sums / WEIGHTS.sum()).item()]
        call = f"{name}({arguments}{', ' if arguments else ''}reduction=r)"
        print(
            f'check("{name}({arguments}) {kind}", lambda r: {call}, "{kind}",\n      {each.mean().item()}, '
            f'{flat(gradient)},\n'
            f"      {flat(each.detach())}, {weighted})"
        )
    few, rows = torch.tensor([0, 0, 1, 2]), DATA["embeddings"][1]
    value = float(L.Circle(gamma=2.0, dtype="float64")(few, rows))
    print(f"print(close(Circle(gamma=2.)([0, 0, 1, 2], data['embeddings'][1]), [{value}], 1e-6))")
    labels, logits = torch.tensor([[1, 2, 0], [2, 2, 1]]), numbers(1, -3, 3).repeat(2, 1).reshape(2, 4, 3)
    print(f"y = numbers(1, -3, 3)\nlogits = concat([y, y]).reshape(2, 4, 3)")
    each = flat(L.CTC(reduction="none", dtype="float64")(labels, logits[:, :4]))
    print(f"print(close(CTC(reduction='none')([[1, 2, 0], [2, 2, 1]], logits), {each}, 1e-5))")
    print('print("all agree")')


if __name__ == "__main__":
    main()
