"""Ratios measured in one run: ours and theirs in turns, the best of each, so that a busy moment touches both."""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

OUT = Path(__file__).resolve().parents[1] / "out"
Call = Callable[[], object]


class Row(NamedTuple):
    """One comparison. `figure` is what is promised to be at most (or, with `least`, at least) `limit`."""

    name: str
    figure: float
    limit: float | None = None
    unit: str = "×"
    least: bool = False

    @property
    def passes(self) -> bool:
        if self.limit is None:
            return True
        return self.figure >= self.limit if self.least else self.figure <= self.limit


def best(ours: Call, theirs: Call, *, rounds: int = 15, inner: int = 1) -> tuple[float, float]:
    """Seconds of one call of each, the least over `rounds` turns of `inner` calls."""
    for call in (ours, theirs, ours, theirs):
        call()
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            call = (ours, theirs)[which]
            start = time.perf_counter()
            for _ in range(inner):
                call()
            times[which].append((time.perf_counter() - start) / inner)
    return min(times[0]), min(times[1])


def report(name: str, rows: list[Row]) -> int:
    """Print the table, write it as JSON, and say by the exit code whether every promise is kept."""
    wide = max(len(row.name) for row in rows) + 2
    print(f"{'':<{wide}}{'measured':>12}{'promised':>14}")
    for row in rows:
        sign = "≥" if row.least else "≤"
        promised = "" if row.limit is None else f"{sign} {row.limit:g} {row.unit}"
        verdict = "" if row.limit is None else "  pass" if row.passes else "  FALLS SHORT"
        print(f"{row.name:<{wide}}{row.figure:>10.3f} {row.unit:<2}{promised:>13}{verdict}")
    OUT.mkdir(exist_ok=True)
    kept = {"machine": platform.processor() or platform.machine(), "rows": [row._asdict() for row in rows]}
    (OUT / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n")
    return 0 if all(row.passes for row in rows) else 1


def plot(name: str, title: str, lines: dict[str, list[tuple[float, float]]], *, x: str, y: str) -> None:
    """One line per series over a logarithmic x axis, with the level of 1 marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for label, points in lines.items():
        axes.plot(*zip(*points), marker="o", label=label)
    axes.axhline(1.0, color="0.6", linewidth=1)
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log")
    axes.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.png", dpi=120)
    print(f"plot: {OUT / f'{name}.png'}")
