"""Writes tests/language/decks/library/pipelines_agree.deck: what tf.data gives for pipelines drawn at random.

python3 tests/reference/pipelines_of_tensorflow.py >tests/language/decks/library/pipelines_agree.deck
needs TensorFlow.
"""

import os
import random

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

CASES = 150
HEAD = """# Datasets against tf.data's elements and their order; made by tests/reference/pipelines_of_tensorflow.py.
count = 0

def listed(element):
    if isinstance(element, tuple):
        return [listed(part) for part in element]
    return element.tolist() if hasattr(element, "tolist") else element

def check(ds, expected):
    global count
    count += 1
    for again in range(2):   # a dataset gives the same on every pass
        found = [listed(element) for element in ds]
        if found != expected:
            print(count, found, "tf.data:", expected)
    known = ds.cardinality()
    if known >= 0 and known != len(expected):
        print(count, "cardinality", known, "of", len(expected))
"""
Data = tf.data.Dataset
draw = random.Random(5)


def few(low, high):
    return draw.randrange(low, high)


def some_part():
    return draw.choice([0, 1, 2, 3, 5, -1])


# Steps by what an element is: how the deck writes them, and TensorFlow's, where that is written otherwise; then what an
# element is after it.
def of_any():
    kind = draw.choice(["take", "skip", "repeat", "shard", "cache", "prefetch"])
    count = few(1, 4)
    return {"take": f".take({some_part()})", "skip": f".skip({some_part()})", "repeat": f".repeat({few(0, 4)})",
            "shard": f".shard({count}, {few(0, count)})", "cache": ".cache()", "prefetch": ".prefetch(2)"}[kind], None


def to_pair():
    if draw.random() < 0.5:
        return f".enumerate({few(0, 4)})", None
    text = f"range({few(0, 9)})"
    return f".apply(lambda ds: Dataset.zip(ds, Dataset.{text}))", f".apply(lambda ds: Data.zip((ds, Data.{text})))"


def windows():
    drop = draw.random() < 0.5
    shift = draw.choice([None, 1, 2, 3, 6])
    return f".window({few(1, 5)}, {shift}, {few(1, 3)}, {drop}).flat_map(lambda w: w.batch(100))", None


def of_number():
    kind = few(0, 9)
    a, b, c = few(1, 4), few(0, 3), few(1, 4)
    if kind == 0:
        return f".map(lambda x: x * {a} + {b})", None
    if kind == 1:
        return f".filter(lambda x: x % {a + 1} == {b % 2})", None
    if kind == 2:
        text = f"range({few(0, 5)})"
        return f".concatenate(Dataset.{text})", None
    if kind == 3:
        return f".take_while(lambda x: x < {few(1, 9)})", None
    if kind == 4:
        return (".scan(tensor(0), lambda s, x: (s + x, s * 2 + x))",
                ".scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * 2 + x))")
    if kind == 5:
        return ".unique()", None
    if kind == 6:
        return f".flat_map(lambda x: Dataset.range(x % {a}))", None
    if kind == 7:
        rest = f".repeat({c}), cycle_length={a}, block_length={b + 1})"
        return f".interleave(lambda x: Dataset.from_tensors(x){rest}", None
    return of_any()


def to_batch():
    kind = few(0, 3)
    if kind == 0:
        return f".batch({few(1, 5)}, drop_remainder={draw.random() < 0.4})", None
    if kind == 1:
        return windows()
    return f".group_by_window(lambda x: x % {few(1, 4)}, lambda k, w: w.batch(10), window_size={few(1, 4)})", None


def of_batch():
    kind = few(0, 4)
    if kind == 0:
        return f".rebatch({few(1, 5)}, drop_remainder={draw.random() < 0.3})", None
    if kind == 1:
        return ".map(lambda x: x + 1)", None
    if kind == 2:
        return ".filter(lambda x: x.sum() % 2 == 0)", ".filter(lambda x: tf.reduce_sum(x) % 2 == 0)"
    return of_any()


def pipeline():
    texts, element = [], "number"
    for _ in range(few(1, 6)):
        if element == "number":
            after = draw.choice(["number", "number", "batch", "pair"])
            step = {"number": of_number, "batch": to_batch, "pair": to_pair}[after]()
        elif element == "batch":
            after = draw.choice(["batch", "batch", "number", "pair"])
            step = (".unbatch()", None) if after == "number" else {"batch": of_batch, "pair": to_pair}[after]()
        else:
            after, step = "pair", of_any()
        texts.append(step)
        element = after
    if draw.random() < 0.6:
        return [(f"Dataset.range({few(0, 14)})", None)] + texts
    values = [few(0, 6) for _ in range(few(1, 12))]
    return [(f"Dataset.from_tensor_slices(tensor({values}))",
             f"Data.from_tensor_slices(tf.constant({values}, tf.int64))")] + texts


def listed(element):
    return [listed(part) for part in element] if isinstance(element, tuple) else element.tolist()


def main():
    print(HEAD)
    for _ in range(CASES):
        steps = pipeline()
        theirs = "".join(other or ours.replace("Dataset.", "Data.") for ours, other in steps)
        elements = [listed(element) for element in eval(theirs).as_numpy_iterator()]
        print(f"check({''.join(ours for ours, _ in steps)},\n      {elements})")
    print("print(count)")


if __name__ == "__main__":
    main()
