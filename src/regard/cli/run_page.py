"""One run in full, as a terminal shows it: state, scores, curves, settings that are not the defaults."""

import sys
import time
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Any

from regard.cli.durations import format_age, format_clock
from regard.cli.next_commands import list_next
from regard.tasks.registry import TASKS, task_named
from regard.tokens.visible import columns, cut, visible
from regard.training.differences import changed_settings, different_settings
from regard.training.settings import format_value
from regard.training.status import RunStatus

WIDE = 100  # columns of a curve at most
VALUE = 40  # columns of a value in a table


def describe_run(run: RunStatus) -> str:
    """Everything that is worth knowing of a run, paragraph by paragraph."""
    return "\n\n".join(
        part
        for part in ("\n".join(head_lines(run)), *curve_parts(run), settings_table(run), "\n".join(next_lines(run)))
        if part
    )


def head_lines(run: RunStatus) -> list[str]:
    """What it is, how far it is, how long it took, how good it is."""
    lines = [f"{visible(str(run.folder))}: {run.task}, {run.state}, step {run.step:,} of {run.steps:,}"]
    if run.why:
        lines.append(f"It failed: {' '.join(run.why.split())}")
    sizes = [
        f"{count:,} {noun}" for count, noun in ((run.parameters, "parameters"), (run.examples, "examples")) if count
    ]
    speed = [] if run.tokens_per_second is None else [f"{run.tokens_per_second:,.0f} tokens/s"]
    left = [] if run.seconds_left is None else [f"{format_clock(run.seconds_left)} left"]
    took = f"{format_clock(run.seconds)} so far" if run.state == "running" else f"took {format_clock(run.seconds)}"
    written = f"last written {format_age(max(time.time() - run.written, 0.0))}"
    lines.append(", ".join([*sizes, took, *left, *speed, written]))
    if run.best is not None:
        lines.append(f"Best {run.best.score}: {run.best.value:.4g} at step {run.best.step:,}")
    if run.scores:
        what = f"Result ({run.weights_of})" if run.weights_of else "Last validation"
        lines.append(f"{what}: " + "  ".join(f"{name} {value:.4g}" for name, value in run.scores.items()))
    return lines


def curve_parts(run: RunStatus) -> list[str]:
    """The loss, and the score that decides: or the first one, where a run does not say which does."""
    from regard.views.static.plot_text import plot_text

    scores = run.curves.scores
    decides = run.better.score if run.better is not None and run.better.score in scores else next(iter(scores), "")
    width = min(get_terminal_size((80, 24)).columns, WIDE) if sys.stdout.isatty() else 80
    drawn = {"Training loss": run.curves.losses, f"Validation {decides}": scores.get(decides, [])}
    return [f"{name}\n{plot_text(points, width=width)}" for name, points in drawn.items() if points]


def settings_table(run: RunStatus) -> str:
    """The settings that are not the defaults of the task, with these beside them."""
    if run.task not in TASKS:
        rows = [(name, format_setting(value), "") for name, value in run.settings.items()]
        return f"Settings ({run.task!r} is no task of this version):\n{align(rows)}"
    kind = task_named(run.task).settings
    changed = changed_settings(kind, run.settings)
    if not changed:
        return f"Every setting is the default of {run.task}."
    fields = kind.model_fields
    defaults = {name: "" if fields[name].is_required() else format_setting(fields[name].default) for name in fields}
    rows = [
        (name, format_setting(value), f"[{defaults[name]}]" if defaults.get(name) else "")
        for name, value in changed.items()
    ]
    return f"Settings that differ from the defaults of {run.task}, which stand in brackets:\n{align(rows)}"


def table_of_differences(runs: Sequence[RunStatus]) -> str:
    """The settings in which runs differ, one column for each."""
    rows = different_settings([{"task": run.task} | run.settings for run in runs])
    if not rows:
        return "All settings are the same."
    names = ["", *(cut(visible(run.folder.resolve().name), VALUE) for run in runs)]
    return "Settings that differ:\n" + align(
        [names, *([name, *map(format_setting, row)] for name, row in rows.items())]
    )


def next_lines(run: RunStatus) -> list[str]:
    """What to do next; for a run that is to go on, from where."""
    commands = list_next(run)
    if run.state in ("stopped", "failed"):
        start = f" from step {run.saved:,}" if run.saved is not None else ", from the beginning: nothing was saved"
        return [f"Resume{start}: {commands[0]}", *(f"Or: {command}" for command in commands[1:])]
    return [f"Next: {commands[0]}", *(f"Or: {command}" for command in commands[1:])]


def format_setting(value: Any) -> str:
    """A value as it is written in a command, in one line of a table."""
    return cut(visible(format_value(tuple(value) if isinstance(value, list) else value)), VALUE)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Columns of text below each other, two blanks between them."""
    wide = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  " + "  ".join(cell + " " * (size - columns(cell)) for cell, size in zip(row, wide)).rstrip() for row in rows
    )
