"""Our own decoder-only models, which go on with a text."""

from pathlib import Path
from typing import Any

import torch

from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs
from regard.app.runners.spelling import Speller
from regard.app.runners.text import TextRunner
from regard.decode import Limits, stream
from regard.models.causal import CausalModel
from regard.models.context import max_tokens
from regard.models.open.open_model import open_model
from regard.trace.record.trace import Trace


class WriterRunner(TextRunner):
    """A decoder-only model, and the tokenizer of its words."""

    def __init__(self, name: str, model: CausalModel, tokenizer: Any) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.max_tokens = max_tokens(model)

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text))

    def forward(self, inputs: Inputs) -> Prediction:
        fed = torch.tensor([inputs.get("fed") or inputs["ids"]])
        return Prediction(self.model(fed)[0, -1], self.token_name)

    def stream(self, inputs: Inputs, monitor: RunMonitor, trace: Trace | None) -> Prediction:
        ids = list(inputs["ids"])
        steps, generator = inputs["steps"], torch.Generator().manual_seed(inputs["seed"])
        state, speller = self.model.begin(torch.tensor([ids])), Speller(self.tokenizer, ids)
        limits = Limits(longest=steps, end=None)
        tokens = stream(state, 1, temperature=inputs["temperature"], generator=generator, limits=limits)
        for number, step in enumerate(tokens, 1):
            ids.append(int(step.tokens))
            if trace is not None:
                monitor.token(speller(ids), number, steps)
                monitor.look(trace)
            monitor.must_go_on()
        logits = state(torch.tensor([ids[-1:]]))[0]  # what was written last is read, too
        monitor.must_go_on()
        inputs["fed"], inputs["written"] = ids, ids[len(inputs["ids"]) :]
        return Prediction(logits, self.token_name)

    def written_text(self, inputs: Inputs) -> str | None:
        return str(self.tokenizer.decode(inputs["written"])) if inputs["steps"] else None

    def token_name(self, number: int) -> str:
        return str(self.tokenizer.id_to_token(number))


def open_writer(name: str, folder: Path) -> WriterRunner:
    """The runner of a decoder-only model in its folder."""
    model, tokenizer = open_model(folder)
    assert isinstance(model, CausalModel)
    return WriterRunner(name, model, tokenizer)
