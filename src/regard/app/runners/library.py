"""Models of the `transformers` library that go on with a text, answer it, or only read it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.app.protocol.limits import must_fit
from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import EditOf, RunAsk
from regard.app.runners.chances import both, divergence, likely
from regard.app.runners.edits import edited, placed
from regard.app.runners.runner import Changed, Ran, RunMonitor, output
from regard.app.runners.spelling import Names, Speller
from regard.errors import ModelError, WatchError
from regard.models.context import max_tokens
from regard.trace.census.corpus import encode
from regard.trace.change.effect import numbers_of
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

ANSWER = 64  # tokens that an encoder and decoder writes at most, where nobody says


def task_of(config: dict[str, Any]) -> str:
    """What a model does, from its config.json alone: nothing is loaded to list it."""
    named = config.get("architectures") or [""]
    name = str(named[0] if isinstance(named, list) else named)
    if "image_size" in config and "vocab_size" not in config:
        return "see"
    writes = name.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "MTModel"))
    if not writes:
        return "read"
    pairs = config.get("is_encoder_decoder") or name.endswith(("ForConditionalGeneration", "MTModel"))
    return "translate" if pairs else "generate"


class Library:
    """A model of that library that reads text, and its tokenizer."""

    def __init__(self, name: str, model: Any, tokenizer: Any, task: str) -> None:
        if tokenizer is None:
            raise ModelError(
                f"{name} has no tokenizer beside it, so it cannot read a text; add its tokenizer files"
            ).coded("model.mute", model=name)
        self.name, self.model, self.tokenizer, self.task = name, model, tokenizer, task
        self.word = Names(tokenizer)
        self.longest = max_tokens(model, tokenizer)
        self.pairs = task == "translate"

    @torch.no_grad()
    def run(self, ask: RunAsk, telling: RunMonitor) -> Ran:
        ids = encode(ask.text, self.tokenizer)[0] if ask.text.strip() else []
        if not ids:
            raise Refusal("the text is empty, so there is nothing to look at; give some words").coded("text.empty")
        steps = 0 if self.task == "read" else ask.steps or (ANSWER if self.pairs else 0)
        must_fit(len(ids), self.longest, self.name, 0 if self.pairs else steps)
        seed = int(torch.randint(1 << 31, ()).item())
        given: dict[str, Any] = {"ids": ids, "steps": steps, "temperature": ask.temperature, "seed": seed}
        layers = self.layers(given) if ask.edits else []
        with watch(self.model, self.tokenizer) as trace, edited(self.model, layers, ask.edits):
            if steps:
                told, logits = self.write(given, telling, trace)
            else:
                told, logits = [], self.read(given)
        if not steps:
            return Ran(trace, self.outcome(given, logits), given)
        given["fed"] = told[:-1] if self.pairs else told
        text = self.text(told, given)
        return Ran(trace, output(text=text, next=None if self.pairs else likely(logits, self.word)), given)

    @torch.no_grad()
    def again(self, given: dict[str, Any], layers: list[str], edits: list[EditOf], telling: RunMonitor) -> Changed:
        """The map is of the same tokens as before, read in one go; texts are written anew, from the same seed."""
        before = self.read(given)
        with watch(self.model, self.tokenizer) as trace, edited(self.model, layers, edits):
            after = self.read(given)
        found = Changed(trace, self.outcome(given, after))
        rows = self.rows(given, before), self.rows(given, after)
        if rows[0] is not None and rows[1] is not None:
            found.kl = divergence(rows[0], rows[1])
            if rows[0].ndim == 1:
                found.before, found.after = both(rows[0], rows[1], self.label if before.ndim == 2 else self.word)
        if given["steps"]:
            found.before_text = self.freely(given, layers, [], telling)
            found.after_text = self.freely(given, layers, edits, telling)
            found.output["text"] = found.after_text
        return found

    # Reading

    def read(self, given: dict[str, Any]) -> Tensor:
        """What the model gives for all that it was fed, in one call."""
        if self.pairs:
            start = self.model.config.decoder_start_token_id or 0
            fed = torch.tensor([given.get("fed") or [start]])
            return numbers_of(self.model(input_ids=torch.tensor([given["ids"]]), decoder_input_ids=fed))[0]
        return numbers_of(self.model(input_ids=torch.tensor([given.get("fed") or given["ids"]])))[0]

    def layers(self, given: dict[str, Any]) -> list[str]:
        with watch(self.model) as trace:
            self.read(given)
        return [layer.name for layer in trace.layers]

    def rows(self, given: dict[str, Any], logits: Tensor) -> Tensor | None:
        """The logits that are compared: of the classes, of the next token, of the one that is masked, or of all."""
        if logits.ndim == 2:
            return logits[0] if self.classes(logits) else None
        if not self.words(logits):
            return None
        if self.task == "generate":
            return logits[0, -1]
        mask = getattr(self.tokenizer, "mask_token_id", None)
        if not self.pairs and mask in given["ids"]:
            return logits[0, given["ids"].index(mask)]
        return logits[0]

    def outcome(self, given: dict[str, Any], logits: Tensor) -> dict[str, Any]:
        row = self.rows(given, logits)
        if row is None or row.ndim != 1:
            return output()
        return output(classes=likely(row, self.label)) if logits.ndim == 2 else output(next=likely(row, self.word))

    def classes(self, logits: Tensor) -> bool:
        return len(getattr(self.model.config, "id2label", None) or {}) == logits.shape[-1]

    def words(self, logits: Tensor) -> bool:
        """Whether the last axis counts tokens; a model without a head gives channels."""
        return logits.ndim == 3 and logits.shape[-1] == getattr(self.model.config, "vocab_size", None)

    def label(self, number: int) -> str:
        return str(self.model.config.id2label[number])

    # Writing

    def write(self, given: dict[str, Any], telling: RunMonitor, trace: Trace | None = None) -> tuple[list[int], Tensor]:
        """All ids of the side that writes, and the logits that came last.

        A model that goes on with a text writes one token more than was asked for, so that it reads all that were: the
        logits of that token, or of the end where the model ended by itself, say what comes next. It is not kept.
        """
        more = 0 if self.pairs else 1
        ids = torch.tensor([given["ids"]])
        warm = given["temperature"] > 0
        how: dict[str, Any] = {"do_sample": warm, "num_beams": 1, "max_new_tokens": given["steps"] + more}
        how |= {"temperature": given["temperature"], "top_k": 0, "top_p": 1.0} if warm else {}
        config = self.model.generation_config
        pad = config.pad_token_id if config.pad_token_id is not None else getattr(self.tokenizer, "eos_token_id", None)
        with seeded(given["seed"]), quiet():
            found = self.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                streamer=Stream(self.tokenizer, telling, trace, given["steps"]),
                return_dict_in_generate=True,
                output_logits=True,
                **({} if pad is None else {"pad_token_id": pad}),
                **how,
            )
        told = found.sequences[0].tolist()
        return told[: len(told) - more], found.logits[-1][0]

    def text(self, told: list[int], given: dict[str, Any]) -> str:
        """What was written, without the text that was given."""
        new = told if self.pairs else told[len(given["ids"]) :]
        return str(self.tokenizer.decode(new, skip_special_tokens=True))

    def freely(self, given: dict[str, Any], layers: list[str], edits: list[EditOf], telling: RunMonitor) -> str | None:
        """What the model writes under the edits; None where an edit of one position cannot be made meanwhile."""
        if self.pairs and placed(edits):
            return None
        text = None
        try:
            with edited(self.model, layers, edits):
                text = self.text(self.write(given, telling)[0], given)
        except WatchError:
            if text is None or not placed(edits):
                raise  # else it ended before it came to that position, which is an answer too
        return text


class Stream:
    """Hears each token as `generate` makes it."""

    def __init__(self, tokenizer: Any, telling: RunMonitor, trace: Trace | None, steps: int) -> None:
        self.tokenizer, self.telling, self.trace, self.steps = tokenizer, telling, trace, steps
        self.told: list[int] | None = None
        self.number = 0

    def put(self, value: Tensor) -> None:
        new = value.reshape(-1).tolist()
        if self.told is None:  # the first are those that were given
            self.told, self.speller = new, Speller(self.tokenizer, new)
            return
        self.told += new
        self.number += 1
        if self.trace is not None and self.number <= self.steps:
            self.telling.token(self.speller(self.told), self.number, self.steps)
            self.telling.look(self.trace)
        self.telling.must_go_on()

    def end(self) -> None:
        """Nothing is left to do."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """That library draws from torch's own numbers; afterwards they are as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """What the library warns of here is about settings that we give on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
