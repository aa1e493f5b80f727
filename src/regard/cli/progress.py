"""What `regard train` says while it trains: a live line in a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from regard.training.fit import Event, Tell


@contextmanager
def report_progress(quiet: bool, folder: Path) -> Iterator[Tell]:
    """Listen to a training run: a live line in a terminal, plain lines elsewhere."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        with show_bar(folder) as tell:
            yield tell
    else:
        yield ProgressLines(folder)


class ProgressLines:
    """Plain lines, for a file or another program."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps, self.began = folder, 0, time.perf_counter()

    def __call__(self, event: Event) -> None:
        facts = event.facts
        if event.kind == "begin":
            self.steps, self.began = int(facts["steps"]), time.perf_counter()
            self.say(f"{describe_start(event)}, in {self.folder}")
        elif event.kind == "notice":
            self.say(f"regard: {facts['text']}")
        elif event.kind == "log":
            speed = facts["speed"]  # 0 where this process made no step yet
            left = f"  {speed:.2f} steps/s  {clock((self.steps - event.step) / speed)} left" if speed else ""
            self.say(f"step {event.step}/{self.steps}  loss {facts['loss']:.4f}  lr {facts['lr']:.2e}{left}")
        elif event.kind == "validation":
            said = "  ".join(f"{key} {value:.4g}" for key, value in facts.items() if key != "better")
            self.say(f"step {event.step}  validation  {said}{'  (best)' if facts['better'] else ''}")

    def say(self, text: str) -> None:
        typer.echo(text, err=True)


@contextmanager
def show_bar(folder: Path) -> Iterator[Tell]:
    """A bar with loss, learning rate, time left and the last validation."""
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
                bar.console.print(
                    f"{describe_start(event)}, in {folder}", markup=False, highlight=False, soft_wrap=True
                )
            elif event.kind == "notice":
                bar.console.print(f"regard: {facts['text']}", markup=False, highlight=False, soft_wrap=True)
            elif event.kind == "step":
                bar.update(job, completed=event.step, loss=f"{facts['loss']:.3f}")
            elif event.kind == "log" and facts["speed"]:
                bar.update(job, speed=f"{facts['speed']:.2f}")
            elif event.kind == "validation":
                said = "  ".join(f"{key} {value:.4g}" for key, value in facts.items() if key != "better")
                bar.update(job, score=said)
                bar.console.print(f"step {event.step}: {said}", markup=False, highlight=False)

        yield tell


def describe_start(event: Event) -> str:
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
