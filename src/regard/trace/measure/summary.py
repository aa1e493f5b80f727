"""All heads of a trace in one table, to be sorted and looked through."""

import torch
from torch import Tensor

from regard.errors import TraceError
from regard.trace.measure.measure import NAMES, to_number
from regard.trace.measure.table import Record, Table
from regard.trace.measure.tally import SPECIAL, Tally, Unknown, tally
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace


class Summary(Table):
    """One line per layer and head: what it does, in numbers. See `measure` for what the columns mean.

    `summary.sort("entropy", descending=True)` gives it in another order, `records()` as plain dicts, `to_pandas()`
    and `to_polars()` as a frame.

    >>> import regard, torch
    >>> from regard.trace.record.trace import Run, Trace
    >>> x = torch.eye(4)[None, None] * 100
    >>> layer = Layer("attention", "self", regard.attend(x, x, x, mask=regard.causal()).weights)
    >>> summarise(Trace([Run([layer])])).records()[0]["itself"]
    1.0
    """


def summarise(trace: Trace, batch: int | None = None) -> Summary:
    """The measures of every head of the last run, as a table.

    Over a batch they are added up row by row, so that long sequences count more; `batch` picks one entry instead.
    Columns that no layer can fill are left out, and a line below the table says why.

    >>> from regard.trace.record.trace import Trace
    >>> len(summarise(Trace()))
    0
    """
    rows: list[Record] = []
    unknown: dict[Unknown, list[str]] = {}
    for layer in trace.layers:
        found = tally(take_batch_entry(layer, batch))
        for one in dict.fromkeys(found.missing.values()):
            unknown.setdefault(one, []).append(layer.name)
        rows += lines(layer.name, layer.kind, found)
    named = [*NAMES, *sorted({name for row in rows for name in row if name.startswith(SPECIAL)}), "rows", "blind"]
    kept = [name for name in named if any(row.get(name) is not None for row in rows)]
    whole = [{name: row.get(name) for name in ("layer", "kind", "head", *kept)} for row in rows]
    which = "" if batch is None else f", batch entry {batch}"
    title = f"{trace.model or 'a trace'}{which}: means over rows, entropy in nats" if rows else "no layers were seen"
    return Summary(whole, title, [f"– {one.sentence(some(names))}" for one, names in unknown.items()])


def some(names: list[str]) -> str:
    """One name, or how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def take_batch_entry(layer: Layer, batch: int | None) -> Layer:
    """The layer with one batch entry, or as it is."""
    if batch is None:
        return layer
    if not -layer.batch <= batch < layer.batch:
        raise TraceError(f"{layer.name} saw a batch of {layer.batch}, but entry {batch} was asked for")
    index = batch % layer.batch
    return Layer(
        layer.name,
        layer.kind,
        layer.weights[index : index + 1],
        queries=None if layer.queries is None else layer.queries[index : index + 1],
        keys=None if layer.keys is None else layer.keys[index : index + 1],
    )


def lines(name: str, kind: str, found: Tally) -> list[Record]:
    """One record per head, the batch added up."""
    means = {key: total(found.sums[key]) / no_zero(total(found.rows[key])) for key in measured_names(found)}
    counts = {key: total(found.rows[key]) for key in ("rows", "blind")}
    return [
        {"layer": name, "kind": kind, "head": head}
        | {key: to_number(values[head]) for key, values in means.items()}
        | {key: int(values[head]) for key, values in counts.items()}
        for head in range(found.rows["rows"].shape[-1])
    ]


def measured_names(found: Tally) -> list[str]:
    return [name for name in found.sums if name in NAMES or name.startswith(SPECIAL)]


def total(values: Tensor) -> Tensor:
    """Over the batch."""
    return values.sum(0)


def no_zero(counts: Tensor) -> Tensor:
    return counts.masked_fill(counts == 0, torch.nan)
