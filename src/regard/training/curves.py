"""The curves of a run: loss, learning rate, scores and speed over its steps, from what it has written."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from regard.training.progress import beats
from regard.training.task import Better

Point = tuple[int, float]  # a step and a value


class Curves(NamedTuple):
    """Points in the order of their steps; only numbers that are finite, since nothing else can be drawn."""

    losses: list[Point]
    lrs: list[Point]
    scores: dict[str, list[Point]]  # of each validation, by name
    speeds: list[Point]  # tokens per second of training


class BestScore(NamedTuple):
    """The best of the scores that decide, and when it was reached."""

    score: str
    value: float
    step: int


def read_curves(history: Iterable[dict[str, Any]], timing: Iterable[dict[str, Any]] = ()) -> Curves:
    """The curves in these lines.

    >>> told = {"step": 5, "loss": 3.0, "lr": 0.1}, {"step": 5, "validation": {"bleu": 7.5}}, {"step": 9, "loss": 2.0}
    >>> read_curves(told)
    Curves(losses=[(5, 3.0), (9, 2.0)], lrs=[(5, 0.1)], scores={'bleu': [(5, 7.5)]}, speeds=[])
    """
    lines = list(history)
    scores: dict[str, list[Point]] = {}
    for step, measured in validations(lines):
        for name, value in measured.items():
            scores.setdefault(name, []).append((step, value))
    drawn = {name: [point for point in points if math.isfinite(point[1])] for name, points in scores.items()}
    return Curves(
        losses=points_of(lines, "loss"),
        lrs=points_of(lines, "lr"),
        scores={name: points for name, points in drawn.items() if points},
        speeds=points_of(timing, "tokens_per_second"),
    )


def points_of(lines: Iterable[dict[str, Any]], name: str) -> list[Point]:
    """The points of one curve, one for each step: of two lines for the same step the later one counts."""
    points = {line["step"]: float(line[name]) for line in lines if is_finite(line.get(name))}
    return sorted(points.items())


def validations(history: Iterable[dict[str, Any]]) -> list[tuple[int, dict[str, float]]]:
    """What each validation measured, and after which step."""
    return [
        (line["step"], {str(name): float(value) for name, value in line["validation"].items() if is_number(value)})
        for line in history
        if isinstance(line.get("validation"), dict)
    ]


def is_number(value: Any) -> bool:
    """Whether it is a number, and not one that no float can hold."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 1000
    return whole or isinstance(value, float)


def is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def find_best(history: Iterable[dict[str, Any]], better: Better) -> BestScore | None:
    """The best score so far, as the run itself decides it.

    >>> lines = [{"step": step, "validation": {"loss": loss}} for step, loss in ((5, 3.0), (10, 2.0), (15, 2.5))]
    >>> find_best(lines, Better("loss", more=False))
    BestScore(score='loss', value=2.0, step=10)
    """
    best: BestScore | None = None
    for step, scores in validations(history):
        if better.score in scores and beats(scores[better.score], None if best is None else best.value, better):
            best = BestScore(better.score, scores[better.score], step)
    return best


def thin_points(points: Sequence[Point], most: int) -> list[Point]:
    """Of very many points some: evenly, and always the last one.

    >>> thin_points([(step, 0.5) for step in range(7)], 3)
    [(0, 0.5), (3, 0.5), (6, 0.5)]
    """
    return [*points[: -1 : -(-len(points) // most) or 1], *points[-1:]]
