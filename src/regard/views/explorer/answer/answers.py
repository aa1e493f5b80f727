"""A trace that is asked: every question of a view, answered from q and k when it comes."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import torch

from regard.errors import TraceError
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import layer_answers, questions
from regard.views.explorer.answer.head_rows import Lines
from regard.views.explorer.answer.info import Named, layer_told, precision, sides
from regard.views.explorer.answer.lru_cache import ROOM, LruCache
from regard.views.explorer.answer.numbers import numbers
from regard.views.explorer.answer.pack import Answer, pack
from regard.views.explorer.answer.pyramid import Cells, pyramid
from regard.views.explorer.answer.rows import column, hidden, row, top
from regard.views.explorer.answer.tiles import thumbs, tile

serials = count()


class Answers:
    """One run of a trace, for whoever looks at it. `info()` is what there is, `ask(what, about)` a part of it.

    An answer is one safetensors blob: arrays by name, all else as JSON in its metadata under "told". Threads may ask
    at the same time; what one of them computes for a head serves the others, `room` bytes at most are kept.

    >>> import regard, torch
    >>> from safetensors.numpy import load
    >>> answers = Answers(regard.from_weights(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), ["The", "cat"]))
    >>> answers.info()["layers"][0]["shape"]
    [1, 1, 2, 2]
    >>> load(answers.ask("row", {"layer": 0, "batch": 0, "head": 0, "query": 1}))["weights"]
    array([0.25, 0.75], dtype=float32)
    """

    def __init__(
        self,
        trace: Trace,
        *,
        run: int = -1,
        identity: str = "",
        name: str = "",
        output: dict[str, Any] | None = None,
        picture: dict[str, Any] | None = None,
        room: int = ROOM,
    ) -> None:
        runs = trace.runs
        if not -len(runs) <= run < len(runs):
            raise TraceError(f"run {run} was asked for, but the trace has {len(runs)}; count from 0").coded(
                "run.none", run=run, runs=len(runs)
            )
        self.number, self.count = run % len(runs), len(runs)
        self.run: Run = runs[run]
        self.trace = Trace([self.run], model=trace.model)
        self.notes = [*self.run.notes, *trace.notes]
        self.identity, self.name, self.output, self.picture = identity, name, output, picture
        self.serial = next(serials)  # by which somebody may keep what was answered: no other has it, ever
        self.named = Named(self.run)
        self.shelf = LruCache(room)

    def info(self) -> dict[str, Any]:
        """The JSON of `TraceInfo`. To be written in ASCII, because half a surrogate pair is no UTF-8."""
        layers = self.run.layers
        return {
            "id": self.identity,
            "name": self.name,
            "model": self.trace.model,
            "run": self.number,
            "runs": self.count,
            "tokens": self.named.told(),
            "layers": [layer_told(layer, side, self.named) for layer, side in zip(layers, sides(layers))],
            "notes": self.notes,
            "precision": precision(layers),
            "error": None,
            "output": self.output,
            "picture": self.picture,
        }

    def ask(self, what: Any, about_: Any) -> bytes:
        """The answer to one question, packed; `RegardError` in one sentence where there is none."""
        at = questions.read(what, about_)
        with torch.no_grad():
            return pack(self.answer(what, at))

    def answer(self, what: str, at: questions.About) -> Answer:
        if isinstance(at, questions.Flow):
            return layer_answers.flow(self.trace, self.named, at)
        assert isinstance(at, questions.Layer)
        layer = self.layer(at)
        if what == "proof":
            return self.shelf.get(("proof", at.layer), partial(layer_answers.proof, layer))
        assert isinstance(at, questions.Entry)
        entry = (at.layer, at.batch)
        if what == "measures":
            return self.shelf.get(("measures", *entry), partial(layer_answers.measures, layer, at.batch))
        if isinstance(at, questions.Thumbs):
            heads = [self.lines(*entry, head) for head in range(layer.heads)]
            return thumbs(heads, at.size)
        assert isinstance(at, questions.Head)
        lines = self.lines(*entry, at.head)
        return self.of_head(at, layer, lines, partial(self.base, lines, (*entry, at.head)))

    def of_head(self, at: questions.Head, layer: Layer, lines: Lines, base: Callable[[], Cells]) -> Answer:
        match at:
            case questions.Tile():
                return tile(lines, base, at)
            case questions.Row():
                return row(lines, at.query)
            case questions.Column():
                return column(lines, base, at.key)
            case questions.Top():
                return top(lines, at.first, at.queries, at.count)
            case questions.Numbers():
                return numbers(lines, layer, at)
        return self.shelf.get(("hidden", at.layer, at.batch, at.head), partial(hidden, lines))

    def layer(self, at: questions.Layer) -> Layer:
        """The layer that is meant, after a check that it has that batch entry and head."""
        layers = self.run.layers
        if at.layer >= len(layers):
            raise TraceError(f"layer {at.layer} was asked for, but the run has {len(layers)}; count from 0").coded(
                "layer.none", layer=at.layer, layers=len(layers)
            )
        layer = layers[at.layer]
        if isinstance(at, questions.Entry) and at.batch >= layer.batch:
            raise TraceError(f"{layer.name} saw a batch of {layer.batch}, but entry {at.batch} was asked for").coded(
                "batch.none", layer=layer.name, batches=layer.batch, batch=at.batch
            )
        if isinstance(at, questions.Head) and at.head >= layer.heads:
            raise TraceError(f"{layer.name} has {layer.heads} heads, but head {at.head} was asked for").coded(
                "head.none", layer=layer.name, heads=layer.heads, head=at.head
            )
        return layer

    def lines(self, layer: int, batch: int, head: int) -> Lines:
        source = self.run.layers[layer].weights._source
        return self.shelf.get(("lines", layer, batch, head), lambda: Lines(source.pick((batch, head))))

    def base(self, lines: Lines, head: tuple[int, int, int]) -> Cells:
        return self.shelf.get(("pyramid", *head), partial(pyramid, lines))
