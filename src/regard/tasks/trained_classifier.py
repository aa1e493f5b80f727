"""A trained classifier with its tokenizer and the names of its classes: texts in, probabilities out."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.errors import ModelError
from regard.models import store
from regard.models.classifiers import gives_classes
from regard.models.open.load_model import load_location, widen
from regard.models.open.locate import UnknownModelError, locate
from regard.models.read_labels import read_labels
from regard.tasks.classify_texts import BATCH_TOKENS, classify_texts
from regard.tasks.encoder_tokens import EncoderTokenizer


@dataclass(frozen=True)
class TrainedClassifier:
    """A model that says which class a text is of, as `open_classifier` gives it."""

    name: str
    model: Any  # one that gives classes: a TextClassifier, a RecurrentClassifier, or a Bert with that head
    tokens: EncoderTokenizer
    classes: list[str]
    max_length: int  # tokens that are read of a text, special ones included
    facts: dict[str, Any] = field(default_factory=dict)  # its manifest

    @property
    def pooling(self) -> str:
        """How its tokens become one vector; the first token's alone where it is a BERT of others."""
        return str(getattr(self.model.config, "pooling", "cls"))

    def classify(self, texts: Iterable[str], *, batch_tokens: int = BATCH_TOKENS) -> Float[Tensor, "n classes"]:
        """The probability of each class for each text."""
        return classify_texts(self.model, self.tokens, texts, batch_tokens=batch_tokens, max_length=self.max_length)


def open_classifier(where: str | Path, *, download: bool = False) -> TrainedClassifier:
    """The classifier of this name: embedded, a run, a folder of ours, or a BERT of others with names of classes.

    >>> open_classifier("filler")
    Traceback (most recent call last):
    regard.errors.ModelError: 'filler' is a Bert that says nothing of classes; name a classifier, or train one: ...
    """
    try:
        place = locate(where, download=download)
    except UnknownModelError as error:
        raise ModelError(f"{error}; or train one: regard train classify") from error
    loaded = widen(load_location(place))
    model, classes = loaded.model, read_labels(place.path) if place.layout != "gguf" else []
    if not gives_classes(model):
        raise ModelError(
            f"{str(where)!r} is a {type(model).__name__} that says nothing of classes; name a classifier, or train "
            "one: regard train classify"
        )
    if len(classes) != model.config.labels:
        raise ModelError(
            f"{str(where)!r} has {model.config.labels} classes, but names of {len(classes)}; give a whole copy of it"
        )
    facts = store.describe(place.path) if place.is_ours else {}
    longest = min(model.longest, int((facts.get("settings") or {}).get("max_length", model.longest)))
    tokens = EncoderTokenizer.wrap(loaded.tokenizer)
    return TrainedClassifier(place.name, model.eval(), tokens, classes, longest, facts)
