"""Writes tests/language/decks/library/metrics_agree.deck: Keras's metrics after 20 batches, with and without weights.

python3 tests/reference/metrics.py >tests/language/decks/library/metrics_agree.deck
needs PyTorch, and Keras with its PyTorch backend. Keras computes in float32; its formulae stand here once more in
float64, where 1e-10 is asked, and must be near Keras's values.
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
    for dtype, tolerance in ((float64, 1e-10), (float32, 1e-5)):
        found = []
        for weighted in (False, True):
            m = make()
            for k in range(20):
                y_true, y_pred = data(kind, k)
                m.update_state(y_true, y_pred.astype(dtype), sample_weight=weights if weighted else None)
                if k == 9:
                    other = make()
                    other.set_state(m.get_state())
                    m = other
            found.append(m.result())
        for a, b in zip(found, expected):
            a, b = tensor(a, dtype=float64), tensor(b, dtype=float64)
            if a.shape != b.shape or not (abs(a - b) <= tolerance * maximum(abs(b), 0.01)).all():
                print(name, kind, dtype, found, expected)
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


WEIGHTS = torch.tensor([1.0, 0.5, 0.0, 2.0, 1.0, 1.0, 3.0, 0.25], dtype=torch.float64)


# ---- the formulae: of all labels, all predictions and their weights ----

def mean(values, w):
    w = w.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    return (values * w).sum() / w.sum()


def clipped(p):
    return p.clamp(1e-7, 1 - 1e-7)


def signs(y):
    return 2 * y - 1


def hits(y, p, w, thresholds):  # true and false positives, true and false negatives at each threshold
    w = w.reshape(-1, *[1] * (p.ndim - 1)).expand(p.shape)
    rows = []
    for t in thresholds:
        rows.append(torch.stack([(w * part).sum() for part in
                                 ((y == 1) & (p > t), (y == 0) & (p > t), (y == 0) & (p <= t), (y == 1) & (p <= t))]))
    return torch.stack(rows, dim=1)


def share(a, b):
    return torch.where(b > 0, a / torch.where(b > 0, b, 1.0), 0.0)


def only(p, k):  # the k largest scores of each row
    return torch.where(p >= p.topk(k).values[:, -1:], p, -torch.inf)


def auc(y, p, w, curve="ROC", count=200, thresholds=None):
    if thresholds is None:
        thresholds = [i / (count - 1) for i in range(1, count - 1)]
    tp, fp, tn, fn = hits(y, p, w, [-1e-7] + thresholds + [1 + 1e-7])
    if curve == "ROC":
        x, y = share(fp, fp + tn), share(tp, tp + fn)
        return ((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2).sum()
    change, found = tp[:-1] - tp[1:], tp + fp
    slope = share(change, found[:-1] - found[1:])
    rest = tp[1:] - slope * found[1:]
    ratio = torch.where((found[:-1] > 0) & (found[1:] > 0), share(found[:-1], found[1:]), 1.0)
    return share(slope * (change + rest * ratio.clamp(min=1e-300).log()), tp[1:] + fn[1:]).sum()


def precision(counts):
    return share(counts[0], counts[0] + counts[1])


def recall(counts):
    return share(counts[0], counts[0] + counts[3])


def f_score(y, p, w, average, beta=1.0, threshold=None):
    p = torch.nn.functional.one_hot(p.argmax(-1), 3).double() if threshold is None else (p > threshold).double()
    axis, w = None if average == "micro" else 0, w[:, None]
    tp, fp, fn = (w * p * y).sum(axis), (w * p * (1 - y)).sum(axis), (w * (1 - p) * y).sum(axis)
    precision, recall = share(tp, tp + fp), share(tp, tp + fn)
    scores = share((1 + beta**2) * precision * recall, beta**2 * precision + recall)
    if average == "weighted":
        each = (w * y).sum(0)
        return (scores * each).sum() / each.sum()
    return scores.mean() if average == "macro" else scores


def r2(y, p, w):
    w = w[:, None]
    error, square, total = (w * (y - p) ** 2).sum(0), (w * y * y).sum(0), (w * y).sum(0)
    return (1 - error / (square - total**2 / w.sum())).mean()


def confusion(y, p, w):
    table = torch.zeros(3, 3, dtype=torch.float64)
    for label, guess, weight in zip(y, p.argmax(-1), w):
        table[label, guess] += weight
    return table


def overlaps(y, p, w):
    table = confusion(y, p, w)
    union = table.sum(0) + table.sum(1) - table.diag()
    return table.diag() / union


def iou(y, p, w):
    return overlaps(y, p, w).mean()


def binary_iou(y, p, w):
    w, p = w[:, None].expand(y.shape), (p >= 0.4).double()
    return torch.stack([(w * (y == k) * (p == k)).sum() / (w * ((y == k) | (p == k))).sum() for k in (0, 1)]).mean()


def at_thresholds(y, p, w, count=200):
    return hits(y, p, w, [-1e-7] + [i / (count - 1) for i in range(1, count - 1)] + [1.0])


def rates(y, p, w, count=200):  # sensitivity and specificity
    counts = at_thresholds(y, p, w, count)
    return recall(counts), share(counts[2], counts[2] + counts[1])


def best(held, wanted, bound):
    return torch.where(held >= bound, wanted, 0.0).max()


def correlation(y, p):
    y, p = y - y.mean(-1, keepdim=True), p - p.mean(-1, keepdim=True)
    return (y * p).mean(-1) / (y.square().mean(-1) * p.square().mean(-1)).sqrt()


def concordance(y, p):
    apart = (y.mean(-1) - p.mean(-1)) ** 2
    y, p = y - y.mean(-1, keepdim=True), p - p.mean(-1, keepdim=True)
    return 2 * (y * p).mean(-1) / (y.square().mean(-1) + p.square().mean(-1) + apart + 1e-7)


def unit(x):
    return x / x.square().sum(-1, keepdim=True).sqrt()


def cross(y, p):
    return -(y * clipped(p / p.sum(-1, keepdim=True)).log()).sum(-1)


def own(y, p):
    return -clipped(p)[torch.arange(len(y)), y].log()


def entropy(y, p):
    return -(y * clipped(p).log() + (1 - y) * (1 - clipped(p)).log())


M = keras.metrics
CASES = [  # our call, Keras's (None: the same, "": it has none), data, formula
    ("MSE()", "MeanSquaredError()", "numbers", lambda y, p, w: mean((y - p) ** 2, w)),
    ("MAE()", "MeanAbsoluteError()", "numbers", lambda y, p, w: mean((y - p).abs(), w)),
    ("RootMeanSquaredError()", None, "numbers", lambda y, p, w: mean((y - p) ** 2, w).sqrt()),
    ("R2Score()", None, "numbers", r2),
    ("get_metric('mape')", "MeanAbsolutePercentageError()", "numbers",
     lambda y, p, w: mean(100 * ((y - p) / y.clamp(min=1e-7)).abs(), w)),
    ("get_metric('msle')", "MeanSquaredLogarithmicError()", "numbers",
     lambda y, p, w: mean((p.clamp(min=1e-7).log1p() - y.clamp(min=1e-7).log1p()) ** 2, w)),
    ("get_metric('log_cosh')", "LogCoshError()", "numbers", lambda y, p, w: mean((p - y).cosh().log(), w)),
    ("get_metric('poisson')", "Poisson()", "numbers", lambda y, p, w: mean(p - y * (p + 1e-7).log(), w)),
    ("get_metric('cosine_similarity')", "CosineSimilarity()", "numbers", lambda y, p,
     w: mean((unit(y) * unit(p)).sum(-1), w)),
    ("get_metric('hinge')", "Hinge()", "bit_rows", lambda y, p, w: mean((1 - signs(y) * p).clamp(min=0), w)),
    ("get_metric('squared_hinge')", "SquaredHinge()", "bit_rows", lambda y, p,
     w: mean((1 - signs(y) * p).clamp(min=0) ** 2, w)),
    ("get_metric('categorical_hinge')", "CategoricalHinge()", "rows",
     lambda y, p, w: mean((((1 - y) * p).max(-1).values - (y * p).sum(-1) + 1).clamp(min=0), w)),
    ("get_metric('huber')", "MeanMetricWrapper(keras.losses.huber)", "numbers",
     lambda y, p, w: mean(torch.nn.functional.huber_loss(p, y, reduction="none"), w)),
    ("get_metric('kl_divergence')", "KLDivergence()", "rows",
     lambda y, p, w: mean((y.clamp(1e-7, 1) * (y.clamp(1e-7, 1) / p.clamp(1e-7, 1)).log()).sum(-1), w)),
    ("get_metric('binary_crossentropy')", "BinaryCrossentropy()", "bit_rows", lambda y, p, w: mean(entropy(y, p), w)),
    ("get_metric('categorical_crossentropy')", "CategoricalCrossentropy()", "rows", lambda y, p,
     w: mean(cross(y, p), w)),
    ("get_metric('sparse_categorical_crossentropy')", "SparseCategoricalCrossentropy()", "labels",
     lambda y, p, w: mean(own(y, p), w)),
    ("Perplexity()", "", "labels", lambda y, p, w: mean(own(y, p), w).exp()),
    ("Accuracy()", "BinaryAccuracy()", "bits", lambda y, p, w: mean((y == (p > 0.5)).double(), w)),
    ("Accuracy()", "SparseCategoricalAccuracy()", "labels", lambda y, p, w: mean((y == p.argmax(-1)).double(), w)),
    ("Accuracy()", "CategoricalAccuracy()", "rows", lambda y, p, w: mean((y.argmax(-1) == p.argmax(-1)).double(), w)),
    ("BinaryAccuracy(threshold=0.3)", None, "bits", lambda y, p, w: mean((y == (p > 0.3)).double(), w)),
    ("CategoricalAccuracy()", None, "rows", lambda y, p, w: mean((y.argmax(-1) == p.argmax(-1)).double(), w)),
    ("SparseCategoricalAccuracy()", None, "labels", lambda y, p, w: mean((y == p.argmax(-1)).double(), w)),
    ("TopKCategoricalAccuracy(k=2)", None, "rows",
     lambda y, p, w: mean((p.topk(2).indices == y.argmax(-1)[:, None]).any(-1).double(), w)),
    ("SparseTopKCategoricalAccuracy(k=2)", None, "labels",
     lambda y, p, w: mean((p.topk(2).indices == y[:, None]).any(-1).double(), w)),
    ("Precision()", None, "bits", lambda y, p, w: precision(hits(y, p, w, [0.5]))[0]),
    ("Precision(thresholds=[0.2, 0.8, 0.5])", None, "bits", lambda y, p, w: precision(hits(y, p, w, [0.2, 0.8, 0.5]))),
    ("Precision(top_k=2)", None, "bit_rows", lambda y, p, w: precision(hits(y, only(p, 2), w, [-torch.inf]))[0]),
    ("Precision(class_id=1)", None, "bit_rows", lambda y, p, w: precision(hits(y[:, 1], p[:, 1], w, [0.5]))[0]),
    ("Recall()", None, "bits", lambda y, p, w: recall(hits(y, p, w, [0.5]))[0]),
    ("Recall(thresholds=0.7)", None, "bit_rows", lambda y, p, w: recall(hits(y, p, w, [0.7]))[0]),
    ("Recall(top_k=1, class_id=2)", None, "bit_rows",
     lambda y, p, w: recall(hits(y[:, 2], only(p, 1)[:, 2], w, [-torch.inf]))[0]),
    ("TruePositives()", None, "bits", lambda y, p, w: hits(y, p, w, [0.5])[0, 0]),
    ("FalsePositives()", None, "bits", lambda y, p, w: hits(y, p, w, [0.5])[1, 0]),
    ("TrueNegatives()", None, "bits", lambda y, p, w: hits(y, p, w, [0.5])[2, 0]),
    ("FalseNegatives(thresholds=[0.1, 0.9])", None, "bits", lambda y, p, w: hits(y, p, w, [0.1, 0.9])[3]),
    ("AUC()", None, "bits", auc),
    ("AUC(num_thresholds=5)", None, "bit_rows", lambda y, p, w: auc(y, p, w, count=5)),
    ("AUC(curve='PR')", None, "bits", lambda y, p, w: auc(y, p, w, "PR")),
    ("AUC(thresholds=[0.3, 0.6], curve='PR')", None, "bits", lambda y, p, w: auc(y, p, w, "PR", thresholds=[0.3, 0.6])),
    ("AUC(from_logits=True)", None, "bits", lambda y, p, w: auc(y, p.sigmoid(), w)),
    ("F1Score()", None, "rows", lambda y, p, w: f_score(y, p, w, None)),
    ("F1Score(average='micro')", None, "rows", lambda y, p, w: f_score(y, p, w, "micro")),
    ("F1Score(average='macro', threshold=0.4)", None, "bit_rows", lambda y, p,
     w: f_score(y, p, w, "macro", threshold=0.4)),
    ("F1Score(average='weighted')", None, "rows", lambda y, p, w: f_score(y, p, w, "weighted")),
    ("FBetaScore(average='macro', beta=2.)", None, "rows", lambda y, p, w: f_score(y, p, w, "macro", 2.0)),
    ("ConfusionMatrix(3)", "", "labels", confusion),
    ("MeanIoU(3)", "", "labels", iou),
    ("IoU(3, [0, 2], sparse_y_pred=False)", "", "labels", lambda y, p, w: overlaps(y, p, w)[[0, 2]].mean()),
    ("MeanIoU(3, sparse_y_pred=False, ignore_class=1)", "", "labels",
     lambda y, p, w: overlaps(y, p, w * (y != 1)).mean()),
    ("OneHotMeanIoU(3)", "", "rows", lambda y, p, w: overlaps(y.argmax(-1), p, w).mean()),
    ("OneHotIoU(3, [1])", "", "rows", lambda y, p, w: overlaps(y.argmax(-1), p, w)[1]),
    ("BinaryIoU(threshold=0.4)", "", "bit_rows", binary_iou),
    ("SensitivityAtSpecificity(0.6)", None, "bits",
     lambda y, p, w: best(*rates(y, p, w)[::-1], 0.6)),
    ("SpecificityAtSensitivity(0.7, num_thresholds=30)", None, "bits",
     lambda y, p, w: best(*rates(y, p, w, 30), 0.7)),
    ("PrecisionAtRecall(0.8)", None, "bit_rows",
     lambda y, p, w: best(rates(y, p, w)[0], precision(at_thresholds(y, p, w)), 0.8)),
    ("RecallAtPrecision(0.9, num_thresholds=1)", None, "bits",
     lambda y, p, w: best(precision(hits(y, p, w, [0.5])), recall(hits(y, p, w, [0.5])), 0.9)),
    ("RecallAtPrecision(0.9, class_id=1)", None, "bit_rows",
     lambda y, p, w: best(precision(at_thresholds(y[:, 1], p[:, 1], w)), rates(y[:, 1], p[:, 1], w)[0], 0.9)),
    ("PearsonCorrelation()", None, "numbers", lambda y, p, w: mean(correlation(y, p), w)),
    ("ConcordanceCorrelation()", None, "numbers", lambda y, p, w: mean(concordance(y, p), w)),
]


def of_keras(text, kind, weighted):
    metric = eval(f"M.{text}", {"M": M, "keras": keras})
    for k in range(STEPS):
        y_true, y_pred = data(kind, k)
        y_true = y_true if kind == "labels" else y_true.float()
        metric.update_state(y_true, y_pred.float(), sample_weight=WEIGHTS.float() if weighted else None)
    return torch.as_tensor(keras.ops.convert_to_numpy(metric.result()))


def main():
    print(HEAD)
    for ours, theirs, kind, formula in CASES:
        batches = [data(kind, k) for k in range(STEPS)]
        y_true, y_pred = torch.cat([y for y, _ in batches]), torch.cat([p for _, p in batches])
        expected = []
        for weighted in (False, True):
            value = formula(y_true, y_pred, (WEIGHTS if weighted else torch.ones_like(WEIGHTS)).repeat(STEPS))
            if theirs != "":
                near = of_keras(theirs or ours, kind, weighted)
                assert torch.allclose(value.float(), near.float(), rtol=1e-5, atol=1e-6), (ours, kind, value, near)
            expected.append(value.tolist())
        print(f'check("{ours}", lambda: {ours}, "{kind}",\n      {expected})')
    print('print("all agree")')


if __name__ == "__main__":
    main()
