"""One map of a whole text or picture, put together from maps of its windows: elsewhere nothing is looked at."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.axes.sizes import Sizes
from regard.attention.map.source import Source, WeightsSource
from regard.attention.mask.lead import whole

NOWHERE = -1  # a row or a column of a window that is no position of the whole, such as padding


class PlacedSource(WeightsSource):
    """Maps of windows, (b · w, h, q, k), on the positions of the whole, (b, h, n, n).

    `entries` (b, w) says where the windows of each entry stand in the batch of `source`; `rows` (w, q) and `columns`
    (w, k) say which positions their queries and keys are. A row that is in no window sees nothing. Keys that are no
    position share one more column, the last.

    >>> from regard.attention.map.stored import Stored
    >>> windows = Stored(torch.tensor([[[[0.25, 0.75], [1.0, 0.0]]], [[[0.5, 0.5], [0.1, 0.9]]]]))
    >>> place = torch.tensor([[0, 2], [1, 3]])
    >>> PlacedSource(windows, torch.tensor([[0, 1]]), place, place, 4).weights()[0, 0]
    tensor([[0.2500, 0.0000, 0.7500, 0.0000],
            [0.0000, 0.5000, 0.0000, 0.5000],
            [1.0000, 0.0000, 0.0000, 0.0000],
            [0.0000, 0.1000, 0.0000, 0.9000]])
    """

    def __init__(
        self,
        source: Source,
        entries: Int[Tensor, "b w"],
        rows: Int[Tensor, "w q"],
        columns: Int[Tensor, "w k"],
        size: int,
    ) -> None:
        self.source, self.entries, self.rows, self.columns = source, entries, rows, columns
        self.more = int(bool((columns == NOWHERE).any()))
        self.sizes = Sizes((len(entries), source.shape[1]), size, size + self.more)
        self.device, self.dtype, self.precision = source.device, source.dtype, source.precision
        self.lead = whole(self.sizes, source.device)
        self.kind = f"placed {source.kind}"
        self.batch, self.heads = torch.arange(len(entries)), torch.arange(source.shape[1])  # those that were picked
        self.window = torch.full((size,), NOWHERE)  # of each position of the whole, and its row there
        self.row = torch.zeros(size, dtype=torch.long)
        here = rows != NOWHERE
        self.window[rows[here]] = torch.arange(len(rows))[:, None].expand_as(rows)[here]
        self.row[rows[here]] = torch.arange(rows.shape[1]).expand_as(rows)[here]

    def pick(self, chosen: tuple[Index, ...]) -> "PlacedSource":
        found = PlacedSource(self.source, self.entries, self.rows, self.columns, self.sizes.q)
        found.batch, found.heads, found.lead = self.batch, self.heads, self.lead.pick(chosen)
        rest = list(chosen)
        if rest and found.batch.ndim:
            found.batch = found.batch[at_cpu(rest.pop(0))]
        if rest and found.heads.ndim:
            found.heads = found.heads[at_cpu(rest.pop(0))]
        return found

    def part(self, window: int) -> Source:
        """The maps of one window, of the entries and heads that were picked."""
        entries = self.entries[:, window][self.batch].to(self.device)
        heads = self.heads.to(self.device)
        of_entries = self.source.pick((entries if entries.ndim else int(entries),))
        own: Index = heads if heads.ndim else int(heads)
        return of_entries.pick((slice(None), own) if entries.ndim else (own,))

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        return take(self.fill(rows, self.dtype), -1, columns)

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."]:
        """Where each row might look: in its own window, as far as its mask says."""
        return take(self.fill(rows, torch.bool), -1, columns)

    def fill(self, rows: Where, dtype: torch.dtype) -> Tensor:
        """Whole rows of weights, or (for bool) of where they may look, each as its own window has it."""
        wanted = places(rows, self.sizes.q, "cpu")
        filled = torch.zeros((*self.shape[:-2], len(wanted), self.sizes.k), dtype=dtype, device=self.device)
        windows = self.window[wanted]
        for window in windows.unique().tolist():
            if window == NOWHERE:
                continue
            at = (windows == window).nonzero().flatten().to(self.device)
            some, part = self.row[wanted[at.cpu()]].to(self.device), self.part(window)
            to = self.columns[window]
            to = torch.where(to == NOWHERE, self.sizes.q, to).to(self.device)
            answer = part.allowed(some) if dtype == torch.bool else part.weights(some)
            if answer is None:
                filled[..., at[:, None], to] = True
                continue
            answer = answer.expand(*self.shape[:-2], len(some), len(to)).to(self.dtype)
            block = torch.zeros((*answer.shape[:-1], self.sizes.k), dtype=self.dtype, device=self.device).index_add_(
                -1, to, answer
            )
            filled[..., at, :] = block > 0 if dtype == torch.bool else block
        return filled

    def describe(self) -> str:
        return f"{self.source.describe()}, put together from windows"


def at_cpu(index: Index) -> Index:
    return index.cpu() if isinstance(index, Tensor) else index
