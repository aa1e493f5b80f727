"""The lines of a text, many at a time, each with its number: a file may be larger than the memory."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

AT_ONCE = 2048  # lines: enough that those of about equal length are read together
HASH = 16  # bytes of the hash of a text


class TextBlock(NamedTuple):
    """Consecutive lines that hold something, with their numbers from 1 on."""

    lines: list[int]
    texts: list[str]


def split_blocks(lines: Iterable[str], size: int = AT_ONCE) -> Iterator[TextBlock]:
    """The lines in blocks, spaces around them left away. Blank lines are left out, and the others keep their numbers.

    >>> list(split_blocks(["a cat", "", "  ", "two dogs "], size=1))
    [TextBlock(lines=[1], texts=['a cat']), TextBlock(lines=[4], texts=['two dogs'])]
    """
    block = TextBlock([], [])
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text:
            block.lines.append(number)
            block.texts.append(text)
        if len(block.lines) == size:
            yield block
            block = TextBlock([], [])
    if block.lines:
        yield block


def hash_texts(texts: Sequence[str]) -> np.ndarray:
    """A hash of each text, (n, 16) bytes: the same only for the same text.

    >>> hash_texts(["a cat", "a dog", "a cat"]).shape
    (3, 16)
    """
    digests = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, HASH)
