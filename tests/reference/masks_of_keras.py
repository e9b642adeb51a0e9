"""Writes tests/language/decks/library/masks_agree.deck: what masks do to losses and metrics, in Keras's numbers.

python3 tests/reference/masks_of_keras.py >tests/language/decks/library/masks_agree.deck
needs PyTorch, and Keras with its PyTorch backend. Keras computes in float32, so 1e-5 is what can be asked.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
L = keras.layers

HEAD = """# Losses and metrics of models whose output has a mask, against Keras's.
# Made by tests/reference/masks_of_keras.py.
def numbers(shape, seed):
    n = 1
    for size in shape:
        n *= size
    return (sin(arange(n).astype(float64) * 1.7 + seed) * 0.5).astype(float32).reshape(shape)

tokens = tensor([[1, 2, 3, 0], [4, 1, 0, 0], [2, 2, 4, 3], [3, 0, 0, 0]])
steps = where(expand_dims(tokens, -1) != 0, numbers((4, 4, 3), 9), 0.)
labels = (tokens * 2 + 1) % 3
targets = numbers((4, 4, 2), 5)
weights = tensor([1., 0.5, 2., 0.25])

def begin(model, x):
    model(x)
    for i, v in enumerate(model.weights):
        turned = v.ndim == 3 or "cell/" in v.name and v.ndim == 2
        value = numbers(v.shape[::-1], i + 1).T if turned else numbers(v.shape, i + 1)
        v.assign(abs(value) if "variance" in v.name else value)

def check(name, found, expected):
    for key, value in expected.items():
        if not abs(found[key] - value) <= 1e-5 * max(abs(value), 0.01):
            print(name, key, found[key], "Keras:", value)

def try_model(name, make, x, y, compiled, weight, first, second, third, predictions):
    model = make()
    begin(model, x)
    model.compile(**compiled())
    found = model.evaluate(x, y, batch_size=2, sample_weight=weight, verbose=0, return_dict=True)
    check(name + " evaluate", found, first)
    h = model.fit(x, y, batch_size=2, epochs=3, shuffle=False, sample_weight=weight, verbose=0)
    check(name + " fit", {key: value[-1] for key, value in h.history.items()}, second)
    check(name + " batch", model.train_on_batch(x, y, sample_weight=weight, return_dict=True), third)
    if predictions is not None and not (abs(model.predict(x).reshape(-1)[:5] - tensor(predictions)) < 1e-5).all():
        print(name, "predicts", model.predict(x).reshape(-1)[:5].tolist(), "Keras:", predictions)
"""


def numbers(shape, seed):
    n = int(np.prod(shape))
    return (np.sin(np.arange(n, dtype="float64") * 1.7 + seed) * 0.5).astype("float32").reshape(shape)


tokens = np.array([[1, 2, 3, 0], [4, 1, 0, 0], [2, 2, 4, 3], [3, 0, 0, 0]])
steps = np.where(tokens[..., None] != 0, numbers((4, 4, 3), 9), 0).astype("float32")
labels = (tokens * 2 + 1) % 3
targets = numbers((4, 4, 2), 5)
weights = np.repeat(np.array([[1.0], [0.5], [2.0], [0.25]], dtype="float32"), 4, axis=1)  # a number for each step

MODELS = {
    "embedding": ("[Embedding(5, 3, mask_zero=True), Dense(3, 'softmax')]", "tokens"),
    "recurrent": ("[Embedding(5, 3, mask_zero=True), SimpleRNN(4, return_sequences=True), Dense(3, 'softmax')]",
                  "tokens"),
    "masking": ("[Masking(), Dense(4, 'tanh'), BatchNormalization(), LayerNormalization(), Dropout(0.), Dense(2)]",
                "steps"),
    "distributed": ("[Masking(), TimeDistributed(Dense(2)), Activation('tanh')]", "steps"),
    "convolution": ("[Masking(), Conv1D(2, 1)]", "steps"),
    "reshaped": ("[Masking(), Reshape((4, 3)), Dense(2)]", "steps"),
}
CLASSES = """dict(optimizer=SGD(0.5), loss='sparse_categorical_crossentropy', metrics=['accuracy',
    SparseTopKCategoricalAccuracy(k=2, name='top')], weighted_metrics=[SparseCategoricalAccuracy(name='weighted')])"""
NUMBERS = """dict(optimizer=SGD(0.5), loss='mse', metrics=['mae', RootMeanSquaredError(name='rmse')],
    weighted_metrics=['mse'])"""
SUMS = "dict(optimizer=SGD(0.05), loss=Huber(reduction='sum'), metrics=['cosine_similarity'])"
CASES = [  # model, y, compile, whether weights are given
    ("embedding", "labels", CLASSES, False),
    ("embedding", "labels", CLASSES, True),
    ("recurrent", "labels", CLASSES, False),
    ("recurrent", "labels", CLASSES, True),
    ("masking", "targets", NUMBERS, False),
    ("masking", "targets", NUMBERS, True),
    ("distributed", "targets", NUMBERS, True),
    ("distributed", "targets", SUMS, False),
    ("convolution", "targets", NUMBERS, False),
    ("reshaped", "targets", NUMBERS, False),
]


def begin(model, x):
    model(x)
    for i, v in enumerate(model.weights):
        value = numbers(tuple(v.shape), i + 1)
        v.assign(np.abs(value) if "variance" in v.name else value)


def plain(logs):
    return {key: float(value) for key, value in logs.items()}


def main():
    print(HEAD)
    names = {**vars(L), **vars(keras.losses), **vars(keras.metrics), **vars(keras.optimizers)}
    names["Huber"] = keras.losses.Huber
    for kind, target, compiled, weighted in CASES:
        text, source = MODELS[kind]
        x, y = {"tokens": tokens, "steps": steps}[source], {"labels": labels, "targets": targets}[target]
        weight = weights if weighted else None
        model = keras.Sequential(eval(text, names))
        begin(model, x)
        model.compile(**eval(compiled, names))
        first = plain(model.evaluate(x, y, batch_size=2, sample_weight=weight, verbose=0, return_dict=True))
        history = model.fit(x, y, batch_size=2, epochs=3, shuffle=False, sample_weight=weight, verbose=0).history
        second = {key: float(value[-1]) for key, value in history.items()}
        third = plain(model.train_on_batch(x, y, sample_weight=weight, return_dict=True))
        predictions = None   # with BatchNormalization: the moving variance is unbiased here, biased in Keras
        if "BatchNorm" not in text:
            predictions = np.asarray(model.predict(x, verbose=0)).reshape(-1)[:5].tolist()
        print(f'try_model("{kind}{" weighted" if weighted else ""}", lambda: Sequential({text}), {source}, {target},')
        print(f"    lambda: {compiled}, {'weights' if weighted else None},")
        print(f"    {first},\n    {second},\n    {third}, {predictions})")
    print('print("all agree")')


if __name__ == "__main__":
    main()
