"""Texts, the class of each, and which words mattered."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from regard.data.labelled import clean_text
from regard.errors import DataError
from regard.tasks.labelled_examples import frame_texts
from regard.tasks.trained_classifier import TrainedClassifier
from regard.tasks.word_importance import WordImportance, explain_ids
from regard.trace.record.trace import Trace
from regard.trace.watch import watch


class TextClassification(NamedTuple):
    """What a classifier says of a text: how probable each class is, and of each word what it counted."""

    text: str
    probabilities: dict[str, float]  # by class, in the order of the model
    ids: list[int]  # what was read of the text
    is_cut: bool  # whether that is less than all of it
    importance: WordImportance | None = None
    unknown: int = 0  # how many of the ids stand for words or signs that the model does not know

    @property
    def label(self) -> str:
        """The likeliest class."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        found: dict[str, Any] = {"text": self.text, "class": self.label, "cut": self.is_cut, "unknown": self.unknown}
        found["probabilities"] = {name: round(share, 6) for name, share in self.probabilities.items()}
        if self.importance is not None:
            one = self.importance
            values = zip(one.words, one.attention.tolist(), one.gradient.tolist(), one.leave_one_out.tolist())
            names = ("word", "attention", "gradient_attention", "leave_one_out")
            found["words"] = [
                dict(zip(names, (word, *(round(float(value), 6) for value in numbers)))) for word, *numbers in values
            ]
            found["attention_of"] = one.source
        return found


def classify_and_explain(
    opened: TrainedClassifier, texts: Sequence[str], *, explain: bool = True
) -> list[TextClassification]:
    """What the classifier says of each text; `explain`: and of its words, which takes a run for each of them."""
    cleaned = [clean_text(text) for text in texts]
    if not all(cleaned):
        raise DataError("there is nothing to classify: a text is empty; give some words").with_code("text.empty")
    shares = opened.classify(cleaned)
    unknown = opened.tokens.unknown
    made = []
    for text, (ids, cut), row in zip(cleaned, frame_texts(opened.tokens, cleaned, opened.max_length), shares.tolist()):
        named = dict(zip(opened.classes, row))
        found = explain_ids(opened, ids) if explain else None
        made.append(TextClassification(text, named, ids, cut, found, 0 if unknown is None else ids.count(unknown)))
    return made


@torch.no_grad()
def trace_text(opened: TrainedClassifier, one: TextClassification) -> Trace:
    """What the model attended to while it read the text."""
    device = next(opened.model.parameters()).device
    with watch(opened.model, opened.tokens.tokenizer) as trace:
        opened.model(torch.tensor([one.ids], device=device), lengths=[len(one.ids)])
    return trace
