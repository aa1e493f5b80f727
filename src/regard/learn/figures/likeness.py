"""How much like each other two positions are, against their distance: sinusoids, rotary positions, ALiBi."""

import torch

from regard.attention import reference
from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording
from regard.positions import ALiBi, Rotary


def compare_positions(width: int = 64, length: int = 64) -> LessonFigure:
    """What a distance alone does to a score, for three kinds of positions.

    >>> lines = compare_positions().panels[0].lines
    >>> [round(values[0], 2) for values in lines.values()]
    [1.0, 1.0, -0.0]
    """
    table = reference.sinusoid(length, width)
    sinusoids = table @ table[0] / (width / 2)
    same = torch.ones(1, 1, length, width)  # the same vector at every position
    turned = Rotary(width)(same, torch.arange(length))[0, 0].double()
    rotary = (turned @ turned[0] / width).tolist()  # two equal vectors, that far apart
    bias = ALiBi(8).block(torch.tensor([length - 1]), torch.arange(length), torch.tensor([2]))[0, 0].flip(0).tolist()
    lines = {
        Wording("sinusoids: dot product with position 0", "正弦：与位置 0 的点积"): sinusoids.tolist(),
        Wording("rotary: score of two equal vectors", "旋转：两个相同向量的得分"): rotary,
        Wording("ALiBi, slope 1/8: what is added to the score", "ALiBi，斜率 1/8：加到得分上的量"): bias,
    }
    title = Wording("what a distance does to a score", "距离如何影响得分")
    return LessonFigure((CurvePanel(title, list(range(length)), lines, Wording("distance", "距离")),))
