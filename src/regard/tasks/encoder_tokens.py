"""Texts as an encoder reads them: ids between special tokens, one text or two, and which characters each token is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.data.special import END, SPECIAL
from regard.errors import ModelError


class PlainTokens(NamedTuple):
    """A text as tokens without special ones, and the characters that each stands for, white space left away."""

    ids: list[int]
    spans: list[tuple[int, int]]


class FramedTokens(NamedTuple):
    """What an encoder reads: ids with special tokens, and of which text each is (0 or 1)."""

    ids: list[int]
    types: list[int]
    first: int  # where the first text begins in `ids`
    second: int  # where the second one begins; where the row ends, without one


@dataclass(frozen=True)
class EncoderTokenizer:
    """A tokenizer (of the `tokenizers` library) with the special tokens that stand around one text, and between two.

    >>> from regard.models import embedded
    >>> tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    >>> tokens.frame([7, 8], [9])
    FramedTokens(ids=[1, 7, 8, 2, 9, 2], types=[0, 0, 0, 0, 1, 1], first=1, second=4)
    >>> text = "A cat  sat."
    >>> [text[a:b] for a, b in tokens.encode_plain([text])[0].spans]
    ['A', 'cat', '', 'sat', '.']
    """

    tokenizer: Any
    before: tuple[int, ...]  # before a text
    after: tuple[int, ...]  # after a text alone
    between: tuple[int, ...]  # between two
    last: tuple[int, ...]  # after the second

    @classmethod
    def wrap(cls, tokenizer: Any) -> "EncoderTokenizer":
        """The special tokens are those that the tokenizer puts around empty texts."""
        if not hasattr(tokenizer, "encode_batch_fast"):
            raise ModelError("this model has no tokenizer.json; give one that comes with it")
        alone, both = tokenizer.encode("").ids, tokenizer.encode("", "").ids
        if not alone:
            raise ModelError("this tokenizer puts no token before a text; give a tokenizer.json of an encoder")
        if len(both) >= len(alone) + 1 and len(both) >= 3:
            return cls(tokenizer, tuple(alone[:1]), tuple(alone[1:]), tuple(both[1:-1]), tuple(both[-1:]))
        end = tuple(alone[1:])
        if not end and tokenizer.id_to_token(END) == SPECIAL[END]:  # learned by regard for one text
            end = (END,)
        if not end:
            raise ModelError("this tokenizer has no token to put between two texts; give one of an encoder")
        return cls(tokenizer, tuple(alone[:1]), tuple(alone[1:]), end, end)

    @property
    def extra(self) -> int:
        """How many special tokens stand in a row with two texts."""
        return len(self.before) + len(self.between) + len(self.last)

    @property
    def unknown(self) -> int | None:
        """The id that stands for whatever the tokenizer does not know; None where it can spell everything."""
        name = getattr(self.tokenizer.model, "unk_token", None)
        return self.tokenizer.token_to_id(name) if isinstance(name, str) else None

    def encode_plain(self, texts: Sequence[str]) -> list[PlainTokens]:
        """Each text as tokens without special ones; what is spelled like a special token is text."""
        encoded = self._encode(self.tokenizer.encode_batch, texts)
        return [PlainTokens(one.ids, [trim(text, *span) for span in one.offsets]) for text, one in zip(texts, encoded)]

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text alone, as `encode_plain` has them; which characters they are is not asked."""
        return [one.ids for one in self._encode(self.tokenizer.encode_batch_fast, texts)]

    def _encode(self, encode: Callable[..., list[Any]], texts: Sequence[str]) -> list[Any]:
        said = self.tokenizer.encode_special_tokens
        self.tokenizer.encode_special_tokens = True
        try:
            return encode(list(texts), add_special_tokens=False)
        finally:
            self.tokenizer.encode_special_tokens = said

    def frame(self, first: Sequence[int], second: Sequence[int] | None = None) -> FramedTokens:
        """The tokens of one text, or of two, with the special ones around them."""
        start = len(self.before)
        if second is None:
            ids = [*self.before, *first, *self.after]
            return FramedTokens(ids, [0] * len(ids), start, len(ids))
        head = [*self.before, *first, *self.between]
        tail = [*second, *self.last]
        return FramedTokens([*head, *tail], [0] * len(head) + [1] * len(tail), start, len(head))


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The same span without white space at its ends: a byte-level token holds the space before it.

    >>> trim("a cat", 1, 5)
    (2, 5)
    """
    piece = text[start:end]
    first = start + len(piece) - len(piece.lstrip())
    return first, max(first, end - len(piece) + len(piece.rstrip()))
