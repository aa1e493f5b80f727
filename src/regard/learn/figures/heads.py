"""The example split into two heads: each sees half of the channels, and makes a map of its own."""

import numpy as np

from regard.attention import reference
from regard.learn.figures.example import TOKENS, X
from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording


def split_example() -> LessonFigure:
    """The map of one head of four channels, and those of two heads of two channels each.

    >>> [panel.values[0].round(2).tolist() for panel in split_example().panels[1:]]
    [[0.25, 0.12, 0.25, 0.12, 0.25], [0.27, 0.13, 0.13, 0.27, 0.19]]
    """
    eye = np.eye(4)
    whole = reference.multi_head(X, eye, eye, eye, eye, heads=1).weights[0]
    first, second = reference.multi_head(X, eye, eye, eye, eye, heads=2).weights
    titles = (
        Wording("one head, all four channels", "一个头，看全部四个通道"),
        Wording("two heads: the first sees c1 and c2", "两个头：第一个只看 c1、c2"),
        Wording("two heads: the second sees c3 and c4", "两个头：第二个只看 c3、c4"),
    )
    return LessonFigure(
        tuple(
            HeatPanel(title, values, TOKENS, TOKENS, numbers=True)
            for title, values in zip(titles, (whole, first, second), strict=True)
        )
    )
