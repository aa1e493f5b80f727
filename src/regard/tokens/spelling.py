"""Strings as tokens: plain words, or the spelling of a tokenizer, recognised by its marks."""

import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from regard.errors import TraceError
from regard.tokens.assemble import TokenLabel, TokenPiece, assemble
from regard.tokens.decoders import (
    ALPHABET,
    BYTE,
    Step,
    byte_fallback,
    byte_level,
    end_words,
    metaspace,
    word_pieces,
)
from regard.tokens.text import Tokens
from regard.tokens.visible import visible

# The special tokens of most tokenizers, by name.
SPECIAL = re.compile(
    r"\[(CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]|</?s>|<(pad|unk|mask|bos|eos|cls|sep|start_of_turn|end_of_turn)>|<\|.+\|>"
    r"|<｜.+｜>"
)


def tokens_of_strings(words: Any, ids: tuple[int, ...] | None = None) -> Tokens:
    """Tokens from strings, one each; see `Tokens.of`."""
    words = strings(words)
    special = tuple(SPECIAL.fullmatch(word) is not None for word in words)
    steps = guess([word for word, label in zip(words, special) if not label])
    if steps is None:
        return Tokens(tuple(visible(word) or "∅" for word in words), ids=ids, special=special)
    rest = iter(pieces_of_strings([word for word, label in zip(words, special) if not label], steps))
    return assemble([TokenLabel(word) if label else next(rest) for word, label in zip(words, special)], ids)


def pieces_of_strings(words: Sequence[str], steps: Sequence[Step]) -> list[TokenPiece]:
    """What each of these strings adds to the text, by the steps of a decoder."""
    pieces = [TokenPiece(to_bytes(word), name=word.replace("▁", " ")) for word in words]
    for step in steps:
        pieces = step(pieces)
    return pieces


def strings(words: Any) -> list[str]:
    """The same as a list, where it holds nothing but strings."""
    if isinstance(words, str):
        raise TraceError(f"tokens came as one string, {words[:24]!r}; give a list of strings, one per token")
    if not isinstance(words, Iterable):
        raise TraceError(f"tokens are a list of strings, not {type(words).__name__}; give one string per token")
    listed = list(words)
    wrong = next((word for word in listed if not isinstance(word, str)), None)
    if wrong is not None or None in listed:
        raise TraceError(f"tokens are strings, but one of them is {type(wrong).__name__}; give one string per token")
    return [str(word) for word in listed]


def guess(words: Sequence[str]) -> list[Step] | None:
    """The steps that make text of these strings, or None where they look like plain words.

    Only marks that plain words do not carry count, and never beside a string with white space in it, which no
    tokenizer with such marks spells.
    """
    if any(character.isspace() for word in words for character in word):
        return None
    if any("▁" in word for word in words):
        return [byte_fallback, partial(metaspace, mark="▁".encode(), prepended=True)]
    if any(word.startswith("##") and word.strip("#") for word in words):
        return [partial(word_pieces, prefix=b"##", cleanup=True)]
    if any(word.endswith("</w>") for word in words):
        return [partial(end_words, suffix=b"</w>")]
    if any(word[:1] in ("Ġ", "Ċ", "ĉ") for word in words) and is_byte_level(words):
        return [byte_level]
    if any(BYTE.fullmatch(to_bytes(word)) for word in words):
        return [byte_fallback]
    return None


def is_byte_level(words: Sequence[str]) -> bool:
    """Whether every letter is that of a byte and the bytes are text: `Ġ` is also a letter of Maltese."""
    letters = "".join(words)
    if any(letter not in ALPHABET for letter in letters):
        return False
    data = bytes(ALPHABET[letter] for letter in letters)
    try:
        text = getincrementaldecoder("utf-8")().decode(data)  # the last character may have been cut off
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\n\r\t" for character in text)


def to_bytes(word: str) -> bytes:
    return word.encode("utf-8", "replace")  # half a surrogate pair is no text in any encoding
