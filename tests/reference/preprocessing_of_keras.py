"""Writes tests/language/decks/library/preprocessing_agree.deck: Keras's layers over images and numbers, with factors
that leave nothing to chance.

python3 tests/reference/preprocessing_of_keras.py >tests/language/decks/library/preprocessing_agree.deck
needs PyTorch, and Keras with its PyTorch backend. Keras computes in float32, so 1e-5 is what can be asked.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from keras.src.layers.preprocessing import discretization  # noqa: E402

torch.set_num_threads(1)
L = keras.layers

HEAD = """# Layers over images and numbers, against Keras's; made by tests/reference/preprocessing_of_keras.py.
def images(*shape):
    n = 1
    for size in shape:
        n *= size
    return ((sin(arange(n).astype(float64) * 1.7) + 1) * 127).astype(float32).reshape(shape)

def check(name, made, expected, tolerance=1e-5):
    expected = tensor(expected)
    allowed = tolerance * maximum(abs(expected), 10.)
    if made.size != expected.size or not (abs(made.reshape(-1) - expected) < allowed).all():
        print(name, made.shape, made.reshape(-1).tolist(), "Keras:", expected.tolist())
"""


def images(*shape):
    n = int(np.prod(shape))
    return ((np.sin(np.arange(n, dtype="float64") * 1.7) + 1) * 127).astype("float32").reshape(shape)


LAYERS = [
    "Rescaling(0.5, offset=1.)", "Resizing(7, 3)", "Resizing(2, 9, interpolation='nearest')",
    "Resizing(3, 6, crop_to_aspect_ratio=True)", "CenterCrop(2, 3)", "CenterCrop(3, 3)", "CenterCrop(8, 4)",
    "RandomBrightness((0.3, 0.3))", "RandomBrightness((-0.25, -0.25), value_range=(10, 200))",
    "Normalization(mean=[3., 5.], variance=[2., 9.])",
] + [
    f"{layer}{more})"
    for layer in ("RandomRotation((0.1, 0.1)", "RandomRotation((-0.3, -0.3)",
                  "RandomTranslation((0.2, 0.2), (-0.3, -0.3)",
                  "RandomZoom((0.3, 0.3)", "RandomZoom((-0.4, -0.4), (0.1, 0.1)")
    for more in ("", ", fill_mode='constant', fill_value=7.", ", fill_mode='nearest'", ", fill_mode='wrap'",
                 ", interpolation='nearest'")
]


COLOURS = [   # of images with three channels
    "RandomInvert((1., 1.))", "RandomInvert((1., 1.), value_range=(0, 100))", "RandomGrayscale(1.)",
    "RandomHue((1., 1.))", "RandomHue((0., 0.))", "RandomPosterization((3, 3))", "RandomPosterization((8, 8))",
    "RandomSharpness((1., 1.))", "RandomSharpness((0.1, 0.1))", "RandomGaussianBlur((1., 1.), sigma=(1., 1.))",
    "RandomGaussianBlur((1., 1.), kernel_size=5, sigma=(0.7, 0.7))", "RandomErasing((0., 0.))", "Solarization()",
    "AutoContrast()", "AutoContrast(value_range=(0, 300))",
]


def listed(x):
    return [round(float(value), 6) for value in np.asarray(keras.ops.convert_to_numpy(x)).reshape(-1)]


def boundaries(batches, bins, epsilon):
    summary = np.array([[], []], dtype="float32")
    for batch in batches:
        new = discretization.summarize(batch.astype("float32"), epsilon)
        summary = discretization.merge_summaries(new, summary, epsilon)
    return discretization.get_bin_boundaries(summary, bins).tolist()


def main():
    print(HEAD)
    for text in LAYERS:
        layer = eval(text, dict(vars(L)))
        print(f'check("{text}", {text}(images(2, 5, 4, 2), training=True),\n      '
              f'{listed(layer(images(2, 5, 4, 2), training=True))})')
    for text in COLOURS:
        found = listed(eval(text, dict(vars(L)))(images(2, 5, 4, 3), training=True))
        print(f'check("{text}", {text}(images(2, 5, 4, 3), training=True),\n      {found})')
    for factor in (0.0, 0.3, 0.5, 0.7):
        text = f"RandomSaturation(({factor}, {factor}), value_range=(0, 1))"
        found = listed(eval(text, dict(vars(L)))(images(2, 5, 4, 3) / 255, training=True))
        print(f'check("{text}", {text}(images(2, 5, 4, 3) / 255, training=True),\n      {found}, 1e-6)')
    first = "RandomRotation((0.1, 0.1), data_format='channels_first')"
    print(f'check("channels first", {first}(images(1, 2, 4, 5), training=True),')
    print(f"      {listed(eval('L.' + first)(images(1, 2, 4, 5), training=True))})")
    for bins, epsilon, sizes in ((4, 0.01, (1000,)), (3, 0.1, (50, 7)), (5, 0.01, (20,)), (10, 0.02, (300, 300, 10))):
        found = boundaries([images(size) ** 2 for size in sizes], bins, epsilon)
        print(f"layer = Discretization(num_bins={bins}, epsilon={epsilon})")
        print(f"layer.adapt([images(size) ** 2 for size in {sizes}] if {len(sizes)} > 1 else images({sizes[0]}) ** 2)")
        print(f'check("bins", tensor(layer.bin_boundaries), {found}, 1e-4)   # sums of weights in float32')
    print('print("all agree")')


if __name__ == "__main__":
    main()
