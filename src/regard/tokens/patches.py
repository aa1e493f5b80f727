"""The patches of an image as tokens, so that a map can lie over the picture."""

from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

from regard.errors import TraceError
from regard.tokens.text import Tokens


class PatchGrid(NamedTuple):
    """How an image lies in a sequence: tokens before it, then its patches row by row.

    >>> PatchGrid(prefix=1, rows=14, columns=14)
    PatchGrid(prefix=1, rows=14, columns=14)
    """

    prefix: int
    rows: int
    columns: int


def patches(rows: int, columns: int, *, prefix: int | Sequence[str] = 0) -> Tokens:
    """Tokens for an image of rows × columns patches, shown as `row,column` and counted from 0.

    `prefix` are the special tokens before it: their names, or how many there are (the first is then `[CLS]`).

    >>> tokens = patches(2, 3, prefix=1)
    >>> tokens.shown, tokens.grid
    (('[CLS]', '0,0', '0,1', '0,2', '1,0', '1,1', '1,2'), (2, 3))
    """
    if min(rows, columns) < 1:
        raise TraceError(f"an image came as {rows} × {columns} patches; give 1 or more of each")
    if isinstance(prefix, str):
        prefix = [prefix]
    if isinstance(prefix, int) and prefix < 0:
        raise TraceError(f"{prefix} tokens before the patches were asked for; give 0 or more, or their names")
    names = name_prefix(prefix) if isinstance(prefix, int) else tuple(prefix)
    cells = tuple(f"{row},{column}" for row in range(rows) for column in range(columns))
    special = (True,) * len(names) + (False,) * len(cells)
    return Tokens((*names, *cells), special=special, grid=(rows, columns))


def name_prefix(count: int) -> tuple[str, ...]:
    """The first one sums up the image; what the others are (distillation, registers) a count does not tell."""
    return ("[CLS]", *(f"[EXTRA {n}]" for n in range(1, count)))[:count]


def square(count: int, *, most: int = 5) -> PatchGrid | None:
    """The square image that `count` tokens hold after at most `most` others, or None where none fits exactly.

    Where several fit, as they may for the smallest images, it is the one with the fewest tokens before it.

    >>> square(197), square(201), square(190)
    (PatchGrid(prefix=1, rows=14, columns=14), PatchGrid(prefix=5, rows=14, columns=14), None)
    """
    if count < 1:
        return None
    side = isqrt(count)
    prefix = count - side * side
    return PatchGrid(prefix, side, side) if prefix <= most else None
