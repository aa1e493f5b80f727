"""A trained translator with its two vocabularies: text in, text out, and where it looked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.data.special import END, SPECIAL
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError, ModelError
from regard.models import embedded, store
from regard.models.open.locate import UnknownModelError, is_run, locate
from regard.tasks.read_and_written import ReadAndWritten, label_ids, looks_across, trace_example
from regard.tasks.translate import SOURCE, TARGET
from regard.tasks.writing import ChooseText, write
from regard.tokens.visible import cut
from regard.trace.record.trace import Trace
from regard.training.run import RunFolder

LONGEST = 1000  # tokens of one text


class Translation:
    """One text, what was written for it, and how it came about."""

    def __init__(self, translator: "TextTranslator", text: str, shown: ReadAndWritten) -> None:
        self.translator, self.source, self.shown = translator, text, shown
        self.text = translator.target.decode(shown.written)

    def trace(self) -> Trace:
        """What the model attended to, with its tokens."""
        check_looks_across(self.translator)
        return trace_example(self.translator.model, self.shown)

    def alignment(self, trace: Trace | None = None) -> tuple[list[str], list[str], Tensor]:
        """Written tokens, read tokens, and how much of each read token each written one took, (written, read).

        The mean over the heads of the layer that aligns best, as its manifest says, else of the last one that looks
        across. `<eos>` stands at the end of both.
        """
        check_looks_across(self.translator)
        crossing = [layer for layer in (trace or self.trace()).layers if layer.kind != "self"]
        best = self.translator.facts.get("alignment", {}).get("layer", len(crossing) - 1)
        weights = crossing[min(int(best), len(crossing) - 1)].weights[0].dense().mean(0)
        return [*self.shown.written_names, SPECIAL[END]], list(self.shown.source_names), weights

    def __repr__(self) -> str:
        return f"Translation({self.source!r} → {self.text!r})"


class TextTranslator:
    """A model that translates, as `open_translator` gives it."""

    longest: int | None = None  # tokens that it writes at most; None: as many as the source lets expect
    choose: ChooseText | None = None  # which of the texts that the beams found is taken; None: the best

    def __init__(self, model: Any, source: Vocabulary, target: Vocabulary, facts: dict[str, Any]) -> None:
        self.model, self.source, self.target, self.facts = model.eval(), source, target, facts
        sizes = facts.get("config", {})
        for side, vocabulary in (("source", source), ("target", target)):
            wanted = sizes.get(f"{side}_vocab_size", len(vocabulary))
            if wanted != len(vocabulary):
                raise ModelError(
                    f"the {side} vocabulary has {len(vocabulary)} tokens, but the model knows {wanted}; "
                    "it is the vocabulary of another model"
                )

    @torch.no_grad()
    def translate(self, texts: Sequence[str], *, beams: int = 5, **more: Any) -> list[Translation]:
        """Each text in the other language."""
        if isinstance(texts, str):
            raise DataError("one text came, but several were wanted; give a list of texts")
        asked = [self.read(text) for text in texts]
        written = write(self.model, asked, beams=beams, choose=self.choose, **more)
        return [
            Translation(self, text, label_ids(self.source, self.target, ids, found.ids))
            for text, ids, found in zip(texts, asked, written)
        ]

    def read(self, text: str) -> list[int]:
        """The ids of a text as the model reads them, END at their end; refused where it cannot read them."""
        ids = [*self.source.encode(text), END]
        if not text.strip() or len(ids) == 1:
            raise DataError("there is nothing to translate: a text is empty; give some words").with_code("text.empty")
        if "\0" in text:
            raise DataError(f"{text!r:.40} holds NUL, which no text has; leave it out").with_code("text.nul")
        if len(ids) > LONGEST + 1:
            raise DataError(
                f"{text[:30]!r}… has {len(ids) - 1:,} tokens, but at most {LONGEST:,} are read at once; "
                "give one sentence at a time"
            ).with_code("text.longer", tokens=len(ids) - 1, limit=LONGEST)
        return ids


def check_looks_across(translator: TextTranslator) -> None:
    """Refuse to show what a model looks at that looks at nothing."""
    if not looks_across(translator.model):
        raise ModelError(
            "this model looks at nothing while it writes (attention = none), so there is no alignment to see; "
            "take one with attention"
        ).with_code("model.blind")


def open_translator(where: str | Path) -> TextTranslator:
    """The translator of this name (`regard models`), or in this folder of a run or of a model.

    >>> open_translator("nowhere")
    Traceback (most recent call last):
    regard.errors.ModelError: there is no translator 'nowhere': ...
    """
    folder = locate_trained(where)
    facts = store.describe(folder)
    if not (folder / SOURCE).exists():
        raise ModelError(f"{where} holds a model without vocabularies, so it translates nothing; name a translator")
    model = store.read(folder)
    return TextTranslator(model, Vocabulary.load(folder / SOURCE), Vocabulary.load(folder / TARGET), facts)


def locate_trained(where: str | Path, *, noun: str = "translator", train: str = "regard train translate") -> Path:
    """The folder of a model of ours by its name, of a run, or of the model itself."""
    try:
        place = locate(where)
    except UnknownModelError as error:
        raise ModelError(
            f"there is no {noun} {cut(str(where), 60)!r}: it is neither embedded ({', '.join(embedded.names())}) "
            f"nor a folder with a model; train one with: {train}"
        ) from error
    except ModelError:
        if is_run(Path(where)):
            RunFolder.open(Path(where))  # one of another version says so
        raise
    if not place.is_ours:
        raise ModelError(f"{where} is no model that regard trained; name a {noun}")
    return place.path
