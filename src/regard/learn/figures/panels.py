"""What a figure of a lesson consists of: numbers with their names in both languages, not yet drawn.

The terminal, the explorer and the site draw the same panels, so that they show one computation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Wording:
    """The same words in each language of the lessons.

    >>> Wording("keys", "键")["zh"]
    '键'
    """

    en: str
    zh: str

    def __getitem__(self, language: str) -> str:
        return str(getattr(self, language))


QUERIES, KEYS = Wording("queries", "查询"), Wording("keys", "键")


@dataclass(frozen=True)
class HeatPanel:
    """A grid of numbers: shaded, or as a table where the numbers themselves matter. NaN may not be looked at."""

    title: Wording
    values: Float[np.ndarray, "r c"]
    rows: Sequence[str]
    columns: Sequence[str]
    axes: tuple[Wording, Wording] = (QUERIES, KEYS)
    numbers: bool = False
    digits: int = 2
    diverging: bool = False


@dataclass(frozen=True)
class CurvePanel:
    """Lines over one axis, and the points that they were made from, if any."""

    title: Wording
    x: Sequence[float | int]
    lines: Mapping[Wording, Sequence[float | int]]
    x_label: Wording
    points: tuple[Sequence[float], Sequence[float]] | None = None
    log: bool = False


@dataclass(frozen=True)
class LessonFigure:
    """The panels of one frame, and a sentence of what was computed."""

    panels: tuple[HeatPanel | CurvePanel, ...]
    said: Wording = field(default=Wording("", ""))
