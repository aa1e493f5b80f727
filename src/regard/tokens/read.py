"""A tokenizer and ids → tokens that people can read."""

import operator
from typing import Any

from regard.errors import TraceError
from regard.tokens.assemble import TokenLabel, assemble
from regard.tokens.sources import TokenNames, source_of
from regard.tokens.spelling import strings, tokens_of_strings
from regard.tokens.text import Tokens


def read(tokenizer: Any, ids: Any) -> Tokens:
    """The tokens with these ids as readable text, with their characters in the decoded text.

    `tokenizer` is one of `transformers` or of `tokenizers`, anything that can decode or spell ids, or a list of
    strings, one per id. `ids` are one sequence of numbers or a 1-D tensor. The text is what the tokenizer decodes
    them to, special tokens left out; an id that it does not know shows as `⟨id 9⟩` and stands for no text.

    >>> from tokenizers import Tokenizer, decoders, models
    >>> tokenizer = Tokenizer(models.WordPiece({"play": 0, "##ing": 1, "cats": 2}, unk_token="cats"))
    >>> tokenizer.decoder = decoders.WordPiece()
    >>> tokens = read(tokenizer, [2, 0, 1])
    >>> tokens.text, tokens.shown, tokens.words
    ('cats playing', ('cats', 'play', 'ing'), (0, 1, 1))
    """
    return Reader(tokenizer)(ids)


class Reader:
    """`read` for one tokenizer, looked into once: quicker where many sequences are read.

    >>> reader = Reader(["the", "cat"])
    >>> reader([7, 2]).shown
    ('the', 'cat')
    """

    def __init__(self, tokenizer: Any) -> None:
        self.words: list[str] | None = None
        self.source: TokenNames | None = None
        if isinstance(tokenizer, list | tuple) or hasattr(tokenizer, "tolist"):
            self.words = strings(tokenizer)
        else:
            self.source = source_of(tokenizer)

    def __call__(self, ids: Any) -> Tokens:
        numbers = as_ids(ids)
        if self.words is not None:
            if len(self.words) != len(numbers):
                raise TraceError(
                    f"{len(self.words)} token strings came for {len(numbers)} ids; "
                    "give one string per id, or the tokenizer that made them"
                )
            return tokens_of_strings(self.words, numbers)
        assert self.source is not None
        return from_source(self.source, numbers)


def from_source(source: TokenNames, ids: tuple[int, ...]) -> Tokens:
    names = {token: source.name(token) for token in set(ids)}
    if ids and all(name is None for name in names.values()):
        raise TraceError(
            f"the tokenizer knows none of the {len(names)} ids, such as {ids[0]}; give the tokenizer that made them"
        )
    labels = {token: f"⟨id {token}⟩" if name is None else name for token, name in names.items()}
    pieces = source.pieces([token for token in ids if names[token] is not None and token not in source.special])
    rest = iter(pieces)
    return assemble(
        [
            TokenLabel(labels[token], special=token in source.special)
            if names[token] is None or token in source.special
            else next(rest)
            for token in ids
        ],
        ids,
    )


def as_ids(ids: Any) -> tuple[int, ...]:
    """One sequence of whole numbers, whatever holds it."""
    listed = ids.tolist() if hasattr(ids, "tolist") else ids
    if not isinstance(listed, list | tuple | range):
        raise TraceError(f"ids are one sequence of numbers, not {type(ids).__name__}; give a list or a 1-D tensor")
    if any(isinstance(one, list | tuple) or getattr(one, "ndim", 0) for one in listed):
        raise TraceError("ids have more than one axis, but a sequence has one; give one of them, such as ids[0]")
    try:
        if any(isinstance(one, bool) for one in listed):
            raise TypeError("bool")
        return tuple(map(operator.index, listed))
    except TypeError:
        wrong = next(type(one).__name__ for one in listed if isinstance(one, bool) or not hasattr(one, "__index__"))
        raise TraceError(f"ids are whole numbers, but one of them is {wrong}; give what the tokenizer made") from None
