"""How alike the tokens of a text become with depth: whole encoder blocks, and their attention alone, untrained."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import layer_norm, normalize

from regard.layers import BlockConfig, EncoderBlock
from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording


def measure_likeness(x: Float[Tensor, "t m"]) -> float:
    """The mean cosine of two different tokens.

    >>> measure_likeness(torch.ones(3, 2)), measure_likeness(torch.eye(3))
    (1.0, 0.0)
    """
    t = len(x)
    unit = normalize(x.double(), dim=-1)
    return round(float((unit @ unit.T).triu(1).sum() / (t * (t - 1) / 2)), 12)


@torch.no_grad()
def stack_blocks(depth: int = 24, width: int = 24, tokens: int = 10) -> LessonFigure:
    """Random blocks on random tokens.

    >>> whole, alone = stack_blocks(6).panels[0].lines.values()
    >>> whole[-1] < alone[-1]
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole = alone = torch.randn(1, tokens, width)
        blocks = [EncoderBlock(BlockConfig(width, heads=4, hidden=2 * width)) for _ in range(depth)]
    curves = [[measure_likeness(whole[0])], [measure_likeness(alone[0])]]
    for block in blocks:
        whole, alone = block(whole), layer_norm(block.attention(alone), (width,))
        curves[0].append(measure_likeness(whole[0]))
        curves[1].append(measure_likeness(alone[0]))
    names = Wording("whole blocks", "完整的层"), Wording("attention alone", "只有注意力")
    title = Wording("mean cosine of two tokens, untrained blocks", "两个词元的平均余弦，未训练的层")
    lines = dict(zip(names, curves, strict=True))
    return LessonFigure((CurvePanel(title, list(range(depth + 1)), lines, Wording("layers", "层数")),))
