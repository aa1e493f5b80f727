"""A few fixed examples of a run, with what the model attended to while it wrote them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from regard.data.special import BEGIN, END, SPECIAL
from regard.files import put
from regard.models.kinds import kind_of
from regard.tasks.writing import writing_ids
from regard.tokens import TextTokenizer, Tokens
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

EXAMPLES = "examples.json"


class ReadAndWritten(NamedTuple):
    """One text that was read, END at its end, and what was written for it."""

    source: Sequence[int]
    source_names: Sequence[str]
    written: Sequence[int]
    written_names: Sequence[str]


def label_ids(
    source: TextTokenizer, target: TextTokenizer, read: Sequence[int], written: Sequence[int]
) -> ReadAndWritten:
    """Ids that were read and written, with the names of their tokens."""
    return ReadAndWritten(read, source.names(read), written, target.names(written))


class ShownExample(NamedTuple):
    """One example as a run shows it: the tokens that were read and written, and the trace where there is one."""

    source: Sequence[str]
    written: Sequence[str]
    trace: Trace | None


def save_examples(folder: Path, shown: Iterable[ShownExample]) -> None:
    """Write `examples.json` with what was read and written, and one trace for each: `0.trace`, `1.trace`, …"""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(shown):
        row: dict[str, Any] = {"source": list(one.source), "written": list(one.written)}
        if one.trace is not None:
            row["trace"] = f"{number}.trace"
            one.trace.save(folder / row["trace"])
        rows.append(row)
    put(folder / EXAMPLES, (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode())


def show(model: nn.Module, shown: Sequence[ReadAndWritten], folder: Path) -> None:
    """Write what was read and written, and what the model attended to where it looks at its source."""
    across = looks_across(model)
    save_examples(
        folder,
        (
            ShownExample(one.source_names, one.written_names, trace_example(model, one) if across else None)
            for one in shown
        ),
    )


def looks_across(model: Any) -> bool:
    """Whether a model looks at its source while it writes; the fixed-context baseline does not."""
    kind = kind_of(model)
    return kind is None or not kind.cross or kind.looks_across(model)


@torch.no_grad()
def trace_example(model: nn.Module, one: ReadAndWritten) -> Trace:
    """The trace of a model that reads a source and writes what it wrote, in one pass, with its tokens named."""
    device = next(model.parameters()).device
    with watch(model) as trace:
        fed = [writing_ids(model).begin, *one.written]
        model(torch.tensor([list(one.source)], device=device), torch.tensor([fed], device=device))
    name_tokens(trace, one)
    return trace


def name_tokens(trace: Trace, one: ReadAndWritten) -> None:
    """Name the tokens of a pass over a source and what was written for it.

    A row of the cross-attention is named after the token that it wrote, one of the decoder's self-attention after
    the token that it was fed.
    """
    read, fed = tokens_of(one.source_names), tokens_of([SPECIAL[BEGIN], *one.written_names])
    wrote = tokens_of([*one.written_names, SPECIAL[END]])
    for layer in trace.layers:
        if layer.kind == "self":
            own = read if layer.name.startswith("encoder") else fed
            layer.queries, layer.keys = (own,), (own,)
        else:
            layer.queries, layer.keys = (wrote,), (read,)


def tokens_of(names: Sequence[str]) -> Tokens:
    return Tokens(tuple(names), special=tuple(name in SPECIAL for name in names))
