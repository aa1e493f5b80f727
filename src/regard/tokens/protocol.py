"""One protocol for every tokenizer: text ↔ ids, readable names of tokens, and which characters a token stands for."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from regard.errors import TraceError

Span = tuple[int, int]


@runtime_checkable
class TextTokenizer(Protocol):
    """What turns text into the ids that a model reads, and back.

    `WordTokenizer` and `Vocabulary` are such tokenizers; `as_tokenizer` makes one of those of the libraries.
    """

    @property
    def special(self) -> frozenset[int]:
        """The ids of tokens that stand for no text."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens around it."""
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids, special tokens left out."""
        ...

    def names(self, ids: Iterable[int]) -> list[str]:
        """Each of these tokens as people read it."""
        ...

    def offsets(self, text: str) -> list[Span]:
        """Which characters of the text each of its tokens is made from, spaces before it left out."""
        ...


class LibraryTokenizer:
    """A tokenizer of `tokenizers` or `transformers`, or one like them, by the protocol.

    >>> from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    >>> words = Tokenizer(models.WordLevel({"the": 0, "cat": 1}, unk_token="the"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> one = LibraryTokenizer(words)
    >>> one.encode("the cat"), one.names([1, 0]), one.offsets("the cat"), one.decode([1])
    ([0, 1], ['cat', 'the'], [(0, 3), (4, 7)], 'cat')
    """

    def __init__(self, tokenizer: Any) -> None:
        from regard.tokens.read import Reader

        self.tokenizer, self.reader = tokenizer, Reader(tokenizer)

    @cached_property
    def special(self) -> frozenset[int]:
        source = self.reader.source
        return frozenset() if source is None else frozenset(source.special)

    def encode(self, text: str) -> list[int]:
        encoded = call_plainly(self.tokenizer.encode, text)
        return [int(token) for token in getattr(encoded, "ids", encoded)]

    def decode(self, ids: Iterable[int]) -> str:
        return str(self.tokenizer.decode([token for token in ids if token not in self.special]))

    def names(self, ids: Iterable[int]) -> list[str]:
        return list(self.reader(list(ids)).shown)

    def offsets(self, text: str) -> list[Span]:
        spans = self.library_offsets(text)
        if spans is None:  # what is decoded is the text in most tokenizers that are written in Python
            tokens = self.reader(self.encode(text))
            if tokens.text != text or tokens.offsets is None:
                name = type(self.tokenizer).__name__
                raise TraceError(f"{name} does not say which characters a token stands for; give a fast tokenizer")
            spans = [(0, 0) if span is None else span for span in tokens.offsets]
        return [without_spaces(text, *span) for span in spans]

    def library_offsets(self, text: str) -> list[Span] | None:
        """As the library says them; None where it does not."""
        if getattr(self.tokenizer, "is_fast", False):
            encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            return list(encoded["offset_mapping"])
        spans = getattr(call_plainly(self.tokenizer.encode, text), "offsets", None)
        return None if spans is None else list(spans)

    def __repr__(self) -> str:
        return f"LibraryTokenizer({type(self.tokenizer).__name__})"


def as_tokenizer(tokenizer: Any) -> TextTokenizer:
    """This tokenizer by the protocol: itself where it follows it, else in an adapter.

    >>> as_tokenizer("gpt2")
    Traceback (most recent call last):
    regard.errors.TraceError: a tokenizer was wanted, but the string 'gpt2' came; ...
    """
    check_instance(tokenizer)
    if isinstance(tokenizer, TextTokenizer):
        return tokenizer
    made = LibraryTokenizer(tokenizer)
    if not callable(getattr(tokenizer, "encode", None)) or not callable(getattr(tokenizer, "decode", None)):
        raise TraceError(
            f"a tokenizer was wanted that encodes and decodes, but a {type(tokenizer).__name__} came; "
            "give one of tokenizers or transformers"
        )
    return made


def check_instance(tokenizer: Any) -> None:
    """Refuse what looks a little like a tokenizer and is none: its name, or its class."""
    if isinstance(tokenizer, str | bytes):
        raise TraceError(
            f"a tokenizer was wanted, but the string {tokenizer[:40]!r} came; "
            "load the tokenizer of that name, or give a list of strings, one per token"
        )
    if isinstance(tokenizer, type):
        raise TraceError(f"a tokenizer was wanted, but the class {tokenizer.__name__} came; give one made by it")


def call_plainly(encode: Callable[..., Any], text: str) -> Any:
    """What a library's `encode` gives without special tokens around the text; not every one has such a switch."""
    try:
        return encode(text, add_special_tokens=False)
    except TypeError:
        return encode(text)


def without_spaces(text: str, start: int, stop: int) -> Span:
    """The same span without the spaces that it begins with; a token of spaces alone keeps them."""
    first = start
    while first < stop and text[first].isspace():
        first += 1
    return (start, stop) if first == stop else (first, stop)
