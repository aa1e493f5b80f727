"""A model that guesses hidden words, with its tokenizer: a text with gaps in, the words expected there out."""

import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DataError, ModelError
from regard.models.bert import Bert
from regard.models.context import max_tokens
from regard.models.failure import explain_failure
from regard.models.find_logits import find_logits
from regard.models.kinds import kind_of
from regard.models.open.load_model import LoadedModel, load_model, widen
from regard.tasks.written_text import Alternative
from regard.tokens import as_tokenizer
from regard.tokens.mask_token import MASKS, find_mask_id
from regard.tokens.visible import cut
from regard.trace.census.corpus import encode
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

GAP = re.compile("|".join(map(re.escape, MASKS)))
SPACE = "·"  # before the name of a token that begins with one
ADVICE = "name one that fills gaps, such as filler"


class Gap(NamedTuple):
    """A hidden word: the place of its token, and what the model expects there, the likeliest first."""

    position: int
    words: tuple[Alternative, ...]


@dataclass(frozen=True)
class FilledText:
    """A text with gaps, and what a model expects in each of them by itself; `text` has the likeliest word in each."""

    source: str
    text: str
    ids: tuple[int, ...]  # what the model read
    gaps: tuple[Gap, ...]


class TextFiller:
    """A model that fills gaps, as `open_filler` gives it."""

    def __init__(self, name: str, loaded: LoadedModel) -> None:
        self.name, self.model, self.tokenizer = name, loaded.model, loaded.tokenizer
        check_guesses(name, self.model)
        if self.tokenizer is None:
            raise ModelError(f"{name} has no tokenizer, so it cannot read a text; add its tokenizer files")
        mask_id = find_mask_id(self.tokenizer)
        if mask_id is None:
            raise ModelError(f"{name} has no token for a hidden word, such as {MASKS[0]}; {ADVICE}")
        self.mask_id = mask_id
        self.names = as_tokenizer(self.tokenizer)

    def read(self, text: str) -> list[int]:
        """The ids of a text as the model reads them, each gap one token; refused where there is none, or too much."""
        if not GAP.search(text):
            raise DataError(f"{cut(text, 60)!r} has no gap; write {MASKS[0]} where a word is hidden")
        ids = encode(GAP.sub(lambda _: self.mask_token, text), self.tokenizer)[0]
        if self.mask_id not in ids:
            raise ModelError(f"the tokenizer of {self.name} does not read {self.mask_token!r} as one token; {ADVICE}")
        limit = max_tokens(self.model, self.tokenizer)
        if limit is not None and len(ids) > limit:
            raise DataError(
                f"{cut(text, 60)!r} has {len(ids):,} tokens, but {self.name} takes at most {limit:,}; give less"
            )
        return ids

    @property
    def mask_token(self) -> str:
        """How the tokenizer spells a hidden word."""
        spell = getattr(self.tokenizer, "id_to_token", None) or self.tokenizer.convert_ids_to_tokens
        return str(spell(self.mask_id))

    @torch.no_grad()
    def fill(self, text: str, *, top: int = 5) -> FilledText:
        """The `top` likeliest words of each gap, each of them as if all others stayed hidden."""
        ids = self.read(text)
        positions = [at for at, token in enumerate(ids) if token == self.mask_id]
        gaps = [self.rank(at, row, top) for at, row in zip(positions, self.guess(ids)[positions])]
        whole = list(ids)
        for gap in gaps:
            whole[gap.position] = gap.words[0].id
        return FilledText(text, self.names.decode(whole).strip(), tuple(ids), tuple(gaps))

    def guess(self, ids: list[int]) -> Float[Tensor, "t n"]:
        """The logits of every position."""
        with explain_failure(f"{self.name} failed on {len(ids):,} tokens"):
            logits = find_logits(self.model(torch.tensor([ids])))
        if logits is None or logits.shape[1] != len(ids):
            raise ModelError(f"{self.name} gives no probability to words; {ADVICE}")
        return logits[0]

    def rank(self, position: int, logits: Float[Tensor, " n"], top: int) -> Gap:
        """The likeliest words at one place."""
        best = logits.double().softmax(-1).topk(min(top, len(logits)))
        names = self.names.names(best.indices.tolist())
        words = (name.removeprefix(SPACE) or name for name in names)
        return Gap(position, tuple(map(Alternative, words, best.indices.tolist(), best.values.tolist())))

    def trace(self, filled: FilledText) -> Trace:
        """What the model attended to when it read the text with its gaps."""
        with torch.no_grad(), watch(self.model, self.tokenizer) as trace:
            self.model(torch.tensor([list(filled.ids)]))
        return trace


def check_guesses(name: str, model: Any) -> None:
    """Refuse a model that says nothing of a hidden word."""
    if isinstance(model, Bert):
        if model.words is None:
            raise ModelError(f"{name} is a BERT with the head {model.config.head!r}, which guesses no words; {ADVICE}")
    elif kind_of(model) is not None or getattr(model, "can_generate", bool)():
        raise ModelError(f"{name} is a {type(model).__name__}, which guesses no hidden words; {ADVICE}")


def open_filler(name: str | os.PathLike[str], *, ours: bool = True, download: bool = False) -> TextFiller:
    """The model of this name, or in this folder, ready to fill gaps: a run of fill or pretrain, a BERT of others.

    >>> filled = open_filler("filler").fill("A man is [MASK] a bike.")
    >>> filled.text, [word.name for word in filled.gaps[0].words]
    ('A man is on a bike.', ['on', 'in', 'sitting', 'wearing', 'standing'])
    >>> open_filler("filler").fill("A man.")
    Traceback (most recent call last):
    regard.errors.DataError: 'A man.' has no gap; write [MASK] where a word is hidden
    """
    return TextFiller(os.fspath(name), widen(load_model(name, ours=ours, download=download)))
