"""The example of five tokens and four channels, one stage after the other."""

from typing import Literal

import numpy as np

from regard.attention import reference
from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording

X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
TOKENS = ["x1", "x2", "x3", "x4", "x5"]
CHANNELS = ["c1", "c2", "c3", "c4"]
CHANNEL = Wording("channels", "通道")
Stage = Literal["x", "dot", "scores", "weights", "mix"]


def walk_example(stages: list[Stage] | None = None, causal: bool = False) -> LessonFigure:
    """The chosen stages: x, dot, scores (scaled), weights, mix.

    >>> walk_example(["weights"]).panels[0].values[0].round(4)
    array([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
    """
    mask = reference.causal_mask(5, 5) if causal else None
    made = reference.attend(X, X, X, mask=mask)
    hidden = np.where(mask, 1.0, np.nan) if mask is not None else np.ones((5, 5))
    grids: dict[Stage, tuple[Wording, np.ndarray]] = {
        "x": (Wording("X: one row per token", "X：每个词元一行"), X),
        "dot": (Wording("X Xᵀ: dot products", "X Xᵀ：点积"), reference.dot_scores(X, X) * hidden),
        "scores": (Wording("X Xᵀ / √4: scores", "X Xᵀ / √4：得分"), made.scores * hidden),
        "weights": (Wording("softmax, row by row: weights", "逐行 softmax：权重"), made.weights * hidden),
        "mix": (Wording("weights × X: the mix", "权重 × X：输出"), made.mix),
    }
    panels = []
    for stage in stages or list(grids):
        title, values = grids[stage]
        wide = stage in ("x", "mix")
        axes = (Wording("tokens", "词元"), CHANNEL) if wide else (Wording("queries", "查询"), Wording("keys", "键"))
        digits = 4 if stage in ("weights", "mix") else 2
        panels.append(HeatPanel(title, values, TOKENS, CHANNELS if wide else TOKENS, axes, numbers=True, digits=digits))
    return LessonFigure(tuple(panels))
