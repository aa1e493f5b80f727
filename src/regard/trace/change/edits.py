"""The edits: what each does to rows of weights, or to what a head gives.

Rows are edited as logarithms, so that what is left after a block is exact however little it was. A row may have one
more column, its sink, which takes part in every sum and gives nothing.
"""

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.attention.map import AttentionMap
from regard.errors import WatchError
from regard.trace.change.aim import LayerName, Named, format_positions

HOW = ("zero", "mean", "resample")


@dataclass(eq=False)
class Edit:
    """Something to change, and where: None is every layer, every head."""

    said: str  # as it was asked for
    at: tuple[LayerName, ...] | None
    heads: Named


@dataclass(eq=False)
class EditRows:
    """Some rows of weights while they are edited."""

    b: Tensor  # which batch entry and which head each row is of; they broadcast to the leading axes
    h: Tensor
    q: Tensor  # r: which rows of the call
    width: int  # how many keys there are
    column: int = 0  # where the call's first key stands
    logs: Tensor = field(default_factory=lambda: torch.empty(0))  # … r k, and one more column where there is a sink
    sink: bool = False
    whole: bool = False  # whether every row that sees anything is known to add to one, its sink included

    def total(self) -> Tensor:
        """log of the sum of each row."""
        return self.logs.new_zeros(()) if self.whole else total(self.logs)

    def weights(self) -> Tensor:
        """The weights, without the sink."""
        return (self.logs[..., :-1] if self.sink else self.logs).exp()


@dataclass(eq=False)
class MapEdit(Edit):
    """An edit of weights at some queries and keys."""

    queries: Named = None
    keys: Named = None

    def on(self, rows: EditRows, cells: Tensor) -> Tensor:
        """The logarithms of all these rows, if every one of them is meant; `cells` says which columns are."""
        raise NotImplementedError


class Block(MapEdit):
    """As if the mask hid these cells: −inf before softmax, so that the rest of the row grows.

    A row that then sees nothing gives nothing.
    """

    def on(self, rows: EditRows, cells: Tensor) -> Tensor:
        return spread(rows.logs.masked_fill(cells, -torch.inf), rows.total())


class Zero(MapEdit):
    """These weights are 0 after softmax; the rest of the row stays as it is."""

    def on(self, rows: EditRows, cells: Tensor) -> Tensor:
        return rows.logs.masked_fill(cells, -torch.inf)


@dataclass(eq=False)
class Force(MapEdit):
    """These keys together get this weight, in equal shares, whether or not the mask hid them.

    The rest of the row keeps its proportions and gets what is left; where there is no rest, that is lost.
    """

    weight: float = 1.0

    def on(self, rows: EditRows, cells: Tensor) -> Tensor:
        rest = spread(rows.logs.masked_fill(cells, -torch.inf), rows.total() + log(1.0 - self.weight))
        return rest.masked_fill(cells, log(self.weight) - log(float(cells.sum())))


@dataclass(eq=False)
class Replace(MapEdit):
    """Other weights in place of the head's own: even over the keys that it may see, or those of a map."""

    by: AttentionMap | None = None  # (b|1, h|1, q, k); None is uniform

    def on(self, rows: EditRows, cells: Tensor) -> Tensor:
        if self.by is None:
            seen = torch.zeros_like(rows.logs).masked_fill(rows.logs == -torch.inf, -torch.inf)
            if rows.sink:
                seen[..., -1] = -torch.inf
            return spread(seen, torch.zeros_like(seen[..., :1]))
        device = self.by.device
        b, h = (rows.b % self.by.shape[0]).to(device), (rows.h % self.by.shape[1]).to(device)
        heads = h.unique()
        given = self.by[:, heads][..., rows.q.to(device), :]  # b h r k, of the heads that are needed
        logs = safe_log(given[b, torch.searchsorted(heads, h)]).to(rows.logs)
        extra = rows.logs.shape[-1] - logs.shape[-1] - rows.column
        return torch.nn.functional.pad(logs, (rows.column, extra), value=-torch.inf)


def total(logs: Tensor) -> Tensor:
    """log of the sum of each row; −inf where there is nothing."""
    blind = (logs == -torch.inf).all(-1, keepdim=True)
    return logs.masked_fill(blind, 0.0).logsumexp(-1, keepdim=True).masked_fill(blind, -torch.inf)


def spread(logs: Tensor, to: Tensor) -> Tensor:
    """The same proportions with another sum, `to` as a logarithm; a row without anything stays so."""
    blind = (logs == -torch.inf).all(-1, keepdim=True)
    share = logs.masked_fill(blind, 0.0).log_softmax(-1)
    return (share + to).masked_fill(logs == -torch.inf, -torch.inf)


def log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def safe_log(weights: Tensor) -> Tensor:
    """log, −inf at 0 without a gradient there: that of log would be infinite."""
    none = weights <= 0
    return weights.masked_fill(none, 1.0).log().masked_fill(none, -torch.inf)


@dataclass(frozen=True, eq=False)
class PlacedEdit:
    """An edit, and where it falls in one call: numbers of heads, rows and columns."""

    edit: Edit
    layer: str
    heads: Tensor
    queries: Tensor
    keys: Tensor

    @property
    def changes(self) -> bool:
        """Whether anything of this call is meant."""
        some = bool(len(self.heads) and len(self.queries))
        return some and (isinstance(self.edit, MixEdit) or bool(len(self.keys)))

    def concerns(self, rows: EditRows) -> Tensor:
        """(…, r): whether the edit is for these rows."""
        heads, queries = self.heads.to(rows.h.device), self.queries.to(rows.q.device)
        return torch.isin(rows.h, heads)[..., None] & torch.isin(rows.q, queries)

    def columns(self, count: int, first: int = 0) -> Tensor:
        """(k,): whether the edit is for these columns; the call's first key stands at `first`."""
        found = torch.zeros(count, dtype=torch.bool)
        found[self.keys + first] = True
        return found


@runtime_checkable
class HeadReference(Protocol):
    """Where a head's output on something else comes from."""

    def mean(self, layer: str) -> Tensor:
        """(h, e): the mean over all that was seen."""
        ...

    def mix(self, layer: str) -> Tensor:
        """(b, h, q, e)."""
        ...


@dataclass(eq=False)
class MixEdit(Edit):
    """An edit of what a head gives, after its weights met the values."""

    def on(self, mix: Tensor, layer: str) -> Tensor:
        """(b, h, q, e) for every head, as if each was meant; broadcasts to the mix."""
        raise NotImplementedError


@dataclass(eq=False)
class Scale(MixEdit):
    """A head's output, times a number."""

    factor: float = 1.0

    def on(self, mix: Tensor, layer: str) -> Tensor:
        return mix * self.factor


@dataclass(eq=False)
class Mute(MixEdit):
    """Nothing, the usual, or something else in place of a head's output."""

    how: str = "zero"
    reference: HeadReference | None = None

    def on(self, mix: Tensor, layer: str) -> Tensor:
        if self.how == "zero":
            return mix.new_zeros(())
        if self.how == "mean":
            return self.mean(mix, layer)
        return self.other(mix, layer)

    def mean(self, mix: Tensor, layer: str) -> Tensor:
        if self.reference is not None:
            usual = self.reference.mean(layer)
            must_fit(usual, tuple(mix.shape[i] for i in (1, 3)), self.said, layer)
            return usual[:, None]
        if mix.shape[2] == 1:
            raise WatchError(
                f"{self.said} takes the mean over the positions of a call, but {layer} was called for one position; "
                "give reference=, inputs or a trace to take the mean over"
            )
        return mix.mean(2, keepdim=True, dtype=torch.promote_types(mix.dtype, torch.float32))

    def other(self, mix: Tensor, layer: str) -> Tensor:
        if self.reference is not None:
            other = self.reference.mix(layer)
            must_fit(other, (mix.shape[0], *mix.shape[1:]), self.said, layer)
            return other
        if mix.shape[0] == 1:
            raise WatchError(
                f"{self.said} takes a head's output from another entry of the batch, but {layer} was called with one "
                "entry; run several inputs together, or give reference=, other inputs or a trace"
            )
        return mix.roll(1, 0)


def must_fit(found: Tensor, want: tuple[int, ...], said: str, layer: str) -> None:
    """Raise where a reference has other sizes than the call."""
    if len(found.shape) == 4 and found.shape[0] == 1:
        want = (1, *want[1:])
    if tuple(found.shape) != want:
        names = "(b, h, q, e)" if len(want) == 4 else "(h, e)"
        raise WatchError(
            f"the reference of {said} has {names} = {tuple(found.shape)} at {layer}, but the call has {want}; "
            "give a reference of the same sizes"
        )


def describe_edit(verb: str, path: object, heads: Named, **more: object) -> str:
    """An edit as somebody would write it."""
    parts = [] if path is None else [repr(path)]
    parts += [] if heads is None else [f"heads {format_positions(heads)}"]
    parts += [f"{name} {value}" for name, value in more.items() if value is not None]
    return f"{verb}({', '.join(parts)})"
