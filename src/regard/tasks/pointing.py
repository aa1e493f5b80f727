"""Does a map point at what a word names: is its peak in the box of an object?"""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.data.shapes import Thing


class PointingCount(NamedTuple):
    """How many nouns there were, and at how many of them the peak of the map lay in the box of what they name."""

    hits: int
    nouns: int


def point(weights: Float[Tensor, "t s"], things: Sequence[Thing], stride: int, width: int) -> PointingCount:
    """Judge the rows of a map, one for each word, whose columns are the locations of a picture, row by row.

    The peak is the middle of the location with the largest weight; a location is `stride` pixels, the picture `width`
    pixels wide. Of a noun that names several objects ("two stars") the box of any will do.

    >>> import torch
    >>> things = [Thing("ring", "red", "small", (0, 4, 4, 8), 1)]
    >>> point(torch.tensor([[0.4, 0.6], [0.1, 0.9]]), things, 4, 8)
    PointingCount(hits=1, nouns=1)
    """
    nouns = sorted({thing.word for thing in things})
    hits = 0
    for word in nouns:
        row, column = divmod(int(weights[word].argmax()), width // stride)
        place = ((row + 0.5) * stride, (column + 0.5) * stride)
        hits += any(thing.holds(*place) for thing in things if thing.word == word)
    return PointingCount(hits, len(nouns))
