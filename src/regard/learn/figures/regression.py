"""Kernel regression on noisy points: what the width of the kernel does."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attend import Attended
from regard.attention.kernel_regression import nadaraya_watson
from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording


class NoisyCurve(NamedTuple):
    """Examples of a curve that is known here, so that an error can be measured."""

    keys: Float[Tensor, " k"]
    values: Float[Tensor, " k"]
    x: Float[Tensor, " q"]
    truth: Float[Tensor, " q"]


def draw_examples(points: int = 50) -> NoisyCurve:
    """Points of 2 sin x + x^0.8 with noise, the keys in order.

    >>> draw_examples(7).keys.shape
    torch.Size([7])
    """
    generator = torch.Generator().manual_seed(0)
    keys = (torch.rand(points, generator=generator) * 5).sort().values
    noise = torch.randn(points, generator=generator) * 0.5
    x = torch.arange(0, 5, 0.1)
    return NoisyCurve(keys, curve(keys) + noise, x, curve(x))


def curve(x: Tensor) -> Tensor:
    return 2 * torch.sin(x) + x**0.8


def regress_examples(data: NoisyCurve, width: float | int) -> Attended:
    return nadaraya_watson(data.x, data.keys, data.values, width=width)


def fit_curve(width: float | int = 1.0, points: int = 50) -> LessonFigure:
    """The curve, and what kernel regression makes of its examples.

    >>> fit_curve(0.2).said.en
    'width 0.2: mean squared error 0.058'
    """
    data = draw_examples(points)
    fitted = regress_examples(data, width).mix
    error = (fitted - data.truth).square().mean().item()
    panel = CurvePanel(
        Wording(f"kernel regression on {points} examples, width {width}", f"{points} 个样本上的核回归，宽度 {width}"),
        data.x.tolist(),
        {
            Wording("the true curve", "真实曲线"): data.truth.tolist(),
            Wording("the prediction", "预测"): fitted.tolist(),
        },
        Wording("x", "x"),
        points=(data.keys.tolist(), data.values.tolist()),
    )
    said = Wording(f"width {width}: mean squared error {error:.3f}", f"宽度 {width}：均方误差 {error:.3f}")
    return LessonFigure((panel,), said)
