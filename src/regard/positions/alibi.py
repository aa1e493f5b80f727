"""Scores that fall with distance, each head at its own slope (Press et al. 2022)."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ALiBi(nn.Module):
    r"""A bias for the scores: $-m_h\,|i - j|$ for query i, key j and the slope $m_h$ of the head.

    $m_h = 2^{-8h/H}$, h = 1 … H, where H is a power of two (Press et al. 2022, §3); otherwise the slopes of
    the power of two below, then every other slope of the power above, as in the authors' code. A causal model
    looks at j ≤ i only; for an encoder this is the symmetric form. It is added after the scores are scaled,
    and only differences of positions count.

    `learned` makes the slopes a parameter, `weight`, that starts there (nothing keeps it above zero). The
    block comes out in float32, or in float64 where the learned slopes are.

    >>> ALiBi(heads=8).slopes[:3]
    tensor([0.5000, 0.2500, 0.1250])
    >>> ALiBi(heads=8).block(torch.tensor([3]), torch.arange(4), of=torch.tensor([0]))
    tensor([[[-1.5000, -1.0000, -0.5000, -0.0000]]])
    """

    weight: nn.Parameter | None

    def __init__(self, heads: int, *, learned: bool = False) -> None:
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads {heads} came; wanted at least 1")
        self.heads = heads
        # Fixed slopes are no buffer: half() would round them.
        self._fixed = slopes_of(heads)
        start = torch.tensor(self._fixed, dtype=torch.float32)
        self.register_parameter("weight", nn.Parameter(start) if learned else None)

    @property
    def slopes(self) -> Float[Tensor, " h"]:
        """The slope of each head, positive."""
        if self.weight is not None:
            return self.weight.to(torch.promote_types(self.weight.dtype, torch.float32))
        return torch.tensor(self._fixed, dtype=torch.float32, device="cpu")

    def block(
        self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None
    ) -> Float[Tensor, "g r c"]:
        """The bias of these heads (None: all) for the given query and key positions."""
        slopes = self.slopes.to(queries.device)
        slopes = slopes if of is None else slopes[of]
        distance = (queries[:, None] - keys).abs()  # r c
        return -slopes[:, None, None] * distance.to(slopes.dtype)

    def draw(self, length: int = 32, to: str | Path | None = None, *, head: int = 0) -> "Figure":
        """The bias of one head, a row per query and a column per key; saved when `to` names a file."""
        from regard.views.static.figure import heatmap

        at = torch.arange(length, device="cpu")
        bias = self.block(at, at, torch.tensor([head], device="cpu"))[0].detach()
        return heatmap(bias, title=f"ALiBi, head {head} of {self.heads}", to=to)

    def extra_repr(self) -> str:
        return f"{self.heads}, learned={self.weight is not None}"


def slopes_of(heads: int) -> tuple[float, ...]:
    """The slopes for any number of heads, in float64.

    >>> slopes_of(3)
    (0.0625, 0.00390625, 0.25)
    """
    below = 1 << int(math.log2(heads))  # the largest power of two that is not more than heads
    first = [2.0 ** (-8 * h / below) for h in range(1, below + 1)]
    between = [2.0 ** (-8 * h / (2 * below)) for h in range(1, 2 * (heads - below), 2)]
    return (*first, *between)
