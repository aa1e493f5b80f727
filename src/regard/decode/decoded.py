"""A text that was written."""

from typing import NamedTuple


class DecodedText(NamedTuple):
    """The ids of a text, without BEGIN and END, and how well the model likes it.

    From `greedy` and `sample` the score is log p(ids END), the sum of the model's own log-probabilities. `beam`
    divides it by the length penalty and adds the coverage penalty.

    >>> DecodedText([5, 3, 8], -1.5).ids
    [5, 3, 8]
    """

    ids: list[int]
    score: float
