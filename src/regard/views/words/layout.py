"""Words in lines of a given width, each with the place where it stands."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.tokens.visible import columns


class PlacedWord(NamedTuple):
    """A word: its line, and its first column."""

    line: int
    column: int


def place_words(words: Sequence[str], width: int) -> list[PlacedWord]:
    """Where each word stands, a column between two; one that is wider than the line has a line of its own.

    >>> place_words(["a", "gripping", "film"], 11)
    [PlacedWord(line=0, column=0), PlacedWord(line=0, column=2), PlacedWord(line=1, column=0)]
    """
    placed, line, column = [], 0, 0
    for word in words:
        size = columns(word)
        if column and column + size > width:
            line, column = line + 1, 0
        placed.append(PlacedWord(line, column))
        column += size + 1
    return placed
