"""A few fixed examples of a run, with what the model attended to while it wrote them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from regard.data.special import BEGIN, END, SPECIAL
from regard.files import put
from regard.models.kinds import kind_of
from regard.tokens import Tokens
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

EXAMPLES = "examples.json"


class ReadAndWritten(NamedTuple):
    """One text that was read, END at its end, and what was written for it."""

    source: Sequence[int]
    source_names: Sequence[str]
    written: Sequence[int]
    written_names: Sequence[str]


def show(model: nn.Module, shown: Sequence[ReadAndWritten], folder: Path) -> None:
    """`examples.json` with what was read and written, and one trace for each: `0.trace`, `1.trace`, …"""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(shown):
        row: dict[str, Any] = {"source": list(one.source_names), "written": list(one.written_names)}
        if looks_across(model):
            row["trace"] = f"{number}.trace"
            watched(model, one).save(folder / row["trace"])
        rows.append(row)
    put(folder / EXAMPLES, (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode())


def looks_across(model: Any) -> bool:
    """Whether a model looks at its source while it writes; the fixed-context baseline does not."""
    kind = kind_of(model)
    return kind is None or not kind.cross or kind.looks_across(model)


@torch.no_grad()
def watched(model: nn.Module, one: ReadAndWritten) -> Trace:
    """The trace of a model that reads a source and writes what it wrote, in one pass, with its tokens named.

    A row of the cross-attention is named after the token that it wrote, one of the decoder's self-attention after
    the token that it was fed.
    """
    device = next(model.parameters()).device
    with watch(model) as trace:
        model(torch.tensor([list(one.source)], device=device), torch.tensor([[BEGIN, *one.written]], device=device))
    read, fed = tokens_of(one.source_names), tokens_of([SPECIAL[BEGIN], *one.written_names])
    wrote = tokens_of([*one.written_names, SPECIAL[END]])
    for layer in trace.layers:
        if layer.kind == "self":
            own = read if layer.name.startswith("encoder") else fed
            layer.queries, layer.keys = (own,), (own,)
        else:
            layer.queries, layer.keys = (wrote,), (read,)
    return trace


def tokens_of(names: Sequence[str]) -> Tokens:
    return Tokens(tuple(names), special=tuple(name in SPECIAL for name in names))
