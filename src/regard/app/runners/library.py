"""Models of the `transformers` library that go on with a text, answer it, or only read it."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.app.protocol.messages import RunRequest
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.pictures import open_library_pictures
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs, Runner
from regard.app.runners.spelling import Names
from regard.app.runners.text import TextRunner
from regard.errors import ModelError
from regard.models.context import max_tokens
from regard.models.open.open_model import open_model
from regard.tasks.text_pieces import Detokenizer
from regard.tokens.protocol import as_tokenizer
from regard.trace.census.corpus import encode
from regard.trace.change.effect import numbers_of
from regard.trace.record.trace import Trace

ANSWER = 64  # tokens that an encoder and decoder writes at most, where nobody says
PROFILES: dict[str, dict[str, Any]] = {  # what a model reads, writes and can do, by its task
    "generate": {"reads": "text", "writes": "text", "tasks": ["generate", "read"]},
    "translate": {"reads": "pair", "writes": "text", "tasks": ["translate"]},
    "read": {"reads": "text", "writes": None, "tasks": ["read"]},
    "see": {"reads": "picture", "writes": None, "tasks": ["see"]},
}


def open_library(name: str, folder: Path) -> Runner:
    """The runner of a model of that library, in its folder."""
    task = task_of(read_config(folder))
    model, tokenizer = open_model(folder, ours=False)
    if task == "see":
        return open_library_pictures(name, model, folder)
    return TransformersRunner(name, model, tokenizer, task)


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a model."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} has no config.json that can be read; give the folder of a model") from error
    if not isinstance(config, dict):
        raise ModelError(f"{folder / 'config.json'} holds no object; save the model again")
    return config


def architecture_of(config: dict[str, Any]) -> str:
    """The class that a config names, or else its type of model."""
    names = config.get("architectures") or [config.get("model_type", "")]
    return str(names[0] if isinstance(names, list) and names else names)


def task_of(config: dict[str, Any]) -> str:
    """What a model does, from its config.json alone: nothing is loaded to list it."""
    name = architecture_of(config) if config.get("architectures") else ""
    if "image_size" in config and "vocab_size" not in config:
        return "see"
    writes = name.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "MTModel"))
    if not writes:
        return "read"
    pairs = config.get("is_encoder_decoder") or name.endswith(("ForConditionalGeneration", "MTModel"))
    return "translate" if pairs else "generate"


class TransformersRunner(TextRunner):
    """A model of that library that reads text, and its tokenizer."""

    def __init__(self, name: str, model: Any, tokenizer: Any, task: str) -> None:
        if tokenizer is None:
            raise ModelError(
                f"{name} has no tokenizer beside it, so it cannot read a text; add its tokenizer files"
            ).with_code("model.mute", model=name)
        self.name, self.model, self.tokenizer, self.task = name, model, tokenizer, task
        self.token_name = Names(tokenizer)
        self.max_tokens = max_tokens(model, tokenizer)
        self.is_pair = task == "translate"

    def encode(self, text: str) -> list[int]:
        return encode(text, self.tokenizer)[0] if text.strip() else []

    def count_steps(self, request: RunRequest) -> int:
        return 0 if self.task == "read" else request.steps or (ANSWER if self.is_pair else 0)

    def forward(self, inputs: Inputs) -> Prediction | None:
        if self.is_pair:
            fed = inputs.get("fed") or [self.model.config.decoder_start_token_id or 0]
            output = self.model(input_ids=torch.tensor([inputs["ids"]]), decoder_input_ids=torch.tensor([fed]))
        else:
            output = self.model(input_ids=torch.tensor([inputs.get("fed") or inputs["ids"]]))
        return self.predict(inputs, numbers_of(output)[0])

    def predict(self, inputs: Inputs, logits: Tensor) -> Prediction | None:
        """The logits of the classes, of the next token, of the one that is masked, or of all positions."""
        config = self.model.config
        if logits.ndim == 2:
            labels = getattr(config, "id2label", None) or {}
            known = len(labels) == logits.shape[-1]
            return Prediction(logits[0], lambda number: str(labels[number]), "classes") if known else None
        if logits.ndim != 3 or logits.shape[-1] != getattr(config, "vocab_size", None):
            return None  # a model without a head gives channels
        if self.task == "generate":
            return Prediction(logits[0, -1], self.token_name)
        mask = getattr(self.tokenizer, "mask_token_id", None)
        if not self.is_pair and mask in inputs["ids"]:
            return Prediction(logits[0, inputs["ids"].index(mask)], self.token_name, "masked")
        return Prediction(logits[0], self.token_name)

    def stream(self, inputs: Inputs, monitor: RunMonitor, trace: Trace | None) -> Prediction | None:
        """A model that goes on with a text writes one token more than was asked for, so that it reads all that were.

        The logits of that token, or of the end where the model ended by itself, say what comes next. It is not kept.
        """
        more = 0 if self.is_pair else 1
        ids = torch.tensor([inputs["ids"]])
        with fork_seed(inputs["seed"]), quiet():
            generated = self.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                streamer=TokenStream(self.tokenizer, monitor, trace, inputs["steps"]),
                return_dict_in_generate=True,
                output_logits=True,
                max_new_tokens=inputs["steps"] + more,
                **self.sampling(inputs["temperature"]),
            )
        sequence = generated.sequences[0].tolist()
        sequence = sequence[: len(sequence) - more]
        inputs["fed"] = sequence[:-1] if self.is_pair else sequence
        inputs["written"] = sequence if self.is_pair else sequence[len(inputs["ids"]) :]
        return None if self.is_pair else Prediction(generated.logits[-1][0], self.token_name)

    def sampling(self, temperature: float) -> dict[str, Any]:
        """The settings of `generate`: the likeliest token each time, or one drawn at this temperature."""
        config = self.model.generation_config
        pad = config.pad_token_id if config.pad_token_id is not None else getattr(self.tokenizer, "eos_token_id", None)
        settings: dict[str, Any] = {"do_sample": temperature > 0, "num_beams": 1}
        settings |= {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}
        return settings if pad is None else settings | {"pad_token_id": pad}

    def written_text(self, inputs: Inputs) -> str | None:
        if not inputs["steps"]:
            return None
        return str(self.tokenizer.decode(inputs["written"], skip_special_tokens=True))


class TokenStream:
    """Hears each token as `generate` makes it."""

    def __init__(self, tokenizer: Any, monitor: RunMonitor, trace: Trace | None, steps: int) -> None:
        self.tokenizer, self.monitor, self.trace, self.steps = tokenizer, monitor, trace, steps
        self.spell: Detokenizer | None = None
        self.number = 0

    def put(self, value: Tensor) -> None:
        new = value.reshape(-1).tolist()
        if self.spell is None:  # the first are those that were given
            self.spell = Detokenizer(as_tokenizer(self.tokenizer), new)
            return
        piece = "".join(map(self.spell, new))
        self.number += 1
        if self.trace is not None and self.number <= self.steps:
            self.monitor.token(piece, self.number, self.steps)
            self.monitor.look(self.trace)
        self.monitor.must_go_on()

    def end(self) -> None:
        """Nothing is left to do."""


@contextmanager
def fork_seed(seed: int) -> Iterator[None]:
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
