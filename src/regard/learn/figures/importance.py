"""What each word of a sentence counted for its class, asked in three ways, by the embedded classifier."""

import numpy as np

from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording
from regard.tasks.text_classification import classify_and_explain
from regard.tasks.trained_classifier import open_classifier
from regard.tasks.word_importance import WAYS

NAMES = {"attention": "attention", "gradient": "gradient", "leave_one_out": "left out"}


def weigh_words(text: str = "a warm and funny film with a terrible ending", model: str = "sentiment") -> LessonFigure:
    """Words as rows, ways as columns, each way divided by its largest size, so that they can be compared.

    >>> panel = weigh_words("not good").panels[0]
    >>> list(panel.rows), panel.values.shape, float(abs(panel.values).max())
    (['not', 'good'], (2, 3), 1.0)
    """
    [one] = classify_and_explain(open_classifier(model), [text])
    assert one.importance is not None
    ways = np.stack([getattr(one.importance, way).double().numpy() for way in WAYS], 1)
    values = ways / np.abs(ways).max(0)
    share = one.probabilities[one.label]
    title = Wording(
        f"“{text}”: {one.label}, {share:.2f}; each way divided by its largest",
        f"“{text}”：{one.label}，{share:.2f}；每种问法除以各自的最大值",
    )
    axes = Wording("words", "词"), Wording("ways of asking", "问法")
    columns = [NAMES[way] for way in WAYS]
    words = list(one.importance.words)
    return LessonFigure((HeatPanel(title, values, words, columns, axes, numbers=True, diverging=True),))
