"""Where a patch stands in a picture: positions with two coordinates, a row and a column, both counted from 0.

Tokens in front of the patches (class, distillation, registers) stand in no row and no column.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import PositionError, ShapeError
from regard.positions.position_table import PositionTable, angles
from regard.positions.rotary import Rotary
from regard.positions.sinusoid import Sinusoid

SIDE = 1 << 20  # a place is row · SIDE + column, each counted from 1; at 0 stand the tokens that are no patches


def grid_places(rows: int, columns: int, *, before: int = 0) -> Int[Tensor, " t"]:
    """The places of the patches of a grid row by row, after so many tokens that are no patches.

    >>> (grid_places(2, 2, before=1) % SIDE).tolist(), (grid_places(2, 2, before=1) // SIDE).tolist()
    ([0, 1, 2, 1, 2], [0, 1, 1, 2, 2])
    """
    row, column = torch.arange(1, rows + 1, device="cpu"), torch.arange(1, columns + 1, device="cpu")
    return F.pad((row[:, None] * SIDE + column).flatten(), (before, 0))


def must_be_grid(x: Tensor, rows: int, columns: int, before: int) -> None:
    """Refuse tokens that are not as many as the grid has cells."""
    if x.shape[-2] != before + rows * columns:
        raise ShapeError(
            f"{x.shape[-2]} tokens came for a grid of {rows} × {columns} patches and {before} tokens before it; "
            f"give {before + rows * columns}"
        )


class LearnedGrid(nn.Module):
    r"""Adds a learned vector to every patch of a grid and to the tokens before it (Dosovitskiy et al. 2021, §3.1).

    A grid of another size gets the table resized by bicubic interpolation (ibid., §3.2; corners not aligned, as in
    `transformers`); the vectors of the tokens before it stay. The table starts normal with deviation 0.02.

    >>> where = LearnedGrid(2, 3, 4, before=1)
    >>> where(torch.zeros(7, 4), 2, 3).equal(where.weight), where(torch.zeros(31, 4), 5, 6).shape
    (True, torch.Size([31, 4]))
    """

    def __init__(self, rows: int, columns: int, width: int, *, before: int = 0) -> None:
        super().__init__()
        if min(rows, columns, width) < 1 or before < 0:
            raise PositionError(f"a table of {rows} × {columns} patches by {width} channels came; wanted 1 or more")
        self.rows, self.columns, self.width, self.before = rows, columns, width, before
        self.weight = nn.Parameter(torch.empty(before + rows * columns, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Float[Tensor, "*b t c"], rows: int, columns: int) -> Float[Tensor, "*b t c"]:
        must_be_grid(x, rows, columns, self.before)
        return (x + self.table(rows, columns)).to(x.dtype)

    def table(self, rows: int, columns: int) -> Float[Tensor, "t c"]:
        """What is added to each token of a grid of this size."""
        if (rows, columns) == (self.rows, self.columns):
            return self.weight
        cells = self.weight[self.before :].unflatten(0, (1, self.rows, self.columns)).permute(0, 3, 1, 2)
        cells = F.interpolate(cells, size=(rows, columns), mode="bicubic", align_corners=False)  # 1 c y x
        return torch.cat((self.weight[: self.before], cells[0].flatten(1).mT))

    def extra_repr(self) -> str:
        return f"{self.rows} × {self.columns}, width={self.width}, before={self.before}"


class SinusoidGrid(PositionTable):
    """Adds waves of the row to the first half of the channels, of the column to the second; nothing is learned.

    Each half is a `Sinusoid` (Vaswani et al. 2017, §3.5; in two dimensions: Chen et al. 2021, §4.1). The tokens before
    the patches get nothing. Every grid is known.

    >>> where = SinusoidGrid(8, before=1)
    >>> moved = where(torch.zeros(7, 8), 2, 3)
    >>> moved[4, :4].equal(moved[5, :4]), moved[2, 4:].equal(moved[5, 4:]), moved[0].any().item()
    (True, True, False)
    """

    def __init__(self, width: int, *, before: int = 0) -> None:
        super().__init__()
        if width % 2:
            raise ShapeError(f"width is {width}, but rows and columns have half of it each; give an even width")
        self.width, self.before, self.side = width, before, Sinusoid(width // 2)

    def forward(self, x: Float[Tensor, "*b t c"], rows: int, columns: int) -> Float[Tensor, "*b t c"]:
        must_be_grid(x, rows, columns, self.before)
        places = grid_places(rows, columns).to(x.device)
        (waves,) = self.compute(places, torch.promote_types(x.dtype, torch.float32))
        return (x + F.pad(waves, (0, 0, self.before, 0))).to(x.dtype)

    def compute(self, positions: Int[Tensor, "*p"], dtype: torch.dtype) -> tuple[Float[Tensor, "*p c"], ...]:
        each = (self.side.compute(at, dtype)[0] for at in (positions // SIDE - 1, positions % SIDE - 1))
        return (torch.cat(tuple(each), -1),)

    def extra_repr(self) -> str:
        return f"width={self.width}, before={self.before}"


class RotaryGrid(Rotary):
    r"""Turns half of the pairs of a head by the row of a patch, the other half by its column; nothing is learned.

    Each half is a `Rotary` of half the width (Su et al. 2021; in two dimensions: Heo et al. 2024, §3.2, "axial"), so
    scores see how many rows and columns two patches are apart. The pairs of channels are (i, i + d/2). Positions are
    those of `grid_places`; the tokens before the patches, at 0, are not turned.

    >>> turn, x = RotaryGrid(8), torch.ones(5, 8)
    >>> turned = turn(x, grid_places(2, 2, before=1))
    >>> turned[0].equal(x[0]), torch.allclose(turned[1] @ turned[2], turned[3] @ turned[4])
    (True, True)
    """

    def __init__(self, width: int, *, base: float | int = 100.0) -> None:
        super().__init__(width, base=base)
        if width % 4:
            raise ShapeError(f"heads of width {width} came, but rows and columns turn pairs; give a multiple of 4")
        self.frequencies = tuple(base ** (-4 * i / width) for i in range(width // 4))

    def compute(self, positions: Int[Tensor, "*p"], dtype: torch.dtype) -> tuple[Float[Tensor, "*p c"], ...]:
        at = angles(torch.stack((positions // SIDE, positions % SIDE), -1), self.frequencies).flatten(-2)  # *p d/2
        cos, sin = at.cos(), at.sin()
        both = torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
        return both[0].to(positions.device, dtype), both[1].to(positions.device, dtype)
