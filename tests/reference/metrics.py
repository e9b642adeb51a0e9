"""Writes tests/language/decks/library/metrics_agree.deck: Keras's metrics after 20 batches, with and without weights.

python3 tests/reference/metrics.py >tests/language/decks/library/metrics_agree.deck
needs PyTorch, and Keras with its PyTorch backend. Keras computes in float32, so 1e-5 is what can be asked.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
STEPS = 20

HEAD = """# Metrics against Keras's after 20 batches; made by tests/reference/metrics.py.
def scores(k):
    return (sin(arange(24).astype(float64) * 1.7 + k * 0.9).reshape(8, 3) + 1) / 2

def data(kind, k):
    p = scores(k)
    labels = ((arange(8) * 5 + k) % 7) % 3
    if kind == "numbers":
        return scores(k + 50), p
    if kind == "bits":
        return (scores(k + 50) + 0.3 * p > 0.6).astype(float64)[:, 0], p[:, 0]
    if kind == "bit_rows":
        return (scores(k + 50) + 0.3 * p > 0.6).astype(float64), p
    if kind == "labels":
        return labels, softmax(4 * p, axis=-1)
    return one_hot(labels, 3).astype(float64), softmax(4 * p, axis=-1)

weights = tensor([1., 0.5, 0., 2., 1., 1., 3., 0.25])

def check(name, make, kind, expected):
    found = []
    for weighted in (False, True):
        m = make()
        for k in range(20):
            y_true, y_pred = data(kind, k)
            m.update_state(y_true, y_pred, sample_weight=weights if weighted else None)
            if k == 9:
                other = make()
                other.set_state(m.get_state())
                m = other
        found.append(m.result())
    for a, b in zip(found, expected):
        a, b = tensor(a, dtype=float64), tensor(b, dtype=float64)
        if a.shape != b.shape or not (abs(a - b) <= 1e-5 * maximum(abs(b), 0.01)).all():
            print(name, kind, found, expected)
"""


def scores(k):
    return (torch.sin(torch.arange(24.0, dtype=torch.float64) * 1.7 + k * 0.9).reshape(8, 3) + 1) / 2


def data(kind, k):
    p = scores(k)
    labels = ((torch.arange(8) * 5 + k) % 7) % 3
    if kind == "numbers":
        return scores(k + 50), p
    if kind == "bits":
        return (scores(k + 50) + 0.3 * p > 0.6).double()[:, 0], p[:, 0]
    if kind == "bit_rows":
        return (scores(k + 50) + 0.3 * p > 0.6).double(), p
    if kind == "labels":
        return labels, (4 * p).softmax(-1)
    return torch.nn.functional.one_hot(labels, 3).double(), (4 * p).softmax(-1)


WEIGHTS = torch.tensor([1.0, 0.5, 0.0, 2.0, 1.0, 1.0, 3.0, 0.25])
M = keras.metrics
CASES = [  # our call, Keras's (None: the same), data
    ("MSE()", "MeanSquaredError()", "numbers"),
    ("MAE()", "MeanAbsoluteError()", "numbers"),
    ("RootMeanSquaredError()", None, "numbers"),
    ("R2Score()", None, "numbers"),
    ("get_metric('huber')", "MeanMetricWrapper(keras.losses.huber)", "numbers"),
    ("get_metric('kl_divergence')", "KLDivergence()", "rows"),
    ("get_metric('binary_crossentropy')", "BinaryCrossentropy()", "bit_rows"),
    ("get_metric('categorical_crossentropy')", "CategoricalCrossentropy()", "rows"),
    ("get_metric('sparse_categorical_crossentropy')", "SparseCategoricalCrossentropy()", "labels"),
    ("Accuracy()", "BinaryAccuracy()", "bits"),
    ("Accuracy()", "SparseCategoricalAccuracy()", "labels"),
    ("Accuracy()", "CategoricalAccuracy()", "rows"),
    ("BinaryAccuracy(threshold=0.3)", None, "bits"),
    ("CategoricalAccuracy()", None, "rows"),
    ("SparseCategoricalAccuracy()", None, "labels"),
    ("TopKCategoricalAccuracy(k=2)", None, "rows"),
    ("SparseTopKCategoricalAccuracy(k=2)", None, "labels"),
    ("Precision()", None, "bits"),
    ("Precision(thresholds=[0.2, 0.8, 0.5])", None, "bits"),
    ("Precision(top_k=2)", None, "bit_rows"),
    ("Precision(class_id=1)", None, "bit_rows"),
    ("Recall()", None, "bits"),
    ("Recall(thresholds=0.7)", None, "bit_rows"),
    ("Recall(top_k=1, class_id=2)", None, "bit_rows"),
    ("TruePositives()", None, "bits"),
    ("FalsePositives()", None, "bits"),
    ("TrueNegatives()", None, "bits"),
    ("FalseNegatives(thresholds=[0.1, 0.9])", None, "bits"),
    ("AUC()", None, "bits"),
    ("AUC(num_thresholds=5)", None, "bit_rows"),
    ("AUC(curve='PR')", None, "bits"),
    ("AUC(thresholds=[0.3, 0.6], curve='PR')", None, "bits"),
    ("AUC(from_logits=True)", None, "bits"),
    ("F1Score()", None, "rows"),
    ("F1Score(average='micro')", None, "rows"),
    ("F1Score(average='macro', threshold=0.4)", None, "bit_rows"),
    ("F1Score(average='weighted')", None, "rows"),
    ("FBetaScore(average='macro', beta=2.)", None, "rows"),
]


def listed(x):
    return keras.ops.convert_to_numpy(x).tolist()


def main():
    print(HEAD)
    for ours, theirs, kind in CASES:
        expected = []
        for weighted in (False, True):
            metric = eval(f"M.{theirs or ours}", {"M": M, "keras": keras})
            for k in range(STEPS):
                y_true, y_pred = data(kind, k)
                if kind != "labels":
                    y_true = y_true.float()
                metric.update_state(y_true, y_pred.float(), sample_weight=WEIGHTS if weighted else None)
            expected.append(listed(metric.result()))
        print(f'check("{ours}", lambda: {ours}, "{kind}",\n      {expected})')
    print('print("all agree")')


if __name__ == "__main__":
    main()
