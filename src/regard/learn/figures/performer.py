"""How far Performer's random features are from exact attention, against how many there are."""

import torch

from regard.attention.attend import attend
from regard.attention.matrix_free import Performer
from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording

FEATURES = (16, 64, 256, 1024)


def measure_features(size: float | int = 1.0, length: int = 128, width: int = 16) -> LessonFigure:
    """The share of weight on wrong keys, and the relative error of the mix; q and k have variance `size`².

    >>> wrong, mix = measure_features(0.5).panels[0].lines.values()
    >>> wrong[0] > 4 * wrong[-1]
    True
    """
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, length, width, generator=generator) for _ in range(3))
    errors = [attend(q * size, k * size, v, by=Performer(width, features=count)).error() for count in FEATURES]
    lines = {
        Wording("weight on wrong keys", "落在错误键上的权重"): [one.weights.mean for one in errors],
        Wording("error of the mix", "输出的相对误差"): [one.mix for one in errors],
    }
    title = Wording(
        f"Performer against exact attention, entries of q and k of size {size}",
        f"Performer 与精确注意力之差，q、k 分量的大小为 {size}",
    )
    return LessonFigure((CurvePanel(title, FEATURES, lines, Wording("features", "特征数"), log=True),))
