"""The three ways of asking which words mattered, as they are headed, explained and scaled wherever they are shown."""

from typing import NamedTuple

from torch import Tensor

from regard.tasks.word_importance import WordImportance


class ImportanceMeasure(NamedTuple):
    """One way: its heading, what its numbers are, whether they have a sign, and the numbers."""

    title: str
    about: str
    signed: bool
    values: list[float]

    @property
    def largest(self) -> float:
        """The largest size, by which all are scaled; 1 where all are 0."""
        return max(map(abs, self.values), default=0.0) or 1.0


def list_ways(one: WordImportance) -> list[ImportanceMeasure]:
    """Attention, gradient × attention and leave-one-out of a text.

    >>> import torch
    >>> row = torch.tensor([0.25, 0.75])
    >>> [way.title for way in list_ways(WordImportance(("a", "b"), row, row, -row, "the pooling layer"))]
    ['attention', 'gradient × attention', 'leave-one-out']
    """
    rest = max(0.0, 1.0 - float(one.attention.sum()))
    beside = f"; {rest:.0%} of it falls on special tokens" if rest >= 0.005 else ""
    return [
        ImportanceMeasure("attention", f"shares, of {one.source}{beside}", False, as_list(one.attention)),
        ImportanceMeasure(
            "gradient × attention",
            "the same weights, each times what more of it would add to the log-odds of the class",
            True,
            as_list(one.gradient),
        ),
        ImportanceMeasure(
            "leave-one-out",
            "log-odds of the class with the word, less those without it: what happens if it is gone",
            True,
            as_list(one.leave_one_out),
        ),
    ]


def as_list(values: Tensor) -> list[float]:
    return [float(value) for value in values]
