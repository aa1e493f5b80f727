"""A trace that is asked: every question of a view, answered from q and k when it comes."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import torch

from regard.errors import TraceError
from regard.trace.record.layer import Layer
from regard.trace.record.placement import place_windows
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import layer_answers, questions
from regard.views.explorer.answer.head_rows import HeadRows
from regard.views.explorer.answer.info import TokenNumbers, describe_layer, precision_of, sides_of
from regard.views.explorer.answer.lru_cache import ROOM, LruCache
from regard.views.explorer.answer.numbers import answer_numbers
from regard.views.explorer.answer.pack import Answer, pack
from regard.views.explorer.answer.pyramid import TileCells, make_base
from regard.views.explorer.answer.rows import answer_column, answer_hidden, answer_row, answer_top
from regard.views.explorer.answer.tiles import answer_thumbs, answer_tile

serials = count()


class Answers:
    """One run of a trace, for whoever looks at it. `info()` is what there is, `ask(what, about)` a part of it.

    An answer is one safetensors blob: arrays by name, all else as JSON in its metadata under "facts". Threads may ask
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
            raise TraceError(f"run {run} was asked for, but the trace has {len(runs)}; count from 0").with_code(
                "run.none", run=run, runs=len(runs)
            )
        self.number, self.count = run % len(runs), len(runs)
        self.run: Run = place_windows(runs[run])
        self.trace = Trace([self.run], model=trace.model)
        self.notes = [*self.run.sentences(), *trace.notes]
        self.identity, self.name, self.output, self.picture = identity, name, output, picture
        self.serial = next(serials)  # by which somebody may keep what was answered: no other has it, ever
        self.named = TokenNumbers(self.run)
        self.cache = LruCache(room)

    def info(self) -> dict[str, Any]:
        """The JSON of `TraceInfo`. To be written in ASCII, because half a surrogate pair is no UTF-8."""
        layers = self.run.layers
        return {
            "id": self.identity,
            "name": self.name,
            "model": self.trace.model,
            "run": self.number,
            "runs": self.count,
            "tokens": self.named.describe(),
            "layers": [describe_layer(layer, side, self.named) for layer, side in zip(layers, sides_of(layers))],
            "notes": self.notes,
            "edits": self.run.edits,
            "missed": list(dict.fromkeys(one.name for one in self.run.missed)),
            "precision": precision_of(layers),
            "error": None,
            "output": self.output,
            "picture": self.picture,
        }

    def ask(self, what: Any, about: Any) -> bytes:
        """Read a question and answer it; `RegardError` in one sentence where there is no answer."""
        return self.answer(questions.read_question(what, about))

    def answer(self, question: questions.Question) -> bytes:
        """The answer to a question that has been read, packed."""
        with torch.no_grad():
            return pack(self.compute(question))

    def compute(self, question: questions.Question) -> Answer:
        if isinstance(question, questions.FlowQuestion):
            return layer_answers.answer_flow(self.trace, self.named, question)
        assert isinstance(question, questions.LayerQuestion)
        layer = self.layer(question)
        match question:
            case questions.ProofQuestion():
                return self.cache.get(question, partial(layer_answers.answer_proof, layer))
            case questions.MeasuresQuestion():
                return self.cache.get(question, partial(layer_answers.answer_measures, layer, question.batch))
            case questions.ThumbsQuestion():
                heads = [self.head_rows(question.layer, question.batch, head) for head in range(layer.heads)]
                return answer_thumbs(heads, question.size)
        assert isinstance(question, questions.HeadQuestion)
        head = (question.layer, question.batch, question.head)
        head_rows = self.head_rows(*head)
        return self.answer_head(question, layer, head_rows, partial(self.base, head_rows, head))

    def answer_head(
        self, question: questions.HeadQuestion, layer: Layer, head_rows: HeadRows, base: Callable[[], TileCells]
    ) -> Answer:
        match question:
            case questions.TileQuestion():
                return answer_tile(head_rows, base, question)
            case questions.RowQuestion():
                return answer_row(head_rows, question.query)
            case questions.ColumnQuestion():
                return answer_column(head_rows, base, question.key)
            case questions.TopQuestion():
                return answer_top(head_rows, question.first, question.queries, question.count)
            case questions.NumbersQuestion():
                return answer_numbers(head_rows, layer, question)
        return self.cache.get(question, partial(answer_hidden, head_rows))

    def layer(self, question: questions.LayerQuestion) -> Layer:
        """The layer that is meant, after a check that it has that batch entry and head."""
        layers = self.run.layers
        if question.layer >= len(layers):
            raise TraceError(
                f"layer {question.layer} was asked for, but the run has {len(layers)}; count from 0"
            ).with_code("layer.none", layer=question.layer, layers=len(layers))
        layer = layers[question.layer]
        if isinstance(question, questions.EntryQuestion) and question.batch >= layer.batch:
            raise TraceError(
                f"{layer.name} saw a batch of {layer.batch}, but entry {question.batch} was asked for"
            ).with_code("batch.none", layer=layer.name, batches=layer.batch, batch=question.batch)
        if isinstance(question, questions.HeadQuestion) and question.head >= layer.heads:
            raise TraceError(f"{layer.name} has {layer.heads} heads, but head {question.head} was asked for").with_code(
                "head.none", layer=layer.name, heads=layer.heads, head=question.head
            )
        return layer

    def head_rows(self, layer: int, batch: int, head: int) -> HeadRows:
        source = self.run.layers[layer].weights.source
        return self.cache.get(("lines", layer, batch, head), lambda: HeadRows(source.pick((batch, head))))

    def base(self, head_rows: HeadRows, head: tuple[int, int, int]) -> TileCells:
        return self.cache.get(("pyramid", *head), partial(make_base, head_rows))
