"""Writes tests/language/decks/library/optimizers_agree.deck: 20 steps of every optimizer by PyTorch or Keras, float64.

python3 tests/reference/optimizers.py >tests/language/decks/library/optimizers_agree.deck
needs PyTorch, and Keras with its PyTorch backend.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from keras.src.backend.common import dtypes  # noqa: E402

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
keras.backend.set_floatx("float64")
dtypes.BIT64_TO_BIT32_DTYPE.clear()   # else some rules compute in float32 all the same
STEPS = 20

HEAD = '''# 20 steps of every optimizer against PyTorch's and Keras's weights; made by tests/reference/optimizers.py.
def batch(k, dtype):
    i, j = arange(8).reshape(8, 1).astype(float64), arange(3).astype(float64)
    x = sin(1.3 * i + 0.7 * j + 0.9 * k)
    y = cos(0.5 * i + 1.1 * arange(2).astype(float64) + 0.3 * k)
    return x.astype(dtype), y.astype(dtype)

def start(dtype):
    w = Variable(sin(arange(6).astype(float64) + 1).reshape(3, 2).astype(dtype), name="w")
    return [w, Variable(tensor([0.5, -0.25], dtype=dtype), name="b")]

def loss_of(vars, k, dtype):
    x, y = batch(k, dtype)
    return ((tanh(x @ vars[0] + vars[1]) - y) ** 2).mean()

def keras_habit(make, dtype):
    vars, opt = start(dtype), make(None)
    for k in range(20):
        opt.minimize(lambda: loss_of(vars, k, dtype), vars)
    if opt.use_ema:
        opt.finalize_variable_values(vars)
    return vars

def torch_habit(make, dtype, batches=range(20)):
    vars = start(dtype)
    opt = make(vars)
    for k in batches:
        def closure():
            opt.zero_grad()
            loss = loss_of(vars, k, dtype)
            loss.backward()
            return loss
        opt.step(closure)
    return vars

def on_one_batch(make, dtype):
    return torch_habit(make, dtype, [0] * 20)

def check(name, run, make, expected):
    # each of Muon's five iterations makes what a rounding changed up to 3.4 times as large
    for dtype, tolerance in [(float64, 1e-10), (float32, 1e-4 if name.startswith("Muon") else 1e-5)]:
        vars = run(make, dtype)
        found = concat([v.reshape(-1) for v in vars]).astype(float64)
        wanted = tensor(expected, dtype=float64)
        error = (abs(found - wanted) / maximum(abs(wanted), 0.1)).max().item()
        if not error < tolerance:
            print(name, dtype, error)

falling = lambda step: 0.1 * 0.9 ** step
'''


def batch(k):
    i, j = torch.arange(8.0).reshape(8, 1), torch.arange(3.0)
    return torch.sin(1.3 * i + 0.7 * j + 0.9 * k), torch.cos(0.5 * i + 1.1 * torch.arange(2.0) + 0.3 * k)


def start():
    return torch.sin(torch.arange(6.0) + 1).reshape(3, 2), torch.tensor([0.5, -0.25])


def loss_of(w, b, k):
    x, y = batch(k)
    return ((torch.tanh(x @ w + b) - y) ** 2).mean()


def by_torch(make, schedule=None, batches=range(STEPS)):
    w, b = [torch.nn.Parameter(t) for t in start()]
    optimizer = make([w, b])
    for k in batches:
        if schedule:
            optimizer.param_groups[0]["lr"] = schedule(k)

        def closure():
            optimizer.zero_grad()
            loss = loss_of(w, b, k)
            loss.backward()
            return loss

        optimizer.step(closure)
    return torch.cat([w.reshape(-1), b]).tolist()


def by_keras(optimizer, schedule=None):
    w, b = [keras.Variable(t.numpy(), dtype="float64", name=n) for t, n in zip(start(), "wb")]
    optimizer.build([w, b])
    for k in range(STEPS):
        if schedule:
            optimizer.learning_rate = schedule(k)
        loss = loss_of(w.value, b.value, k)
        grads = torch.autograd.grad(loss, [w.value, b.value])
        with torch.no_grad():
            optimizer.apply(list(grads), [w, b])
    if optimizer.use_ema:
        optimizer.finalize_variable_values([w, b])
    return numpy.concatenate([keras.ops.convert_to_numpy(v).reshape(-1) for v in (w, b)]).tolist()


T = torch.optim
K = keras.optimizers
TORCH = {  # our call on vars v: PyTorch's
    "SGD(v, 0.1)": lambda v: T.SGD(v, 0.1),
    "SGD(v, 0.1, 0.9)": lambda v: T.SGD(v, 0.1, 0.9),
    "SGD(v, lr=0.1, momentum=0.9, dampening=0.5)": lambda v: T.SGD(v, lr=0.1, momentum=0.9, dampening=0.5),
    "SGD(v, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)": lambda v: T.SGD(
        v, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01
    ),
    "Adam(v)": lambda v: T.Adam(v),
    "Adam(v, lr=0.1, betas=(0.8, 0.99), eps=1e-4)": lambda v: T.Adam(v, lr=0.1, betas=(0.8, 0.99), eps=1e-4),
    "Adam(v, lr=0.1, weight_decay=0.1)": lambda v: T.Adam(v, lr=0.1, weight_decay=0.1),
    "Adam(v, lr=0.1, amsgrad=True, maximize=True)": lambda v: T.Adam(v, lr=0.1, amsgrad=True, maximize=True),
    "AdamW(v, lr=0.1)": lambda v: T.AdamW(v, lr=0.1),
    "AdamW(v, lr=0.1, weight_decay=0.2, amsgrad=True)": lambda v: T.AdamW(v, lr=0.1, weight_decay=0.2, amsgrad=True),
    "RMSprop(v)": lambda v: T.RMSprop(v),
    "RMSprop(v, lr=0.01, alpha=0.9, weight_decay=0.1)": lambda v: T.RMSprop(v, lr=0.01, alpha=0.9, weight_decay=0.1),
    "RMSprop(v, lr=0.01, momentum=0.9)": lambda v: T.RMSprop(v, lr=0.01, momentum=0.9),
    "RMSprop(v, lr=0.01, centered=True)": lambda v: T.RMSprop(v, lr=0.01, centered=True),
    "RMSprop(v, lr=0.01, centered=True, momentum=0.5)": lambda v: T.RMSprop(v, lr=0.01, centered=True, momentum=0.5),
    "Adagrad(v)": lambda v: T.Adagrad(v),
    "Adagrad(v, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2, weight_decay=0.01)": lambda v: T.Adagrad(
        v, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2, weight_decay=0.01
    ),
    "Adadelta(v)": lambda v: T.Adadelta(v),
    "Adadelta(v, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.01)": lambda v: T.Adadelta(
        v, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.01
    ),
    "Adamax(v)": lambda v: T.Adamax(v),
    "Adamax(v, lr=0.1, betas=(0.8, 0.9), weight_decay=0.1)": lambda v: T.Adamax(
        v, lr=0.1, betas=(0.8, 0.9), weight_decay=0.1
    ),
    "NAdam(v)": lambda v: T.NAdam(v),
    "NAdam(v, lr=0.1, momentum_decay=0.5, weight_decay=0.1)": lambda v: T.NAdam(
        v, lr=0.1, momentum_decay=0.5, weight_decay=0.1
    ),
    "NAdam(v, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)": lambda v: T.NAdam(
        v, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "RAdam(v, lr=0.1, betas=(0.8, 0.99))": lambda v: T.RAdam(v, lr=0.1, betas=(0.8, 0.99)),
    "RAdam(v, lr=0.1, weight_decay=0.1)": lambda v: T.RAdam(v, lr=0.1, weight_decay=0.1),
    "Rprop(v)": lambda v: T.Rprop(v),
    "Rprop(v, lr=0.1, etas=(0.4, 1.5), step_sizes=(1e-3, 0.2))": lambda v: T.Rprop(
        v, lr=0.1, etas=(0.4, 1.5), step_sizes=(1e-3, 0.2)
    ),
    "Adam([{'params': [v[0]], 'lr': 0.1}, {'params': v[1]}], lr=0.01)": lambda v: T.Adam(
        [{"params": [v[0]], "lr": 0.1}, {"params": v[1]}], lr=0.01
    ),
}
LBFGS = {  # on one batch: it looks at differences of gradients
    "LBFGS(v, lr=0.1, max_iter=1)": lambda v: T.LBFGS(v, lr=0.1, max_iter=1),
    "LBFGS(v, lr=0.5, max_iter=3, history_size=2)": lambda v: T.LBFGS(v, lr=0.5, max_iter=3, history_size=2),
    "LBFGS(v, max_iter=1, line_search_fn='strong_wolfe')": lambda v: T.LBFGS(
        v, max_iter=1, line_search_fn="strong_wolfe"
    ),
    "LBFGS(v, lr=5, max_iter=2, line_search_fn='strong_wolfe')": lambda v: T.LBFGS(
        v, lr=5, max_iter=2, line_search_fn="strong_wolfe"
    ),
}
KERAS = {  # our call: Keras's
    "SGD(0.1, 0.9, True)": lambda: K.SGD(0.1, 0.9, True),
    "SGD(0.1, weight_decay=0.1)": lambda: K.SGD(0.1, weight_decay=0.1),
    "SGD(0.5, clipvalue=0.05)": lambda: K.SGD(0.5, clipvalue=0.05),
    "SGD(0.1, use_ema=True, ema_momentum=0.8)": lambda: K.SGD(0.1, use_ema=True, ema_momentum=0.8),
    "SGD(0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=7)": lambda: K.SGD(
        0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=7
    ),
    "SGD(0.1, gradient_accumulation_steps=4)": lambda: K.SGD(0.1, gradient_accumulation_steps=4),
    "Lion(0.01)": lambda: K.Lion(0.01),
    "Lion(0.01, 0.8, 0.9, weight_decay=0.1)": lambda: K.Lion(0.01, 0.8, 0.9, weight_decay=0.1),
    "Lamb(0.01, epsilon=1e-16)": lambda: K.Lamb(0.01, epsilon=1e-16),
    "Adadelta(0.5)": lambda: K.Adadelta(0.5),
    "Adam(0.1, epsilon=1e-16)": lambda: K.Adam(0.1, epsilon=1e-16),
    "AdamW(0.1, epsilon=1e-16)": lambda: K.AdamW(0.1, epsilon=1e-16),
    "Adam(0.1, epsilon=1e-16, amsgrad=True, weight_decay=0.1)": lambda: K.Adam(
        0.1, epsilon=1e-16, amsgrad=True, weight_decay=0.1
    ),
    "Nadam(0.1, epsilon=1e-16, momentum_decay=1.)": lambda: K.Nadam(0.1, epsilon=1e-16),
    "RMSprop(0.01, epsilon=1e-16)": lambda: K.RMSprop(0.01, epsilon=1e-16),
    "RMSprop(0.01, momentum=0.9, epsilon=1e-16)": lambda: K.RMSprop(0.01, momentum=0.9, epsilon=1e-16),
    "RMSprop(0.01, centered=True, epsilon=1e-16)": lambda: K.RMSprop(0.01, centered=True, epsilon=1e-16),
    "Adagrad(0.1, epsilon=1e-16)": lambda: K.Adagrad(0.1, epsilon=1e-16),
    "Adamax(0.1, epsilon=1e-16)": lambda: K.Adamax(0.1, epsilon=1e-16),
    "Ftrl(0.5)": lambda: K.Ftrl(0.5),
    "Ftrl(0.5, l1_regularization_strength=0.3, l2_regularization_strength=0.1, beta=0.2)": lambda: K.Ftrl(
        0.5, l1_regularization_strength=0.3, l2_regularization_strength=0.1, beta=0.2
    ),
    "Ftrl(0.5, learning_rate_power=-0.7, l2_shrinkage_regularization_strength=0.05)": lambda: K.Ftrl(
        0.5, learning_rate_power=-0.7, l2_shrinkage_regularization_strength=0.05
    ),
    "Adafactor(0.5)": lambda: K.Adafactor(0.5),
    "Adafactor(0.1, clip_threshold=0.5, weight_decay=0.1)": lambda: K.Adafactor(
        0.1, clip_threshold=0.5, weight_decay=0.1
    ),
    "Muon(0.1)": lambda: K.Muon(0.1),
    "Muon(0.01, weight_decay=0.1, nesterov=False, rms_rate=None, adam_lr_ratio=0.5)": lambda: K.Muon(
        0.01, weight_decay=0.1, nesterov=False, rms_rate=None, adam_lr_ratio=0.5
    ),
}



def scaled(grads, norms, limit):
    return [g * min(1, limit / n) for g, n in zip(grads, norms)]


def by_hand(clipped):
    """SGD with learning rate 0.5 on gradients clipped by Keras's formulae, which Keras computes in float32."""
    w, b = [t.requires_grad_() for t in start()]
    for k in range(STEPS):
        grads = clipped(torch.autograd.grad(loss_of(w, b, k), [w, b]))
        w, b = [(v - 0.5 * g).detach().requires_grad_() for v, g in zip((w, b), grads)]
    return torch.cat([w.reshape(-1), b]).tolist()


def lamb_by_paper():
    """LAMB with weight decay in the direction, as in the paper: learning rate 0.01, eps 1e-6, decay 0.1."""
    vars = [t.requires_grad_() for t in start()]
    means = [[torch.zeros_like(v), torch.zeros_like(v)] for v in vars]
    for k in range(STEPS):
        grads = torch.autograd.grad(loss_of(*vars, k), vars)
        for i, (g, (m, v)) in enumerate(zip(grads, means)):
            m.mul_(0.9).add_(g, alpha=0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            w = vars[i].detach()
            r = m / (1 - 0.9 ** (k + 1)) / ((v / (1 - 0.999 ** (k + 1))).sqrt() + 1e-6) + 0.1 * w
            vars[i] = (w - 0.01 * w.norm() / r.norm() * r).requires_grad_()
    return torch.cat([v.detach().reshape(-1) for v in vars]).tolist()


CLIPPED = {
    "SGD(0.5, clipnorm=0.1)": lambda grads: scaled(grads, [g.norm().item() for g in grads], 0.1),
    "SGD(0.5, global_clipnorm=0.1)": lambda grads: scaled(
        grads, [sum(g.square().sum().item() for g in grads) ** 0.5] * 2, 0.1
    ),
}


def falling(k):
    return 0.1 * 0.9**k


def main():
    print(HEAD)
    for call, make in TORCH.items():
        print(f'check("{call}", torch_habit, lambda v: {call},\n      {by_torch(make)})')
    for call, make in LBFGS.items():
        print(f'check("{call}", on_one_batch, lambda v: {call},\n      {by_torch(make, batches=[0] * STEPS)})')
    print('check("SGD momentum falling", torch_habit, lambda v: SGD(v, lr=falling, momentum=0.9),')
    print(f"      {by_torch(lambda v: T.SGD(v, lr=0.1, momentum=0.9), falling)})")
    for call, make in KERAS.items():
        print(f'check("{call}", keras_habit, lambda v: {call},\n      {by_keras(make())})')
    call = "LAMB(0.01, eps=1e-6, weight_decay=0.1)"
    print(f'check("{call}", keras_habit, lambda v: {call},\n      {lamb_by_paper()})')
    for call, clipped in CLIPPED.items():
        print(f'check("{call}", keras_habit, lambda v: {call},\n      {by_hand(clipped)})')
    print('check("SGD(falling, 0.9)", keras_habit, lambda v: SGD(falling, 0.9),')
    print(f"      {by_keras(K.SGD(0.1, 0.9), falling)})")
    print('print("all agree")')


if __name__ == "__main__":
    main()
