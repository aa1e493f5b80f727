"""Weight where nobody may look: a row that sees nothing is even in some models, and whoever stored weights says where.

The mean of a cell is over what may be looked at. What goes astray stays out of it, and is all there is of a cell in
which nothing may be looked at.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.map.source import Source
from regard.views.explorer.answer.fold import fringe
from regard.views.explorer.answer.head_rows import HeadRows
from regard.views.explorer.answer.pieces import allowed_at


def may_stray(head: HeadRows, rows: slice | Tensor, columns: slice) -> bool:
    """Whether weight may lie where it may not be looked at; a plain softmax puts none there."""
    return not head.soft and bool(fringe(head.source, rows, columns))


def split_hidden(source: Source, rows: slice | Tensor, columns: slice, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The weights that may be looked at, and those that may not; 0 in the place of the others."""
    allowed = allowed_at(source, rows, columns).to(weights.device)
    return weights.masked_fill(~allowed, 0), weights.masked_fill(allowed, 0)


def mean_allowed(
    total: Float[Tensor, "r c"],
    open_: Int[Tensor, "r c"],
    stray: Float[Tensor, "r c"] | None,
    all_: Int[Tensor, "_r c"],
) -> Float[Tensor, "r c"]:
    """The mean of each cell over what may be looked at, over all of it where that is nothing.

    >>> counts, cells = torch.tensor([[2, 0]]), torch.tensor([[4, 4]])
    >>> mean_allowed(torch.tensor([[3.0, 0.0]]), counts, torch.tensor([[9.0, 1.0]]), cells)
    tensor([[1.5000, 0.2500]])
    """
    means = total / open_.clamp_min(1)
    return means if stray is None else torch.where(open_ == 0, stray / all_, means)
