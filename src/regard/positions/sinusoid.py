"""Waves of many lengths, added to each token (Vaswani et al. 2017)."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ShapeError
from regard.positions.position_table import PositionTable, angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Sinusoid(PositionTable):
    r"""Adds sines and cosines of the position to x; nothing is learned.

    $PE_{p,2i} = \sin(p / base^{2i/m})$, $PE_{p,2i+1} = \cos(p / base^{2i/m})$ (Vaswani et al. 2017, §3.5).
    The channels alternate, an odd width ends with a sine. `positions` is where the first token stands
    (None: 0), or one whole number per token, (t,) or (b, t); every position is known, negative ones too.
    Angles are float64, the sum is made in float32 or better, and comes out in x's dtype.

    >>> where = Sinusoid(4)
    >>> where(torch.zeros(2, 4), positions=1)
    tensor([[ 0.8415,  0.5403,  0.0100,  0.9999],
            [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """

    def __init__(self, width: int, *, base: float | int = 10000.0) -> None:
        super().__init__()
        if width < 1 or base <= 1:
            raise ValueError(f"width {width} and base {base} came; wanted a width of at least 1, a base above 1")
        self.width = width
        self.base = base
        self._frequencies = tuple(base ** (-2 * i / width) for i in range((width + 1) // 2))

    def forward(
        self, x: Float[Tensor, "*b t c"], positions: int | Int[Tensor, "*_p"] | None = None
    ) -> Float[Tensor, "*b t c"]:
        if x.shape[-1] != self.width:
            raise ShapeError(
                f"x of shape {tuple(x.shape)} ends in {x.shape[-1]} channels, "
                f"this Sinusoid adds {self.width}; build it with Sinusoid({x.shape[-1]})"
            )
        (waves,) = self.rows(x, positions, torch.promote_types(x.dtype, torch.float32))
        return (x + waves).to(x.dtype)

    def table(self, length: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "t m"]:
        """What is added at positions 0 … length − 1."""
        return self.compute(torch.arange(length, device="cpu"), dtype)[0]

    def compute(self, positions: Int[Tensor, "*p"], dtype: torch.dtype) -> tuple[Float[Tensor, "*p m"], ...]:
        turned = angles(positions, self._frequencies)  # *p ⌈m/2⌉
        waves = torch.stack((turned.sin(), turned.cos()), -1).flatten(-2)
        return (waves[..., : self.width].to(positions.device, dtype),)

    def draw(self, length: int = 64, to: str | Path | None = None) -> "Figure":
        """The table as a map, a row per position and a column per channel; saved when `to` names a file."""
        from regard.views.static.figure import heatmap

        title = f"Sinusoid, width {self.width}"
        return heatmap(self.table(length), title=title, rows="positions", columns="channels", diverging=True, to=to)

    def extra_repr(self) -> str:
        return f"{self.width}, base={self.base}"
