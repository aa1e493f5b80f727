"""One row of scores at several temperatures: from an even share to a choice."""

import numpy as np

from regard.attention import reference
from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording

SCORES = np.array([1.0, 0.0, 0.5, 0.5, 0.75])
FACTORS = (0.0, 1.0, 4.0, 16.0, 64.0)


def heat_softmax() -> LessonFigure:
    """The scores of the first token of the example, multiplied by 0, 1, 4, 16 and 64 before softmax.

    >>> heat_softmax().panels[0].values[[0, 1]].round(4)
    array([[0.2   , 0.2   , 0.2   , 0.2   , 0.2   ],
           [0.2976, 0.1095, 0.1805, 0.1805, 0.2318]])
    """
    weights = reference.softmax(np.outer(FACTORS, SCORES))
    title = Wording("weights of one row of scores, at five temperatures", "同一行得分在五种温度下的权重")
    rows = [f"s × {factor:g}" for factor in FACTORS]
    columns = [f"{score:g}" for score in SCORES]
    axes = Wording("factor", "倍数"), Wording("scores", "得分")
    return LessonFigure((HeatPanel(title, weights, rows, columns, axes, numbers=True, digits=4),))
