"""Writes tests/language/decks/library/schedules_agree.deck: rates of PyTorch's and Keras's schedules over 20 steps.

python3 tests/reference/schedules.py >tests/language/decks/library/schedules_agree.deck
needs PyTorch, and Keras with its PyTorch backend.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import torch  # noqa: E402
from torch.optim import lr_scheduler  # noqa: E402

torch.set_default_dtype(torch.float64)
keras.backend.set_floatx("float64")
STEPS = 20

HEAD = """# 20 rates of every schedule against PyTorch's and Keras's; made by tests/reference/schedules.py.
def compare(name, found, expected, tolerance):
    for k, (a, b) in enumerate(zip(found, expected)):
        if not abs(a - b) <= tolerance * abs(b) + 1e-14:
            print(name, "step", k, a, b)

def check(name, schedule, expected):
    compare(name, [schedule(k) for k in range(20)], expected, 1e-6)   # Keras computes in float32

def check_torch(name, make, expected):
    opt = SGD(0.5, momentum=0.5)
    scheduler = make(opt)
    found, momenta = [], []
    for _ in range(20):
        found.append(opt.lr)
        momenta.append(opt.momentum)
        scheduler.step()
    compare(name, found, expected[0], 1e-10)
    compare(name + " momentum", momenta, expected[1], 1e-10)

values = [5., 4., 4.5, 4.5, 4.5, 3., 3., 3., 2.9999, 3.1, 1., 1.5, 1.2, 1.1, 1., 1., 0.9, 0.9, 0.9, 0.9]
"""

K = keras.optimizers.schedules
KERAS = [
    "ExponentialDecay(0.1, 7, 0.5)",
    "ExponentialDecay(0.1, 7, 0.5, staircase=True)",
    "PiecewiseConstantDecay([3, 9], [0.5, 0.25, 0.125])",
    "PolynomialDecay(0.1, 8, 0.01, power=2.)",
    "PolynomialDecay(0.1, 8, 0.01, cycle=True)",
    "InverseTimeDecay(0.1, 5, 0.5)",
    "InverseTimeDecay(0.1, 5, 0.5, staircase=True)",
    "CosineDecay(0.1, 12, alpha=0.1)",
    "CosineDecay(0.01, 12, alpha=0.1, warmup_target=0.2, warmup_steps=4)",
    "CosineDecayRestarts(0.1, 4, t_mul=2., m_mul=0.5, alpha=0.1)",
    "CosineDecayRestarts(0.1, 6, t_mul=1., m_mul=0.9)",
]
TORCH = [
    "StepLR(opt, 6, gamma=0.3)",
    "MultiStepLR(opt, [2, 3, 11], gamma=0.3)",
    "ExponentialLR(opt, 0.9)",
    "LinearLR(opt, 0.25, 0.75, total_iters=9)",
    "LambdaLR(opt, lambda k: 1 / (1 + k))",
    "CosineAnnealingLR(opt, 8, eta_min=0.1)",
    "CosineAnnealingWarmRestarts(opt, 3, T_mult=2, eta_min=0.01)",
    "OneCycleLR(opt, 2., total_steps=20)",
    "OneCycleLR(opt, 2., total_steps=24, pct_start=0.4, anneal_strategy='linear', div_factor=10.)",
    "ConstantLR(opt, 0.3, total_iters=4)",
    "PolynomialLR(opt, 7, power=1.5)",
    "MultiplicativeLR(opt, lambda k: 0.9 if k % 3 else 1.1)",
    "CyclicLR(opt, 0.1, 0.7, 3)",
    "CyclicLR(opt, 0.1, 0.7, 3, 5, mode='triangular2', cycle_momentum=False)",
    "CyclicLR(opt, 0.1, 0.7, 4, mode='exp_range', gamma=0.9)",
    "SequentialLR(opt, [LinearLR(opt, 0.1, total_iters=4), CosineAnnealingLR(opt, 12)], [4])",
    "SequentialLR(opt, [ConstantLR(opt, 0.1, total_iters=9), ExponentialLR(opt, 0.8), StepLR(opt, 3, 0.5)], [5, 11])",
    "ChainedScheduler([ConstantLR(opt, 0.1, total_iters=4), ExponentialLR(opt, 0.9)])",
    "ChainedScheduler([CosineAnnealingLR(opt, 30), MultiStepLR(opt, [3, 9], 0.5), LinearLR(opt, 0.5)])",
    "OneCycleLR(opt, 2., epochs=5, steps_per_epoch=5, pct_start=0.3, three_phase=True)",
]
PLATEAU = [
    "patience=1",
    "mode='max', patience=0, factor=0.5",
    "patience=1, cooldown=2, threshold=0.1",
    "patience=0, threshold=0.1, threshold_mode='abs', min_lr=0.02",
]
VALUES = [5.0, 4.0, 4.5, 4.5, 4.5, 3.0, 3.0, 3.0, 2.9999, 3.1, 1.0, 1.5, 1.2, 1.1, 1.0, 1.0, 0.9, 0.9, 0.9, 0.9]


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5, momentum=0.5)


NAMES = {name: value for name, value in vars(lr_scheduler).items() if not name.startswith("_")}


def rates(call, values=None):
    opt = optimizer()
    scheduler = eval(call, {**NAMES, "opt": opt})
    found, momenta = [], []
    for k in range(STEPS):
        if values is None:
            found.append(opt.param_groups[0]["lr"])
            momenta.append(opt.param_groups[0]["momentum"])
        opt.step()
        if values is None:
            scheduler.step()
        else:
            scheduler.step(values[k])
            found.append(opt.param_groups[0]["lr"])
    return (found, momenta) if values is None else found


def main():
    print(HEAD)
    for call in KERAS:
        schedule = eval(f"K.{call}")
        found = [float(schedule(k)) for k in range(STEPS)]
        print(f'check("{call}", {call},\n      {found})')
    for call in TORCH:
        print(f'check_torch("{call}", lambda opt: {call},\n            {rates(call)})')
    for settings in PLATEAU:
        print(f"rate = Plateau(0.5, {settings})")
        expected = rates(f"ReduceLROnPlateau(opt, {settings})", VALUES)
        print(f'compare("Plateau({settings})", [rate.update(v) for v in values],\n        {expected}, 1e-12)')
        print(f"opt = SGD(0.5)\nscheduler = ReduceLROnPlateau(opt, {settings})")
        print(f'compare("ReduceLROnPlateau({settings})", [(scheduler.step(v), opt.lr)[1] for v in values],\n        '
              f'{expected}, 1e-12)')
    print('print("all agree")')


if __name__ == "__main__":
    main()
