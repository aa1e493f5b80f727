"""`regard runs`: what was trained, how far it is, and what to do next."""

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.cli.durations import format_age, format_clock, format_rate
from regard.cli.harmless import format_json, make_harmless
from regard.cli.next_commands import list_next
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.run_page import describe_run, table_of_differences
from regard.errors import ConfigError, RunError
from regard.tokens.visible import columns, cut, visible
from regard.training.find_runs import LeftOut, find_runs
from regard.training.run import MANIFEST
from regard.training.status import RunStatus

HERE = Path("runs")  # where runs are unless somebody says
PICTURES = (".svg", ".png", ".pdf")
HEADINGS = ("run", "task", "state", "step", "best", "time", "written")


def show_runs(folders: Sequence[Path], *, to: Path | None = None, dark: bool = False, as_json: bool = False) -> str:
    """The runs in these folders as a list; one that is named alone in full; their curves where `to` says so."""
    check_target(to, PICTURES)
    runs, left_out = find_runs(folders or [folder for folder in (HERE,) if folder.is_dir()])
    named = bool(folders) and all((folder / MANIFEST).exists() for folder in folders)
    if named:
        if not runs:
            raise RunError(left_out[0].why)
        runs.sort(key=lambda run: folders.index(run.folder))  # as they were named
    if to is not None:
        return draw_runs(runs, left_out, to, dark=dark)
    if as_json:
        told = {
            "runs": [to_json(run, curves=named) for run in runs],
            "left_out": [{"folder": str(one.folder), "why": one.why} for one in left_out],
        }
        return format_json(told, indent=1)
    if named and len(folders) == 1:
        return make_harmless(describe_run(runs[0]))
    more = [table_of_differences(runs)] if named and len(runs) > 1 else []
    return make_harmless("\n\n".join([*list_lines(runs, folders), *more, *list_left_out(left_out)]))


def draw_runs(runs: Sequence[RunStatus], left_out: Sequence[LeftOut], to: Path, *, dark: bool) -> str:
    """The curves as a picture, and where it is."""
    if not runs:
        why = f" ({left_out[0].why})" if left_out else ""
        raise ConfigError(f"there is no run to draw{why}; name one: regard runs RUN --to {to.name}")
    from regard.views.static.training_curves import draw_curves

    with explain_write_errors(to):
        draw_curves(runs, short_names(runs), dark=dark, to=to)
    return f"{to} is written: {', '.join(short_names(runs))}."


def list_lines(runs: Sequence[RunStatus], folders: Sequence[Path]) -> list[str]:
    """The table, each run with its next command below it, as one paragraph."""
    if not runs:
        where = ", ".join(map(str, folders)) or f"{HERE}/"
        return [f"There is no run in {where} yet. Train one: regard train copy --out {HERE}/copy"]
    room = None if not sys.stdout.isatty() else terminal_width()
    rows = [HEADINGS, *(cells_of(run, name) for run, name in zip(runs, short_names(runs)))]
    wide = [max(columns(row[i]) for row in rows) for i in range(len(HEADINGS))]
    if room is not None:  # the name gives way
        wide[0] = max(min(wide[0], room - sum(wide[1:]) - 2 * (len(wide) - 1)), 8)
    lines = []
    for row, run in zip(rows, [None, *runs]):
        padded = [fill(cut(cell, size), size) for cell, size in zip(row, wide)]
        lines.append("  ".join(padded).rstrip())
        if run is not None:
            lines += [f"  {line}" for line in list_notes(run)]
    return ["\n".join(lines)]


def cells_of(run: RunStatus, name: str) -> tuple[str, ...]:
    """One row of the table."""
    best = "" if run.best is None else f"{run.best.score} {run.best.value:.4g}@{run.best.step}"
    age = format_age(max(time.time() - run.written, 0.0))
    steps = f"{run.step}/{run.steps}"
    return name, run.task, run.state, steps, best or last_score(run), format_clock(run.seconds), age


def last_score(run: RunStatus) -> str:
    """A score of a run that does not say which one decides."""
    return "  ".join(f"{name} {value:.4g}" for name, value in list(run.scores.items())[:2])


def list_notes(run: RunStatus) -> list[str]:
    """What stands below a run: why it failed, how long it still takes, and what to do next."""
    notes = [cut(" ".join(run.why.split()), 300)] if run.why else []
    first = list_next(run)[0]
    if run.state == "running":
        left = "" if run.seconds_left is None else f"{format_clock(run.seconds_left)} left, "
        speed = "" if run.tokens_per_second is None else f"{format_rate(run.tokens_per_second)} tokens/s; "
        return [*notes, f"{left}{speed}watch it: {first}"]
    return [*notes, f"next: {first}"]


def list_left_out(left_out: Sequence[LeftOut]) -> list[str]:
    """One line for each folder that is not listed."""
    lines = [one.why if one.why.startswith(str(one.folder)) else f"{one.folder}: {one.why}" for one in left_out]
    return ["\n".join(f"Left out: {line}" for line in lines)] if lines else []


def short_names(runs: Sequence[RunStatus]) -> list[str]:
    """The name of each run's folder; the whole path where two have the same."""
    names = [run.folder.resolve().name for run in runs]
    return [visible(name if names.count(name) == 1 else str(run.folder)) for name, run in zip(names, runs, strict=True)]


def to_json(run: RunStatus, *, curves: bool) -> dict[str, Any]:
    """What another program reads of a run. JSON knows no NaN: null stands in its place."""
    told: dict[str, Any] = {
        "name": run.folder.resolve().name,
        "folder": str(run.folder),
        "task": run.task,
        "state": run.state,
        "why": run.why,
        "step": run.step,
        "steps": run.steps,
        "best": None
        if run.best is None
        else {"score": run.best.score, "value": finite(run.best.value), "step": run.best.step},
        "scores": {name: finite(value) for name, value in run.scores.items()},
        "seconds": run.seconds,
        "seconds_left": run.seconds_left,
        "tokens_per_second": run.tokens_per_second,
        "parameters": run.parameters,
        "examples": run.examples,
        "written": run.written,
        "next": list_next(run),
    }
    if curves:
        told |= {"settings": run.settings, "curves": run.curves._asdict()}
    return told


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def fill(text: str, size: int) -> str:
    """The text with blanks up to so many columns: a Chinese character takes two."""
    return text + " " * max(size - columns(text), 0)


def terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size((80, 24)).columns
