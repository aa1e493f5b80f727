"""Why scores are divided by √d: variance, largest weight and gradient against d, with and without."""

import math
from functools import cache
from typing import NamedTuple

import torch

from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording

WIDTHS = (4, 16, 64, 256, 1024)


class Saturation(NamedTuple):
    """What one width does to random scores, means over many queries."""

    variance: float
    largest: float  # weight of a row
    gradient: float  # size of the derivative of a row's weights by its scores


@cache
def measure_width(d: int, *, scaled: bool, keys: int = 16, queries: int = 256) -> Saturation:
    r"""Queries and keys of d channels, each a normal draw of variance 1: their scores, and the softmax of these.

    The Jacobian of softmax is diag(w) − w wᵀ; its mean size (Frobenius norm) is the `gradient`.

    >>> [round(measure_width(256, scaled=scaled).largest, 2) for scaled in (False, True)]
    [0.9..., 0.2...]
    """
    generator = torch.Generator().manual_seed(d)
    q = torch.randn(queries, d, generator=generator, dtype=torch.float64)
    k = torch.randn(queries, keys, d, generator=generator, dtype=torch.float64)
    scores = (k @ q[:, :, None])[..., 0] / (math.sqrt(d) if scaled else 1.0)
    weights = scores.softmax(-1)
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
    size = jacobian.flatten(1).norm(dim=1).mean().item()
    return Saturation(scores.var().item(), weights.amax(-1).mean().item(), size)


def measure_saturation() -> LessonFigure:
    """The three measures against d, undivided and divided.

    >>> variance = measure_saturation().panels[0]
    >>> [name.en for name in variance.lines]
    ['q · k', 'q · k / √d']
    """
    plain, scaled = ([measure_width(d, scaled=scaled) for d in WIDTHS] for scaled in (False, True))
    names = Wording("q · k", "q · k"), Wording("q · k / √d", "q · k / √d")
    titles = {
        "variance": Wording("variance of the scores", "得分的方差"),
        "largest": Wording("largest weight of 16 keys, mean over queries", "16 个键中最大的权重（对查询取平均）"),
        "gradient": Wording("size of the gradient through softmax", "softmax 梯度的大小"),
    }
    panels = [
        CurvePanel(
            title,
            WIDTHS,
            {
                name: [getattr(one, measure) for one in measured]
                for name, measured in zip(names, (plain, scaled), strict=True)
            },
            Wording("d, channels of a query", "d：查询的通道数"),
            log=True,
        )
        for measure, title in titles.items()
    ]
    return LessonFigure(tuple(panels))
