"""Writes tests/language/decks/library/constraints_agree.deck: trainings under Keras's constraints, in Keras's numbers.

python3 tests/reference/constraints_of_keras.py >tests/language/decks/library/constraints_agree.deck
needs PyTorch, and Keras with its PyTorch backend, which takes products, maxima and means in float32 even of float64:
1e-6 is what can be asked.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
keras.backend.set_floatx("float64")
L = keras.layers

HEAD = """# Trainings under constraints, against Keras's; made by tests/reference/constraints_of_keras.py.
def numbers(shape, seed):
    n = 1
    for size in shape:
        n *= size
    return (sin(arange(n).astype(float64) * 1.7 + seed) * 1.5).reshape(shape)

# Keras's layouts: [sizes..., channels, filters], depthwise [sizes..., channels, multiplier],
# recurrent [features, units]
def from_keras(kind, v, value):
    if kind == "dense" or v.ndim == 1:
        return value
    if kind == "depthwise":
        return permute(value, (2, 3, 0, 1)).reshape(v.shape)
    return permute(value, (value.ndim - 1, value.ndim - 2) + tuple(range(value.ndim - 2)))

def shape_of_keras(kind, v):
    if kind == "dense" or v.ndim == 1:
        return v.shape
    if kind == "depthwise":
        return v.shape[2:] + (2, v.shape[0] // 2)
    return v.shape[2:] + (v.shape[1], v.shape[0])

def train(name, kind, make, opt, shape, expected):
    layer = make()
    x = numbers(shape, 3)
    layer(x)
    for i, v in enumerate(layer.variables):
        v.assign(from_keras(kind, v, numbers(shape_of_keras(kind, v), i + 1)))
    for k in range(5):
        with GradientTape() as tape:
            loss = (layer(x) ** 2).mean()
        opt.apply_gradients(zip(tape.gradient(loss, layer.variables), layer.variables))
    for v, wanted in zip(layer.variables, expected):
        wanted = from_keras(kind, v, tensor(wanted, dtype=float64).reshape(shape_of_keras(kind, v)))
        if not (abs(v - wanted) < 1e-6).all():
            print(name, v.name, v.tolist(), wanted.tolist())
"""
CASES = [  # layer, what its Variables are laid out as, optimizer, shape of the input
    ("Dense(4, kernel_constraint=MaxNorm(1.), bias_constraint=NonNeg())", "dense", "SGD(0.125)", (5, 3)),
    ("Dense(4, kernel_constraint='max_norm', bias_constraint='non_neg')", "dense", "SGD(0.125, momentum=0.75)", (5, 3)),
    ("Dense(4, kernel_constraint=UnitNorm(axis=1))", "dense", "SGD(0.125, nesterov=True, momentum=0.5)", (5, 3)),
    ("Dense(4, kernel_constraint=MinMaxNorm(0.5, 1., rate=0.25))", "dense", "SGD(0.125, clipnorm=1.)", (5, 3)),
    ("Dense(4, kernel_constraint=UnitNorm())", "dense", "SGD(0.125, use_ema=True, ema_overwrite_frequency=2)", (5, 3)),
    ("Conv2D(3, 2, kernel_constraint=MaxNorm(1., axis=[0, 1, 2]))", "convolution", "SGD(0.125)", (2, 4, 4, 2)),
    ("Conv2D(3, 2, kernel_constraint=UnitNorm(axis=2))", "convolution", "SGD(0.125)", (2, 4, 4, 2)),
    ("Conv1D(3, 2, kernel_constraint=MinMaxNorm(axis=[0, 1]))", "convolution", "SGD(0.125)", (2, 4, 2)),
    ("Conv2DTranspose(3, 2, kernel_constraint=UnitNorm(axis=[0, 1, 3]))", "convolution", "SGD(0.125)", (2, 4, 4, 2)),
    ("DepthwiseConv2D(2, depth_multiplier=2, depthwise_constraint=UnitNorm(axis=[0, 1]))", "depthwise", "SGD(0.125)",
     (2, 4, 4, 2)),
    ("LayerNormalization(gamma_constraint=NonNeg(), beta_constraint=MaxNorm(0.5))", "dense", "SGD(0.125)", (5, 3)),
    ("SimpleRNN(4, kernel_constraint=UnitNorm(), recurrent_constraint=MaxNorm(1.))", "recurrent", "SGD(0.125)",
     (2, 3, 2)),
]


def numbers(shape, seed):
    n = int(np.prod(shape))
    return (np.sin(np.arange(n, dtype="float64") * 1.7 + seed) * 1.5).reshape(shape)


def trained(text, optimizer, shape, names):
    layer, opt = eval(text, names), eval(optimizer, names)
    x = torch.tensor(numbers(shape, 3))
    layer(x)
    for i, v in enumerate(layer.weights):
        v.assign(numbers(tuple(v.shape), i + 1))
    for _ in range(5):
        layer.zero_grad()
        (layer(x) ** 2).mean().backward()
        opt.apply([v.value.grad for v in layer.weights], layer.weights)
    return [np.asarray(v.value.detach()).reshape(-1) for v in layer.weights]


def main():
    print(HEAD)
    names = {**vars(L), **vars(keras.constraints), **vars(keras.optimizers)}
    for text, kind, optimizer, shape in CASES:
        values = [value.tolist() for value in trained(text, optimizer, shape, names)]
        print(f'train("{text}", "{kind}", lambda: {text}, {optimizer}, {shape},\n      {values})')
    print('print("all agree")')


if __name__ == "__main__":
    main()
