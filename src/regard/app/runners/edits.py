"""Edits as a browser names them → edits of a model."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from torch import nn

from regard.app.protocol.messages import EditSpec
from regard.app.protocol.refusal import Refusal
from regard.trace.change.edit import Editor, edit


@contextmanager
def apply_edits(
    model: nn.Module, layers: list[str], edits: list[EditSpec], *, stepwise: bool = False
) -> Iterator[None]:
    """The model under these edits; as it is where there are none."""
    with edit(model) if edits else nullcontext(None) as editor:
        for one in edits:
            apply_edit(editor, layers, one, stepwise=stepwise)
        yield


def apply_edit(editor: Editor | None, layers: list[str], one: EditSpec, *, stepwise: bool) -> None:
    """Ask the editor for one edit. A `stepwise` model calls its attention once for each query."""
    assert editor is not None
    path, heads = layer_name(layers, one.layer), one.heads
    if one.kind == "mute":
        editor.mute(path, heads)
    elif one.kind == "uniform":
        editor.replace(path, heads)
    elif one.kind == "scale":
        if one.factor is None:
            raise Refusal("an edit that scales needs a factor, and none came; give one", 422).with_code("edit.factor")
        editor.scale(path, heads, one.factor)
    elif stepwise and one.query is not None:
        editor.block(0, one.key, f"{path}#{one.query + 1}", heads)
    else:
        editor.block(one.query, one.key, path, heads)


def layer_name(layers: list[str], number: int) -> str:
    if number >= len(layers):
        raise Refusal(f"an edit names layer {number}, but there are {len(layers)}; count from 0", 422).with_code(
            "layer.none", layer=number, layers=len(layers)
        )
    return layers[number]


def is_positional(edits: list[EditSpec]) -> bool:
    """Whether an edit is meant for one position, which free writing may or may not come to."""
    return any(one.kind == "block" and one.query is not None for one in edits)


def describe_edits(edits: list[EditSpec], layers: list[str]) -> str:
    """The edits in a few words, for a name."""
    words = [describe_edit(one, layers) for one in edits[:3]]
    return ", ".join(words) + (f" and {len(edits) - 3} more" if len(edits) > 3 else "")


def describe_edit(one: EditSpec, layers: list[str]) -> str:
    where: Any = layer_name(layers, one.layer)
    heads = "" if one.heads is None else f" {'+'.join(map(str, one.heads[:6]))}{'…' if len(one.heads) > 6 else ''}"
    edge = "" if one.kind != "block" else f" {_place(one.query)}→{_place(one.key)}"
    factor = f" ×{one.factor:g}" if one.kind == "scale" and one.factor is not None else ""
    return f"{one.kind} {where}{heads}{edge}{factor}"


def _place(number: int | None) -> str:
    return "*" if number is None else str(number)
