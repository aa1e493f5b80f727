"""A trained summariser with its vocabulary: text in, summary out, and where each of its words was copied from."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from regard.data.special import END
from regard.data.vocabulary import Vocabulary
from regard.decode import DecodedText
from regard.errors import ConfigError, DataError, ModelError
from regard.models import store
from regard.models.pointer_generator import PointerGenerator
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.read_and_written import ReadAndWritten, label_ids
from regard.tasks.summarise import SummariseSettings
from regard.tasks.text_translator import TextTranslator, Translation, locate_trained
from regard.tasks.writing import write, writing_ids
from regard.tokens import read
from regard.tokens.merge import groups, merge_tokens
from regard.trace.watch import watch
from regard.training.settings import settings_from

AROUND = 24  # characters of the source beside a word that was copied
COPIED = 0.5  # from this share on a word counts as copied


class SummaryWord(NamedTuple):
    """A word of a summary, and how it came about; of a word in several pieces, their mean."""

    text: str
    g: float  # the share of the vocabulary in the mixture it was drawn from
    copied: float  # how much of its own probability was copied
    position: int | None  # the token of the source that it was copied from most; None where it was generated
    context: str  # what stands around that token, the word in brackets


class TextSummary(Translation):
    """One text, what was written for it, and how it came about.

    `tokens` is how many tokens the text has, of which the model has read the first `len(shown.source) - 1`.
    """

    translator: "TextSummariser"

    def __init__(self, summariser: "TextSummariser", text: str, shown: ReadAndWritten, tokens: int) -> None:
        super().__init__(summariser, text, shown)
        self.tokens = tokens

    @torch.no_grad()
    def words(self) -> list[SummaryWord]:
        """Each word with g, and the place in the source that it was copied from."""
        model, (ids, _, written, _) = self.translator.model, self.shown
        if not self.translator.copies:
            raise ModelError("this model copies nothing (copy = no), so no word has a place in the source")
        if not written:
            return []
        source, said = torch.tensor([list(ids)]), torch.tensor(list(written))
        with watch(model, layers="pointer") as trace:
            mixture = model.mix(source, torch.tensor([[writing_ids(model).begin, *written]]))
        pointed = trace["pointer"].weights[0, 0].dense()[: len(said)]  # t s; the last row points at what ends the text
        g = mixture.gate[0, :-1].sigmoid()
        logits = F.linear(mixture.hidden[0, :-1], model.head_weight)
        generated = g * logits.softmax(-1).gather(1, said[:, None]).squeeze(1)
        same = pointed * (source == said[:, None])  # t s
        copied = (1 - g) * same.sum(1)
        share = copied / (copied + generated).clamp_min(torch.finfo(g.dtype).tiny)
        return self.merge(g.tolist(), share.tolist(), same.argmax(1).tolist())

    def merge(self, g: Sequence[float], copied: Sequence[float], places: Sequence[int]) -> list[SummaryWord]:
        """The words of the pieces that were written."""
        tokens = read(self.translator.target.tokenizer, list(self.shown.written))
        offsets = self.translator.source.encoding(self.source).offsets
        words = []
        for name, group in zip(merge_tokens(tokens).shown, groups(tokens)):
            share = mean(copied[group])
            position = next((at for at, one in zip(places[group], copied[group]) if one >= COPIED), places[group.start])
            is_copied = share >= COPIED
            last = position + group.stop - group.start - 1
            # The pieces of a word mostly stand side by side in the source, too.
            stop = places[group.stop - 1] if places[group.stop - 1] == last else position
            context = quote(self.source, offsets[position][0], offsets[stop][1]) if stop < len(offsets) else ""
            words.append(
                SummaryWord(name, mean(g[group]), share, position if is_copied else None, context if is_copied else "")
            )
        return words

    def __repr__(self) -> str:
        return f"TextSummary({self.source[:40]!r}… → {self.text!r})"


class TextSummariser(TextTranslator):
    """A model that summarises, as `open_summariser` gives it."""

    model: PointerGenerator

    def __init__(self, model: Any, vocabulary: Vocabulary, facts: dict[str, Any], settings: SummariseSettings) -> None:
        super().__init__(model, vocabulary, vocabulary, facts)
        self.settings, self.longest = settings, settings.max_target

    @property
    def copies(self) -> bool:
        """Whether it copies words of the source."""
        return self.model.pointer is not None

    @torch.no_grad()
    def summarise(self, texts: Sequence[str], *, beams: int = 5, **more: Any) -> list[TextSummary]:
        """A summary of each text, of which the first `max_source` tokens are read.

        Of what the beams find, the best in which no word stands twice in a row: a pointer tends to say a name again.
        """
        if isinstance(texts, str):
            raise DataError("one text came, but several were wanted; give a list of texts")
        asked = [self.read_whole(text) for text in texts]
        limit = self.settings.max_source
        sources = [[*ids[:limit], END] for ids in asked]
        written = write(self.model, sources, beams=beams, longest=self.longest, choose=self.choose, **more)
        return [
            TextSummary(self, text, label_ids(self.source, self.target, source, found.ids), len(ids))
            for text, ids, source, found in zip(texts, asked, sources, written)
        ]

    def choose(self, texts: Sequence[DecodedText]) -> DecodedText:
        """The first of these texts in which no word stands twice in a row; where each has one, the first of all."""
        return next((one for one in texts if not repeats_word(self.target.decode(one.ids))), texts[0])

    def read(self, text: str) -> list[int]:
        """The ids of a text as the model reads them, cut to as many as it was trained with, END at their end."""
        return [*self.read_whole(text)[: self.settings.max_source], END]

    def read_whole(self, text: str) -> list[int]:
        """The ids of all of a text; refused where there is none."""
        if "\0" in text:
            raise DataError(f"{text!r:.40} holds NUL, which no text has; leave it out").with_code("text.nul")
        ids = self.source.encode(text)
        if not text.strip() or not ids:
            raise DataError("there is nothing to summarise: the text is empty; give some words").with_code("text.empty")
        return ids


def repeats_word(text: str) -> bool:
    """Whether a word stands twice in a row.

    >>> repeats_word("Marie Curie Curie"), repeats_word("New York, New York")
    (True, False)
    """
    return any(one == other for one, other in pairwise(text.casefold().split()))


def quote(text: str, first: int, stop: int, around: int = AROUND) -> str:
    """Some characters of a text in brackets, with a little of what stands before and after them, in one line.

    >>> quote("Please find the agreement attached to this mail.", 16, 25, around=12)
    '…find the [agreement] attached…'
    """
    while first < stop and text[first].isspace():
        first += 1
    before, after = text[max(0, first - around) : first], text[stop : stop + around]
    if first > around:
        before = "…" + before.partition(" ")[2]
    if stop + around < len(text):
        after = after.rpartition(" ")[0].rstrip() + "…"
    return " ".join(f"{before}[{text[first:stop]}]{after}".split())


def mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def open_summariser(where: str | Path) -> TextSummariser:
    """The summariser in this folder of a run or of a model.

    >>> open_summariser("nowhere")
    Traceback (most recent call last):
    regard.errors.ModelError: there is no summariser 'nowhere': ...
    """
    folder = locate_trained(where, noun="summariser", train="regard train summarise --data FILE")
    facts = store.describe(folder)
    model = store.read(folder)
    if not isinstance(model, PointerGenerator) or not (folder / TOKENIZER).exists():
        raise ModelError(f"{where} holds a {facts.get('kind')}, which summarises nothing; name a summariser")
    try:
        settings = settings_from(SummariseSettings, facts.get("settings") or {})
    except ConfigError as error:
        raise ModelError(f"{where} was trained by another version of regard: {error}") from error
    return TextSummariser(model, Vocabulary.load(folder / TOKENIZER), facts, settings)
