"""How good a classifier is: accuracy, macro-F1, precision and recall of each class, and the confusion matrix."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import nn

from regard.data.examples import Examples
from regard.errors import DataError
from regard.tasks.classify_texts import classify_ids
from regard.tokens.visible import columns, cut, visible

WIDEST = 16  # columns of the name of a class in a table


class Judgement(NamedTuple):
    """Scores on some texts, and which class was taken for which."""

    scores: dict[str, float]
    confusion: Int[np.ndarray, "c c"]


def judge_examples(model: nn.Module, examples: Examples, classes: int) -> Judgement:
    """Loss, accuracy and macro-F1 of a model on encoded texts (a sequence "text", a field "label")."""
    if not len(examples):
        raise DataError("there is no text to be judged by; hold some out, or name a file")
    logits, labels = classify_ids(model, examples.sequences["text"]).cpu(), torch.from_numpy(examples.fields["label"])
    confusion = count_confusion(labels.numpy(), logits.argmax(-1).numpy(), classes)
    found = score_confusion(confusion)
    scores = {"loss": float(F.cross_entropy(logits, labels))}
    return Judgement(scores | {name: found[name] for name in ("accuracy", "macro_f1")}, confusion)


def count_confusion(
    truth: Int[np.ndarray, " n"], said: Int[np.ndarray, " n"], classes: int
) -> Int[np.ndarray, "classes classes"]:
    """How often each class (row) was taken for each (column).

    >>> count_confusion(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]), 3)
    array([[1, 1, 0],
           [0, 1, 0],
           [0, 1, 0]])
    """
    return np.bincount(truth * classes + said, minlength=classes * classes).reshape(classes, classes)


def score_confusion(confusion: Int[np.ndarray, "c c"]) -> dict[str, Any]:
    r"""What a confusion matrix amounts to; a ratio without a case is 0.

    precision $= C_{cc} / \sum_r C_{rc}$, recall $= C_{cc} / \sum_s C_{cs}$, $F_1$ their harmonic mean, macro-F1 its
    mean over the classes that occur or were said. scikit-learn gives the same numbers.

    >>> found = score_confusion(np.array([[3, 1], [0, 4]]))
    >>> found["accuracy"], round(found["macro_f1"], 4), found["recall"].tolist()
    (0.875, 0.873, [0.75, 1.0])
    """
    right, true, said = confusion.diagonal(), confusion.sum(1), confusion.sum(0)
    precision, recall = divide(right, said), divide(right, true)
    f1 = divide(2 * right, true + said)
    occur = (true + said) > 0
    return {
        "accuracy": float(right.sum() / max(1, confusion.sum())),
        "macro_f1": float(f1[occur].mean()) if occur.any() else 0.0,
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }


def divide(part: np.ndarray, whole: np.ndarray) -> Float[np.ndarray, " c"]:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def describe_confusion(confusion: Int[np.ndarray, "c c"], classes: Sequence[str]) -> dict[str, Any]:
    """The confusion matrix and the scores of each class as plain values, for JSON and for a report."""
    found = score_confusion(confusion)
    return {
        "confusion": confusion.tolist(),
        "classes": {
            name: {key: round(float(found[key][at]), 4) for key in ("precision", "recall", "f1")}
            | {"texts": int(confusion[at].sum())}
            for at, name in enumerate(classes)
        },
    }


def confusion_table(confusion: Sequence[Sequence[int]], per_class: dict[str, dict[str, Any]]) -> str:
    """The confusion matrix as a terminal shows it: a row is what a text is, a column what it was taken for.

    >>> one = {"precision": 1.0, "recall": 0.75, "f1": 0.8571, "texts": 4}
    >>> print(confusion_table([[3, 1], [0, 4]], {"neg": one, "pos": one}))
    is \\ said   neg  pos  precision  recall      F1
    neg           3    1      1.000   0.750   0.857
    pos           0    4      1.000   0.750   0.857
    """
    names = [cut(visible(name), WIDEST) for name in per_class]
    first = max(len("is \\ said"), *map(columns, names)) + 1
    widths = [max(columns(name), *(len(str(row[at])) for row in confusion), 3) + 2 for at, name in enumerate(names)]
    head = pad("is \\ said", first) + "".join(pad(name, width, left=False) for name, width in zip(names, widths))
    lines = [head + "  precision  recall      F1"]
    for name, row, one in zip(names, confusion, per_class.values()):
        counts = "".join(f"{count:>{width}}" for count, width in zip(row, widths))
        lines.append(f"{pad(name, first)}{counts}{one['precision']:>11.3f}{one['recall']:>8.3f}{one['f1']:>8.3f}")
    return "\n".join(lines)


def pad(text: str, width: int, *, left: bool = True) -> str:
    """A text in so many columns of a terminal, of which some scripts take two for a letter."""
    space = " " * max(0, width - columns(text))
    return text + space if left else space + text
