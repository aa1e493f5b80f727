"""What each head of a layer does, in numbers: how wide it looks, how far, and at what."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.map.blocks import BUDGET
from regard.errors import TraceError
from regard.trace.measure.tally import SPECIAL, Tally, entry_of, tally
from regard.trace.record.layer import Layer

NAMES = ("entropy", "distance", "sink", "itself", "previous", "next", "duplicate", "induction")
BESIDE = ("rows", "blind")


@dataclass
class Measures:
    """The measures of every head of one layer, (b, h) each: means over the rows that count.

    `special` has one share per special token of the text. `rows` counts the rows that see anything and are no
    padding, `blind` those that see nothing. NaN stands where a measure has no meaning; `notes` says why.
    """

    name: str
    kind: str
    entropy: Float[Tensor, "b h"]  # in nats
    distance: Float[Tensor, "b h"]  # mean |i − j|, ends aligned
    sink: Float[Tensor, "b h"]  # share to the first token
    itself: Float[Tensor, "b h"]
    previous: Float[Tensor, "b h"]  # of the rows that may see the token before them; likewise the next three
    next: Float[Tensor, "b h"]
    duplicate: Float[Tensor, "b h"]  # share to the same token elsewhere
    induction: Float[Tensor, "b h"]  # share to the tokens that came after the same token earlier
    rows: Float[Tensor, "b h"]
    blind: Float[Tensor, "b h"]
    special: dict[str, Float[Tensor, "b h"]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    tally: Tally | None = field(default=None, repr=False)

    def records(self) -> list[dict[str, object]]:
        """One plain record per batch entry and head; None where a measure has no meaning."""
        b, h = self.entropy.shape
        columns = {name: getattr(self, name) for name in NAMES} | self.special
        return [
            {"layer": self.name, "kind": self.kind, "batch": i, "head": j}
            | {name: to_number(values[i, j]) for name, values in columns.items()}
            | {name: int(getattr(self, name)[i, j]) for name in BESIDE}
            for i in range(b)
            for j in range(h)
        ]


def measure(layer: Layer, *, rows: Tensor | None = None) -> Measures:
    """Everything that is measured of a layer, by one walk over its maps, block by block.

    - entropy: −Σ w log w in nats; distance: Σ w |i − j|; sink: the share to the first token (arXiv 2309.17453);
      itself: to the query's own position; "to X": to the special token X (1906.04341). Means over the rows that count.
    - previous, next: the share to the neighbour; duplicate: to keys with the query's token, itself left out;
      induction: to keys j whose previous token is the query's, id[j − 1] = id[i] with j − 1 < i (2209.11895). Means
      over the rows that may see such a key, so that a perfect head scores 1; NaN where there is none.

    Where a map has fewer rows than columns (a cache), the last row stands at the last column. Distance and neighbours
    have a meaning only where rows and columns are one sequence (kind "self"); duplicate and induction also need token
    ids. Rows that see nothing and rows of padding do not count: padding is what no query may see. `rows` (b, q), True
    for a row that counts, replaces that rule. Batch entries are measured apart.

    >>> import regard, torch
    >>> from regard.trace.record.layer import Layer
    >>> x = torch.eye(4)[None, None] * 100  # every token sees only itself
    >>> found = measure(Layer("attention", "self", regard.attend(x, x, x, mask=regard.causal()).weights))
    >>> found.itself, found.distance, found.rows
    (tensor([[1.]], dtype=torch.float64), tensor([[0.]], dtype=torch.float64), tensor([[4.]], dtype=torch.float64))
    >>> found.notes["induction"]
    'the token ids of attention are not known'
    """
    found = tally(layer, rows=rows)
    special = {name: found.mean(name) for name in found.sums if name.startswith(SPECIAL)}
    return Measures(
        name=layer.name,
        kind=layer.kind,
        entropy=found.mean("entropy"),
        distance=found.mean("distance"),
        sink=found.mean("sink"),
        itself=found.mean("itself"),
        previous=found.mean("previous"),
        next=found.mean("next"),
        duplicate=found.mean("duplicate"),
        induction=found.mean("induction"),
        rows=found.rows["rows"],
        blind=found.rows["blind"],
        special=special,
        notes={measure: unknown.sentence(layer.name) for measure, unknown in found.missing.items()},
        tally=found,
    )


def measures(layers: Sequence[Layer]) -> list[Measures]:
    """The measures of every layer.

    >>> measures([])
    []
    """
    return [measure(layer) for layer in layers]


@torch.no_grad()
def similarity(layer: Layer, *, rows: Tensor | None = None) -> Float[Tensor, "b h h"]:
    r"""How alike the maps of every two heads are, (b, h, h): 1 the same, 0 never the same key.

    The mean over rows of $\sum_j \sqrt{w_{ij} w'_{ij}}$ (Bhattacharyya), which is the cosine of the rows' square
    roots: two shares are compared as distributions, as by the Jensen–Shannon distance, but by one matrix product.
    Over the same rows as `measure`. Where a head gives a share to no key (a learned sink), its rows are first brought
    to add to one; a row counts for two heads where both see anything.

    >>> import regard, torch
    >>> from regard.trace.record.layer import Layer
    >>> q, k = torch.tensor([100.0, -100.0]).view(1, 2, 1, 1), torch.tensor([1.0, -1.0]).view(1, 1, 2, 1)
    >>> similarity(Layer("attention", "cross", regard.attend(q, k.expand(1, 2, 2, 1), k.expand(1, 2, 2, 1)).weights))
    tensor([[[1., 0.],
             [0., 1.]]], dtype=torch.float64)
    """
    b, h, q, k = layer.weights.shape
    if rows is not None and tuple(rows.shape) != (b, q):
        raise TraceError(f"rows has shape {tuple(rows.shape)}, but {layer.name} needs {(b, q)}")
    out = torch.zeros(b, h, h, dtype=torch.float64)
    height = max(1, BUDGET // max(1, h * k))
    for index in range(b):
        entry = entry_of(layer, index, rows, None)
        counted = torch.zeros(h, h, dtype=torch.float64)
        for first in range(0, q, height):
            some = slice(first, min(q, first + height))
            weights = entry.source.weights(some, slice(*entry.source.span(some.start, some.stop)))
            weights = weights.expand(h, *weights.shape[-2:])
            total = weights.sum(-1, keepdim=True)
            sees = ((total > 0).squeeze(-1) & entry.counted[some]).double().T  # r h
            roots = (weights / total.masked_fill(total == 0, 1.0)).sqrt_().transpose(0, 1)  # r h c
            alike = (roots @ roots.mT).double()  # r h h
            both = sees[:, :, None] * sees[:, None, :]
            out[index] += (alike * both).sum(0).cpu()
            counted += both.sum(0).cpu()
        out[index] /= counted.masked_fill(counted == 0, torch.nan)
    return out


def to_number(value: Tensor | float) -> float | None:
    """A number that JSON and tables know; None for NaN."""
    number = float(value)
    return None if number != number else number
