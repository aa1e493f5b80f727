"""Language models of plain text: what all tasks on packed documents have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor, nn

from regard.data.byte_level import LEAST, read_byte_level, train_byte_level
from regard.data.documents import DocumentSet, count_words_and_bytes, split_paths
from regard.data.packed import PackedDocuments
from regard.data.special import PAD
from regard.errors import DataError, ModelError
from regard.files import put
from regard.models import store
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.training.loss import Loss
from regard.training.settings import Settings, settings_from, with_defaults
from regard.training.task import Better

VALIDATED = 8192  # tokens at a time


@with_defaults(weight_decay=0.1, betas=(0.9, 0.95), lr_schedule="cosine")
class TextSettings(Settings):
    """Which text, and how it is cut into documents, tokens and rows."""

    data: str = Field("", description="training text: a file (.gz too), or several as 'a.txt,b.txt'")
    validation: str = Field("", description="validation text, in the same form; by default a part of data")
    validation_size: int = Field(
        0, ge=0, description="distinct documents held out for validation, without a file; 0 is a tenth, at most 500"
    )
    split: Literal["paragraph", "line", "file", "heading"] = Field(
        "paragraph",
        description="what a document is: text between blank lines, each line, the whole file, or what follows a "
        "heading ' = Title = '",
    )
    vocab_size: int = Field(4096, ge=LEAST, description="vocabulary size (byte-level BPE)")
    tokenizer: str = Field("", description="a tokenizer.json of another run to use; by default one is learned")
    batch_tokens: int = Field(4096, ge=1, description="tokens per batch, summed over all processes")
    context: int = Field(128, ge=2, description="tokens per row: how far a model looks")


class TextBatch(NamedTuple):
    """What a model reads, and what it should say at each position; PAD where nothing is asked."""

    ids: Int[Tensor, "b t"]
    target: Int[Tensor, "b t"]


class TextParts(NamedTuple):
    """The documents to learn from, and those to be judged by."""

    train: DocumentSet
    validation: DocumentSet


def split_texts(settings: TextSettings) -> TextParts:
    """The text that settings name, in two parts."""
    everything = DocumentSet(split_paths(settings.data), settings.split, settings.seed)
    if settings.validation:
        parts = TextParts(everything, DocumentSet(split_paths(settings.validation), settings.split))
        for part in parts:
            part.must_hold_text()
        return parts
    return TextParts(*everything.hold_out(settings.validation_size))


def find_tokenizer(settings: TextSettings, folder: Path, learn: Callable[[], Tokenizer]) -> Tokenizer:
    """The tokenizer in a folder; where there is none, the one that is named, or one that is learned now."""
    place = folder / TOKENIZER
    if not place.exists():
        if (folder / store.MANIFEST).exists():
            raise ModelError(f"{folder} holds a model without {TOKENIZER}; take a whole copy of the model")
        if settings.tokenizer:
            made = read_byte_level(Path(settings.tokenizer))
        else:
            made = learn()
        put(place, made.to_str().encode())
    return read_byte_level(place)


@dataclass(frozen=True)
class HeldText:
    """Text to be judged by, with what its scores are divided by."""

    texts: PackedDocuments
    words: int  # between white space, and one more for the end of each document
    bytes: int

    @classmethod
    def encode(cls, documents: DocumentSet, tokenizer: Tokenizer, *, context: int) -> "HeldText":
        texts = PackedDocuments.encode(documents, tokenizer, context=context, whole=True)
        words, size = count_words_and_bytes(documents)
        return cls(texts, words + len(texts.lengths), size)


class PreparedText:
    """A task on packed text made ready; what is asked of a row, and of which model, is the task's own."""

    better = Better("loss", more=False)
    left_out = 0
    given: Any
    config: Any
    model: nn.Module

    def __init__(self, settings: TextSettings, folder: Path) -> None:
        self.given = settings
        texts = split_texts(settings)
        self.tokenizer = find_tokenizer(settings, folder, lambda: self.learn_tokenizer(texts.train))
        self.encode(texts)

    def learn_tokenizer(self, texts: DocumentSet) -> Tokenizer:
        """A tokenizer for these texts."""
        return train_byte_level(texts, self.given.vocab_size)

    def encode(self, texts: TextParts) -> None:
        """Keep both parts of the text as tokens."""
        self.train = PackedDocuments.encode(texts.train, self.tokenizer, context=self.given.context)
        self.held = HeldText.encode(texts.validation, self.tokenizer, context=self.given.context)
        self.examples = len(self.train.lengths)

    def batches(self, epoch: int) -> list[np.ndarray]:
        """The updates of an epoch. An example has a number of its own in each, which says all that is drawn for it."""
        raise NotImplementedError

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        return np.array_split(indices, count)

    def read(self, indices: np.ndarray) -> np.ndarray:
        """The tokens of these examples, one row each."""
        raise NotImplementedError

    def ask(self, ids: np.ndarray, indices: np.ndarray) -> TextBatch:
        """What is asked of rows of tokens; `indices` say what is drawn at random, if anything is."""
        raise NotImplementedError

    def collate(self, indices: np.ndarray) -> TextBatch:
        if not len(indices):  # a process without a row still takes part, with one in which nothing counts
            one = self.collate(np.zeros(1, dtype=np.int64))
            return one._replace(target=torch.full_like(one.target, PAD))
        return self.ask(self.read(indices), indices)

    def weight(self, indices: np.ndarray) -> int:
        return max(1, int((self.collate(indices).target != PAD).sum()))

    def count_tokens(self, indices: np.ndarray) -> int:
        return int((self.read(indices) != PAD).sum())

    def loss(self, model: Any, batch: TextBatch) -> Loss:
        """Sums over what is asked."""
        raise NotImplementedError

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Scores on text that was not learned from."""
        raise NotImplementedError

    def show(self, model: nn.Module, folder: Path) -> None:
        """A few fixed texts, with what the model attends to, written into a folder."""
        raise NotImplementedError

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        files = {TOKENIZER: self.tokenizer.to_str().encode()}
        store.write(folder, model, self.config, facts | {"name": facts["task"]}, files=files)


class TextOptions(EvaluationOptions):
    """The options of `regard evaluate` for a model of text."""

    data: str = Field(
        "", description="a text file, or several as a,b; by default what was held out of the training text"
    )


class TextTask(BaseTask):
    """A task on packed documents."""

    settings: type[TextSettings] = TextSettings
    options = TextOptions
    prepared: type[PreparedText]

    def prepare(self, settings: Any, folder: Path) -> PreparedText:
        return self.prepared(settings, folder)

    def evaluate(self, folder: Path, options: TextOptions) -> dict[str, Any]:
        """Scores of the model in a folder on a text, all of it, or on what was held out of its training text."""
        settings = settings_from(self.settings, store.describe(folder).get("settings") or {})
        if options.data:
            settings = settings.model_copy(update={"data": options.data, "validation": options.data})
        else:
            must_be_there(settings)
        return {"task": self.name, "scores": self.prepare(settings, folder).validate(store.read(folder))}


def must_be_there(settings: Any) -> None:
    """Refuse to judge a model by a text that is not on this machine; `settings` name it as `data` and `validation`."""
    named = [path for one in (settings.data, settings.validation) if one for path in split_paths(one)]
    missing = next((path for path in named if not path.exists()), None)
    if missing is not None:
        raise DataError(f"the text that this model was trained on is not here ({missing}); name another with --data")
