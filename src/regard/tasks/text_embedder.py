"""A sentence encoder with its tokenizer: texts in, vectors out, and which model it is that made them."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.errors import ModelError
from regard.models import embedded, store
from regard.models.open.folder_files import read_optional
from regard.models.open.load_model import load_model, widen
from regard.models.open.locate import ModelLocation, locate
from regard.models.sentence_encoder import SentenceEncoder
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.sentence_vectors import TextVectors, choose_length, encode_texts

KIND = "sentence_encoder"
SENTENCE_CONFIG = "sentence_bert_config.json"  # of sentence-transformers; says how many tokens are read


class TextEmbedder:
    """A sentence encoder that reads texts, as `open_embedder` gives it, or of a model and a tokenizer of `tokenizers`.

    `max_length` is how many tokens of a text are read, special ones included; what the model takes, unless given.

    >>> from regard.models import SentenceEncoderConfig
    >>> model = SentenceEncoderConfig(vocab_size=4096, width=8, heads=2, layers=1, context=32).build()
    >>> embedder = TextEmbedder(model, embedded.tokenizer("filler"))
    >>> embedder.embed(["A cat.", "Two dogs."]).vectors.shape
    torch.Size([2, 8])
    >>> round(float(embedder.similarity(["A cat."], ["A cat."])[0, 0]), 6)
    1.0
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str = "", max_length: int | None = None) -> None:
        self.name = name or type(model).__name__
        if not isinstance(model, SentenceEncoder):
            raise ModelError(
                f"{self.name} is a {type(model).__name__}, but a sentence encoder was wanted; train one with: "
                "regard train embed --data pairs.tsv"
            )
        self.model, self.tokens = model, EncoderTokenizer.wrap(tokenizer)
        self.max_length = choose_length(model, self.tokens, max_length)

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return self.model.config.width

    def embed(self, texts: Sequence[str], *, advance: Callable[[int], None] | None = None) -> TextVectors:
        """The vectors of texts, in their order, and how many texts were truncated."""
        return encode_texts(self.model, self.tokens, texts, max_length=self.max_length, advance=advance)

    def similarity(self, texts: Sequence[str], others: Sequence[str]) -> Float[Tensor, "n k"]:
        """The cosine of each text with each other one."""
        one, two = (F.normalize(self.embed(some).vectors, dim=-1) for some in (texts, others))
        return one @ two.T

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides a vector: weights, sizes, tokenizer, and how much of a text is read."""
        said = [asdict(self.model.config), self.tokens.tokenizer.to_str(), self.max_length]
        found = sha256(json.dumps(said, sort_keys=True).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.detach().cpu().float().contiguous().numpy().data)
        return found.hexdigest()


def open_embedder(name: str | os.PathLike[str] | None = None, *, download: bool = False) -> TextEmbedder:
    """The sentence encoder of this name: a run, a folder of ours or of `sentence-transformers`, or of the hub.

    Without a name it is the one that comes with the package, where there is one. A model of `sentence-transformers`
    reads as many tokens as its `max_seq_length` says, one of ours as many as it was trained on.

    >>> open_embedder("writer")
    Traceback (most recent call last):
    regard.errors.ModelError: writer is a GPT, but a sentence encoder was wanted; ...
    """
    named = find_embedded() if name is None else name
    loaded = widen(load_model(named, download=download))
    place = locate(named)
    return TextEmbedder(loaded.model, loaded.tokenizer, name=str(named), max_length=find_length(place, loaded.model))


def find_embedded() -> str:
    """The sentence encoder that comes with the package."""
    found = next((name for name in embedded.names() if embedded.describe(name).get("kind") == KIND), None)
    if found is None:
        raise ModelError(
            "no model was named, and no sentence encoder comes with the package; name one with --model: a run of "
            "`regard train embed`, or a folder of sentence-transformers"
        )
    return found


def find_length(place: ModelLocation, model: Any) -> int | None:
    """How many tokens of a text this model is meant to read; None where nothing says so."""
    if place.is_ours:
        length = (store.describe(place.path).get("settings") or {}).get("max_length")
    else:
        length = read_optional(place.path / SENTENCE_CONFIG).get("max_seq_length")
    return min(length, model.longest) if type(length) is int and length > 0 and hasattr(model, "longest") else None
