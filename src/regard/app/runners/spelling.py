"""The text that each new token adds."""

from collections.abc import Sequence
from typing import Any

from regard.tokens import Reader

BROKEN = "\N{REPLACEMENT CHARACTER}"


class Speller:
    """Call it with all ids so far: gives what the new ones add to the text.

    Part of a character adds nothing until the rest of it has come.

    >>> from regard.models.tokenizer import WordTokenizer
    >>> spell = Speller(WordTokenizer(["A", "B", "."]), [0])
    >>> spell([0, 1]), spell([0, 1, 2])
    (' B', ' .')
    """

    def __init__(self, tokenizer: Any, ids: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self.text = self.decode(ids)

    def __call__(self, ids: Sequence[int]) -> str:
        text = self.decode(ids)
        if text.endswith(BROKEN) or not text.startswith(self.text):
            return ""
        new, self.text = text[len(self.text) :], text
        return new

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids)))


class Names:
    """Single tokens as people read them."""

    def __init__(self, tokenizer: Any) -> None:
        self.reader = Reader(tokenizer)

    def __call__(self, number: int) -> str:
        return self.reader([number]).shown[0]
