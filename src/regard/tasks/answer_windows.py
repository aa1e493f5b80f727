"""A question and a passage as rows of an encoder: passages that are too long become windows that overlap."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ConfigError
from regard.tasks.encoder_tokens import EncoderTokenizer, PlainTokens

WORD = re.compile(r"\w+")
MATCH = 2  # the segment of a token of the passage whose word stands in the question, too


class TokenRange(NamedTuple):
    """Neighbouring tokens: from the first up to the one before `stop`."""

    start: int
    stop: int


def cut_windows(count: int, room: int, stride: int) -> list[TokenRange]:
    """Windows of at most `room` tokens over a passage of `count`, the next `stride` tokens after the last.

    A stride of more than `room` counts as `room`, so that no token is left out (Devlin et al. 2019, run_squad.py).

    >>> cut_windows(10, room=6, stride=3)
    [TokenRange(start=0, stop=6), TokenRange(start=3, stop=9), TokenRange(start=6, stop=10)]
    """
    windows = [TokenRange(0, min(room, count))]
    while windows[-1].stop < count:
        start = windows[-1].start + min(stride, room)
        windows.append(TokenRange(start, min(start + room, count)))
    return windows


def choose_contexts(windows: Sequence[TokenRange]) -> np.ndarray:
    """For each token of the passage the number of the window that shows most around it.

    The context of a token is the smaller of what stands before it and after it in the window; of two windows with the
    same, the longer counts, then the first (`max_context` of run_squad.py). So each token counts in exactly one.

    >>> choose_contexts([TokenRange(0, 6), TokenRange(3, 9)])
    array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    """
    best = np.full(windows[-1].stop, -np.inf)
    chosen = np.zeros(len(best), dtype=np.int64)
    for number, (start, stop) in enumerate(windows):
        inside = np.arange(stop - start)
        context = np.minimum(inside, inside[::-1]) + 0.01 * (stop - start)
        better = context > best[start:stop]
        best[start:stop][better], chosen[start:stop][better] = context[better], number
    return chosen


class EncodedPassage(NamedTuple):
    """A passage as tokens: their ids, the characters (n, 2) that each stands for, and the word it is part of."""

    text: str
    ids: list[int]
    spans: np.ndarray
    words: list[str]

    @property
    def nonempty(self) -> np.ndarray:
        """Which tokens stand for a letter; an answer neither begins nor ends with any other."""
        return self.spans[:, 1] > self.spans[:, 0]

    def find(self, start: int, stop: int) -> tuple[int, int] | None:
        """The first and the last token that hold one of these characters; None where none does."""
        inside = np.flatnonzero(self.nonempty & (self.spans[:, 1] > start) & (self.spans[:, 0] < stop))
        return (int(inside[0]), int(inside[-1])) if len(inside) else None

    def cut(self, first: int, last: int) -> tuple[int, int]:
        """The characters from one token to another."""
        return int(self.spans[first, 0]), int(self.spans[last, 1])


class WindowRow(NamedTuple):
    """What the encoder reads of one window: ids, and what each is: 0 question, 1 passage, 2 passage and match."""

    ids: list[int]
    types: list[int]
    window: TokenRange  # the tokens of the passage
    asked: TokenRange  # where the question stands in `ids`
    inside: TokenRange  # and where the passage does


@dataclass(frozen=True)
class WindowEncoder:
    """Questions and passages → rows of at most `max_length` tokens; what training and prediction share.

    >>> from regard.models import embedded
    >>> tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    >>> encoder = WindowEncoder(tokens, max_length=16, stride=4, max_question=8, match=True)
    >>> passage = encoder.encode_passages(["A cat sat on the mat."])[0]
    >>> row, = encoder.frame(encoder.encode_questions(["Who sat?"])[0], passage)
    >>> row.types, row.asked, row.inside
    ([0, 0, 0, 0, 0, 1, 1, 2, 1, 1, 1, 1, 1], TokenRange(start=1, stop=4), TokenRange(start=5, stop=12))
    >>> passage.find(2, 9), passage.cut(1, 2)
    ((1, 2), (2, 9))
    """

    tokens: EncoderTokenizer
    max_length: int = 384
    stride: int = 128
    max_question: int = 64
    match: bool = False

    def __post_init__(self) -> None:
        if self.max_length <= self.max_question + self.tokens.extra:
            raise ConfigError(
                f"max_length {self.max_length} leaves no room for a passage beside a question of {self.max_question} "
                f"tokens and {self.tokens.extra} special ones; raise max_length, or lower max_question"
            )

    def encode_passages(self, texts: Sequence[str]) -> list[EncodedPassage]:
        """Each passage as tokens, all of it."""
        return [
            EncodedPassage(text, ids, np.asarray(spans, dtype=np.int64).reshape(-1, 2), words_of(text, spans))
            for text, (ids, spans) in zip(texts, self.tokens.encode_plain(texts))
        ]

    def encode_questions(self, texts: Sequence[str]) -> list[tuple[list[int], frozenset[str]]]:
        """The first `max_question` tokens of each question, and its words."""
        plain: list[PlainTokens] = self.tokens.encode_plain(texts)
        return [
            (one.ids[: self.max_question], frozenset(word.casefold() for word in WORD.findall(text)))
            for text, one in zip(texts, plain)
        ]

    def frame(self, question: tuple[list[int], frozenset[str]], passage: EncodedPassage) -> Iterator[WindowRow]:
        """The rows of a question and a passage, one for each window."""
        ids, asked = question
        room = self.max_length - self.tokens.extra - len(ids)
        for window in cut_windows(len(passage.ids), room, self.stride):
            framed = self.tokens.frame(ids, passage.ids[window.start : window.stop])
            types = framed.types
            if self.match:
                words = passage.words[window.start : window.stop]
                types[framed.second : framed.second + len(words)] = [MATCH if word in asked else 1 for word in words]
            outside = TokenRange(framed.first, framed.first + len(ids))
            inside = TokenRange(framed.second, framed.second + window.stop - window.start)
            yield WindowRow(framed.ids, types, window, outside, inside)


def words_of(text: str, spans: Sequence[Any]) -> list[str]:
    """The word that each span begins in, whatever its case; "" for one that begins in none.

    >>> words_of("Who sat?", [(0, 2), (2, 3), (4, 7), (7, 8)])
    ['who', 'who', 'sat', '']
    """
    found = [(one.start(), one.end(), one.group().casefold()) for one in WORD.finditer(text)]
    starts = [start for start, _, _ in found]
    words = []
    for start, stop in spans:
        at = bisect_right(starts, start) - 1
        words.append(found[at][2] if at >= 0 and start < found[at][1] and start < stop else "")
    return words
