"""What kind of head this is, and the evidence for it."""

from collections.abc import Mapping
from typing import NamedTuple

# What must be reached for a name. Shares of the weight, but for "positional" (the share of what sets the map apart
# from even attention that the offset explains) and "rare-word" (times what rare words would get from even attention).
THRESHOLDS = {
    "previous-token": 0.4,
    "next-token": 0.4,
    "self": 0.4,
    "sink": 0.5,
    "induction": 0.3,
    "duplicate": 0.3,
    "positional": 0.5,
    "rare-word": 2.0,
}
GENERAL = ("positional", "rare-word")  # names that a more special one explains: every previous-token head is positional
NOTHING = {"rare-word": 1.0}  # what a head that does not care scores, where that is not 0
MEASURED_BY = {
    "previous-token": "previous",
    "next-token": "next",
    "self": "itself",
    "sink": "sink",
    "induction": "induction",
    "duplicate": "duplicate",
    "positional": "positional",
    "rare-word": "rare",
}


class Evidence(NamedTuple):
    """Why a head has its label: the number, what it had to reach, and what came second.

    `label` is None where nothing reached its threshold; then `score` and `threshold` are None too, and the runner-up
    is what came nearest.
    """

    label: str | None
    score: float | None
    threshold: float | None
    runner_up: str | None
    runner_up_score: float | None
    runner_up_threshold: float | None

    def __str__(self) -> str:
        second = ""
        if self.runner_up is not None:
            second = f"{self.runner_up} {self.runner_up_score:.2f} of {self.runner_up_threshold:.2f}"
        if self.label is None:
            return f"nothing reached its threshold; nearest: {second or 'nothing was measured'}"
        first = f"{self.label} {self.score:.2f}, threshold {self.threshold:.2f}"
        return f"{first}; runner-up: {second}" if second else first


def label(measured: Mapping[str, float | None]) -> Evidence:
    """The label of a head from its measures, by their names.

    Of the names whose threshold is reached the one that exceeds it by the largest factor is taken, "positional" and
    "rare-word" only where no more special one is reached.

    >>> print(label({"previous": 0.9, "sink": 0.05, "positional": 0.95, "induction": None}))
    previous-token 0.90, threshold 0.40; runner-up: positional 0.95 of 0.50
    >>> print(label({"sink": 0.2}))
    nothing reached its threshold; nearest: sink 0.20 of 0.50
    """
    scores = {name: measured.get(by) for name, by in MEASURED_BY.items()}
    known = {name: score for name, score in scores.items() if score is not None}

    def rank(name: str) -> tuple[bool, float]:
        nothing = NOTHING.get(name, 0.0)
        factor = (known[name] - nothing) / (THRESHOLDS[name] - nothing)
        return (factor >= 1 and name not in GENERAL, factor)

    order: list[str | None] = [*sorted(known, key=rank, reverse=True)]
    if not known or known[str(order[0])] < THRESHOLDS[str(order[0])]:
        order.insert(0, None)
    first, second = [*order, None, None][:2]
    return Evidence(
        first,
        known.get(first or ""),
        THRESHOLDS.get(first or ""),
        second,
        known.get(second or ""),
        THRESHOLDS.get(second or ""),
    )
