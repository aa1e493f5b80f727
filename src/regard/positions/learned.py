"""One learned vector per position, added to each token (Gehring et al. 2017; BERT, GPT-2, ViT)."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.eager import plain
from regard.errors import PositionError, ShapeError
from regard.positions.places import align_positions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Learned(nn.Module):
    r"""Adds row $p$ of a learned table to the token at position $p$: $x_p + W_p$ (Gehring et al. 2017, §3.1).

    `positions` is where the first token stands (None: 0), or one whole number per token, (t,) or (b, t).
    A position the table does not have is a `PositionError`; those in a tensor are looked at in eager mode
    only. The table starts normal with deviation 0.02 (BERT, GPT-2). The sum comes out in x's dtype.

    >>> where = Learned(512, 4)
    >>> where(torch.zeros(2, 4), positions=510).equal(where.weight[510:])
    True
    >>> where(torch.zeros(2, 4), positions=511)
    Traceback (most recent call last):
    regard.errors.PositionError: positions 511 to 512 came, this table knows 0 to 511; shorten the
    input or build Learned(length=513, width=4)
    """

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        if length < 1 or width < 1:
            raise ValueError(f"a table of {length} positions by {width} channels came; wanted at least 1 of each")
        self.length = length
        self.width = width
        self.weight = nn.Parameter(torch.empty(length, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        nn.init.normal_(self.weight, std=0.02)

    def forward(
        self, x: Float[Tensor, "*b t c"], positions: int | Int[Tensor, "*_p"] | None = None
    ) -> Float[Tensor, "*b t c"]:
        if x.shape[-1] != self.width:
            raise ShapeError(
                f"x of shape {tuple(x.shape)} ends in {x.shape[-1]} channels, this table has {self.width}; "
                f"build Learned(length={self.length}, width={x.shape[-1]})"
            )
        if isinstance(positions, Tensor):
            positions = align_positions(positions, x)
            if positions.numel() and plain(x, positions):
                self._check(*(int(end) for end in positions.aminmax()))
            rows = F.embedding(positions.long(), self.weight)  # (b) t m
        else:
            first, length = 0 if positions is None else positions, x.shape[-2]
            self._check(first, first + length - 1)
            rows = self.weight[first : first + length]  # t m
        return (x + rows).to(x.dtype)

    def _check(self, first: int, last: int) -> None:
        if first < 0 or last >= self.length:
            raise PositionError(
                f"positions {first} to {last} came, this table knows 0 to {self.length - 1}; "
                + (
                    f"shorten the input or build Learned(length={last + 1}, width={self.width})"
                    if first >= 0
                    else "count positions from 0"
                )
            )

    def draw(self, length: int | None = None, to: str | Path | None = None) -> "Figure":
        """The table as a map, a row per position and a column per channel; saved when `to` names a file."""
        from regard.views.static.figure import heatmap

        return heatmap(
            self.weight.detach()[:length],
            title=f"Learned, {self.length} positions",
            rows="positions",
            columns="channels",
            diverging=True,
            to=to,
        )

    def extra_repr(self) -> str:
        return f"length={self.length}, width={self.width}"
