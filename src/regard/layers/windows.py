"""Attention within windows of a picture, which every other layer shifts (Liu et al. 2021)."""

from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.eager import plain
from regard.errors import ShapeError
from regard.layers.multihead import merge_heads, split_heads
from regard.positions.window_bias import WindowBias

EMPTY = -1  # the number of a cell that fills up the last windows


def cut_windows(x: Shaped[Tensor, "b y x m"], window: int) -> Shaped[Tensor, "w t m"]:
    """The windows of all pictures, row by row, each with its cells row by row: (b · windows, window², m)."""
    b, rows, columns, width = x.shape
    cut = x.reshape(b, rows // window, window, columns // window, window, width)
    return cut.transpose(2, 3).reshape(-1, window * window, width)


def join_windows(x: Shaped[Tensor, "w t m"], window: int, rows: int, columns: int) -> Shaped[Tensor, "b y x m"]:
    """The way back from `cut_windows`.

    >>> x = torch.randn(2, 6, 9, 4)
    >>> join_windows(cut_windows(x, 3), 3, 6, 9).equal(x)
    True
    """
    joined = x.reshape(-1, rows // window, columns // window, window, window, x.shape[-1]).transpose(2, 3)
    return joined.reshape(-1, rows, columns, x.shape[-1])


def fit_window(window: int, shift: int, rows: int, columns: int) -> tuple[int, int]:
    """The window and the shift for so many cells: where they are no more than a window, one window that is not shifted.

    >>> fit_window(7, 3, 14, 21), fit_window(7, 3, 5, 21)
    ((7, 3), (5, 0))
    """
    least = min(rows, columns)
    return (least, 0) if least <= window else (window, shift)


def number_cells(rows: int, columns: int, window: int, shift: int) -> Int[Tensor, "w t"]:
    """The cell of the picture, row · columns + column, that each token of each window is; `EMPTY` where it is none.

    >>> number_cells(2, 4, 2, 0).tolist(), number_cells(2, 3, 2, 0)[1].tolist()
    ([[0, 1, 4, 5], [2, 3, 6, 7]], [2, -1, 5, -1])
    """
    cells = torch.arange(rows * columns, device="cpu").view(rows, columns)
    cells = F.pad(cells, (0, -columns % window, 0, -rows % window), value=EMPTY).roll((-shift, -shift), (0, 1))
    return cut_windows(cells[None, ..., None], window)[..., 0]


def window_mask(
    rows: int, columns: int, window: int, shift: int, *, sees_padding: bool = False
) -> Bool[Tensor, "w q k"] | None:
    """Who sees whom in each window: cells that were side by side before the shift; None where everybody does.

    A shift is cyclic, so that windows at the lower and right edge hold cells of opposite sides, which do not see each
    other (Liu et al. 2021, figure 4). Nobody sees the cells that fill up the last windows, unless `sees_padding`, and
    they see everybody who is left.

    >>> window_mask(4, 4, 2, 0) is None
    True
    >>> window_mask(4, 4, 2, 1)[1].int().tolist()
    [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    """
    padded = rows % window or columns % window
    if not shift and (sees_padding or not padded):
        return None
    height, width = rows + -rows % window, columns + -columns % window
    down, right = (
        (torch.arange(size, device="cpu") >= size - window).long() + (torch.arange(size, device="cpu") >= size - shift)
        for size in (height, width)
    )
    regions = cut_windows((down[:, None] * 3 + right)[None, ..., None], window)[..., 0]  # w t
    allowed = regions[:, :, None] == regions[:, None] if shift else regions.new_ones(1, 1, 1).bool()
    if padded and not sees_padding:
        there = number_cells(rows, columns, window, shift) != EMPTY
        allowed = allowed & (there[:, None] | ~there[:, :, None])
    return allowed.expand(len(regions), window**2, window**2)


@lru_cache(maxsize=16)
def keep_mask(
    rows: int, columns: int, window: int, shift: int, sees_padding: bool, pictures: int, device: torch.device
) -> Bool[Tensor, "w 1 q k"] | None:
    """The mask of so many pictures, drawn once: layers of one stage, and their calls, share it."""
    with torch.inference_mode(False):
        allowed = window_mask(rows, columns, window, shift, sees_padding=sees_padding)
        return None if allowed is None else allowed.to(device).repeat(pictures, 1, 1)[:, None]


class WindowAttention(nn.Module):
    r"""Self-attention within square windows of a grid, under a bias of distances (Liu et al. 2021, §3.2).

    $\mathrm{softmax}(q k^\top / \sqrt d + B)\, v$ with B a `WindowBias`, in windows of `window` × `window` cells. With
    a `shift` the windows begin so many cells further down and right, and what hangs over comes back on the other side,
    where a mask keeps it apart. Grids that do not split evenly are filled up with cells of 0, whom nobody sees unless
    `sees_padding` (as in `transformers`); in a grid no larger than a window there is one, without a shift. Masks and
    the places of the table are computed once per size. `dropout` falls on the weights, in training only.

    In a map a window is an entry of the batch, picture by picture and row by row; `number_cells` says which cell of the
    picture each of its tokens is.

    >>> attention = WindowAttention(12, heads=3, window=4, shift=2)
    >>> attention(torch.ones(2, 8, 12, 12)).shape
    torch.Size([2, 8, 12, 12])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        window: int,
        *,
        shift: int = 0,
        bias: bool = True,
        dropout: float = 0.0,
        sees_padding: bool = False,
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ShapeError(f"width {width} does not split into {heads} equal heads; choose heads that divide {width}")
        if not 0 <= shift < window:
            raise ShapeError(f"windows of {window} cells came with a shift of {shift}; give 0 to {window - 1}")
        self.width, self.heads, self.window, self.shift = width, heads, window, shift
        self.dropout, self.sees_padding = dropout, sees_padding
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=bias) for _ in range(3))
        self.to_out = nn.Linear(width, width)
        self.positions = WindowBias(heads, window)

    def forward(self, x: Float[Tensor, "b y x m"]) -> Float[Tensor, "b y x m"]:
        """What each cell gathered in its window."""
        _, rows, columns, width = x.shape
        if width != self.width:
            raise ShapeError(f"cells of {width} channels came, but this layer wants {self.width}")
        window, shift = fit_window(self.window, self.shift, rows, columns)
        below, right = -rows % window, -columns % window
        if below or right:
            x = F.pad(x, (0, 0, 0, right, 0, below))
        if shift:
            x = x.roll((-shift, -shift), (1, 2))
        tokens = cut_windows(x, window)  # b·w t m
        q, k, v = (split_heads(to(tokens), self.heads) for to in (self.to_q, self.to_k, self.to_v))
        attended = attend(
            q, k, v,
            bias=self.positions(window)[None],
            mask=self._mask(x, rows, columns, window, shift),
            dropout=self.dropout if self.training else 0.0,
        )  # fmt: skip
        joined = join_windows(self.to_out(merge_heads(attended.mix)), window, rows + below, columns + right)
        if shift:
            joined = joined.roll((shift, shift), (1, 2))
        return joined[:, :rows, :columns] if below or right else joined

    def _mask(self, x: Tensor, rows: int, columns: int, window: int, shift: int) -> Bool[Tensor, "w 1 q k"] | None:
        make = keep_mask if plain(x) else keep_mask.__wrapped__
        return make(rows, columns, window, shift, self.sees_padding, len(x), x.device)

    def extra_repr(self) -> str:
        return f"{self.width}, heads={self.heads}, window={self.window}, shift={self.shift}"
