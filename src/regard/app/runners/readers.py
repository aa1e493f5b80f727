"""Models of our own that only read a text: what they attend to is all that comes out."""

from pathlib import Path
from typing import Any

import torch

from regard.app.protocol.messages import RunRequest
from regard.app.runners.runner import Inputs
from regard.app.runners.text import TextRunner
from regard.models.open.open_model import open_model


class ReaderRunner(TextRunner):
    """Any model that takes ids (b, t), and its tokenizer."""

    max_tokens = None

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text))

    def count_steps(self, request: RunRequest) -> int:
        return 0

    def forward(self, inputs: Inputs) -> None:
        self.model(torch.tensor([inputs["ids"]]))


def open_reader(name: str, folder: Path) -> ReaderRunner:
    """The runner of a model that only reads, in its folder."""
    return ReaderRunner(name, *open_model(folder))
