"""What a `TextWriter` gives: a text with its tokens, or its tokens one by one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from regard.tasks.generation import GenerationSettings
from regard.tasks.text_pieces import Detokenizer, StopWords
from regard.tokens import TextTokenizer

END, STOP, LENGTH, CONTEXT = "end", "stop", "length", "context"


class Alternative(NamedTuple):
    """A token that could have come."""

    name: str
    id: int
    probability: float


class WrittenToken(NamedTuple):
    """One token as it is written.

    `text` is what it adds that can be shown by now: "" where a character is not whole yet or a stop string may have
    begun; a later token brings that. Joined, they are the text. `stopped` is None but for the last token.
    """

    text: str
    id: int
    log_prob: float  # of the model itself, before any penalty, temperature or filter
    alternatives: tuple[Alternative, ...] = ()  # the likeliest tokens, this one perhaps among them
    stopped: str | None = None

    @property
    def probability(self) -> float:
        return math.exp(self.log_prob)


@dataclass
class WrittenText:
    """A text that was written after a prompt.

    `stopped` says why it ended: "end" (the model said so), "stop" (a stop string came, before which the text is cut),
    "length" (`max_tokens`) or "context" (the model takes no more). `ids` are all tokens that were written, those of a
    stop string too, without the one that ends a text; `log_probs` is what the model gave each of them.

    >>> WrittenText("A man", " sleeps.", [5, 7], [-0.5, -1.5], "end", seed=0).log_prob
    -2.0
    """

    prompt: str
    text: str
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    stopped: str = LENGTH
    seed: int | None = None  # of what was drawn; None where nothing was

    @property
    def log_prob(self) -> float:
        """Of all tokens together."""
        return sum(self.log_probs, 0.0)

    def __str__(self) -> str:
        return self.prompt + self.text


class RowInProgress:
    """One text while it is written: tokens in, text out, and whether it has ended."""

    def __init__(
        self,
        tokenizer: TextTokenizer,
        prompt: Sequence[int],
        settings: GenerationSettings,
        *,
        longest: int,
        ends: frozenset[int],
    ) -> None:
        self.tokenizer, self.longest, self.ends = tokenizer, longest, ends
        self.seed = choose_seed(settings)
        self.limit = LENGTH if longest == settings.max_tokens else CONTEXT
        self.spell, self.cut = Detokenizer(tokenizer, prompt), StopWords(settings.stops)
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        self.pieces: list[str] = []
        self.stopped: str | None = None

    def add(self, token: int, log_prob: float, alternatives: tuple[Alternative, ...] = ()) -> WrittenToken:
        """The next token, which may be the last."""
        if token in self.ends:
            self.stopped, piece = END, ""
        else:
            self.ids.append(token)
            self.log_probs.append(log_prob)
            piece = self.cut(self.spell(token))
            if not self.cut.is_met and len(self.ids) >= self.longest:
                self.stopped = self.limit
        if self.stopped and not self.cut.is_met:
            piece += self.cut(self.spell.flush())
            piece += "" if self.cut.is_met else self.cut.flush()
        if self.cut.is_met:
            self.stopped = STOP
        self.pieces.append(piece)
        return WrittenToken(piece, token, log_prob, alternatives, self.stopped)

    @property
    def has_ended(self) -> bool:
        """Whether the model itself ended the text."""
        return self.stopped == END

    def finish(self, prompt: str) -> WrittenText:
        """The text as it is now."""
        text, stopped = "".join(self.pieces), self.stopped or self.limit
        return WrittenText(prompt, text, self.ids, self.log_probs, stopped, self.seed)


def choose_seed(settings: GenerationSettings) -> int | None:
    """The seed of what is drawn: the one that is given, else another one each time; None where nothing is drawn."""
    if not settings.temperature:
        return None
    return int(torch.randint(1 << 31, ()).item()) if settings.seed is None else settings.seed
