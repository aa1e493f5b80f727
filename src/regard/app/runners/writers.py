"""Our own model that goes on with a text, token by token."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.app.protocol.limits import must_fit
from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import EditOf, RunAsk
from regard.app.runners.chances import both, divergence, likely
from regard.app.runners.edits import edited
from regard.app.runners.runner import Changed, Ran, RunMonitor, output
from regard.app.runners.spelling import Speller
from regard.models.context import max_tokens
from regard.models.folder import open_model
from regard.models.gpt import GPT, choose
from regard.trace.record.trace import Trace
from regard.trace.watch import watch


def open_writer(name: str, folder: Path) -> "Writing":
    """The model in this folder, ready to run."""
    model, tokenizer = open_model(folder)
    assert isinstance(model, GPT)
    return Writing(name, model, tokenizer)


class Writing:
    """A GPT, and the tokenizer of its words."""

    def __init__(self, name: str, model: GPT, tokenizer: Any) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.longest = max_tokens(model)

    @torch.no_grad()
    def run(self, ask: RunAsk, telling: RunMonitor) -> Ran:
        ids = self.tokenizer.encode(ask.text)
        if not ids:
            raise Refusal("the text is empty, so there is nothing to look at; give some words").coded("text.empty")
        must_fit(len(ids), self.longest, self.name, ask.steps)
        seed = int(torch.randint(1 << 31, ()).item())
        given = {"ids": ids, "steps": ask.steps, "temperature": ask.temperature, "seed": seed}
        layers = self.layers(ids) if ask.edits else []
        with watch(self.model, self.tokenizer) as trace, edited(self.model, layers, ask.edits):
            told, logits = self.write(given, telling, trace)
        given["fed"] = told
        text = self.tokenizer.decode(told[len(ids) :]) if ask.steps else None
        return Ran(trace, output(text=text, next=likely(logits, self.word)), given)

    def write(self, given: dict[str, Any], telling: RunMonitor, trace: Trace | None = None) -> tuple[list[int], Tensor]:
        """All ids, those that were given first, and the logits of what would come after the last of them."""
        told = list(given["ids"])
        steps, generator = given["steps"], torch.Generator().manual_seed(given["seed"])
        cache, new = self.model.make_cache(), torch.tensor([told])
        speller = Speller(self.tokenizer, told)
        for number in range(steps + 1):  # the last time only to read what was written last
            logits = self.model(new, cache)[0, -1]
            if number < steps:
                new = choose(logits[None], given["temperature"], generator)
                told.append(int(new))
                if trace is not None:
                    telling.token(speller(told), number + 1, steps)
                    telling.look(trace)
            telling.must_go_on()
        return told, logits

    @torch.no_grad()
    def again(self, given: dict[str, Any], layers: list[str], edits: list[EditOf], telling: RunMonitor) -> Changed:
        """The map is of the same words as before, read in one go; the texts are written anew, from the same seed."""
        fed = torch.tensor([given["fed"]])
        before = self.model(fed)[0, -1]
        with watch(self.model, self.tokenizer) as trace, edited(self.model, layers, edits):
            after = self.model(fed)[0, -1]
        texts: list[str | None] = [None, None]
        if given["steps"]:
            texts[0] = self.freely(given, telling)
            with edited(self.model, layers, edits):
                texts[1] = self.freely(given, telling)
        first, second = both(before, after, self.word)
        found = output(text=texts[1], next=likely(after, self.word))
        return Changed(trace, found, first, second, texts[0], texts[1], divergence(before, after))

    def freely(self, given: dict[str, Any], telling: RunMonitor) -> str:
        told, _ = self.write(given, telling)
        return str(self.tokenizer.decode(told[len(given["ids"]) :]))

    def layers(self, ids: list[int]) -> list[str]:
        with watch(self.model) as trace:
            self.model(torch.tensor([ids[:2]]))
        return [layer.name for layer in trace.layers]

    def word(self, number: int) -> str:
        return str(self.tokenizer.id_to_token(number))
