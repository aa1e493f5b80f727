"""Our own decoder-only models, which go on with a text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs
from regard.app.runners.text import TextRunner
from regard.models.causal import CausalModel
from regard.models.context import max_tokens
from regard.models.open.load_model import load_model
from regard.tasks.generation import GenerationSettings
from regard.tasks.text_writer import TextWriter
from regard.trace.record.trace import Trace


class WriterRunner(TextRunner):
    """A decoder-only model and its tokenizer, written with as `regard.open_writer` does: by its own modules, which can
    be watched and edited."""

    def __init__(self, name: str, model: CausalModel, tokenizer: Any, ends: Sequence[int] | None = None) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.max_tokens = max_tokens(model)
        self.writer = TextWriter(model, tokenizer, name=name, ends=ends, context=self.max_tokens, engine="plain")

    def encode(self, text: str) -> list[int]:
        return self.writer.read(text) if text.strip() else []

    def forward(self, inputs: Inputs) -> Prediction:
        fed = torch.tensor([inputs.get("fed") or inputs["ids"]])
        return Prediction(self.model(fed)[0, -1], self.token_name)

    def stream(self, inputs: Inputs, monitor: RunMonitor, trace: Trace | None) -> Prediction:
        ids, steps = list(inputs["ids"]), inputs["steps"]
        settings = GenerationSettings(max_tokens=steps, temperature=inputs["temperature"], seed=inputs["seed"])
        tokens = self.writer.stream_ids(ids, settings)
        for number, token in enumerate(tokens, 1):
            if trace is not None:
                monitor.token(token.text, number, steps)
                monitor.look(trace)
            monitor.must_go_on()
        logits = tokens.read_last()  # what was written last is read, too
        monitor.must_go_on()
        inputs["fed"], inputs["written"] = ids + tokens.row.ids, tokens.row.ids
        return Prediction(logits, self.token_name)

    def written_text(self, inputs: Inputs) -> str | None:
        return self.writer.tokenizer.decode(inputs["written"]) if inputs["steps"] else None

    def token_name(self, number: int) -> str:
        return self.writer.tokenizer.names([number])[0]


def open_writer(name: str, folder: Path) -> WriterRunner:
    """The runner of a decoder-only model in its folder."""
    loaded = load_model(folder)
    assert isinstance(loaded.model, CausalModel)
    return WriterRunner(name, loaded.model, loaded.tokenizer, loaded.end_ids or None)
