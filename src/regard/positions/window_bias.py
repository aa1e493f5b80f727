"""One learned number per head and distance in rows and columns, added to the scores within a window (Swin)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.eager import plain
from regard.errors import PositionError


class WindowBias(nn.Module):
    r"""A bias for the scores within a square window: $B_{h,\,\Delta y,\,\Delta x}$, learned (Liu et al. 2021, eq. 4).

    The table has a row for each of the $(2W - 1)^2$ distances in a window of W × W cells, and a number for each head.
    A smaller window, of a picture with fewer cells, uses those of its distances. It starts normal with deviation 0.02.

    >>> bias = WindowBias(heads=2, window=7)
    >>> bias(7).shape, bias(3).shape, bias(3)[:, 0, 4].equal(bias(7)[:, 0, 8])
    (torch.Size([2, 49, 49]), torch.Size([2, 9, 9]), True)
    """

    def __init__(self, heads: int, window: int) -> None:
        super().__init__()
        if heads < 1 or window < 1:
            raise PositionError(f"{heads} heads and windows of {window} came; wanted at least 1 of each")
        self.heads, self.window = heads, window
        self.weight = nn.Parameter(torch.empty((2 * window - 1) ** 2, heads))
        self._kept: dict[tuple[int, torch.device], Tensor] = {}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        nn.init.trunc_normal_(self.weight, std=0.02, a=-0.04, b=0.04)

    def forward(self, window: int) -> Float[Tensor, "h q k"]:
        """The bias of every cell of a window, row by row, with every other."""
        if not 1 <= window <= self.window:
            raise PositionError(
                f"a window of {window} cells came, but the table knows distances in windows up to {self.window}; "
                "make it larger"
            )
        rows = self.index(window).flatten()
        return self.weight.mT.index_select(1, rows).unflatten(1, (window**2, window**2))

    def index(self, window: int) -> Int[Tensor, "q k"]:
        """Which row of the table stands for query and key, kept once it is known."""
        at = (window, self.weight.device)
        if at in self._kept:
            return self._kept[at]
        with torch.inference_mode(False):
            cell = torch.arange(window, device=self.weight.device)
            y, x = cell.repeat_interleave(window), cell.repeat(window)
            down, right = (one[:, None] - one + self.window - 1 for one in (y, x))  # query − key, from 0
            index = down * (2 * self.window - 1) + right
        if plain(index):
            self._kept[at] = index
        return index

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_kept": {}}

    def extra_repr(self) -> str:
        return f"{self.heads}, window={self.window}"
