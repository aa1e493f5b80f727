"""A map whose rows and columns are groups of another map's: computed when somebody looks, from the map behind it."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.axes.sizes import Sizes
from regard.attention.map.blocks import BUDGET
from regard.attention.map.map import AttentionMap
from regard.attention.map.source import Source, WeightsSource
from regard.attention.mask.lead import whole
from regard.errors import TraceError

Groups = Sequence[Sequence[int]]


def group(map: AttentionMap, rows: Groups, columns: Groups, kind: str) -> AttentionMap:  # noqa: A002
    """One row for each group of rows, averaged; one column for each group of columns, added.

    What is in no group is left out, so the rows of a part of a map need not add up to 1. A cell is hidden where all
    of it is hidden. `kind` says what was done: the kind of the map is "merged from computed", for example.

    >>> import torch
    >>> whole = AttentionMap.stored(torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]))
    >>> group(whole, [[0, 1]], [[0], [1, 2]], "merged").dense()
    tensor([[0.2500, 0.7500]])
    """
    source = map.source
    q, k = source.shape[-2:]
    return AttentionMap(GroupedSource(source, Members.of(rows, q, "row"), Members.of(columns, k, "column"), kind))


class Members:
    """Which places stand in which group, as tensors, so that no group is walked one by one."""

    def __init__(self, order: Int[Tensor, " n"], counts: Int[Tensor, " g"]) -> None:
        self.order, self.counts = order, counts  # the places, group by group; how many each group has
        self.starts = counts.cumsum(0) - counts

    @staticmethod
    def of(groups: Groups, size: int, what: str) -> "Members":
        order = [place for group in groups for place in group]
        wrong = next((place for place in order if not 0 <= place < size), None)
        if wrong is not None:
            raise TraceError(f"there is no {what} {wrong}: the map has {size}, counted from 0")
        if not all(len(group) for group in groups):
            raise TraceError(f"a group of {what}s is empty; leave it out")
        counts = torch.tensor([len(group) for group in groups], dtype=torch.long)
        return Members(torch.tensor(order, dtype=torch.long), counts)

    def __len__(self) -> int:
        return len(self.counts)

    def among(self, groups: Int[Tensor, " some"]) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"]]:
        """The places that stand in these groups, and for each the position of its group in `groups`."""
        counts = self.counts[groups]
        position = torch.repeat_interleave(torch.arange(len(groups)), counts)
        within = torch.arange(len(position)) - (counts.cumsum(0) - counts)[position]
        return self.order[self.starts[groups][position] + within], position


class GroupedSource(WeightsSource):
    """Rows averaged and columns added, from a source that stays as lazy as it was."""

    def __init__(self, source: Source, rows: Members, columns: Members, kind: str) -> None:
        self.source, self.rows, self.columns, self.done = source, rows, columns, kind
        self.sizes = Sizes(tuple(source.shape[:-2]), len(rows), len(columns))
        self.device, self.dtype, self.precision = source.device, source.dtype, source.precision
        self.lead = whole(self.sizes, source.device)
        self.kind = f"{kind} {source.kind}"

    def pick(self, chosen: tuple[Index, ...]) -> "GroupedSource":
        return GroupedSource(self.source.pick(chosen), self.rows, self.columns, self.done)

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        groups = places(rows, len(self.rows), "cpu")
        shape = (*self.shape[:-2], len(groups), len(self.columns))
        found = torch.zeros(shape, dtype=self.dtype, device=self.device)
        for some, position in self.walk(groups):
            seen = self.source.weights(some).to(self.dtype)
            seen = seen.expand(*self.shape[:-2], *seen.shape[-2:])
            found.index_add_(-2, position, self.add_columns(seen))
        found = found / self.rows.counts[groups].to(found)[:, None]
        return take(found, -1, columns)

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        groups = places(rows, len(self.rows), "cpu")
        found: Tensor | None = None
        for some, position in self.walk(groups):
            seen = self.source.allowed(some)
            if seen is None:
                return None
            seen = seen.expand(*seen.shape[:-2], len(some), self.source.shape[-1]).to(self.dtype)
            if found is None:
                found = seen.new_zeros(*seen.shape[:-2], len(groups), len(self.columns))
            found.index_add_(-2, position, self.add_columns(seen))
        return None if found is None else take(found > 0, -1, columns)

    def add_columns(self, values: Float[Tensor, "*b r k"]) -> Float[Tensor, "*b r c"]:
        """The columns of each group, added up."""
        of, position = (t.to(values.device) for t in self.columns.among(torch.arange(len(self.columns))))
        empty = values.new_zeros(*values.shape[:-1], len(self.columns))
        return empty.index_add_(-1, position, values.index_select(-1, of))

    def walk(self, groups: Int[Tensor, " some"]) -> list[tuple[Tensor, Tensor]]:
        """The rows behind these groups, few enough at once to hold little more than the block that was asked for."""
        of, position = self.rows.among(groups)
        cells = max(1, self.source.shape[-1])
        for size in self.source.shape[:-2]:
            cells *= max(1, size)
        height = max(1, BUDGET // cells)
        some = of.to(self.device).split(height)
        return list(zip(some, position.to(self.device).split(height), strict=True))
