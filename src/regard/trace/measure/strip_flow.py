"""Products of a vector with a long softmax, strip by strip: the two steps that a rollout is made of.

Both take the weights of each row as shares of what the row gives to keys, so that a learned sink's share is given back.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.select import Where
from regard.attention.map.softmax_strips import QUERIES, HeadStrips, exp_, walk_rows, walk_strips
from regard.attention.map.source import Source


class SentRows(NamedTuple):
    """What a strip of rows gave to its keys, and what stayed with rows that see nothing."""

    rows: Where
    columns: slice
    given: Float[Tensor, " c"]
    kept: Float[Tensor, " r"]


def send_rows(
    source: Source, now: Float[Tensor, " q"], norms: Float[Tensor, "h k"] | None, *, few: bool = False
) -> Iterator[SentRows]:
    """A row vector times each map, (h, q, k), strip by strip: from its queries to its keys.

    Strips from which nothing flows are left out; with `few`, all such rows are.
    """

    def strips(head: HeadStrips) -> list[Where]:
        if few:
            return list(now.nonzero().squeeze(-1).split(QUERIES))
        return [rows for rows in head.strips() if bool(now[rows].any())]

    def work(head: HeadStrips, rows: Where) -> SentRows:
        columns, there = head.span(rows), now[rows]
        norm = None if norms is None else norms[head.index]
        tops, totals = [], []
        for block in head.blocks(rows, columns):
            tops.append(block.top)
            powers = exp_(block.shifted)
            totals.append(powers.sum(0) if norm is None else norm[block.keys] @ powers)
        sums = head.sums(tops, totals, len(there))
        blind = sums.seen == 0
        share = (there / sums.seen).masked_fill(blind, 0.0).to(source.dtype)
        # Computed again, which a core's own memory holds: powers kept until the sums were known would not fit there.
        again = head.blocks(rows, columns, known=sums.top.to(source.dtype))
        given = [exp_(block.shifted) @ share for block in again]
        whole = torch.cat(given).double() if given else there.new_zeros(0)
        return SentRows(rows, columns, whole if norm is None else whole * norm[columns], there * blind)

    for _, _, sent in walk_rows(source, work, strips):
        yield sent


def gather_columns(
    source: Source, now: Float[Tensor, " k"], norms: Float[Tensor, "h k"] | None
) -> Iterator[tuple[slice, Float[Tensor, " r"]]]:
    """Each map, (h, q, k), times a column vector: from its keys to its queries; a row that sees nothing keeps its own.

    Rows and columns are one sequence.
    """
    there = now.to(source.dtype)

    def work(head: HeadStrips, rows: slice) -> Float[Tensor, " r"]:
        norm = None if norms is None else norms[head.index]
        weighed = there if norm is None else there * norm
        tops, totals, taken = [], [], []
        for block in head.blocks(rows, head.span(rows)):
            powers = exp_(block.shifted)
            tops.append(block.top)
            totals.append(powers.sum(0) if norm is None else norm[block.keys] @ powers)
            taken.append(weighed[block.keys] @ powers)
        sums = head.sums(tops, totals, rows.stop - rows.start)
        blind = sums.seen == 0
        whole = (torch.stack(taken).double() * sums.scales).sum(0) if taken else sums.seen
        return (whole / sums.seen).masked_fill(blind, 0.0) + now[rows] * blind

    for _, rows, found in walk_strips(source, work):
        yield rows, found
