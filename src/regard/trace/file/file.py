"""A trace as one safetensors file: saved, written while a model runs, and loaded without being read."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.file.read import read_trace
from regard.trace.file.stream import Writer
from regard.trace.file.write import ManifestWriter
from regard.trace.record.trace import Trace

BUDGET = 1 << 30  # bytes of maps that can only be kept as weights


def save(
    trace: Trace, path: str | os.PathLike[str], *, layers: str | Sequence[str] | None = None, budget: int = BUDGET
) -> None:
    """Write the trace to one file that `load`, and anything that reads safetensors, can open.

    A computed map is written as q, k and what decides the rest; one that softmax over a product does not give
    (another score, another normaliser, an implied map) as its weights, `budget` bytes of them at most. `layers` are
    parts of paths, as in `trace[…]`: only layers with one of them are written. A file of that name is replaced when
    the new one is whole, never before.

    >>> import tempfile, pathlib, regard, torch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> x = torch.randn(1, 2, 5, 3)
    >>> from regard.trace.record.layer import Layer
    >>> from regard.trace.record.trace import Run
    >>> layer = Layer("block.0", "self", regard.attend(x, x, x, mask=regard.causal()).weights)
    >>> save(Trace([Run([layer])]), folder / "small.trace")
    >>> load(folder / "small.trace").layers
    [block.0 (self, b 1, h 2, q 5, k 5, computed)]
    """
    chosen = trace if layers is None else select_layers(trace, [layers] if isinstance(layers, str) else list(layers))
    writer = Writer(path, room=room_for(chosen))
    try:
        finish(chosen, writer, budget=budget)
    finally:
        writer.abort()


def finish(trace: Trace, writer: Writer, *, budget: int = BUDGET) -> Trace:
    """Write what the file does not hold yet, then the words about all of it, and give the file its name.

    What `writer.add` gave back is already there and is not written again. Gives the trace as it is read from the file.
    """
    written = ManifestWriter(writer, budget=budget)
    with torch.no_grad():
        manifest = written.trace(trace)
    words = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    read: list[Trace] = []
    writer.finish(
        {"regard": words}, written.names, check=lambda part: read.append(read_trace(part, known_as=writer.path))
    )
    return read[0]


def hand_over(trace: Trace, read: Trace) -> None:
    """Have the layers of a trace that was written while the model ran read from the file, now that it is whole.

    Until then their tensors are mapped to a file that only the writer knows by name; a file with a name may be cut off
    by anybody, which a mapping does not survive. The layers stay the same objects.
    """
    for run, same in zip(trace.runs, read.runs, strict=True):
        for layer, other in zip(run.layers, same.layers, strict=True):
            if layer.seen is not None and other.seen is not None:
                other.seen.facts, other.seen.used = layer.seen.facts, layer.seen.used
            layer.__class__ = type(other)
            vars(layer).clear()
            vars(layer).update(vars(other))


def load(path: str | os.PathLike[str]) -> Trace:
    """The trace of a file. Nothing is read but its header: numbers are read when a map computes them.

    All that the file says is checked first, and all numbers, by their digests, when they are read. What is damaged, cut
    off, of another version or no trace at all raises `TraceError` in one sentence; a file that was written over since
    it was opened raises `Stale`. Nothing in a file is ever executed.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cut.trace"
    >>> _ = path.write_bytes(bytes(100))
    >>> try:
    ...     load(path)
    ... except TraceError as error:
    ...     print(error)
    /...cut.trace was never finished: whoever wrote it stopped before the end; watch again
    """
    return read_trace(Path(path))


def select_layers(trace: Trace, parts: list[str]) -> Trace:
    """The trace with the layers whose path has one of these parts."""
    missing = [
        part for part in parts if not any(has_part(layer.name, part) for run in trace.runs for layer in run.layers)
    ]
    if missing:
        known = ", ".join(layer.name for layer in trace.layers[:8]) or "none"
        raise TraceError(f"no layer has {missing[0]!r} in its path; there are: {known}")
    runs = [
        replace(run, layers=[layer for layer in run.layers if any(has_part(layer.name, part) for part in parts)])
        for run in trace.runs
    ]
    return Trace(runs, notes=trace.notes, model=trace.model, fingerprint=trace.fingerprint)


def has_part(name: str, part: str) -> bool:
    return f".{part}." in f".{name}." or name.split("#")[0] == part


def room_for(trace: Trace) -> int:
    """Bytes that the header will hardly exceed; if it does, the arrays are moved once."""
    layers = [layer for run in trace.runs for layer in run.layers]
    tokens = {one for layer in layers for one in (*(layer.queries or ()), *(layer.keys or ()))}
    notes = sum(len(text) for layer in layers for text in (*layer.notes, *layer.doubts, *layer.edits))
    return 4096 + 4096 * len(layers) + 4 * notes + sum(map(length, tokens))


def length(tokens: Tokens) -> int:
    return 256 + 64 * len(tokens) + 4 * len(tokens.text or "")
