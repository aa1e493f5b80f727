"""Models of our own that only read a text: what they attend to, and what their head answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.app.protocol.messages import RunRequest
from regard.app.runners.answerers import open_answer_runner
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs, Runner
from regard.app.runners.spelling import Names
from regard.app.runners.text import TextRunner
from regard.models.bert import Bert
from regard.models.classifiers import gives_classes
from regard.models.context import max_tokens
from regard.models.open.open_model import open_model
from regard.models.read_labels import read_labels
from regard.tasks.text_answerer import answers_questions
from regard.tokens.mask_token import find_mask_id
from regard.trace.census.corpus import encode


class ReaderRunner(TextRunner):
    """Any model that takes ids (b, t), and its tokenizer; `labels` are the names of its classes, where it has some."""

    def __init__(self, name: str, model: Any, tokenizer: Any, labels: Sequence[str] = ()) -> None:
        self.name, self.model, self.tokenizer, self.labels = name, model, tokenizer, labels
        self.max_tokens = max_tokens(model, tokenizer)
        self.token_name = Names(tokenizer)

    def encode(self, text: str) -> list[int]:
        return encode(text, self.tokenizer)[0] if text.strip() else []

    def count_steps(self, request: RunRequest) -> int:
        return 0

    def forward(self, inputs: Inputs) -> Prediction | None:
        ids = torch.tensor([inputs["ids"]])
        if not isinstance(self.model, Bert) and not gives_classes(self.model):
            self.model(ids)
            return None
        return self.predict(inputs["ids"], self.model(ids, lengths=[len(inputs["ids"])]))

    def predict(self, ids: Sequence[int], answer: Tensor | tuple[Tensor, ...]) -> Prediction | None:
        """The words of the first masked token, or of all positions where none is masked; classes; else None."""
        if getattr(self.model.config, "head", "none") in ("masked_words", "pretrain"):
            logits = (answer[0] if isinstance(answer, tuple) else answer)[0]  # t n
            mask = find_mask_id(self.tokenizer)
            if mask in ids:
                return Prediction(logits[ids.index(mask)], self.token_name, "masked")
            return Prediction(logits, self.token_name)
        if gives_classes(self.model) and len(self.labels) == self.model.config.labels:
            return Prediction(answer[0], self.labels.__getitem__, "classes")
        return None


def open_reader(name: str, folder: Path) -> Runner:
    """The runner of a model that only reads, in its folder."""
    if answers_questions(folder):
        return open_answer_runner(name, folder)
    return ReaderRunner(name, *open_model(folder), read_labels(folder))
