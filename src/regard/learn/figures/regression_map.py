"""Which example each prediction of a kernel regression rests on: its weights as a map."""

import numpy as np

from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording
from regard.learn.figures.regression import draw_examples, regress_examples


def show_regression_map(width: float | int = 1.0, points: int = 30) -> LessonFigure:
    """Queries from left to right of the curve as rows, examples as columns.

    >>> show_regression_map(points=8).panels[0].values.shape
    (10, 8)
    """
    data = draw_examples(points)
    weights = regress_examples(data, width).weights.dense().double().numpy()[::5]
    rows = [f"{x:.1f}" for x in data.x.tolist()[::5]]
    columns = [f"{x:.1f}" for x in data.keys.tolist()]
    title = Wording(
        f"weights at width {width}: rows are x, columns the {points} examples in order",
        f"宽度 {width} 时的权重：行是 x，列是按顺序排好的 {points} 个样本",
    )
    axes = Wording("x", "x"), Wording("examples", "样本")
    return LessonFigure((HeatPanel(title, np.asarray(weights), rows, columns, axes),))
