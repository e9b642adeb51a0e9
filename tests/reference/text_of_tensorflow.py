"""Writes tests/language/decks/library/text_agree.deck: Keras's layers over texts and categories, cases drawn at random.

python3 tests/reference/text_of_tensorflow.py >tests/language/decks/library/text_agree.deck
needs TensorFlow, and Keras with its TensorFlow backend.
"""

import os
import random

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

CASES = 120
HEAD = """# Layers over texts and categories against Keras's; made by tests/reference/text_of_tensorflow.py.
def same(a, b):
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all([same(p, q) for p, q in zip(a, b)])
    return a == b if isinstance(b, str) else abs(a - b) < 1e-5

count = 0

def check(layer, data, x, expected, vocabulary=None):
    global count
    count += 1
    if data is not None:
        layer.adapt(data)
    found = layer(x)
    found = found.tolist() if hasattr(found, "tolist") else found
    if not same(found, expected):
        print(type(layer).__name__, layer.get_config(), data, x, found, "Keras:", expected)
    if vocabulary is not None and layer.get_vocabulary() != vocabulary:
        print(type(layer).__name__, layer.get_config(), data, layer.get_vocabulary(), "Keras:", vocabulary)
"""
draw = random.Random(11)
WORDS = ["the", "cat", "Dog", "sat,", "on", "a", "Mat!", "é", "x1", "", "cat's", "--", "end.", "two words",
         "tab\there"]


def maybe(chance=0.5):
    return draw.random() < chance


def text():
    return " ".join(draw.choice(WORDS) for _ in range(draw.randrange(6)))


def shaped(value):
    kind = draw.randrange(3)
    if kind == 0:
        return [value() for _ in range(draw.randrange(1, 6))]
    width = draw.randrange(1, 4) if kind == 1 else 1
    return [[value() for _ in range(width)] for _ in range(draw.randrange(1, 4))]


def with_vocabulary(options, known, data):
    if maybe():
        options["vocabulary"] = draw.sample(known, draw.randrange(1, len(known)))
        data = None
    if maybe(0.4):
        options["output_mode"] = draw.choice(["int", "multi_hot", "count", "tf_idf"])
    if options.get("output_mode") == "tf_idf" and data is None:
        options["idf_weights"] = [round(draw.random(), 2) for _ in options["vocabulary"]]
    if maybe(0.3):
        options.update(max_tokens=draw.randrange(7, 9), pad_to_max_tokens=maybe())
    return data


def lookup(known, others, mask):
    options, value = {}, lambda: draw.choice(known + others)
    data = with_vocabulary(options, known, shaped(value))
    if maybe(0.4):
        options["num_oov_indices"] = draw.randrange(1, 4)
    if maybe(0.4):
        options["mask_token"] = mask
    if maybe(0.15) and options.get("output_mode", "int") == "int":
        return {**options, "invert": True}, data, shaped(lambda: draw.randrange(7))
    return options, data, shaped(value)


def string_lookup():
    return lookup(["a", "b", "c", "dd", "7"], ["", "[UNK]", "zé"], "")


def integer_lookup():
    return lookup([1, 2, 5, 12, 36], [0, -1, -7, 8], 0)


def text_vectorization():
    options = {}
    data = with_vocabulary(options, ["the", "cat", "dog", "on", "a"], [text() for _ in range(draw.randrange(1, 6))])
    if maybe(0.4):
        options["standardize"] = draw.choice(["lower_and_strip_punctuation", "lower", "strip_punctuation", None])
    if maybe(0.3):
        options["split"] = draw.choice(["whitespace", "character"])
    if maybe(0.3):
        options["ngrams"] = draw.choice([1, 2, 3, (2,), (1, 3)])
    if maybe(0.3) and options.get("output_mode", "int") == "int":
        options["output_sequence_length"] = draw.randrange(1, 7)
    return options, data, [text() for _ in range(draw.randrange(1, 5))]


def hashing():
    whole = maybe(0.4)
    options = {"num_bins": draw.randrange(1, 20)}
    if maybe(0.3):
        options["mask_value"] = 1 if whole else ""
    if maybe(0.4):
        options["salt"] = draw.choice([0, 7, [133, 137]])
    if maybe(0.3):
        options["output_mode"] = draw.choice(["multi_hot", "count"])
    texts = ["a", "", "hello world", "é", "x" * 40, "y" * 70, "q" * 20, "z" * 200]
    some = [0, 1, -5, 123456789012] if whole else texts
    return options, None, shaped(lambda: draw.choice(some))


def hashed_crossing():
    count, column = draw.randrange(1, 5), maybe()
    parts = []
    for _ in range(draw.randrange(2, 4)):
        some = draw.choice([["a", "b", "", "longer text"], [0, 5, -3, 99]])
        values = [draw.choice(some) for _ in range(count)]
        parts.append([[value] for value in values] if column else values)
    return {"num_bins": draw.randrange(1, 30)}, None, parts


def discretization():
    options = {"bin_boundaries": sorted(draw.sample([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0], draw.randrange(1, 5)))}
    if maybe(0.4):
        options["output_mode"] = draw.choice(["one_hot", "multi_hot", "count"])
    return options, None, shaped(lambda: draw.choice([-3.0, -2.0, -0.5, 0.0, 0.5, 0.75, 3.0, 9.0]))


def category_encoding():
    options = {"num_tokens": draw.randrange(6, 9), "output_mode": draw.choice(["one_hot", "multi_hot", "count"])}
    return options, None, shaped(lambda: draw.randrange(6))


KINDS = {"StringLookup": string_lookup, "IntegerLookup": integer_lookup, "TextVectorization": text_vectorization,
         "Hashing": hashing, "HashedCrossing": hashed_crossing, "Discretization": discretization,
         "CategoryEncoding": category_encoding}


def decoded(value):
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def written(value):  # a list as the deck has it: numbers are tensors
    first = value
    while isinstance(first, list) and first:
        first = first[0]
    return repr(value) if isinstance(first, str) or value is None else f"tensor({value!r})"


def main():
    print(HEAD)
    made = 0
    while made < CASES:
        name = list(KINDS)[made % len(KINDS)]
        options, data, x = KINDS[name]()
        try:
            layer = getattr(keras.layers, name)(**options)
            if data is not None:
                layer.adapt(np.array(data))
            found = layer([tf.constant(part) for part in x] if name == "HashedCrossing" else tf.constant(x))
        except (tf.errors.OpError, AttributeError, ValueError):  # an empty vocabulary, or one too large
            continue
        found = decoded(tf.convert_to_tensor(found).numpy().tolist())
        given = "[" + ", ".join(written(part) for part in x) + "]" if name == "HashedCrossing" else written(x)
        vocabulary = ""
        if hasattr(layer, "get_vocabulary"):
            known = [v.item() if hasattr(v, "item") else v for v in layer.get_vocabulary()]
            vocabulary = f",\n      {known!r}"
        arguments = ", ".join(f"{key}={value!r}" for key, value in options.items())
        print(f"check({name}({arguments}), {written(data)}, {given},\n      {found!r}{vocabulary})")
        made += 1
    print("print(count)")


if __name__ == "__main__":
    main()
