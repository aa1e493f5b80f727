"""`regard train`: settings from flags and a file, one call, and what happens meanwhile shown live."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from regard.errors import ConfigError
from regard.training.fit import Event, Result, Tell, fit
from regard.training.run import Run
from regard.training.settings import read_flags, read_toml, settings_from
from regard.training.task import Task

CHANGEABLE = ("steps", "workers", "tensorboard", "device")  # what a run that goes on may be told anew


def trained(
    name: str, words: Sequence[str], *, config: Path | None, out: Path | None, resume: Path | None, quiet: bool
) -> int:
    """Train, and give back the exit code."""
    from regard.tasks import task_named

    task = task_named(name)
    quiet = quiet or int(os.environ.get("RANK", "0")) > 0  # of several processes the first speaks
    given = (read_toml(config) if config else {}) | read_flags(words)
    if resume is None:
        settings = settings_from(task.settings, given)
        folder = fresh(name) if out is None else out
    else:
        folder, settings = resume, continued(task, resume, given)
    with told(quiet, folder) as tell:
        result = fit(task, settings, folder, resume=resume is not None, tell=tell)
    if result.code == 0 and not quiet:
        typer.echo(finished(name, result))
    return result.code


def fresh(name: str) -> Path:
    """A folder under runs/ that does not exist yet."""
    number = 1
    while (folder := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return folder


def continued(task: Task, folder: Path, given: dict[str, Any]) -> Any:
    """The settings of a run that goes on."""
    described = Run.open(folder).described()
    if described["task"] != task.name:
        raise ConfigError(f"{folder} is a run of {described['task']!r}, not of {task.name!r}; name its own task")
    settings_from(task.settings, described["settings"] | given)  # a name that does not exist is told as such
    other = sorted(set(given) - set(CHANGEABLE))
    if other:
        raise ConfigError(
            f"{other[0]} cannot change while a run goes on (only {', '.join(CHANGEABLE)} can); start a new run for it"
        )
    return settings_from(task.settings, described["settings"] | given)


def finished(name: str, result: Result) -> str:
    said = ", ".join(f"{key} {value:.4g}" for key, value in result.scores.items())
    verb = "translate" if name == "translate" else "evaluate"
    asked = ' "The cat sat on the mat."' if verb == "translate" else ""
    return f"{said} after {result.step} steps. Next: regard {verb} {result.folder}{asked}"


@contextmanager
def told(quiet: bool, folder: Path) -> Iterator[Tell]:
    """Somebody to tell: a live line in a terminal, plain lines elsewhere."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        with live() as tell:
            yield tell
    else:
        yield Lines(folder)


class Lines:
    """Plain lines, for a file or another program."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps, self.began = folder, 0, time.perf_counter()

    def __call__(self, event: Event) -> None:
        facts = event.facts
        if event.kind == "begin":
            self.steps, self.began = int(facts["steps"]), time.perf_counter()
            self.say(f"{opening(event)}, in {self.folder}")
        elif event.kind == "log":
            left = (self.steps - event.step) / facts["speed"]
            self.say(
                f"step {event.step}/{self.steps}  loss {facts['loss']:.4f}  rate {facts['rate']:.2e}  "
                f"{facts['speed']:.2f} steps/s  {clock(left)} left"
            )
        elif event.kind == "validation":
            said = "  ".join(f"{key} {value:.4g}" for key, value in facts.items() if key != "better")
            self.say(f"step {event.step}  validation  {said}{'  (best)' if facts['better'] else ''}")

    def say(self, text: str) -> None:
        typer.echo(text, err=True)


@contextmanager
def live() -> Iterator[Tell]:
    """A bar with loss, rate, time left and the last validation."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TextColumn("{task.fields[speed]} steps/s"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[score]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        job = bar.add_task("", total=None, loss="…", speed="…", score="")

        def tell(event: Event) -> None:
            facts = event.facts
            if event.kind == "begin":
                bar.update(job, total=facts["steps"], completed=event.step)
                bar.console.print(opening(event), markup=False, highlight=False)
            elif event.kind == "step":
                bar.update(job, completed=event.step, loss=f"{facts['loss']:.3f}")
            elif event.kind == "log":
                bar.update(job, speed=f"{facts['speed']:.2f}")
            elif event.kind == "validation":
                said = "  ".join(f"{key} {value:.4g}" for key, value in facts.items() if key != "better")
                bar.update(job, score=said)
                bar.console.print(f"step {event.step}: {said}", markup=False, highlight=False)

        yield tell


def opening(event: Event) -> str:
    """What begins: how large the model is, how much there is to learn from, and where it computes."""
    facts = event.facts
    left = f" ({facts['left_out']:,} left out: empty, or too long)" if facts["left_out"] else ""
    on = "" if facts["device"] == "cpu" else f" on {facts['device']}"
    after = f", going on after step {event.step}" if event.step else ""
    said = f"{facts['parameters']:,} parameters, {facts['examples']:,} examples{left}, {facts['steps']} steps{on}"
    return said + after


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.2), clock(65.0)
    ('1:02:05', '1:05')
    """
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def listed(name: str | None) -> str:
    """Every task, or every setting of one."""
    from regard.tasks import names, task_named
    from regard.training.settings import described

    if name is None:
        width = max(map(len, names())) + 2
        lines = [f"{one:<{width}}{task_named(one).about}" for one in names()]
        return "\n".join([*lines, "", "Settings of one: regard tasks NAME"])
    rows = described(task_named(name).settings)
    wide = max(len(row[0]) for row in rows) + 4
    return "\n".join(f"--{row[0]:<{wide}}{row[2]} [{row[1]}]" for row in rows)
